"""A private chain in one file, which is portable and deterministic.

The file is compressed JSON lines: a header, then each block from height 2 on in the network's form
with its edits, and last the pool. It does not depend on the storage format. Loading applies all
blocks again without verifying signatures; the resulting state must have the hash in the header.

What lives here: writing and reading such files. What does not: disks and requests.
"""

from __future__ import annotations

import gzip
import io
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from soliton.chain import blocks
from soliton.chain.addresses import Address, check_address
from soliton.chain.features import Feature
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.controls.clock import YEARS_MS, ClockState
from soliton.controls.control import MAX_IMPERSONATED, Controls
from soliton.controls.errors import ControlRefused, refused
from soliton.controls.mining import MiningMode, checked_mode
from soliton.controls.moving import append_recorded, replace_store
from soliton.crypto import base58
from soliton.errors import InputError
from soliton.ledger.edits import ByHand
from soliton.node.chain_writer import ChainWriter
from soliton.storage.store import Store

FORMAT: Final = "soliton-devnet"
VERSION: Final = 1
BEFORE: Final = tuple(range(1, 24))
"""The features of chains that were begun before files and directories had a note of them."""
MAX_BYTES: Final = 1 << 30
"""The limit on an uncompressed file."""
MAX_HEAD_BYTES: Final = 1 << 20
"""The limit on the header: a thousand impersonated accounts take 40,000."""
FINALITY: Final = int(Feature.DETERMINISTIC_FINALITY)
_UNREADABLE: Final = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_LEVEL: Final = 6
_BATCH: Final = 100


class Head(msgspec.Struct, frozen=True, rename="camel"):
    """The header of a file. Without ``features`` they are those ``BEFORE``."""

    format: str
    version: int
    chain_id: int
    genesis: str
    height: int
    block: str
    state_hash: str
    clock: ClockState
    mining: MiningMode
    impersonated: list[bytes] = []
    features: tuple[int, ...] = BEFORE
    generation_period: int = 0


class _Kind(msgspec.Struct, frozen=True):
    format: str
    version: int


