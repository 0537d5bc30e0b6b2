"""The matcher of a private chain, on the node of its process, with which it is rolled back.

A rollback starts a new matcher on the same port, from the commands up to that point. The same
happens if the chain is rolled back deeper than a fork can go, since the matcher relies on those
blocks. Requests wait meanwhile; WebSockets are closed and have to reconnect.

What lives here: connecting the two, replacing the matcher. What does not: the matcher, and when
chains are rolled back (``soliton.controls``).
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from soliton.crypto.keys import KeyPair
from soliton.devnet.matcher_journal import AT_THE_BEGINNING, Mark, MemoryJournal
from soliton.devnet.matcher_node import LocalNode
from soliton.errors import InvariantBroken
from soliton.matcher.journal import Journal, Record
from soliton.matcher.rest.app import build_app
from soliton.matcher.rest.application import Application
from soliton.matcher.run import NOT_DURABLE, server_limits
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

_Response: TypeAlias = Whole | Stream | Upgrade


class _Instance(msgspec.Struct, frozen=True):
    """One matcher, from its start to its end."""

    journal: MemoryJournal
    matcher: Matcher
    interface: Application

    async def end(self) -> None:
        """Finish running work and release all resources."""
        self.interface.close()
        await self.matcher.stop()


class _Gate:
    """The HTTP service: it forwards to the present matcher; without one, requests wait."""

    request_class = Request

    def __init__(self, interface: Application) -> None:
        self.interface = interface
        self.ready: asyncio.Future[None] | None = None
        gate = interface.gate
        self.cors, self.body_limits, self.traffic = gate.cors, gate.body_limits, gate.traffic

    def respond(self, request: Request) -> Answer:
        """See ``soliton.web.answers.Service``."""
        if self.ready is not None and not self.ready.done():
            return Awaited(self._respond_later(request, self.ready))
        return self.interface.gate.respond(request)

    async def _respond_later(self, request: Request, ready: asyncio.Future[None]) -> _Response:
        await asyncio.wait([ready])
        given = self.respond(request)
        if isinstance(given, Awaited):
            given = await given.work
        if isinstance(given, Whole | Stream | Upgrade):
            return given
        raise InvariantBroken("a matcher answers at once, or with a coroutine")

    def refuse(self, request: Request, reason: Unread) -> Whole:
        """See ``soliton.web.answers.Service``."""
        return self.interface.gate.refuse(request, reason)


class DevnetMatcher:
    """A matcher that is rolled back with its chain. Created by ``start``."""

    def __init__(self, settings: MatcherSettings) -> None:
        self._settings = settings
        self._durable = settings.queue.sync != NOT_DURABLE
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._mark, self._restart_requested = AT_THE_BEGINNING, False
        self._restarting: asyncio.Task[None] | None = None
        self.refill: Callable[[], Awaitable[object]] | None = None
        """Called when the chain has restarted from its beginning, with empty books."""

    async def begin(self, local: LocalNode) -> None:
        """Start from what the directory holds."""
        _take_over(self._settings.directory)
        below = open_journal(self._settings) if self._durable else None
        kept = []
        if below is not None:
            kept = [each async for batch in below.records(below.first_offset) for each in batch]
        self._instance = await self._start_instance(local, kept, below, {})
        api = self._settings.rest_api
        self._gate = _Gate(self._instance.interface)
        self._server = await serve(self._gate, api.address, api.port, server_limits(api))
        self.host, self.port = self._server.host, self._server.port
        self._watch()

    @property
    def matcher(self) -> Matcher:
        """The present matcher, or the last one."""
        return self._instance.matcher

    async def _start_instance(
        self,
        local: LocalNode,
        kept: list[Record],
        below: Journal | None,
        rates: Mapping[Asset, float],
    ) -> _Instance:
        settings, self._local = self._settings, local
        journal = MemoryJournal(settings.clock, kept, below)
        try:
            matcher = Matcher(
                settings, local, journal, open_snapshots(settings), durable=self._durable
            )
        except BaseException:
            await journal.close()
            raise
        instance = _Instance(journal, matcher, build_app(matcher))
        await matcher.start()
        try:
            await matcher.working()
        except BaseException:
            await matcher.stop()
            raise
        for asset, rate in rates.items():
            matcher.rates.put(asset, rate)
        return instance

    # --- rollbacks --------------------------------------------------------------------------------

    def pause(self) -> None:
        """See ``Companion``; nothing to do here."""

    def mark(self) -> Mark:
        """See ``Companion``."""
        if self._restarting is not None:
            return self._mark
        kept = self._instance.journal.kept
        return Mark(kept, len(kept), self._instance.matcher.database.rates())

    def restore(self, mark: object) -> None:
        """See ``Companion``; a matcher without new events since the mark continues."""
        then = mark if isinstance(mark, Mark) else AT_THE_BEGINNING
        if mark is None or not then.is_like(self.mark()):
            self._request_restart(then)

    def _request_restart(self, then: Mark) -> None:
        self._local.leave()
        self._mark, self._restart_requested = then, True
        if self._restarting is None:
            self._gate.ready = asyncio.get_running_loop().create_future()
            self._restarting = asyncio.create_task(self._restart())

    def _watch(self) -> None:
        self._local.lost = lambda: self._request_restart(self.mark())
        if self._local.is_lost:
            self._local.lost()

    async def _restart(self) -> None:
        then = self._mark
        try:
            await self._instance.end()
            while True:
                then, self._restart_requested = self._mark, False
                self._instance = await self._instance_at(then)
                if not self._restart_requested and not self._local.is_lost:
                    break
                await self._instance.end()
            self._watch()
            self._gate.interface = self._instance.interface
        except Exception as error:  # noqa: BLE001 - the devnet ends with it
            self._fail(error)
        finally:
            self._restarting = None
            if self._gate.ready is not None and not self._gate.ready.done():
                self._gate.ready.set_result(None)
        if then is AT_THE_BEGINNING and self.refill is not None:
            await self.refill()

    async def _instance_at(self, then: Mark) -> _Instance:
        settings, records = self._settings, then.records()
        below = None
        place = settings.directory
        if self._durable:
            made = place.with_name(f"{place.name}.new")
            shutil.rmtree(made, ignore_errors=True)
            await _write(msgspec.structs.replace(settings, directory=made), records)
            made.rename(_complete(place))
            _take_over(place)
            below = open_journal(settings)
        else:
            shutil.rmtree(place)
        return await self._start_instance(self._local.again(), records, below, then.rates)

    # --- the end ----------------------------------------------------------------------------------

    async def ended(self) -> None:
        """Wait until it ends by itself; raises the error that ended it."""
        while True:
            instance = self._instance
            ends = asyncio.create_task(instance.matcher.ended())
            await asyncio.wait([ends, self._failed], return_when=asyncio.FIRST_COMPLETED)
            if self._failed.done():
                ends.cancel()
                self._failed.result()
            if self._restarting is not None:
                # It was stopped, and another one is starting.
                await asyncio.wait([self._restarting])
            if instance is self._instance and not self._failed.done():
                ends.result()
                return

    def _fail(self, error: Exception) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    async def stop(self) -> None:
        """Refuse new requests, finish running ones, and save a snapshot."""
        if self._restarting is not None:
            await asyncio.wait([self._restarting])
        self._instance.interface.close()
        await self._server.stop()
        await self._instance.matcher.stop()


def _complete(place: Path) -> Path:
    """Return the path of a replacement for a directory, which exists once it is complete."""
    return place.with_name(f"{place.name}.next")


def _take_over(place: Path) -> None:
    """Replace a directory, if a replacement exists. If interrupted, the next start repeats it."""
    whole = _complete(place)
    if whole.exists():
        sync_directory(place.parent)
        shutil.rmtree(place, ignore_errors=True)
        whole.rename(place)
        sync_directory(place.parent)


async def _write(settings: MatcherSettings, records: list[Record]) -> None:
    """Write a journal of commands with their times."""
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
    tickers: Mapping[str, bytes] = MappingProxyType({}),
) -> DevnetMatcher:
    """Start the matcher with ``account``; ``price_assets`` are preferred as price assets in this
    order, and ``tickers`` are the codes of known assets. Its page refers to the node at
    ``node_url``.
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
        tickers=tickers,
        clock=node.clock,
    )
    running = DevnetMatcher(settings)
    await running.begin(local)
    return running
