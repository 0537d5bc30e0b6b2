"""A chain with deterministic finality: three generators, short periods, endorsements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from soliton.chain import blocks, finalization
from soliton.chain.blocks import Block
from soliton.chain.finalization import BlockEndorsement, FinalizationVoting
from soliton.chain.networks import Network
from soliton.chain.transactions.commit_to_generation import CommitToGeneration, commitment
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import bls, curve25519
from soliton.crypto.keys import KeyPair
from soliton.node.chain_writer import ChainWriter
from tests.node.chains import forge, now, open_chain, person, shared_network, signed, transfer

ANN, BOB, CARL = (person(name) for name in ("ann", "bob", "carl"))
OWNERS = ANN, BOB, CARL
COMMITMENT_FEE = 10_000_000
ACTIVATION = 3
PERIOD = 6
"""Periods begin at 3 (of seven blocks), 10, 16, 22 …"""
MAX_ENDORSERS = 2


def finality_network(*owners: KeyPair, **settings: Any) -> Network:
    network = shared_network(*(owners or OWNERS))
    features = {**network.functionality.pre_activated_features, 24: 0, 25: ACTIVATION}
    settings = {
        "pre_activated_features": features,
        "generation_period_length": PERIOD,
        "max_valid_endorsers": MAX_ENDORSERS,
        **settings,
    }
    functionality = msgspec.structs.replace(network.functionality, **settings)
    return msgspec.structs.replace(network, name="finality", functionality=functionality)


def finality_chain(directory: Path, **settings: Any) -> ChainWriter:
    return open_chain(directory, finality_network(**settings))


def next_start(chain: ChainWriter) -> int:
    """The first height of the period after that of the next block."""
    period = chain.rules.period_at(chain.height + 1)
    assert period is not None
    return period.next.start


def commit(
    chain: ChainWriter,
    pair: KeyPair,
    start: int | None = None,
    *,
    payload: CommitToGeneration | None = None,
    **envelope: Any,
) -> AnyTransaction:
    period_start = next_start(chain) if start is None else start
    if payload is None:
        payload = commitment(pair.private_key, period_start)
    envelope = {"timestamp": now(chain), "fee": COMMITMENT_FEE, "version": 1, **envelope}
    return signed(pair, 19, payload, **envelope)


def grow(
    chain: ChainWriter, to: int, account: KeyPair = ANN, first: Sequence[AnyTransaction] = ()
) -> Block:
    """Mine until the chain has a height; the first block has these transactions."""
    content: Sequence[AnyTransaction] = first
    while chain.height < to:
        block = forge(chain, content, account)
        assert len(block.transactions) == len(content)
        chain.append(block)
        content = ()
    return chain.last_block


def committed_chain(directory: Path, *pairs: KeyPair, **settings: Any) -> ChainWriter:
    """A chain whose last block is the first of a period to which these have committed, at 10."""
    chain = finality_chain(directory, **settings)
    grow(chain, ACTIVATION)
    first = [commit(chain, pair) for pair in pairs]
    grow(chain, ACTIVATION + 1, first=first)
    grow(chain, ACTIVATION + PERIOD)
    grow(chain, ACTIVATION + PERIOD + 1, pairs[0] if pairs else ANN)
    return chain


def endorse(
    chain: ChainWriter,
    pair: KeyPair,
    index: int,
    *,
    final: int = 1,
    final_id: bytes | None = None,
    endorsed: bytes | None = None,
) -> BlockEndorsement:
    """An endorsement of the parent of the last block."""
    return finalization.sign_endorsement(
        bls.generate_key(pair.private_key),
        index,
        chain.meta(final).id if final_id is None else final_id,
        final,
        chain.last_block.header.reference if endorsed is None else endorsed,
    )


def voting_of(
    endorsements: Sequence[BlockEndorsement],
    conflicts: Sequence[BlockEndorsement] = (),
    final: int = 1,
) -> FinalizationVoting:
    return FinalizationVoting(
        tuple(each.endorser_index for each in endorsements),
        final,
        bls.aggregate([each.signature for each in endorsements]) if endorsements else None,
        tuple(conflicts),
    )


def add_micro(
    chain: ChainWriter,
    voting: FinalizationVoting | None,
    account: KeyPair = ANN,
    sender: KeyPair = BOB,
) -> Block:
    """A microblock with one transfer, as a peer's."""
    last = chain.last_block
    content = (transfer(chain, sender, CARL, 1, timestamp=now(chain) + len(last.transactions)),)
    progress = chain.liquid_progress()
    assert progress is not None
    progress.add(content[0])
    state_hash = progress.snapshot_hash
    unsigned = blocks.extended(last, content, state_hash, bytes(64), voting=voting)
    signature = curve25519.sign(account.private_key, unsigned.signed)
    return chain.extend(content, state_hash, signature, voting=voting)


def with_voting(block: Block, voting: FinalizationVoting | None, account: KeyPair = ANN) -> Block:
    """A key block with another voting, signed again."""
    header = msgspec.structs.replace(block.header, finalization_voting=voting)
    return blocks.sign(header, block.transactions, account.private_key)


def mine_with(
    chain: ChainWriter,
    voting: FinalizationVoting | None,
    content: Sequence[AnyTransaction] = (),
    account: KeyPair = ANN,
) -> None:
    """The next block, with a voting on the last one."""
    chain.append(with_voting(forge(chain, content, account), voting, account))