class _Line(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A block with its edits; binary members are in base64."""

    block: bytes
    by_hand: ByHand | None = None


class _Pool(msgspec.Struct, frozen=True):
    pool: list[bytes]


_encode: Final = msgspec.json.Encoder().encode
_read_kind: Final = msgspec.json.Decoder(_Kind).decode
_read_head: Final = msgspec.json.Decoder(Head).decode
_read_line: Final = msgspec.json.Decoder(_Line).decode
_read_pool: Final = msgspec.json.Decoder(_Pool).decode


def dump(controls: Controls) -> bytes:
    """Write the chain to a file. Raises ``ControlRefused`` for a fork."""
    chain, store = controls.chain, controls.chain.store
    _refuse_fork(controls)
    last, functionality = chain.meta(chain.height), chain.network.functionality
    head = Head(
        FORMAT,
        VERSION,
        chain.network.chain_id,
        base58.encode(chain.meta(1).id),
        chain.height,
        base58.encode(last.id),
        last.state_hash.hex(),
        controls.clock.state,
        controls.mining.mode,
        sorted(chain.waived),
        tuple(sorted(functionality.pre_activated_features)),
        functionality.generation_period_length,
    )
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=_LEVEL, mtime=0) as file:
        file.write(_encode(head) + b"\n")
        for height in range(2, chain.height + 1):
            data = store.block_data(height)
            assert data is not None, "every height has its block"
            file.write(_encode(_Line(data, store.by_hand(height))) + b"\n")
        pool = [codec.encode_protobuf(each) for each in controls.node.pool.transactions()]
        file.write(_encode(_Pool(pool)) + b"\n")
    return out.getvalue()


def load(controls: Controls, data: bytes) -> Head:
    """Replace the chain by that of a file. Raises ``ControlRefused``, which changes nothing."""
    _refuse_fork(controls)
    lines = _lines(data)
    node, chain = controls.node, controls.chain
    try:
        head = _head(next(lines, b""), controls)
        mode = checked_mode(head.mining.mode, head.mining.seconds)
        clock = controls.clock.checked(head.clock)
        waived = _addresses(head.impersonated, chain.network.chain_id)
        with tempfile.TemporaryDirectory(prefix="soliton-state-") as directory:
            store = Store(Path(directory), chain.network.name, durable=False)
            try:
                unconfirmed = _replay(ChainWriter(node.network, store), lines, head)
                controls.snapshots.pause()
                with controls.mining.paused(), node.writing():
                    replace_store(chain, store)
            finally:
                store.close()
    except (InputError, *_UNREADABLE) as error:
        raise refused(error, "the state cannot be loaded") from error
    controls.loaded(clock, mode, waived, unconfirmed)
    return head


def _addresses(found: list[bytes], chain_id: int) -> frozenset[Address]:
    if len(found) > MAX_IMPERSONATED:
        raise ControlRefused(f"more than {MAX_IMPERSONATED} accounts at once are impersonated")
    return frozenset(check_address(each, chain_id) for each in found)


def _refuse_fork(controls: Controls) -> None:
    if controls.origin is not None:
        raise ControlRefused(
            f"a fork is neither dumped nor loaded: its first blocks are at {controls.origin.url}"
        )


def _lines(data: bytes) -> Iterator[bytes]:
    size = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while line := file.readline(MAX_BYTES - size + 1):
                size += len(line)
                if size > MAX_BYTES:
                    raise ControlRefused(f"the state has more than {MAX_BYTES} bytes")
                yield line
    except (OSError, EOFError, zlib.error) as error:
        raise ControlRefused(f"the file is damaged, or no state of a devnet: {error}") from error


def _read_known(line: bytes) -> Head:
    try:
        kind = _read_kind(line)
    except _UNREADABLE as error:
        raise ControlRefused(f"the file is no state of a devnet: {error}") from error
    if (kind.format, kind.version) != (FORMAT, VERSION):
        raise ControlRefused(
            f"the file is {kind.format} {kind.version}: {FORMAT} {VERSION} is what can be read"
        )
    try:
        return _read_head(line)
    except _UNREADABLE as error:
        raise ControlRefused(f"the file is no state of a devnet: {error}") from error


def _head(line: bytes, controls: Controls) -> Head:
    head = _read_known(line)
    ours = base58.encode(controls.chain.meta(1).id)
    if head.genesis != ours:
        raise ControlRefused(
            f"the file is of a chain with another genesis block, {head.genesis}: this one has "
            f"{ours}. Accounts and balances have to be the same as where it was written"
        )
    functionality = controls.chain.network.functionality
    features = tuple(sorted(functionality.pre_activated_features))
    same_period = head.generation_period == functionality.generation_period_length
    if head.features != features or (FINALITY in features and not same_period):
        theirs = _listed(head.features, head.generation_period)
        ours = _listed(features, functionality.generation_period_length)
        raise ControlRefused(f"the file is of a chain with {theirs}: this one has {ours}")
    return head


def _listed(features: tuple[int, ...], period: int) -> str:
    words = f"the features {','.join(map(str, features))}"
    return f"{words} and generation periods of {period} blocks" if FINALITY in features else words


def head_of(data: BinaryIO) -> Head:
    """Return the header of a file, of which only the beginning is read. Raises
    ``ControlRefused``.
    """
    try:
        with gzip.GzipFile(fileobj=data) as file:
            line = file.readline(MAX_HEAD_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise ControlRefused(f"the file is damaged, or no state of a devnet: {error}") from error
    return _read_known(line)


def _replay(chain: ChainWriter, lines: Iterator[bytes], head: Head) -> list[AnyTransaction]:
    """Apply the blocks of a file to a new chain; return the transactions of the pool."""
    chain_id = chain.network.chain_id
    chain.allow_drift(YEARS_MS)
    for height in range(2, head.height + 1):
        line = _read_line(next(lines, b"{}"))
        block = blocks.decode(line.block, chain_id)
        if line.by_hand is None:
            chain.append(block, verify_signatures=False)
        else:
            append_recorded(chain, block, line.by_hand)
        if height % _BATCH == 0:
            chain.flush()
    chain.flush()
    found = chain.meta(chain.height).state_hash.hex()
    if found != head.state_hash:
        raise ControlRefused(f"the state has the hash {found}, not {head.state_hash}")
    pool = _read_pool(next(lines, b"{}")).pool
    return [codec.decode_protobuf(each, chain_id) for each in pool]
