"""The matcher of a private chain: on the node of the same process, with which it goes back.

Going back means: another one is begun, on the same port, from the commands up to then. So it is
when more blocks are gone than a fork takes off, whatever it has been told since: it knows nothing
any more that would be on the chain for certain. Who asks it something meanwhile waits; WebSockets
are ended, and begin again.

What lives here: choosing an account, putting the two together, the lives of a matcher. What does
not: the matcher, when chains go back (``soliton.controls``).
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from soliton.crypto.keys import KeyPair
from soliton.devnet.matcher_journal import AT_THE_BEGINNING, Mark, MemoryJournal
from soliton.devnet.matcher_node import LocalNode
from soliton.errors import InvariantBroken
from soliton.matcher.journal import Journal, Record
from soliton.matcher.rest.app import build_app
from soliton.matcher.rest.application import Application
from soliton.matcher.run import NOT_DURABLE, SERVER_LIMITS
from soliton.matcher.service import Matcher
from soliton.matcher.settings import MatcherSettings, NodeAccess, Queue, RestApi
from soliton.matcher.stores import open_journal, open_snapshots
from soliton.matcher.trading_settings import TradingSettings
from soliton.matching.pairs import Asset
from soliton.matching.placement import PlacementSettings
from soliton.storage.files import sync_directory
from soliton.web.answers import Answer, Awaited, Stream, Unread, Upgrade, Whole
from soliton.web.request import Request
from soliton.web.server import serve

_Later: TypeAlias = Whole | Stream | Upgrade


class _Life(msgspec.Struct, frozen=True):
    """One matcher, from its beginning to its end."""

    journal: MemoryJournal
    matcher: Matcher
    interface: Application

    async def end(self) -> None:
        """Finish what is under way, and let go of everything."""
        self.interface.close()
        await self.matcher.stop()


class _Door:
    """What the server serves: the matcher that lives. Who comes between two lives waits."""

    request_class = Request

    def __init__(self, interface: Application) -> None:
        self.interface = interface
        self.opens: asyncio.Future[None] | None = None
        gate = interface.gate
        self.cors, self.body_limits = gate.cors, gate.body_limits

    def respond(self, request: Request) -> Answer:
        """As ``soliton.web.answers.Service``."""
        if self.opens is not None and not self.opens.done():
            return Awaited(self._later(request, self.opens))
        return self.interface.gate.respond(request)

    async def _later(self, request: Request, opens: asyncio.Future[None]) -> _Later:
        await asyncio.wait([opens])
        given = self.respond(request)
        if isinstance(given, Awaited):
            given = await given.work
        if isinstance(given, Whole | Stream | Upgrade):
            return given
        raise InvariantBroken("a matcher answers at once, or with a coroutine")

    def refuse(self, request: Request, reason: Unread) -> Whole:
        """As ``soliton.web.answers.Service``."""
        return self.interface.gate.refuse(request, reason)


class DevnetMatcher:
    """A matcher that goes back with its chain. ``start`` makes one."""

    def __init__(self, settings: MatcherSettings) -> None:
        self._settings = settings
        self._durable = settings.queue.sync != NOT_DURABLE
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._next, self._again = AT_THE_BEGINNING, False
        self._turning: asyncio.Task[None] | None = None
        self.refill: Callable[[], Awaitable[object]] | None = None
        """Is called when the chain has begun anew, and the books with it."""

    async def begin(self, local: LocalNode) -> None:
        """Live for the first time, from what the directory holds."""
        _take_over(self._settings.directory)
        below = open_journal(self._settings) if self._durable else None
        kept = []
        if below is not None:
            kept = [each async for batch in below.records(below.first_offset) for each in batch]
        self._life = await self._live(local, kept, below, {})
        where = self._settings.rest_api
        self._door = _Door(self._life.interface)
        self._server = await serve(self._door, where.address, where.port, SERVER_LIMITS)
        self.host, self.port = self._server.host, self._server.port
        self._watch()

    @property
    def matcher(self) -> Matcher:
        """The one that lives, or has lived last."""
        return self._life.matcher

    async def _live(
        self,
        local: LocalNode,
        kept: list[Record],
        below: Journal | None,
        rates: Mapping[Asset, float],
    ) -> _Life:
        settings, self._local = self._settings, local
        journal = MemoryJournal(settings.clock, kept, below)
        try:
            matcher = Matcher(
                settings, local, journal, open_snapshots(settings), durable=self._durable
            )
        except BaseException:
            await journal.close()
            raise
        life = _Life(journal, matcher, build_app(matcher))
        await matcher.start()
        try:
            await matcher.working()
        except BaseException:
            await matcher.stop()
            raise
        for asset, rate in rates.items():
            matcher.rates.put(asset, rate)
        return life

    # --- going back -------------------------------------------------------------------------------

    def pause(self) -> None:
        """As ``Companion``: what a matcher does, it does in other turns of the event loop."""

    def mark(self) -> Mark:
        """As ``Companion``."""
        if self._turning is not None:
            return self._next
        kept = self._life.journal.kept
        return Mark(kept, len(kept), self._life.matcher.database.rates())

    def restore(self, mark: object) -> None:
        """As ``Companion``; a matcher that has been told nothing since goes on."""
        then = mark if isinstance(mark, Mark) else AT_THE_BEGINNING
        if mark is None or not then.is_like(self.mark()):
            self._begin_again(then)

    def _begin_again(self, then: Mark) -> None:
        self._local.leave()
        self._next, self._again = then, True
        if self._turning is None:
            self._door.opens = asyncio.get_running_loop().create_future()
            self._turning = asyncio.create_task(self._turn())

    def _watch(self) -> None:
        self._local.lost = lambda: self._begin_again(self.mark())
        if self._local.is_lost:
            self._local.lost()

    async def _turn(self) -> None:
        then = self._next
        try:
            await self._life.end()
            while True:
                then, self._again = self._next, False
                self._life = await self._another(then)
                if not self._again and not self._local.is_lost:
                    break
                await self._life.end()
            self._watch()
            self._door.interface = self._life.interface
        except Exception as error:  # noqa: BLE001 - the devnet ends with it
            self._fail(error)
        finally:
            self._turning = None
            if self._door.opens is not None and not self._door.opens.done():
                self._door.opens.set_result(None)
        if then is AT_THE_BEGINNING and self.refill is not None:
            await self.refill()

    async def _another(self, then: Mark) -> _Life:
        settings, records = self._settings, then.records()
        below = None
        place = settings.directory
        if self._durable:
            made = place.with_name(f"{place.name}.new")
            shutil.rmtree(made, ignore_errors=True)
            await _write(msgspec.structs.replace(settings, directory=made), records)
            made.rename(_whole(place))
            _take_over(place)
            below = open_journal(settings)
        else:
            shutil.rmtree(place)
        return await self._live(self._local.again(), records, below, then.rates)

    # --- its end ----------------------------------------------------------------------------------

    async def ended(self) -> None:
        """Return when it has ended by itself; raises what ended it."""
        while True:
            life = self._life
            ends = asyncio.create_task(life.matcher.ended())
            await asyncio.wait([ends, self._failed], return_when=asyncio.FIRST_COMPLETED)
            if self._failed.done():
                ends.cancel()
                self._failed.result()
            if self._turning is not None:
                # It was ended, and another one begins.
                await asyncio.wait([self._turning])
            if life is self._life and not self._failed.done():
                ends.result()
                return

    def _fail(self, error: Exception) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    async def stop(self) -> None:
        """Take no more requests, finish what is under way, keep a snapshot."""
        if self._turning is not None:
            await asyncio.wait([self._turning])
        self._life.interface.close()
        await self._server.stop()
        await self._life.matcher.stop()


def _whole(place: Path) -> Path:
    """Where a directory that takes the place of another one stands when all of it is written."""
    return place.with_name(f"{place.name}.next")


def _take_over(place: Path) -> None:
    """Put it there. Who is ended in the middle of that finds it when he begins again."""
    whole = _whole(place)
    if whole.exists():
        sync_directory(place.parent)
        shutil.rmtree(place, ignore_errors=True)
        whole.rename(place)
        sync_directory(place.parent)


async def _write(settings: MatcherSettings, records: list[Record]) -> None:
    """A journal of these commands, each with its time."""
    time = 0
    queue = Queue(sync="interval")
    journal = open_journal(msgspec.structs.replace(settings, queue=queue, clock=lambda: time))
    try:
        for each in records:
            time = each.timestamp
            await journal.append([each.payload])
        await journal.confirm()
    finally:
        await journal.close()


async def start(
    local: LocalNode,
    account: KeyPair,
    host: str,
    port: int,
    api_key_hash: bytes,
    *,
    durable: bool,
    node_url: str,
    price_assets: tuple[bytes | None, ...] = (),
) -> DevnetMatcher:
    """Start the matcher: it acts with ``account``; in ``price_assets`` are prices, the first in the
    list before all others. Its page leads to the node at ``node_url``.
    """
    node = local.node
    settings = MatcherSettings(
        network=node.network,
        directory=node.settings.directory / "matcher",
        account=account,
        id="devnet",
        rest_api=RestApi(address=host, port=port, api_key_hashes=(api_key_hash,)),
        queue=Queue() if durable else Queue(sync=NOT_DURABLE),
        trading=TradingSettings(
            placement=PlacementSettings(account.public_key, price_assets=price_assets)
        ),
        node=NodeAccess(url=node_url),
        clock=node.clock,
    )
    running = DevnetMatcher(settings)
    await running.begin(local)
    return running
