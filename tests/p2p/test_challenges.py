"""Who signs a wrong state hash is challenged by those who mine, and all agree: on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from soliton.chain import blocks
from soliton.chain.addresses import from_public_key
from soliton.chain.blocks import Block
from soliton.chain.layouts import SIGNATURE_LENGTH
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto.curve25519 import sign
from soliton.crypto.keys import KeyPair
from soliton.grpc_api import accounts
from soliton.grpc_api.proto.accounts_api_pb2 import BalancesRequest
from soliton.grpc_api.proto.transactions_api_pb2 import TransactionsRequest
from soliton.grpc_api.transactions import get_state_changes
from soliton.ledger.state import Status
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.challenger import CannotChallenge
from soliton.node.node import system_clock
from soliton.p2p.history import block_message
from soliton.p2p.jobs import own_microblock
from soliton.ride.compiler import compile_source
from soliton.storage.store import Store
from soliton.wire import messages
from tests.node import forging
from tests.node.chains import address_of, person, signed
from tests.p2p.world import Peer, agree, done, join, make, network, peers, until

WRONG = bytes(32)
FEE = 100_000
POOR = person("somebody without money")
EMPTY = compile_source("""{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
@Callable(i)
func default() = []
""").script.source


@asynccontextmanager
async def world(directory: Path, **overrides: object) -> AsyncIterator[list[Peer]]:
    """A liar, whom one of three honest nodes hears, which hear one another."""
    async with peers(directory, 4, network(), **overrides) as found:
        liar, *honest = found
        join(honest[0], liar)
        join(honest[1], honest[0])
        join(honest[2], honest[1])
        await until(lambda: honest[0].service.core.connected == 2, "the liar and a friend")
        await until(lambda: honest[1].service.core.connected == 2, "all")
        liar.mine()
        await until(lambda: agree(*found), "a good block of the liar")
        yield found


def spend_all(peer: Peer, *before: AnyTransaction) -> AnyTransaction:
    """A transfer of all that somebody has, the reward of his last block too: in a challenge of that
    it does not apply.
    """
    balance = peer.node.chain.balance(address_of(peer.owner))
    spent = sum(each.fee for each in before)
    amount = balance - spent - FEE
    payload = Transfer(address_of(POOR), None, amount, b"")
    return signed(peer.owner, 4, payload, version=2, timestamp=system_clock())


def call(d_app: Peer, caller: KeyPair) -> AnyTransaction:
    payload = InvokeScript(address_of(d_app.owner), None, ())
    return signed(caller, 16, payload, version=2, timestamp=system_clock(), fee=FEE * 5)


def wrong_block(liar: Peer, *transactions: AnyTransaction) -> Block:
    """The next block of the liar, which is right but for its state hash."""
    chain = liar.node.chain
    good = forging.forge(chain, miner.next_slot(chain, liar.owner), (), liar.node.clock()).block
    root = blocks.transactions_root(transactions)
    header = msgspec.structs.replace(good.header, state_hash=WRONG, transactions_root=root)
    return blocks.sign(header, transactions, liar.owner.private_key)


def say(liar: Peer, message: messages.Message) -> None:
    liar.service.carry_out(liar.service.core.announce(message, liar.service.now()))


def check(liar: Peer, honest: list[Peer], wrong: Block) -> Block:
    """That all have the challenge of a block, and what it brought; gives the challenge."""
    chain = honest[0].node.chain
    block = chain.last_block
    challenged = block.header.challenged
    assert challenged is not None
    assert blocks.original_header(block.header, challenged) == wrong.header
    assert challenged.header_signature == wrong.signature
    assert block.header.timestamp < wrong.header.timestamp
    owners = [each.owner.public_key for each in honest]
    assert block.header.generator in owners
    # The liar mines no more, who challenged has the reward.
    banned = from_public_key(liar.owner.public_key, 82)
    assert chain.generating_balance(banned) == 0
    [shown] = accounts.get_balances(chain, BalancesRequest(address=banned, assets=[b""]))
    assert shown is not None
    assert shown.waves.regular > 0
    assert shown.waves.effective == shown.waves.generating == 0
    winner = from_public_key(block.header.generator, 82)
    before = chain.smallest_effective_balance(winner, chain.height - 1, chain.height - 1)
    assert chain.balance(winner) > before
    return block


def accepted_elsewhere(directory: Path, found: ChainWriter) -> None:
    """That a chain which has heard nothing takes the same blocks, byte for byte."""
    other = ChainWriter(found.network, Store(directory, found.network.name, durable=False))
    try:
        for height in range(2, found.height + 1):
            data = found.store.block_data(height)
            assert data is not None
            other.append(blocks.decode(data, found.network.chain_id))
        top = found.height
        assert other.meta(top).snapshot_hash == found.meta(top).snapshot_hash
        assert other.state_hash(top) == found.state_hash(top)
    finally:
        other.store.close()


def test_a_key_block_with_a_wrong_state_hash_is_challenged(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as (liar, *honest):
            wrong = wrong_block(liar)
            say(liar, block_message(wrong))
            await until(
                lambda: agree(*honest) and honest[0].node.chain.height == 3, "the challenge"
            )
            check(liar, honest, wrong)
            assert [str(ip) for ip in honest[0].service.blacklisted()] == ["127.1.0.1"]
            assert not honest[1].service.blacklisted()
            accepted_elsewhere(tmp_path / "other", honest[0].node.chain)
            # It takes no microblocks, and the next block stands on it.
            honest[1].mine(honest[1].transfer())
            await until(lambda: agree(*honest) and honest[0].node.chain.height == 4, "the next")

    asyncio.run(run())


def test_a_microblock_with_a_wrong_state_hash_is_challenged(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as (liar, *honest):
            first = liar.transfer(3)
            liar.mine(first)
            await until(lambda: agree(liar, *honest), "another good block of the liar")
            last = liar.node.chain.last_block
            fair = liar.transfer(5)
            script = signed(
                liar.owner, 13, SetScript(EMPTY), version=2, timestamp=system_clock(), fee=FEE * 10
            )
            added = (fair, script, spend_all(liar, fair, script), call(liar, POOR))
            draft = blocks.extended(last, added, WRONG, bytes(SIGNATURE_LENGTH))
            signature = sign(liar.owner.private_key, draft.signed)
            total = blocks.extended(last, added, WRONG, signature)
            liar.service.history.keep_microblock(
                total.id, own_microblock(total, last.id, len(added), liar.owner.private_key)
            )
            say(liar, messages.announce(
                liar.owner.private_key, liar.owner.public_key, total.id, last.id, 82
            ))  # fmt: skip
            await until(
                lambda: (
                    agree(*honest) and honest[0].node.chain.last_block.header.challenged is not None
                ),
                "the challenge",
            )
            assert honest[0].node.chain.height == 3
            check(liar, honest, total)
            found = [honest[2].node.chain.transaction(each.id) for each in (first, *added)]
            assert [each and each.status for each in found] == [
                *(Status.SUCCEEDED,) * 3,
                *(Status.ELIDED,) * 2,
            ]
            # An elided call is among the changes of state, without a result.
            asked = TransactionsRequest(transaction_ids=[each.id for each in added])
            [shown] = filter(None, get_state_changes(honest[2].node.chain, asked))
            assert shown.transaction.waves_transaction.HasField("invoke_script")
            assert not shown.HasField("result")
            accepted_elsewhere(tmp_path / "other", honest[0].node.chain)

    asyncio.run(run())


def test_who_does_not_mine_does_not_challenge(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path, miner__enable=False) as (liar, *honest):
            tip = honest[0].tip()
            say(liar, block_message(wrong_block(liar)))
            await until(lambda: bool(honest[0].service.blacklisted()), "the blame")
            await until(lambda: not honest[0].service.jobs.is_working, "the end of the work")
            assert honest[0].tip() == tip

    asyncio.run(run())


def test_a_block_that_is_earlier_than_any_of_ours_is_not_challenged(
    tmp_path: Path,
) -> None:
    """At the liar's earliest time, with the balance of both, others may be later still."""

    async def run() -> None:
        chain = network()
        one = make(tmp_path / "one", 1, chain)
        async with peers(tmp_path, 1, chain) as (liar,):
            try:
                wrong = wrong_block(liar)
                header = msgspec.structs.replace(
                    wrong.header, timestamp=liar.node.chain.last_block.header.timestamp
                )
                wrong = blocks.sign(header, (), liar.owner.private_key)
                with pytest.raises(CannotChallenge, match="is not before that of the wrong block"):
                    done(one.service.jobs.receiver.challenge(wrong))
            finally:
                one.service.jobs.stop()
                one.node.close()

    asyncio.run(run())
