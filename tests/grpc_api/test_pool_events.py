"""The stream of the pool: what comes and goes, who is slow, how it ends."""

from __future__ import annotations

import pytest

from soliton.chain.transactions import lease, transfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.grpc_api import pool_events
from soliton.grpc_api.proto import waves_blockchain_api_pb2 as pb
from soliton.node import miner
from tests.api.chain import FEE, RICH, PrivateChain
from tests.grpc_api.market import (
    BOB,
    SERVICE,
    chain,
    market_on,
)
from tests.grpc_api.serving import Stream, eventually, served
from tests.node import forging
from tests.node.chains import address_of, person

__all__ = ["chain"]


async def test_the_stream_of_the_pool(chain: PrivateChain) -> None:
    """Everybody holds the pool at the end; who came first saw each come, and go with a reason."""
    async with market_on(chain) as market:
        early = market.events()
        await eventually(lambda: len(early.found) == 1)
        poor = person("poor")
        market.pay(poor, None, 2 * FEE + 2)
        chain.mine()
        spent = [chain.send(chain.sign(transfer.TYPE, TO_BOB, 3, keys=poor)) for _ in range(2)]
        leased = chain.send(chain.sign(lease.TYPE, lease.Lease(address_of(BOB), 7), 3))
        written = chain.send(chain.data(answer=42, gone=None))
        late = market.events()
        await eventually(lambda: holds(late) == [each.id for each in (*spent, leased, written)])
        await eventually(lambda: holds(early) == holds(late))
        shown = waiting(late)
        (lent,) = [
            each
            for each in shown[leased.id].diff.state_update.leasing_for_address
            if each.out_after
        ]
        assert (lent.address, lent.out_after, lent.in_after) == (address_of(RICH), 7, 0)
        assert (lent.out_before, lent.in_before) == (0, 0)
        entries = [each.data_entry for each in shown[written.id].diff.state_update.data_entries]
        assert {each.key: each.WhichOneof("value") for each in entries} == {
            "answer": "int_value",
            "gone": None,
        }
        # A block takes the money away that both rest on.
        taken = chain.sign(transfer.TYPE, TO_BOB, 3, keys=poor, fee=2 * FEE)
        forged_by(chain, taken)
        await eventually(lambda: holds(early) == holds(late) and spent[1].id not in holds(late))
        reasons = {
            each.transaction.id: (each.reason.name, each.reason.message)
            for event in map(pb.UtxEvent.FromString, early.found)
            for each in event.update.removed
            if each.HasField("reason")
        }
        assert reasons.keys() == {each.id for each in spent}
        for name, words in reasons.values():
            assert name == "TransactionValidationError" and "negative waves balance" in words


TO_BOB = transfer.Transfer(address_of(BOB), None, 1, b"")


def forged_by(chain: PrivateChain, *transactions: AnyTransaction) -> None:
    node = chain.node
    slot = miner.next_slot(node.chain, RICH)
    node.put_forged(forging.forge(node.chain, slot, transactions, chain.tick(60_000)))
    node.pool.settle()


def waiting(stream: Stream) -> dict[bytes, pb.UtxTransaction]:
    """What a client holds that follows the stream."""
    found: dict[bytes, pb.UtxTransaction] = {}
    for event in map(pb.UtxEvent.FromString, stream.found):
        if event.HasField("switch"):
            found = {each.id: each for each in event.switch.transactions}
        for each in event.update.removed:
            del found[each.transaction.id]
        for new in event.update.added:
            assert new.transaction.id not in found
            found[new.transaction.id] = new.transaction
    return found


def holds(stream: Stream) -> list[bytes]:
    return list(waiting(stream))


async def test_a_large_pool_comes_in_parts_and_who_is_slow_is_told_it_anew(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_events, "SWITCH_BYTES", 1_000)
    monkeypatch.setattr(pool_events, "MAX_QUEUE", 3)
    async with market_on(chain) as market:
        first = [chain.send(chain.transfer()).id for _ in range(10)]
        stream = market.events()
        await eventually(lambda: holds(stream) == first)
        told = [pb.UtxEvent.FromString(each).WhichOneof("type") for each in stream.found]
        assert told[0] == "switch" and told[1:].count("update") == len(told) - 1 > 5
        more = [chain.send(chain.transfer()).id for _ in range(50)]
        await eventually(lambda: holds(stream) == [*first, *more])
        # All came in one go, more than may wait.
        assert [pb.UtxEvent.FromString(each).WhichOneof("type") for each in stream.found].count(
            "switch"
        ) == 2


async def test_subscribers_hear_when_it_ends(chain: PrivateChain) -> None:
    async with served(chain.node) as client:
        made = client.channel.unary_stream(SERVICE + "GetUtxEvents")(b"")
        assert pb.UtxEvent.FromString(await made.read()).HasField("switch")
        ending = made
    assert (await ending.code()).name in ("UNAVAILABLE", "CANCELLED")
