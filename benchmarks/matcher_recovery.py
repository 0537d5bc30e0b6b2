"""How fast a matcher is where it was, after it ended without a chance to keep a snapshot.

Run ``.venv/bin/python benchmarks/matcher_recovery.py [COMMANDS]`` (default 100000). A journal is
written, four of five commands in it orders, half of which find a counter order. Then measured, in
commands a second: reading the journal; reading and matching; a whole matcher from its start until
it takes orders, with its orders database as a ``kill -9`` leaves it and all but the last 1,000
exchange transactions deep in the chain; and one that has lost the database too, and makes all
exchange transactions again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.orders import Order, Side
from soliton.matcher.journal.embedded import EmbeddedJournal, stored
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.recovery import identity_of
from soliton.matcher.settings import MatcherSettings
from soliton.matcher.stores import JOURNAL_NAME, open_journal, open_snapshots
from soliton.matching.commands import (
    CancelOrder,
    CancelSource,
    Command,
    PlaceOrder,
    decode,
    encode,
)
from soliton.matching.engine import Engine
from soliton.matching.rules import MatchingSettings
from soliton.web.clock import wall_clock
from tests.matcher.kit import (
    ALICE,
    BOB,
    CAROL,
    COIN,
    PAIR,
    USD,
    FakeNode,
    address_of,
    make_matcher,
    make_order,
    settings_in,
)

ASKED = 30_000
TRADERS = (ALICE, BOB, CAROL)
GROUP = 1_000
RECENT = 1_000


def orders_of(count: int) -> list[Command]:
    """The commands of the journal."""
    chance = random.Random(7)
    now = wall_clock()
    commands: list[Command] = []
    placed: list[Order] = []
    for number in range(count):
        if number % 5 == 4:
            victim = chance.choice(placed[-400:])
            commands.append(CancelOrder(PAIR, victim.id, CancelSource.REQUEST, address_of(ALICE)))
            continue
        order = make_order(
            chance.choice(TRADERS),
            chance.choice((Side.BUY, Side.SELL)),
            chance.randint(1, 10) * COIN,
            25_000 + chance.randint(-60, 60),
            timestamp=now + number,
        )
        placed.append(order)
        commands.append(PlaceOrder(order))
    return commands


async def write(journal: EmbeddedJournal, commands: list[Command]) -> None:
    """All commands into a journal."""
    payloads = [encode(command) for command in commands]
    for start in range(0, len(payloads), GROUP):
        await journal.append(payloads[start : start + GROUP])
    await journal.close()


@contextmanager
def measured(what: str, count: int, asked: int | None = None) -> Iterator[None]:
    """Print a line of figures about what is done inside."""
    cpu, started = time.process_time(), time.perf_counter()
    yield
    rate = count / (time.perf_counter() - started)
    cost = (time.process_time() - cpu) / count * 1e6
    bar = "" if asked is None else f"   (asked {asked:,})"
    print(f"{what:<52} {rate:>10,.0f} commands/s {cost:>7.1f} µs CPU each{bar}")


async def restart(
    settings: MatcherSettings, node: FakeNode, what: str, count: int, asked: int | None = None
) -> None:
    """Measure from a matcher's start until it takes orders."""
    for path in (settings.directory / "snapshots").glob("*"):
        path.unlink()
    matcher = make_matcher(settings, node)
    with measured(what, count, asked):
        await matcher.start()
        await matcher.working()
    await matcher.stop()


async def bury(settings: MatcherSettings) -> None:
    """All transactions but the last ones are deep in the chain."""
    owner = from_public_key(settings.account.public_key, settings.network.chain_id)
    database = OrdersDatabase(
        *(settings.directory / "orders", address_text(owner), settings.network.chain_id, 100),
        durable=False,
    )
    for transaction_id in list(database.pending())[:-RECENT]:
        database.settle(transaction_id)
    await database.close()


async def main() -> None:
    """Measure and print."""
    logging.disable(logging.WARNING)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    node = FakeNode()
    for keys in TRADERS:
        node.balances[address_of(keys)] = {None: 10**17, USD: 10**17}
    with tempfile.TemporaryDirectory() as name:
        settings = settings_in(Path(name), snapshots_interval=10**9, max_active_orders=10**9)
        journal = open_journal(settings)
        assert isinstance(journal, EmbeddedJournal)
        open_snapshots(settings)
        await write(journal, orders_of(count))
        directory, identity = settings.directory / JOURNAL_NAME, identity_of(settings)

        with measured("reading the journal", count):
            assert sum(map(len, stored(directory, identity)[1])) == count
        engine = Engine(MatchingSettings(order_v4_start_offset=0))
        events = 0
        with measured("reading and matching", count, ASKED):
            for batch in stored(directory, identity)[1]:
                for offset, timestamp, payload in batch:
                    events += len(engine.apply(offset, timestamp, decode(payload)))
        lost = "a matcher without its database: all is made again"
        await restart(settings, node, lost, count)
        await bury(settings)
        kept = "a matcher with its database, until it takes orders"
        await restart(settings, node, kept, count, ASKED)
        size = sum(path.stat().st_size for path in directory.glob("*.journal"))
        print(f"{count} commands, {events} events, {size / 1e6:.1f} MB of journal")


asyncio.run(main())
