"""Random values of the chain ring for property tests: accounts, entries, transactions, blocks."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from soliton.chain import blocks
from soliton.chain.addresses import (
    ALIAS_ALPHABET,
    Address,
    Alias,
    Recipient,
    from_public_key_hash,
    make_alias,
)
from soliton.chain.blocks import Block, BlockHeader, ChallengedHeader
from soliton.chain.transactions import codec
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.genesis import Genesis
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.payment import Payment
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import MAX_I64, MIN_I64, DataEntry, DataValue

chain_ids = st.sampled_from([ord(letter) for letter in "WTSRZ"] + [1, 127])
digests = st.binary(min_size=32, max_size=32)
signatures = st.binary(min_size=64, max_size=64)
longs = st.integers(MIN_I64, MAX_I64) | st.sampled_from([0, 1, -1, MIN_I64, MAX_I64])
amounts = st.integers(1, MAX_I64) | st.integers(1, 1_000)
timestamps = st.integers(0, 2**45)

# Every version that clients of today make, by type.
VERSIONS = {1: (1,), 2: (1,), 4: (1, 2, 3), 12: (1, 2)}


def texts(max_size: int = 60) -> SearchStrategy[str]:
    """Any text, also such that UTF-8 cannot write."""
    alphabet = st.integers(0, 0x10FFFF).map(chr) | st.sampled_from("\ud800\udfff\0\n:1\u00e4\u20bf")
    return st.text(alphabet, max_size=max_size) | st.just("alias:W:name")


def unicode_texts(max_size: int = 40, min_size: int = 0) -> SearchStrategy[str]:
    """Text that UTF-8 can write."""
    numbers = st.integers(32, 126) | st.integers(0, 0xD7FF) | st.integers(0xE000, 0x10FFFF)
    return st.text(numbers.map(chr), min_size=min_size, max_size=max_size)


def addresses_of(chain_id: int) -> SearchStrategy[Address]:
    hashes = st.binary(min_size=20, max_size=20)
    return hashes.map(lambda key_hash: from_public_key_hash(key_hash, chain_id))


def aliases_of(chain_id: int) -> SearchStrategy[Alias]:
    names = st.text(st.sampled_from(sorted(ALIAS_ALPHABET)), min_size=4, max_size=30)
    return names.map(lambda name: make_alias(name, chain_id))


def recipients_of(chain_id: int) -> SearchStrategy[Recipient]:
    return st.one_of(addresses_of(chain_id), aliases_of(chain_id))


def data_values(deletions: bool) -> SearchStrategy[DataValue]:
    values: SearchStrategy[DataValue] = st.one_of(
        longs, st.booleans(), st.binary(max_size=60), unicode_texts()
    )
    return values | st.none() if deletions else values


def data_entries(deletions: bool = True) -> SearchStrategy[DataEntry]:
    return st.builds(DataEntry, unicode_texts(min_size=1), data_values(deletions))


@st.composite
def payloads(draw: DrawFn, type_id: int, version: int, chain_id: int) -> Any:
    if type_id == 1:
        return Genesis(draw(addresses_of(chain_id)), draw(st.integers(0, MAX_I64)))
    if type_id == 2:
        return Payment(draw(addresses_of(chain_id)), draw(st.integers(1, MAX_I64 // 2)))
    if type_id == 4:
        return Transfer(
            draw(recipients_of(chain_id)),
            draw(st.none() | digests),
            draw(amounts),
            draw(st.binary(max_size=140)),
        )
    entries = st.lists(
        data_entries(deletions=version > 1), max_size=6, unique_by=lambda entry: entry.key
    )
    return Data(tuple(draw(entries)))


@st.composite
def transactions(
    draw: DrawFn, chain_id: int | None = None, kinds: tuple[int, ...] = (1, 2, 4, 12)
) -> AnyTransaction:
    """A well-formed transaction; its proofs are random bytes."""
    chain_id = draw(chain_ids) if chain_id is None else chain_id
    type_id = draw(st.sampled_from(kinds))
    version = draw(st.sampled_from(VERSIONS[type_id]))
    kind = type_by_id(type_id)
    unsigned = type_id == 1
    if unsigned:
        proofs: tuple[bytes, ...] = ()
    elif version in kind.signature_versions:
        proofs = (draw(signatures),)
    else:
        proofs = tuple(draw(st.lists(st.binary(max_size=64), max_size=8)))
    return codec.build(
        kind,
        draw(payloads(type_id, version, chain_id)),
        version=version,
        chain_id=chain_id,
        sender_public_key=b"" if unsigned else draw(digests),
        fee=0 if unsigned else draw(st.integers(1, MAX_I64 // 2)),
        fee_asset_id=draw(st.none() | digests) if kind.fee_in_asset else None,
        timestamp=draw(timestamps),
        proofs=proofs,
    )


@st.composite
def challenged_headers(draw: DrawFn) -> ChallengedHeader:
    return ChallengedHeader(
        base_target=draw(amounts),
        generation_signature=draw(st.binary(min_size=96, max_size=96)),
        feature_votes=tuple(
            draw(st.lists(st.integers(0, 2**15 - 1) | st.just(2**32 - 1), max_size=3))
        ),
        timestamp=draw(timestamps),
        generator=draw(digests),
        reward_vote=draw(longs),
        state_hash=draw(st.none() | digests),
        header_signature=draw(signatures),
    )


@st.composite
def block_values(draw: DrawFn, version: int | None = None) -> Block:
    """A well-formed block of any version, with a random signature."""
    version = draw(st.integers(1, 5)) if version is None else version
    chain_id = draw(chain_ids)
    protobuf = version >= blocks.PROTOBUF_VERSION
    # Legacy blocks hold transactions of every version as well: what may be in them is a rule.
    content = tuple(draw(st.lists(transactions(chain_id), max_size=4)))
    votes = st.lists(st.integers(0, 2**15 - 1), max_size=4) if version >= 3 else st.just([])
    if not protobuf:
        content = tuple(item for item in content if has_legacy_form(item))
    header = BlockHeader(
        version=version,
        chain_id=chain_id,
        timestamp=draw(timestamps),
        reference=draw(st.one_of(signatures, digests) if protobuf else signatures),
        base_target=draw(amounts),
        generation_signature=draw(st.binary(min_size=96, max_size=96) if protobuf else digests),
        generator=draw(digests),
        feature_votes=tuple(draw(votes)),
        reward_vote=draw(longs) if version >= 4 else blocks.NO_REWARD_VOTE,
        transactions_root=draw(digests) if protobuf else b"",
        state_hash=draw(st.none() | digests) if protobuf else None,
        challenged=draw(st.none() | challenged_headers()) if protobuf else None,
    )
    return blocks.assemble(header, content, draw(signatures))


def has_legacy_form(transaction: AnyTransaction) -> bool:
    return transaction.version in type_by_id(transaction.type_id).binary
