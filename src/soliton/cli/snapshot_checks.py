"""Checks of the chain in a snapshot's files: that it is what the manifest says, and what somebody
trusts.

A header's state hash covers the changes of all blocks up to it, not the present state: it shows
that the chain is that of its network as far as somebody vouches for a block. That balances are the
sums of these changes is checked by ``soliton verify`` and by nothing quicker.

What lives here: those checks, for a process of its own. What does not: that process (``children``),
the files (``snapshot_files``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from soliton.chain import blocks
from soliton.chain.genesis import genesis_block
from soliton.chain.networks.model import Network
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.errors import InputError
from soliton.node.blockchain import Blockchain
from soliton.storage.parts import SnapshotManifest, SnapshotProblem
from soliton.storage.store import Store

LINKS: Final = 100
"""So many of the last blocks are checked to be linked; with a trusted block all above it."""
REPORT_EVERY: Final = 100
_TRUST: Final = re.compile(r"([0-9]{1,10}):([1-9A-HJ-NP-Za-km-z]{1,90}|[0-9a-fA-F]{64})")
_STATE_HASH_CHARS: Final = 64


class Trusted(NamedTuple):
    """The id or the state hash of the block at a height, which the user knows."""

    height: int
    value: bytes


def read_trusted(text: str) -> Trusted:
    """Read ``HEIGHT:HASH``; raises ``InputError``."""
    found = _TRUST.fullmatch(text)
    if found is None or not 0 < int(found[1]) < 1 << 32:
        raise InputError(f"--trust should look like HEIGHT:HASH, not {text[:100]!r}")
    if len(found[2]) == _STATE_HASH_CHARS:
        try:
            return Trusted(int(found[1]), bytes.fromhex(found[2]))
        except ValueError:
            pass
    try:
        return Trusted(int(found[1]), base58.decode(found[2]))
    except Base58Error as error:
        raise InputError(f"--trust: {error}") from error


def check_chain(
    directory: Path,
    manifest: SnapshotManifest,
    network: Network,
    trusted: Trusted | None,
    report: Callable[[int], None],
) -> None:
    """Check the chain in a directory; raises ``SnapshotProblem``, ``StorageProblem``.

    ``report`` is called with the number of blocks that are checked to be linked.
    """
    store = Store(directory, network.name, exclusive=False)
    try:
        chain = Blockchain(network, store)
        _compare("height", chain.height, manifest.height)
        meta = chain.meta(chain.height)
        _compare("last block", base58.encode(meta.id), manifest.block)
        _compare("last block's time", meta.timestamp, manifest.timestamp)
        _compare("state hash", meta.state_hash.hex(), manifest.state_hash)
        _compare("mode", store.kept.mode, manifest.mode)
        _compare("snapshot hash", meta.snapshot_hash.hex(), manifest.snapshot_hash)
        genesis = genesis_block(network).id
        _compare("genesis block", base58.encode(chain.meta(1).id), base58.encode(genesis))
        _compare("genesis block", manifest.genesis, base58.encode(genesis))
        lowest = max(1, chain.height - LINKS)
        if trusted is not None:
            _check_trusted(chain, trusted)
            lowest = trusted.height
        _check_links(chain, lowest, report)
    finally:
        store.close()


def _compare(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise SnapshotProblem(f"the {what} of the snapshot is {found}, and should be {expected}")


def _check_trusted(chain: Blockchain, trusted: Trusted) -> None:
    if trusted.height > chain.height:
        raise SnapshotProblem(
            f"the snapshot ends at height {chain.height}, below the trusted {trusted.height}"
        )
    meta = chain.meta(trusted.height)
    if trusted.value not in (meta.id, meta.state_hash, meta.snapshot_hash):
        raise SnapshotProblem(
            f"the block at height {trusted.height} is not the trusted one: it is "
            f"{base58.encode(meta.id)}, with the state hash {meta.state_hash.hex()}"
        )


def _check_links(chain: Blockchain, lowest: int, report: Callable[[int], None]) -> None:
    """Check the blocks from the last one down to a height: ids, state hashes, links, and signatures
    where a block is kept as a whole.
    """
    for height in range(chain.height, lowest - 1, -1):
        meta = chain.meta(height)
        header, signature = chain.header_at(height)
        found = blocks.id_of(header, signature)
        _compare(f"id of block {height}", base58.encode(meta.id), base58.encode(found))
        if header.state_hash is not None and header.state_hash != meta.snapshot_hash:
            raise SnapshotProblem(f"the state hash of block {height} is not that of its header")
        if height > 1:
            if header.reference != chain.meta(height - 1).id:
                raise SnapshotProblem(f"block {height} does not follow block {height - 1}")
            is_whole = height >= chain.store.kept.blocks_from
            if is_whole and not blocks.signature_is_valid(chain.block_at(height)):
                raise SnapshotProblem(f"the signature of block {height} is not valid")
        if (chain.height - height) % REPORT_EVERY == 0:
            report(chain.height - height)
