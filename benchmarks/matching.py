"""The matching engine alone: no journal, no network, no signatures.

Run ``.venv/bin/python benchmarks/matching.py``. Prints events per second for mixed commands (half
of the placements match, a quarter of all commands cancels), for a book of 10,000 levels with as
many cancellations as placements, bytes per resting order, the cost of reading a depth of 100, and
how fast records of a journal and snapshots are read.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from random import Random

import msgspec

from soliton.chain import orders
from soliton.chain.orders import Order, Side
from soliton.crypto.hashes import blake2b256
from soliton.matching.commands import (
    CancelOrder,
    CancelSource,
    Command,
    PlaceOrder,
    decode,
    encode,
)
from soliton.matching.engine import Engine
from soliton.matching.pairs import AssetPair
from soliton.matching.rules import MatchingSettings

COMMANDS = 200_000
RECORDS = 50_000
RUNS = 5
LEVELS = 10_000
PRICES = 18_000
ACCOUNTS = 1_000
NOW = 1_700_000_000_000
COIN = 10**8
PAIR = AssetPair(blake2b256(b"amount"), blake2b256(b"price"))
MATCHER = blake2b256(b"matcher")


def template(side: Side, sender: int, amount: int, price: int, number: int) -> Order:
    """An order as a user makes it, without a valid signature."""
    return Order(
        version=3,
        chain_id=ord("D"),
        sender_public_key=blake2b256(b"%d" % sender),
        matcher_public_key=MATCHER,
        amount_asset=PAIR.amount_asset,
        price_asset=PAIR.price_asset,
        side=side,
        amount=amount,
        price=price,
        timestamp=NOW + number,
        expiration=NOW + 86_400_000 + number,
        matcher_fee=300_000 + number % 1_000,
        proofs=(blake2b256(b"%d" % number) * 2,),
    )


def quick(random: Random, number: int, low: int, high: int) -> Order:
    """An order whose id is its number: the engine does not ask what it is a hash of."""
    side = random.choice((Side.BUY, Side.SELL))
    amount = random.randrange(COIN, 100 * COIN)
    order = template(side, number % ACCOUNTS, amount, random.randrange(low, high) * 10**6, number)
    return msgspec.structs.replace(order, id=number.to_bytes(32, "big"))


def mixed(low: int, high: int, cancels: float) -> list[Command]:
    """Placements at random prices, and cancellations of random orders."""
    random = Random(1)
    made: list[Command] = []
    alive: list[bytes] = []
    while len(made) < COMMANDS:
        if alive and random.random() < cancels:
            place = random.randrange(len(alive))
            alive[place], alive[-1] = alive[-1], alive[place]
            made.append(CancelOrder(PAIR, alive.pop(), CancelSource.REQUEST))
        else:
            order = quick(random, len(made), low, high)
            alive.append(order.id)
            made.append(PlaceOrder(order))
    return made


def many_levels() -> tuple[list[Command], list[Command]]:
    """A book of 18,000 levels, and then orders that come and go on all of these prices, so that
    levels appear and vanish and some 10,000 are left; one in ten placements crosses the spread.
    """
    random = Random(2)
    low, middle, high = 1, PRICES // 2, PRICES + 1

    def order(number: int, side: Side, price: int) -> Order:
        amount = random.randrange(COIN, 100 * COIN)
        made = template(side, number % ACCOUNTS, amount, price * 10**6, number)
        return msgspec.structs.replace(made, id=number.to_bytes(32, "big"))

    first: list[Command] = [
        PlaceOrder(order(price, Side.BUY if price <= middle else Side.SELL, price))
        for price in range(low, high)
    ]
    alive = [command.order.id for command in first if isinstance(command, PlaceOrder)]
    then: list[Command] = []
    for number in range(PRICES + 1, PRICES + 1 + COMMANDS):
        if number % 2:
            place = random.randrange(len(alive))
            alive[place], alive[-1] = alive[-1], alive[place]
            then.append(CancelOrder(PAIR, alive.pop(), CancelSource.REQUEST))
            continue
        side = random.choice((Side.BUY, Side.SELL))
        crossing = random.random() < 0.1
        upper = (side is Side.SELL) is not crossing
        price = random.randrange(middle + 1, high) if upper else random.randrange(low, middle + 1)
        if crossing:
            price = middle + 3 if upper else middle - 3
        placed = order(number, side, price)
        alive.append(placed.id)
        then.append(PlaceOrder(placed))
    return first, then


def events_per_second(first: list[Command], then: list[Command]) -> tuple[float, float, int]:
    """Events and commands a second of CPU, the best of several runs, and levels at the end."""
    best = 0.0
    commands = levels = 0.0
    for _ in range(RUNS):
        engine = Engine(MatchingSettings())
        for offset, command in enumerate(first):
            engine.apply(offset, NOW, command)
        count = 0
        gc.collect()
        started = time.process_time()
        for offset, command in enumerate(then, len(first)):
            count += len(engine.apply(offset, NOW, command))
        took = time.process_time() - started
        if count / took > best:
            best, commands = count / took, len(then) / took
        book = engine.books()[0]
        levels = len(book.bids.ranks) + len(book.asks.ranks)
    return best, commands, int(levels)


def records(count: int, levels: int) -> list[bytes]:
    """Records of a journal whose orders all rest."""
    made = []
    for number in range(count):
        # Bids on the lower half of the levels, asks on the upper one, level by level in turns.
        bid, step = number % 2, number // 2 % (levels // 2)
        side = Side.BUY if bid else Side.SELL
        price = (1 + step if bid else 1 + levels // 2 + step) * 10**6
        amount = COIN + number
        made.append(
            encode(
                PlaceOrder(orders.build(template(side, number % ACCOUNTS, amount, price, number)))
            )
        )
    return made


def bytes_per_order(journal: list[bytes]) -> float:
    """What an order takes that came from a journal, by the allocator's own account."""
    engine = Engine(MatchingSettings())
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for offset, record in enumerate(journal):
        engine.apply(offset, NOW, decode(record))
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / len(journal)


