"""Watching a node by its stream of events, ``/events``, which goes on where it was interrupted.

What lives here: from server-sent events to updates. What does not: nodes that have no such stream
(``polling``).

The form is that of server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events;
the events are described in ``docs/reference/events.md``.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from soliton.chain.addresses import parse_address
from soliton.chain.errors import ChainError
from soliton.chain.transactions.json_reader import read_signed
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.node_client import ChainStatus, NodeUpdate
from soliton.matcher.update_accumulator import UpdateAccumulator
from soliton.web.client import HttpClient, HttpTrouble

MAX_ROLLBACK: Final = 100
SILENCE_SECONDS: Final = 60.0
"""The node says something every 15 seconds: after this time it is not there any more."""
_PATH: Final = "/events?events=block,microblock,transaction,unconfirmed"
_RETRY_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


class _Ended(Exception):
    """The stream is over; it may go on behind its last event."""


class EventStream:
    """One watcher of one node."""

    def __init__(
        self, http: HttpClient, status: Callable[[], Awaitable[ChainStatus]], chain_id: int
    ) -> None:
        """``status`` asks the node for its last block."""
        self._http = http
        self._status = status
        self._chain_id = chain_id
        self._last_id = ""
        self._tip: ChainStatus | None = None
        self._accumulator = UpdateAccumulator()
        # The transactions of blocks that this stream has told of from their beginning.
        self._mined: dict[int, list[bytes]] = {}
        self._pool: set[bytes] = set()
        self._seen: set[bytes] | None = None
        self._has_gap = False
        self._synced = asyncio.Event()

    async def is_there(self) -> bool:
        """Whether the node has such a stream; raises ``NodeUnavailable``."""
        try:
            async with self._http.stream(_PATH) as (status, _):
                return status in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE)
        except HttpTrouble as error:
            raise NodeUnavailable(f"the node's events: {error}") from error

    async def updates(self) -> AsyncGenerator[NodeUpdate, None]:
        """What happens on the node, for ever."""
        reading = asyncio.create_task(self._read_on())
        try:
            await self._synced.wait()
            while True:
                await self._accumulator.something.wait()
                assert self._tip is not None, "a stream begins with its place"
                yield self._accumulator.take(self._tip)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read_on(self) -> None:
        """Read for ever, from stream to stream."""
        while True:
            try:
                await self._read_one()
            except (HttpTrouble, NodeUnavailable, TimeoutError, _Ended) as error:
                _log.info("the node's events go on soon: %s", str(error) or "nothing came")
            # What was missed is sent when the stream goes on, but for balances.
            self._accumulator.anybody()
            self._seen = None
            await asyncio.sleep(_RETRY_SECONDS)

    async def _read_one(self) -> None:
        where = f"&lastEventId={quote(self._last_id)}" if self._last_id else ""
        async with self._http.stream(_PATH + where) as (status, lines):
            if status == HTTPStatus.GONE:
                # What happened between the last event and the next is not told by any.
                self._last_id, self._mined = "", {}
                self._has_gap = True
            if status != HTTPStatus.OK:
                raise NodeUnavailable(f"the node answers {status} to /events")
            self._seen = set()
            if self._tip is None:
                self._tip = await self._status()
            await self._read_events(lines)

    async def _read_events(self, lines: AsyncIterator[bytes]) -> None:
        """Take event after event. One counts as read when it is complete: a stream that breaks in
        the middle of one goes on before it.
        """
        place, event, data = "", b"", b""
        while True:
            async with asyncio.timeout(SILENCE_SECONDS):
                line = await anext(lines, None)
            if line is None:
                raise _Ended("the node closed the stream")
            line = line.removesuffix(b"\r")
            if not line:
                if data:
                    self._take(event, data)
                    self._last_id = place or self._last_id
                place, event, data = "", b"", b""
            name, _, value = line.partition(b": ")
            match name:
                case b"event":
                    event = value
                case b"id":
                    place = value.decode("latin-1")
                case b"data":
                    data = value
                case _:
                    pass

    def _take(self, event: bytes, data: bytes) -> None:
        try:
            self._note(event, json.loads(data))
        except (ValueError, KeyError, TypeError, RecursionError, Base58Error, ChainError) as error:
            raise NodeUnavailable(f"an event that is none: {error!r}") from error

    def _note(self, event: bytes, data: Any) -> None:  # noqa: ANN401 - a node's JSON
        gathering = self._accumulator
        match event:
            case b"block":
                self._tip = _status_of(data)
                self._mined[self._tip.height] = []
                self._mined.pop(self._tip.height - MAX_ROLLBACK, None)
                gathering.changed((parse_address(data["generator"], self._chain_id),))
            case b"microblock":
                self._tip = _status_of(data)
                gathering.moved()
            case b"transaction":
                transaction_id = base58.decode(data["transaction"]["id"])
                if (own := self._mined.get(data["height"])) is not None:
                    own.append(transaction_id)
                gathering.mined(transaction_id, data["height"])
                owners = {each["address"] for each in data["balances"]}
                gathering.changed(parse_address(each, self._chain_id) for each in owners)
            case b"rollback":
                self._roll_back(data)
            case b"unconfirmed":
                self._note_unconfirmed(data["transaction"])
            case b"left":
                transaction_id = base58.decode(data["id"])
                self._pool.discard(transaction_id)
                gathering.vanished(transaction_id)
            case b"synced":
                self._tip = _status_of(data)
                for transaction_id in self._pool - (self._seen or set()):
                    gathering.vanished(transaction_id)
                self._pool, self._seen = self._seen or set(), None
                gathering.anybody()
                if self._has_gap:
                    self._has_gap = False
                    gathering.missed()
                self._synced.set()
            case b"closed":
                raise _Ended(str(data.get("reason", "")))
            case _:
                pass

    def _note_unconfirmed(self, shown: Any) -> None:  # noqa: ANN401 - as above
        transaction_id = base58.decode(shown["id"])
        self._pool.add(transaction_id)
        if self._seen is not None:
            self._seen.add(transaction_id)
        try:
            self._accumulator.appeared(read_signed(shown, self._chain_id))
        except ChainError as error:
            # Its effect is seen when it is mined. The stream must not end here again and again.
            _log.info("an unconfirmed transaction is left aside: %s", error)

    def _roll_back(self, data: Any) -> None:  # noqa: ANN401 - as above
        self._tip = _status_of(data)
        height, count = self._tip.height, int(data["transactionCount"])
        known = self._mined.get(height)
        self._mined = {each: ids for each, ids in self._mined.items() if each < height}
        if known is None:
            # A block from before this stream: whether it lost something has to be asked.
            self._accumulator.rolled_back(height - 1)
            self._accumulator.missed()
            return
        self._mined[height] = stayed = known[:count]
        cut = len(known) > count
        self._accumulator.rolled_back(height - 1 if cut else height)
        for transaction_id in stayed if cut else ():
            self._accumulator.mined(transaction_id, height)


def _status_of(data: Any) -> ChainStatus:  # noqa: ANN401 - as above
    return ChainStatus(int(data["height"]), base58.decode(data.get("id") or data["signature"]))
