"""Runs text tables of commands and the events that they cause.

A line that is not indented is a command, the indented lines below it are its events:

    m: buy 1000 @238                      a limit order called m
    t: sell 10 @235 fee=5 by=bob          options: fee, fee-asset (amount, price, other), version,
                                          by, expires (ms from now), percent, const
    t: market sell 10 @235 spend=7        a market order that may spend 7
    cancel m                              also: cancel m expiration, cancel m balance
    cancel all
    delete book
    at 5000                               from here on the time is NOW + 5,000 ms
    offset 100                            the next command has this offset

    added m
    executed t m 10 @238 fees 5 3 taker-done maker-done
    canceled m BecameUnmatchable 7 left
    not found m
    deleted
    =bids 238 990, 200 5                  not an event: the depth afterwards, or "=bids" alone
"""

from __future__ import annotations

import re

from soliton.chain.orders import Order, Side
from soliton.matching.book import check_invariants
from soliton.matching.commands import (
    CancelAllOrders,
    CancelOrder,
    CancelSource,
    Command,
    DeleteOrderBook,
    PlaceMarketOrder,
    PlaceOrder,
    decode,
    encode,
)
from soliton.matching.engine import Engine
from soliton.matching.events import (
    BookDeleted,
    Event,
    ExecutionCorrected,
    OrderAdded,
    OrderCanceled,
    OrderCancelFailed,
    OrderExecuted,
)
from soliton.matching.rules import MatchingSettings
from tests.matching.makers import AMOUNT_ASSET, FEE_ASSET, NOW, PAIR, PRICE_ASSET, make_order

_PLACE = re.compile(r"(\w+): (market )?(buy|sell) (\d+) @(\d+)(.*)")
_SOURCES = {
    "": CancelSource.REQUEST,
    "expiration": CancelSource.EXPIRATION,
    "balance": CancelSource.BALANCE_TRACKING,
}
_FEE_ASSETS = {"amount": AMOUNT_ASSET, "price": PRICE_ASSET, "other": FEE_ASSET, "native": None}


class Run:
    """One table under way."""

    def __init__(self, settings: MatchingSettings) -> None:
        self.engine = Engine(settings)
        self.replica = Engine(settings)
        self.orders: dict[str, Order] = {}
        self.names: dict[bytes, str] = {}
        self.now = NOW
        self.offset = 0
        self.events: list[Event] = []

    def command(self, line: str) -> list[str]:
        """The lines that a command's events make."""
        if line.startswith(("at ", "offset ")):
            word, number = line.split()
            if word == "at":
                self.now = NOW + int(number)
            else:
                self.offset = int(number)
            return []
        command = self.parse(line)
        events = self.engine.apply(self.offset, self.now, command)
        # What a journal would hold does the same.
        assert self.replica.apply(self.offset, self.now, decode(encode(command))) == events
        self.offset += 1
        self.events += events
        for book in self.engine.books():
            check_invariants(book)
        return [self.text(event) for event in events]

    def parse(self, line: str) -> Command:
        """A command line as a command."""
        if placed := _PLACE.fullmatch(line):
            return self.place(*placed.groups())
        words = line.split()
        if words[:2] == ["cancel", "all"]:
            return CancelAllOrders(PAIR)
        if words == ["delete", "book"]:
            return DeleteOrderBook(PAIR)
        assert words[0] == "cancel", line
        source = _SOURCES[words[2] if len(words) > 2 else ""]
        return CancelOrder(PAIR, self.orders[words[1]].id, source)

    def place(
        self, name: str, market: str | None, side: str, amount: str, price: str, rest: str
    ) -> Command:
        """A placement."""
        options = dict(option.split("=") for option in rest.split())
        order = make_order(
            Side[side.upper()],
            int(amount),
            int(price),
            sender=options.get("by", name),
            fee=int(options.get("fee", "300000")),
            fee_asset=_FEE_ASSETS[options.get("fee-asset", "native")],
            version=int(options.get("version", "3")),
            expiration=NOW + int(options.get("expires", "86400000")),
        )
        self.orders[name] = order
        self.names[order.id] = name
        least = int(options["percent"]) if "percent" in options else None
        const = int(options["const"]) if "const" in options else None
        if market:
            return PlaceMarketOrder(order, int(options["spend"]), least, const)
        return PlaceOrder(order, least, const)

    def text(self, event: Event) -> str:
        """An event as a line."""
        match event:
            case OrderAdded(order=order):
                return f"added {self.names[order.id]}"
            case OrderExecuted():
                taker, maker = self.names[event.taker.id], self.names[event.maker.id]
                line = f"executed {taker} {maker} {event.amount} @{event.price} fees"
                line += f" {event.taker_fee} {event.maker_fee}"
                line += " taker-done" if event.taker_is_done else ""
                line += " maker-done" if event.maker_is_done else ""
                return line + (f" at {event.timestamp - self.now}" * (event.timestamp != self.now))
            case OrderCanceled(order=order, reason=reason):
                return f"canceled {self.names[order.id]} {reason.value} {order.amount} left"
            case OrderCancelFailed(order_id=order_id):
                return f"not found {self.names[order_id]}"
            case BookDeleted():
                return "deleted"
            case ExecutionCorrected():
                raise AssertionError("tables have no corrections")

    def depth(self, line: str) -> str:
        """The depth in the form of the expectation."""
        book = self.engine.book(PAIR)
        bids, asks = book.depth(1_000) if book else ([], [])
        levels = bids if line.startswith("=bids") else asks
        text = ", ".join(f"{level.price} {level.amount}" for level in levels)
        return f"{line[:5]} {text}".strip()


def run(table: str, settings: MatchingSettings | None = None) -> Run:
    """Run a table and compare; gives back the state after its last line."""
    state = Run(settings or MatchingSettings())
    pending: list[str] = []
    for number, raw in enumerate(table.splitlines(), 1):
        line = raw.partition("#")[0].rstrip()
        if not line:
            continue
        if not line.startswith(" "):
            assert pending == [], f"line {number}: events without a line: {pending}"
            pending = state.command(line)
        elif line.strip().startswith("="):
            assert state.depth(line.strip()) == line.strip(), f"line {number}"
        else:
            got = pending.pop(0) if pending else "nothing"
            assert got == line.strip(), f"line {number}: {got}"
    assert pending == [], f"at the end: events without a line: {pending}"
    restored = Engine(state.engine.settings)
    restored.restore(state.engine.snapshot())
    assert restored.snapshot() == state.engine.snapshot()
    return state