def least_us(work: Callable[[], object], count: int) -> float:
    """µs of CPU for one of ``count`` pieces of work, the least of several runs."""
    least = float("inf")
    for _ in range(RUNS):
        started = time.process_time()
        work()
        least = min(least, time.process_time() - started)
    return least / count * 1e6


def main() -> None:
    """Print all figures."""
    for name, low, high in (("prices 1 to 1,000", 1, 1_000), ("100 close prices", 450, 550)):
        events, commands, levels = events_per_second([], mixed(low, high, 0.25))
        print(f"mixed, {name}: {events:,.0f} events/s, {commands:,.0f} commands/s, {levels} levels")
    events, commands, levels = events_per_second(*many_levels())
    print(f"many levels: {events:,.0f} events/s, {commands:,.0f} commands/s, {levels} at the end")
    for levels in (RECORDS, RECORDS // 2, RECORDS // 10, 1_000, LEVELS):
        journal = records(RECORDS, levels)
        print(f"{bytes_per_order(journal):,.0f} bytes per resting order on {levels:,} levels")
    engine = Engine(MatchingSettings())

    def replay() -> None:
        nonlocal engine
        engine = Engine(MatchingSettings())
        for offset, record in enumerate(journal):
            engine.apply(offset, NOW, decode(record))

    print(f"replay: {1e6 / least_us(replay, RECORDS):,.0f} commands/s, decoding with it")
    book = engine.books()[0]
    print(
        f"depth of 100: {least_us(lambda: [book.depth(100) for _ in range(1_000)], 1_000):.1f} µs"
    )
    snapshot = engine.snapshot()
    write = least_us(engine.snapshot, RECORDS)
    read = least_us(lambda: Engine(MatchingSettings()).restore(snapshot), RECORDS)
    print(f"snapshot: {len(snapshot) / RECORDS:.0f} bytes, written in {write:.1f} µs", end=" ")
    print(f"and read in {read:.1f} µs per order")


if __name__ == "__main__":
    main()
