"""Importing blocks from a file: records of ``u32 length ‖ block``, verified completely.

Blocks are imported in batches. The blocks of a batch are applied in memory, while another core
verifies their signatures; if both succeed the batch is written, in one atomic step. The blocks
before an invalid one are kept, and the error names its height and offset in the file.

What lives here: reading records, batches, resuming. What does not: the rules (``chain_writer``),
showing progress (the command line).
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

import msgspec

from soliton.chain import blocks
from soliton.chain.blocks import MAX_BLOCK_BYTES, Block
from soliton.crypto.curve25519 import SignedMessage
from soliton.errors import InputError
from soliton.node.chain_writer import ChainWriter
from soliton.node.pruning import prune_all
from soliton.parallel.bulk_verifier import Batch, BulkVerifier

BATCH_BLOCKS: Final = 2_000
BATCH_BYTES: Final = 8 * 1024 * 1024
"""Limits of a batch, which bound the memory used."""
_LENGTH_BYTES: Final = 4


class ImportProblem(InputError):
    """A record that cannot be imported: its height, its offset in the file, and the reason."""

    def __init__(self, height: int, offset: int, reason: str) -> None:
        super().__init__(f"height {height}, offset {offset}: {reason}")
        self.height = height
        self.offset = offset
        self.reason = reason


class _Record(msgspec.Struct, frozen=True, gc=False):
    height: int
    offset: int
    data: bytes


class _Checked(msgspec.Struct, frozen=True, gc=False):
    record: _Record
    block: Block


def import_blocks(
    chain: ChainWriter,
    file: BinaryIO,
    to_height: int | None = None,
    on_progress: Callable[[int], None] = lambda _height: None,
) -> int:
    """Import the file's blocks that the chain does not have yet, and return their number.

    ``on_progress`` receives the height after each batch. Raises ``ImportProblem`` for the first
    invalid record, after everything before it has been stored, and ``StorageProblem`` when a batch
    cannot be stored: all batches before it are.
    """
    before = chain.height
    with _without_garbage_collection(), contextlib.closing(BulkVerifier()) as verifier:
        for batch in _batches(_new_records(chain, file, to_height)):
            _import_batch(chain, batch, verifier.batch())
            if chain.store.is_prune_due:
                prune_all(chain.store)
            on_progress(chain.height)
    prune_all(chain.store)
    return chain.height - before


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """An import makes no reference cycles; searching for them would take a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _import_batch(chain: ChainWriter, batch: list[_Record], signatures: Batch) -> None:
    decoded, problem = _decode(batch, chain.network.chain_id)
    owners, rejected = _apply(chain, decoded, signatures.add)
    problem = rejected or problem
    verdicts = signatures.verdicts()
    invalid = min(
        (owner for owner, valid in zip(owners, verdicts, strict=True) if not valid), default=None
    )
    if invalid is not None:
        chain.discard_pending()
        _apply(chain, decoded[:invalid], lambda _messages: None)
        problem = _problem(decoded[invalid].record, "invalid signature")
    chain.flush()
    if problem is not None:
        raise problem


def _decode(batch: list[_Record], chain_id: int) -> tuple[list[_Checked], ImportProblem | None]:
    decoded = []
    for record in batch:
        try:
            decoded.append(_Checked(record, blocks.decode(record.data, chain_id)))
        except InputError as error:
            return decoded, _problem(record, str(error))
    return decoded, None


def _apply(
    chain: ChainWriter,
    decoded: list[_Checked],
    have_checked: Callable[[list[SignedMessage]], None],
) -> tuple[list[int], ImportProblem | None]:
    """Append blocks until one is refused, and pass their signed messages to ``have_checked``.
    Return the index of the block of each message, and the refusal.
    """
    owners: list[int] = []
    for index, item in enumerate(decoded):
        try:
            applied = chain.append(item.block, verify_signatures=False)
        except InputError as error:
            return owners, _problem(item.record, str(error))
        found = [*blocks.signed_messages(item.block), *applied.unverified]
        have_checked(found)
        owners += [index] * len(found)
    return owners, None


def _problem(record: _Record, reason: str) -> ImportProblem:
    return ImportProblem(record.height, record.offset, reason)


def _batches(records: Iterator[_Record]) -> Iterator[list[_Record]]:
    """Yield records in batches; an invalid record ends its batch, and its error is raised after the
    batch was processed.
    """
    batch: list[_Record] = []
    size = 0
    try:
        for record in records:
            batch.append(record)
            size += len(record.data)
            if len(batch) >= BATCH_BLOCKS or size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
    except ImportProblem:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _new_records(chain: ChainWriter, file: BinaryIO, to_height: int | None) -> Iterator[_Record]:
    """Yield the records above the chain's last block, up to ``to_height``."""
    first = _read_record(file, 0, chain.height + 1)
    if first is None:
        return
    height = _first_height(chain, first)
    offset, record = 0, first
    while True:
        if to_height is not None and height > to_height:
            return
        if height > chain.height:
            yield _Record(height, offset, record)
        offset += _LENGTH_BYTES + len(record)
        height += 1
        following = _read_record(file, offset, height)
        if following is None:
            return
        record = following


def _first_height(chain: ChainWriter, data: bytes) -> int:
    """Return the height of the file's first block, found by its parent."""
    try:
        block = blocks.decode(data, chain.network.chain_id)
    except InputError as error:
        raise ImportProblem(chain.height + 1, 0, str(error)) from error
    known = chain.height_of(block.id)
    if known is not None:
        return known
    parent = chain.height_of(block.header.reference)
    if parent is None:
        raise ImportProblem(
            chain.height + 1, 0, "the parent of the file's first block is not in this chain"
        )
    return parent + 1


def _read_record(file: BinaryIO, offset: int, height: int) -> bytes | None:
    """Return the next record, ``None`` at the end of the file; raises ``ImportProblem`` when it is
    truncated or too long.
    """
    head = file.read(_LENGTH_BYTES)
    if not head:
        return None
    if len(head) < _LENGTH_BYTES:
        raise ImportProblem(height, offset, f"the file ends after {len(head)} bytes of a length")
    length = int.from_bytes(head, "big")
    if not 0 < length <= MAX_BLOCK_BYTES:
        raise ImportProblem(height, offset, f"a record of {length} bytes is no block")
    data = file.read(length)
    if len(data) < length:
        raise ImportProblem(
            height, offset, f"the file ends after {len(data)} of {length} bytes of a block"
        )
    return data
