"""Payments of every shape, in order and once each, through forks, and resumed at every place."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton import Account, AsyncNode, Node
from soliton.client.binding import Runner
from soliton.client.errors import NodeBroken, NodeUnreachable
from soliton.client.payments import (
    MAX_BROKEN,
    Payment,
    PaymentEvent,
    PaymentStream,
    PaymentsUndone,
)
from soliton.client.steps import Answer, Core, Request
from soliton.crypto import base58
from soliton.crypto.hashes import blake2b256
from soliton.errors import InputError
from tests.node import recorded
from tests.vectors import report

ME, OTHER, DAPP = "3M-me", "3M-other", "3M-dapp"
Json = dict[str, Any]


def name(text: str) -> str:
    return base58.encode(blake2b256(text.encode()))


class Chain(Runner):
    """A node of the reference with the blocks that a test has written down."""

    def __init__(self, blocks: list[list[Json]], fork: str = "a") -> None:
        self._core = Core(retries=0)
        self._core.is_soliton = False
        self._exchange = self._answer_to
        self._pause = self._sleep
        self.blocks: list[tuple[str, list[Json]]] = []
        self.final = 1
        self.asked: list[str] = []
        self.slept = 0
        self.broken: dict[str, object] = {}
        for each in blocks:
            self.append(each, fork)

    def append(self, transactions: list[Json], fork: str = "a") -> None:
        self.blocks.append((name(f"block {fork} {len(self.blocks) + 1}"), transactions))

    def events(self, stream: PaymentStream) -> list[PaymentEvent]:
        return self._run(stream.batch(self._core))

    def all_events(self, stream: PaymentStream) -> list[PaymentEvent]:
        """Everything up to the present."""
        found: list[PaymentEvent] = []
        while True:
            slept = self.slept
            batch = self.events(stream)
            found += batch
            if not batch and self.slept > slept:
                return found

    def _sleep(self, _seconds: float) -> None:
        self.slept += 1

    def _answer_to(self, request: Request) -> Answer:
        path = request.path.partition("?")[0]
        self.asked.append(path)
        value = self.broken.get(path, self._value(path, request))
        if isinstance(value, Exception):
            raise value
        status = 404 if value is None else 200
        return Answer(status, msgspec.json.encode({"error": 301} if value is None else value))

    def _value(self, path: str, request: Request) -> object:
        parts = path.split("/")[1:]
        match parts:
            case ["blocks", "height"]:
                return {"height": len(self.blocks)}
            case ["blocks", "height", "finalized"]:
                return {"height": self.final}
            case ["blocks", "headers", "at", at]:
                return self._block(int(at), whole=False) if int(at) <= len(self.blocks) else None
            case ["blocks", "headers", "seq", first, last]:
                return [self._block(at, whole=False) for at in self._range(first, last)]
            case ["blocks", "seq", first, last]:
                return [self._block(at, whole=True) for at in self._range(first, last)]
            case ["transactions", "info"]:
                ids = msgspec.json.decode(request.body)["ids"]
                rows = {each["id"]: each for _, rows in self.blocks for each in rows}
                return [rows[each] for each in ids] if set(ids) <= rows.keys() else None
            case ["alias", "by-alias", alias]:
                return {"address": {"me": ME}.get(alias, OTHER)}
            case ["assets", "details", asset]:
                return asset_details(asset)
        raise AssertionError(path)

    def _range(self, first: str, last: str) -> range:
        return range(int(first), min(int(last), len(self.blocks)) + 1)

    def _block(self, at: int, *, whole: bool) -> Json:
        own, transactions = self.blocks[at - 1]
        below = self.blocks[at - 2][0] if at > 1 else name("nothing")
        found: Json = {"height": at, "id": own, "reference": below}
        found["transactionCount"] = len(transactions)
        if whole:
            # Blocks lack what calls have done.
            hidden = {"stateChanges"}
            found["transactions"] = [
                {key: value for key, value in each.items() if key not in hidden}
                for each in transactions
            ]
        return found


def asset_details(asset: str) -> Json:
    return {
        "assetId": asset,
        "issuer": OTHER,
        "name": "Gold",
        "description": "",
        "decimals": 2,
        "quantity": 1,
        "reissuable": False,
    }


_count = iter(range(10**9))


def transfer(to: Any = ME, amount: Any = 1, **more: Any) -> Json:
    return {
        "type": 4,
        "id": name(f"tx {next(_count)}"),
        "sender": OTHER,
        "timestamp": 1,
        "recipient": to,
        "assetId": None,
        "amount": amount,
        "attachment": "",
        "applicationStatus": "succeeded",
    } | more


def amounts(events: list[PaymentEvent]) -> list[object]:
    return [
        each.amount if isinstance(each, Payment) else ("undone", each.height) for each in events
    ]


def test_every_shape() -> None:
    nested = {
        "dApp": DAPP,
        "payment": [{"assetId": "gold", "amount": 10}],
        "stateChanges": {
            "transfers": [{"address": ME, "asset": None, "amount": 11}],
            "invokes": [
                {
                    "dApp": ME,
                    "payments": [{"assetId": None, "amount": 12}],
                    "stateChanges": {"transfers": [{"address": ME, "asset": "gold", "amount": 13}]},
                }
            ],
        },
    }
    order = {"assetPair": {"amountAsset": "gold", "priceAsset": None}}
    exchange = {
        "order1": {**order, "orderType": "sell", "sender": ME},
        "order2": {**order, "orderType": "buy", "sender": OTHER},
        "amount": 300,
        "price": 2 * 10**8,
    }
    block = [
        transfer(amount=1, attachment=base58.encode(b"order 7")),
        transfer(OTHER, 99),
        transfer("alias:R:me", 2),
        transfer(amount=3, applicationStatus="script_execution_failed"),
        transfer(type=11, transfers=[{"recipient": OTHER, "amount": 9}, {"recipient": ME,
                 "amount": 4}], assetId="gold"),
        transfer(type=2, amount=5),
        transfer(type=16, **nested),
        transfer(type=16, **nested | {"dApp": ME}, applicationStatus="elided"),
        transfer(type=18, payload={"type": "transfer", "recipient": ME, "asset": None,
                 "amount": 14}),
        transfer(type=18, payload={"type": "invocation", **nested}),
        transfer(type=7, version=1, **exchange),
        transfer(type=7, version=3, **exchange),
        transfer(type=12, data=[]),
    ]  # fmt: skip
    chain = Chain([[], block, []])
    found = chain.all_events(PaymentStream(ME, since=1))
    assert amounts(found) == [1, 2, 4, 5, 11, 12, 13, 14, 11, 12, 13]
    first, _, mass = found[:3]
    assert isinstance(first, Payment) and isinstance(mass, Payment)
    assert first.attachment == b"order 7" and first.asset is None and first.height == 2
    assert (mass.kind, mass.position, mass.asset) == ("mass-transfer", 1, "gold")
    kinds = [each.kind for each in found if isinstance(each, Payment)]
    assert kinds[4:8] == ["script", "call", "script", "ethereum"]
    with_orders = chain.all_events(PaymentStream(ME, since=1, exchanges=True))
    assert amounts(with_orders)[-2:] == [600, 600 * 10**6]
    everybody = chain.all_events(PaymentStream(since=1))
    assert len(everybody) == 1 + 1 + 1 + 2 + 1 + 4 + 1 + 4
    several = chain.all_events(PaymentStream([ME, OTHER], since=1))
    assert len(several) == len(everybody) - 2


def test_confirmations_and_the_present() -> None:
    chain = Chain([[transfer(amount=at)] for at in range(1, 6)])
    assert amounts(chain.all_events(PaymentStream(ME, since=1, confirmations=3))) == [1, 2]
    final = PaymentStream(ME, since=1, confirmations="finalized")
    chain.final = 3
    assert amounts(chain.all_events(final)) == [1, 2, 3]
    # After a fork less may be known to be final.
    chain.final = 2
    assert chain.all_events(final) == []
    stream = PaymentStream(ME)
    assert chain.all_events(stream) == []
    chain.append([])
    assert amounts(chain.all_events(stream)) == [5]
    chain.append([])
    assert chain.all_events(stream) == []


@pytest.mark.parametrize("wrong", [0, -1, "final", 1.5, None])
def test_confirmations_that_are_none(wrong: Any) -> None:
    with pytest.raises(InputError, match="confirmations"):
        PaymentStream(ME, confirmations=wrong)
    with pytest.raises(InputError, match="since"):
        PaymentStream(ME, after="1.-1.0.a.-------", since=1)


@pytest.mark.parametrize("seed", range(8))
def test_resuming_after_every_payment_through_forks(seed: int) -> None:
    """What counts in the end is what the chain holds, whatever the way."""
    chance = random.Random(seed)

    def block() -> list[Json]:
        return [transfer(amount=next(_count)) for _ in range(chance.choice((0, 1, 3)))]

    chain = Chain([block() for _ in range(30)])
    held: list[Payment] = []
    cursor: str | None = None
    for number in range(25):
        if number % 3 == 2:
            depth = chance.randint(1, 20)
            del chain.blocks[-depth:]
            for _ in range(depth + 1):
                chain.append(block(), f"fork {number}")
        else:
            chain.append(block())
        stream = PaymentStream(ME, after=cursor, since=None if cursor else 1)
        # A client that is killed somewhere.
        stop = chance.choice((2, 5, 10**6))
        for event in islice(chain.all_events(stream), stop):
            if isinstance(event, PaymentsUndone):
                held = [each for each in held if each.height <= event.height]
            else:
                held.append(event)
            cursor = event.cursor
    stream = PaymentStream(ME, after=cursor)
    for event in chain.all_events(stream):
        if isinstance(event, PaymentsUndone):
            held = [each for each in held if each.height <= event.height]
        else:
            held.append(event)
    expected = [each["amount"] for _, rows in chain.blocks[:-1] for each in rows]
    assert [each.amount for each in held] == expected


def test_a_cursor_of_another_chain() -> None:
    found = Chain([[transfer()] for _ in range(9)]).all_events(PaymentStream(ME, since=1))
    other = Chain([[transfer()] for _ in range(9)], "other")
    with pytest.raises(InputError, match="no block of this chain"):
        other.all_events(PaymentStream(ME, after=found[-1].cursor))


@pytest.mark.parametrize(
    "text", ["", "1", "1.2.3.a.b", "x.-1.0.a.-------", "1.-1.0.a.-------" * 99, "٣.-1.0.a.-------"]
)
def test_what_is_no_cursor(text: str) -> None:
    with pytest.raises(InputError, match="no cursor"):
        PaymentStream(ME, after=text)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/blocks/seq/1/4", [{"height": 2}]),
        ("/blocks/seq/1/4", [7]),
        ("/blocks/seq/1/4", {}),
        ("/blocks/headers/seq/1/4", [{}]),
        ("/transactions/info", [transfer(type=16, dApp=DAPP)]),
        ("/transactions/info", []),
        ("/blocks/height", {"height": "x"}),
    ],
)
def test_a_node_that_answers_nonsense(path: str, value: object) -> None:
    chain = Chain([[transfer(type=16, dApp=ME, payment=[])], [transfer()], [], [], []])
    chain.broken[path] = value
    stream = PaymentStream(ME, since=1)
    for _ in range(MAX_BROKEN):
        assert chain.events(stream) == []
    with pytest.raises(NodeBroken):
        chain.events(stream)
    chain.broken.clear()
    assert amounts(chain.all_events(stream)) == [1]


@pytest.mark.parametrize("amount", [-1, 2**63, "5", 1.5, None, True])
def test_amounts_that_are_none(amount: object) -> None:
    chain = Chain([[transfer(amount=amount)], []])
    stream = PaymentStream(ME, since=1)
    for _ in range(MAX_BROKEN):
        assert chain.events(stream) == []
    with pytest.raises(NodeBroken, match="not an amount"):
        chain.events(stream)


def test_a_node_that_is_away_for_a_while() -> None:
    chain = Chain([[transfer()], []])
    chain.broken["/blocks/height"] = NodeUnreachable("away")
    stream = PaymentStream(ME, since=1)
    for _ in range(3 * MAX_BROKEN):
        assert chain.events(stream) == []
    chain.broken.clear()
    assert amounts(chain.all_events(stream)) == [1]


def test_a_chain_that_changes_while_it_is_read() -> None:
    chain = Chain([[transfer(amount=at)] for at in range(1, 6)])
    stream = PaymentStream(ME, since=1)
    other = Chain([[transfer(amount=at)] for at in range(11, 17)], "b")
    chain.broken["/blocks/headers/at/4"] = other._block(4, whole=False)
    assert chain.events(stream) == []
    chain.broken.clear()
    chain.blocks = other.blocks
    assert amounts(chain.all_events(stream)) == [11, 12, 13, 14, 15]


def test_recorded_blocks(shared: Path) -> None:
    """All payments of a recorded chain, beside the balances that the reference tells."""
    folder = shared / "golden" / "waves-r"
    rows = recorded.lines(folder / "transactions-info.jsonl.gz")
    bodies = [row["body"] for row in rows if row["status"] == 200]
    heights = max(each["height"] for each in bodies)
    chain = Chain([[each for each in bodies if each["height"] == at]
                   for at in range(1, heights + 2)])  # fmt: skip
    found = chain.all_events(PaymentStream(since=1, exchanges=True))
    kinds = {each.kind for each in found if isinstance(each, Payment)}
    assert kinds >= {"transfer", "mass-transfer", "script", "call", "ethereum", "exchange"}
    report.ran("golden/waves-r payments of the library", len(found))


# --- a node ---------------------------------------------------------------------------------------


def taken(events: Iterator[PaymentEvent], count: int) -> list[PaymentEvent]:
    return list(islice(events, count))


async def test_a_running_node(node: Node, accounts: list[Account]) -> None:
    alice, bob, carol = accounts[:3]
    top = node.height()
    memo = b"thanks"
    first = node.send(alice.transfer(bob, 5, attachment=memo))
    first.wait()
    second = node.send(alice.mass_transfer([(bob, 6), (alice, 7)]))
    second.wait()
    # A block above it.
    node.send(alice.transfer(carol, 1)).wait()
    found = taken(node.payments(bob, since=top), 2)
    assert amounts(found) == [5, 6]
    assert isinstance(found[0], Payment)
    assert (found[0].id, found[0].attachment, found[0].sender) == (first.id, memo, alice.address)
    assert amounts(taken(node.payments(bob, after=found[0]), 1)) == [6]
    async with AsyncNode(node.url) as other:
        async for event in other.payments(bob, after=found[0].cursor):
            assert event == found[1]
            break
