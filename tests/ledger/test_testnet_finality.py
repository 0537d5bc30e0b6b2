"""Finality on Waves testnet: commitments and three consecutive headers of 1 October 2026.

The values are those of nodes-testnet.wavesnodes.com, recorded in shayansal/clpr-smart-contracts
``test/e2e/fixtures/waves-live/waves.json``, without what follows from others of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from soliton.chain import blocks, networks
from soliton.chain.addresses import Address, from_public_key
from soliton.chain.blocks import BlockHeader
from soliton.chain.finalization import FinalizationVoting, endorsement_message
from soliton.chain.transactions.commit_to_generation import commitment_message
from soliton.chain.transactions.json_reader import read_signed
from soliton.consensus.generation import GenerationPeriod, period_at
from soliton.crypto import base58, bls
from soliton.crypto.curve25519 import verify
from soliton.ledger.errors import BlockRejected
from soliton.ledger.finality import check_voting, is_final
from soliton.ledger.generators import Committed, GeneratorSet, Member

TESTNET = networks.load("waves-testnet")
ACTIVATION = 4_044_000
"""Of feature 25, by the documentation that comes with the values."""

_RECORDED: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("testnet_finality.json").read_text()
)
COMMITMENTS = _RECORDED["commitments"]
"""In the order of the generators of the period; ``balance`` is the generating balance at height
4,284,336.
"""
HEADERS = _RECORDED["headers"]
FIRST_HEIGHT = 4284330


def period_of(height: int) -> GenerationPeriod:
    found = period_at(height, ACTIVATION, TESTNET.functionality.generation_period_length)
    assert found is not None
    return found


def owner(public_key: str) -> Address:
    return from_public_key(base58.decode(public_key), TESTNET.chain_id)


def generators() -> GeneratorSet:
    """Who has committed to the period, with the recorded balances."""
    rows = [
        (
            owner(each["sender"]),
            base58.decode(each["endorserPublicKey"]),
            base58.decode(each["id"]),
            each["balance"],
        )
        for each in COMMITMENTS
    ]
    return GeneratorSet(
        period_of(FIRST_HEIGHT),
        tuple(Committed(address, key, name, 0) for address, key, name, _ in rows),
        tuple(
            Member(index, address, key, balance)
            for index, (address, key, _, balance) in enumerate(rows)
        ),
    )


def header_at(height: int) -> BlockHeader:
    values = HEADERS[height - FIRST_HEIGHT]
    return BlockHeader(
        version=5,
        chain_id=TESTNET.chain_id,
        timestamp=values["timestamp"],
        reference=base58.decode(values["reference"]),
        base_target=440,
        generation_signature=base58.decode(values["vrf"]),
        generator=base58.decode(values["generator"]),
        feature_votes=tuple(values["votes"]),
        transactions_root=base58.decode(values["root"]),
        state_hash=base58.decode(values["state"]),
        finalization_voting=FinalizationVoting(
            endorser_indexes=tuple(values["endorsers"]),
            finalized_height=height - 2,
            aggregate=base58.decode(values["aggregate"]),
        ),
    )


def id_at(height: int) -> bytes:
    if height == FIRST_HEIGHT - 1:
        return base58.decode(HEADERS[0]["reference"])
    if height < FIRST_HEIGHT:
        return bytes(32)
    return base58.decode(HEADERS[height - FIRST_HEIGHT]["id"])


def test_the_period() -> None:
    assert (period_of(FIRST_HEIGHT).start, period_of(FIRST_HEIGHT).end) == (4284001, 4287000)
    assert period_of(4287000).start == 4284001
    assert period_of(4287001).start == 4287001


@pytest.mark.parametrize("commitment", COMMITMENTS, ids=lambda each: each["id"][:6])
def test_a_commitment(commitment: dict[str, Any]) -> None:
    sender, key = commitment["sender"], commitment["endorserPublicKey"]
    possession, proof = commitment["commitmentSignature"], commitment["proof"]
    start = period_of(commitment["height"]).end + 1
    transaction = read_signed(
        {
            "type": 19,
            "id": commitment["id"],
            "version": 1,
            "chainId": TESTNET.chain_id,
            "fee": 10_000_000,
            "feeAssetId": None,
            "timestamp": commitment["timestamp"],
            "senderPublicKey": sender,
            "generationPeriodStart": start,
            "endorserPublicKey": key,
            "commitmentSignature": possession,
            "proofs": [proof],
        },
        TESTNET.chain_id,
    )
    assert transaction.id == base58.decode(commitment["id"])
    assert verify(base58.decode(sender), transaction.body, base58.decode(proof))
    message = commitment_message(base58.decode(key), start)
    assert bls.is_valid([base58.decode(key)], message, base58.decode(possession))
    other = commitment_message(base58.decode(key), start + 3_000)
    assert not bls.is_valid([base58.decode(key)], other, base58.decode(possession))


@pytest.mark.parametrize("height", range(FIRST_HEIGHT, FIRST_HEIGHT + len(HEADERS)))
def test_a_header(height: int) -> None:
    header, values = header_at(height), HEADERS[height - FIRST_HEIGHT]
    signature = base58.decode(values["signature"])
    assert blocks.id_of(header, signature) == base58.decode(values["id"])
    assert verify(header.generator, blocks.header_bytes(header), signature)
    assert generators().allows(owner(values["generator"]))


@pytest.mark.parametrize("height", range(FIRST_HEIGHT + 1, FIRST_HEIGHT + len(HEADERS)))
def test_a_voting(height: int) -> None:
    header, found = header_at(height), generators()
    voting = header.finalization_voting
    assert voting is not None and voting.aggregate is not None
    most = TESTNET.functionality.max_valid_endorsers
    assert len(check_voting(header, height, found, id_at, most)) == 1
    message = endorsement_message(id_at(height - 2), height - 2, header.reference)
    keys = [found.committed[index].endorser_key for index in voting.endorser_indexes]
    assert bls.is_valid(keys, message, voting.aggregate)
    assert not bls.is_valid(
        keys[:-1] or [found.committed[0].endorser_key], message, voting.aggregate
    )
    # Each makes its parent final: the node that was asked had two blocks above its final one.
    assert is_final(found, from_public_key(header.generator, TESTNET.chain_id), voting)
    with pytest.raises(BlockRejected, match="before Deterministic Finality feature activation"):
        check_voting(header, height, None, id_at, most)
