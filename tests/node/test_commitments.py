"""Commitments to generation: refusals, who may mine, deposits, periods."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from soliton.chain import blocks
from soliton.chain.addresses import address_text
from soliton.chain.transactions.commit_to_generation import CommitToGeneration, commitment
from soliton.chain.transactions.model import AnyTransaction
from soliton.client.account import Account
from soliton.crypto import base58, bls
from soliton.ledger.environment import BlockMeta
from soliton.ledger.errors import BalanceErrors, BlockRejected
from soliton.ledger.snapshots import snapshot_of
from soliton.ledger.state import DEPOSITS, effective_balance_of
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.miner import CannotMine
from soliton.steps import run_steps
from tests.node import forging
from tests.node.chains import FEE, address_of, forge, open_chain, person, transfer
from tests.node.committing import (
    ACTIVATION,
    ANN,
    BOB,
    CARL,
    COMMITMENT_FEE,
    PERIOD,
    commit,
    committed_chain,
    finality_chain,
    finality_network,
    grow,
)

COIN = 10**8
DEPOSIT = 100 * COIN
FIRST = ACTIVATION + PERIOD + 1
"""The first height of the second period."""


def refusal(chain: ChainWriter, transaction: AnyTransaction) -> str:
    slot = miner.next_slot(chain, ANN)
    forged = forging.forge(chain, slot, [transaction], slot.earliest + 1_000)
    return forged.invalid.get(transaction.id, "")


def test_nobody_commits_before_the_activation(tmp_path: Path) -> None:
    chain = finality_chain(tmp_path)
    early = commit(chain, BOB, FIRST)
    words = "Deterministic Finality & RIDE V9 feature has not been activated yet"
    assert words in refusal(chain, early)
    grow(chain, ACTIVATION - 1)
    # The block that activates it is the first that may have one.
    assert refusal(chain, commit(chain, BOB)) == ""
    chain.store.close()


def test_refusals(tmp_path: Path) -> None:
    chain = finality_chain(tmp_path)
    grow(chain, ACTIVATION, first=[transfer(chain, ANN, person("poor"), 1_099 * COIN)])
    good = commitment(BOB.private_key, FIRST)

    def changed(**members: object) -> str:
        payload = msgspec.structs.replace(good, **members)
        return refusal(chain, commit(chain, BOB, payload=payload))

    assert refusal(chain, commit(chain, BOB)) == ""
    words = f"Expected the next period start height {FIRST}, got "
    for start in (ACTIVATION, FIRST - 1, FIRST + 1, FIRST + PERIOD, 0):
        assert refusal(chain, commit(chain, BOB, start)) == words + str(start)
    other = bls.public_key_of(bls.generate_key(CARL.private_key))
    wrong = "Invalid commitment signature: Wrong BLS signature"
    assert changed(endorser_public_key=other) == wrong
    assert changed(commitment_signature=bls.sign(bls.generate_key(b"x" * 32), b"?")) == wrong
    of_next = commitment(BOB.private_key, FIRST + PERIOD).commitment_signature
    assert changed(commitment_signature=of_next) == wrong
    infinity = b"\xc0" + bytes(95)
    assert changed(commitment_signature=infinity) == wrong
    assert (
        changed(commitment_signature=bytes(96))
        == "Invalid commitment signature: Error verifying BLS signature: BLST_BAD_ENCODING"
    )
    assert (
        changed(endorser_public_key=infinity[:48])
        == "Invalid endorser public key: Wrong BLS public key: point at infinity"
    )
    # The key is checked before its signature.
    assert (
        changed(endorser_public_key=bytes(48))
        == "Invalid endorser public key: Error in creating BLS public key: BLST_BAD_ENCODING"
    )
    assert "Fee for CommitToGenerationTransaction (9999999 in WAVES) does not exceed" in refusal(
        chain, commit(chain, BOB, fee=COMMITMENT_FEE - 1)
    )
    poor = person("poor")
    assert (
        refusal(chain, commit(chain, poor))
        == f"Generating balance 0 is less than {1_000 * COIN} required for block generation"
    )
    chain.store.close()


def test_a_balance_that_the_deposit_leaves_too_small(tmp_path: Path) -> None:
    poor, rich = person("poor"), person("rich")
    network = finality_network(ANN, BOB, CARL)
    chain = open_chain(tmp_path, network)
    amounts = 1_100 * COIN + COMMITMENT_FEE
    sent = [transfer(chain, ANN, poor, amounts - 1), transfer(chain, ANN, rich, amounts)]
    # What counts is the smallest balance in a thousand blocks, or the whole of a young chain.
    grow(chain, ACTIVATION, first=sent)
    left = 1_000 * COIN
    assert refusal(chain, commit(chain, rich)) == (
        f"Generating balance 0 is less than {left} required for block generation"
    )
    chain.store.close()


def test_nobody_commits_twice(tmp_path: Path) -> None:
    chain = finality_chain(tmp_path)
    grow(chain, ACTIVATION)
    grow(chain, ACTIVATION + 1, first=[commit(chain, BOB)])
    again = commit(chain, BOB, payload=commitment(CARL.private_key, FIRST))
    bob = address_text(address_of(BOB))
    assert refusal(chain, again) == f"{bob} is already committed"
    assert refusal(chain, commit(chain, BOB)) == f"{bob} is already committed"
    stolen = commitment(BOB.private_key, FIRST)
    key = base58.encode(stolen.endorser_public_key)
    assert (
        refusal(chain, commit(chain, CARL, payload=stolen))
        == f"BLS key {key} is already committed, try another key"
    )
    # The list is searched in its order.
    grow(chain, ACTIVATION + 2, first=[commit(chain, CARL)])
    both = commit(chain, CARL, payload=stolen)
    assert refusal(chain, both) == f"BLS key {key} is already committed, try another key"
    chain.store.close()


def test_a_commitment_in_the_last_block_of_a_period(tmp_path: Path) -> None:
    chain = finality_chain(tmp_path)
    grow(chain, FIRST - 2)
    last, late = commit(chain, ANN), commit(chain, CARL, FIRST)
    grow(chain, FIRST - 1, first=[last])
    words = f"Expected the next period start height {FIRST + PERIOD}, got {FIRST}"
    assert refusal(chain, late) == words
    grow(chain, FIRST)
    generators = chain.generators_at(FIRST)
    assert generators is not None
    assert [each.address for each in generators.members] == [address_of(ANN)]
    chain.store.close()


def test_two_commitments_with_one_key_in_one_block(tmp_path: Path) -> None:
    chain = finality_chain(tmp_path)
    grow(chain, ACTIVATION)
    stolen = commit(chain, CARL, payload=commitment(BOB.private_key, FIRST))
    slot = miner.next_slot(chain, ANN)
    content = [commit(chain, BOB), stolen]
    forged = forging.forge(chain, slot, content, slot.earliest + 1_000)
    assert forged.block.transactions == (content[0],)
    assert "is already committed, try another key" in forged.invalid[stolen.id]
    chain.store.close()


def test_only_who_has_committed_mines(tmp_path: Path) -> None:
    chain = committed_chain(tmp_path, BOB, CARL)
    assert chain.height == FIRST
    generators = chain.generator_set(0)
    assert generators is not None
    assert [each.address for each in generators.members] == [address_of(BOB), address_of(CARL)]
    words = f"has not committed to the generation period {FIRST} to {FIRST + PERIOD - 1}"
    with pytest.raises(CannotMine, match=words):
        miner.next_slot(chain, ANN)
    block = forge(chain, (), BOB)
    foreign = msgspec.structs.replace(block.header, generator=ANN.public_key)
    with pytest.raises(BlockRejected) as refused:
        chain.append(msgspec.structs.replace(block, header=foreign))
    ann, bob, carl = (address_text(address_of(each)) for each in (ANN, BOB, CARL))
    assert refused.value.reason == (
        f"{ann} is not allowed to generate a block, allowed: {bob}, {carl}. If this is your node: "
        "commit to generation for the next period"
    )
    chain.append(block)
    grow(chain, FIRST + PERIOD - 1, CARL)
    # Nobody has committed to the period that follows, so everybody mines.
    grow(chain, FIRST + PERIOD, ANN)
    chain.store.close()


def test_deposits(tmp_path: Path) -> None:
    chain = finality_chain(tmp_path)
    bob, state = address_of(BOB), chain.state
    grow(chain, ACTIVATION)
    before = chain.balance(bob)
    grow(chain, ACTIVATION + 1, first=[commit(chain, BOB)])
    spent = before - COMMITMENT_FEE
    assert chain.balance(bob) == spent
    assert state.get(DEPOSITS, bob) == DEPOSIT
    assert effective_balance_of(state, bob) == spent - DEPOSIT
    assert chain.generating_balance(bob) == spent - DEPOSIT
    grow(chain, FIRST - 1)
    assert state.get(DEPOSITS, bob) == DEPOSIT
    grow(chain, FIRST, BOB)
    assert state.get(DEPOSITS, bob) == DEPOSIT
    grow(chain, FIRST + 1, BOB, first=[commit(chain, BOB)])
    assert state.get(DEPOSITS, bob) == 2 * DEPOSIT
    grow(chain, FIRST + PERIOD, BOB)
    assert state.get(DEPOSITS, bob) == DEPOSIT
    grow(chain, FIRST + 2 * PERIOD, BOB)
    assert state.get(DEPOSITS, bob) == 0
    # All of it goes back.
    for height in (FIRST + PERIOD, FIRST + 1, FIRST, ACTIVATION):
        chain.rollback(height)
        expected = {FIRST + PERIOD: 1, FIRST + 1: 2, FIRST: 1, ACTIVATION: 0}[height]
        assert state.get(DEPOSITS, bob) == expected * DEPOSIT
        own = effective_balance_of(state, bob)
        assert next(chain.store.balance_history(bob, height))[2] == own
    assert chain.balance(bob) == before
    chain.store.close()


def test_a_deposit_cannot_be_spent_or_leased(tmp_path: Path) -> None:
    chain = finality_chain(tmp_path)
    bob = address_of(BOB)
    grow(chain, ACTIVATION)
    grow(chain, ACTIVATION + 1, first=[commit(chain, BOB)])
    free = chain.balance(bob) - DEPOSIT - FEE
    assert refusal(chain, transfer(chain, BOB, CARL, free)) == ""
    slot = miner.next_slot(chain, ANN)
    draft = forging.forge(chain, slot, [], slot.earliest + 1_000)
    assert draft.progress is not None
    with pytest.raises(BalanceErrors) as refused:
        draft.progress.add(transfer(chain, BOB, CARL, free + 1))
    total, left = chain.balance(bob), DEPOSIT - 1
    assert refused.value.details == {
        address_text(bob): (
            f"trying to spend a deposit, before: spendable={total - DEPOSIT}, waves={total}, "
            f"deposit={DEPOSIT}, after: spendable=-1, waves={left}, deposit={DEPOSIT}"
        )
    }
    chain.store.close()


def test_commitments_as_snapshots(tmp_path: Path) -> None:
    """A light node applies the same blocks without running their transactions."""
    full = committed_chain(tmp_path / "full", BOB, CARL)
    light = open_chain(tmp_path / "light", full.network)
    for height in range(2, full.height + 1):
        block = full.block_at(height)
        sent = [
            snapshot_of(full.store.changes_and_call(height, index)[0], 0)
            for index in range(len(block.transactions))
        ]
        head = blocks.decode_signed_header(block.data, full.network.chain_id)
        source = light.check_header(head, None)
        run_steps(light.appending(block, source, snapshots=sent))
        own: BlockMeta = light.meta(height)
        assert own == full.meta(height)
    assert light.generator_set(0) == full.generator_set(0)
    full.store.close()
    light.store.close()


def test_the_library_derives_the_key_for_endorsements() -> None:
    account = Account.from_private_key(BOB.private_key, "R")
    made = account.commit_to_generation(FIRST)
    payload: CommitToGeneration = made.inner.payload
    assert payload == commitment(BOB.private_key, FIRST)
