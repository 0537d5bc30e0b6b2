"""Following a node by its event stream, ``/events``, which can be resumed.

What lives here: turning server-sent events into updates. What does not: nodes without such a stream
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
from soliton.matcher.node_client import ChainStatus, Inclusion, NodeUpdate, failure_in
from soliton.matcher.polling import MAX_ROLLBACK, block_status
from soliton.matcher.update_accumulator import UpdateAccumulator
from soliton.web.client import HttpClient, HttpTrouble

SILENCE_SECONDS: Final = 60.0
"""The timeout of the stream: the node sends something at least every 15 seconds."""
_PATH: Final = "/events?events=block,microblock,finalized,transaction,unconfirmed"
_RETRY_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


class _Ended(Exception):
    """The stream has ended; it may be resumed after its last event."""


class EventStream:
    """A subscriber to the events of one node."""

    def __init__(
        self, http: HttpClient, status: Callable[[], Awaitable[ChainStatus]], chain_id: int
    ) -> None:
        """``status`` requests the node's last block."""
        self._http = http
        self._status = status
        self._chain_id = chain_id
        self._last_id = ""
        self._tip: ChainStatus | None = None
        self._finalized = 0
        self._accumulator = UpdateAccumulator()
        # The transactions of blocks that this stream reported from their beginning.
        self._mined: dict[int, list[tuple[bytes, Inclusion]]] = {}
        self._pool: set[bytes] = set()
        self._seen: set[bytes] | None = None
        self._has_gap = False
        self._synced = asyncio.Event()

    async def is_there(self) -> bool:
        """Whether the node has an event stream; raises ``NodeUnavailable``."""
        try:
            async with self._http.stream(_PATH) as (status, _):
                return status in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE)
        except HttpTrouble as error:
            raise NodeUnavailable(f"the node's events: {error}") from error

    async def updates(self) -> AsyncGenerator[NodeUpdate, None]:
        """The node's updates, forever."""
        reading = asyncio.create_task(self._read_on())
        try:
            await self._synced.wait()
            while True:
                await self._accumulator.pending.wait()
                assert self._tip is not None, "a stream begins with its position"
                yield self._accumulator.take(self._tip, self._finalized)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read_on(self) -> None:
        """Read forever, reconnecting when a stream ends."""
        while True:
            try:
                await self._read_one()
            except (HttpTrouble, NodeUnavailable, TimeoutError, _Ended) as error:
                _log.info("reconnecting to the node's events: %s", str(error) or "timeout")
            # Missed events are sent when the stream resumes, except for changed balances.
            self._accumulator.resumed()
            self._seen = None
            await asyncio.sleep(_RETRY_SECONDS)

    async def _read_one(self) -> None:
        resume = f"&lastEventId={quote(self._last_id)}" if self._last_id else ""
        async with self._http.stream(_PATH + resume) as (status, lines):
            if status == HTTPStatus.GONE:
                # The events between the last one and the next are lost.
                self._last_id, self._mined = "", {}
                self._has_gap = True
            if status != HTTPStatus.OK:
                raise NodeUnavailable(f"the node answers {status} to /events")
            self._seen = set()
            if self._tip is None:
                self._tip = await self._status()
            await self._read_events(lines)

    async def _read_events(self, lines: AsyncIterator[bytes]) -> None:
        """Process events. An event counts as read once it is complete: a stream that breaks within
        an event resumes before it.
        """
        event_id, event, data = "", b"", b""
        while True:
            async with asyncio.timeout(SILENCE_SECONDS):
                line = await anext(lines, None)
            if line is None:
                raise _Ended("the node closed the stream")
            line = line.removesuffix(b"\r")
            if not line:
                if data:
                    self._take(event, data)
                    self._last_id = event_id or self._last_id
                event_id, event, data = "", b"", b""
            name, _, value = line.partition(b": ")
            match name:
                case b"event":
                    event = value
                case b"id":
                    event_id = value.decode("latin-1")
                case b"data":
                    data = value
                case _:
                    pass

    def _take(self, event: bytes, data: bytes) -> None:
        try:
            self._note(event, json.loads(data))
        except (ValueError, KeyError, TypeError, RecursionError, Base58Error, ChainError) as error:
            raise NodeUnavailable(f"an invalid event: {error!r}") from error

    def _note(self, event: bytes, data: Any) -> None:  # noqa: ANN401 - a node's JSON
        accumulator = self._accumulator
        match event:
            case b"block":
                self._tip = block_status(data)
                self._mined[self._tip.height] = []
                self._mined.pop(self._tip.height - MAX_ROLLBACK, None)
                accumulator.changed((parse_address(data["generator"], self._chain_id),))
            case b"microblock":
                self._tip = block_status(data)
                accumulator.moved()
            case b"finalized":
                self._finalized = int(data["height"])
            case b"transaction":
                transaction_id = base58.decode(data["transaction"]["id"])
                failure = failure_in(data["transaction"].get("applicationStatus"))
                inclusion = Inclusion(int(data["height"]), failure)
                if (mined := self._mined.get(inclusion.height)) is not None:
                    mined.append((transaction_id, inclusion))
                accumulator.mined(transaction_id, inclusion)
                owners = {each["address"] for each in data["balances"]}
                accumulator.changed(parse_address(each, self._chain_id) for each in owners)
            case b"rollback":
                self._roll_back(data)
            case b"unconfirmed":
                self._note_unconfirmed(data["transaction"])
            case b"left":
                transaction_id = base58.decode(data["id"])
                self._pool.discard(transaction_id)
                accumulator.vanished(transaction_id)
            case b"synced":
                self._tip = block_status(data)
                self._finalized = int(data.get("finalizedHeight", 0))
                for transaction_id in self._pool - (self._seen or set()):
                    accumulator.vanished(transaction_id)
                self._pool, self._seen = self._seen or set(), None
                accumulator.all_changed()
                if self._has_gap:
                    self._has_gap = False
                    accumulator.missed()
                self._synced.set()
            case b"closed":
                raise _Ended(str(data.get("reason", "")))
            case _:
                pass

    def _note_unconfirmed(self, data: Any) -> None:  # noqa: ANN401 - as above
        transaction_id = base58.decode(data["id"])
        self._pool.add(transaction_id)
        if self._seen is not None:
            self._seen.add(transaction_id)
        try:
            self._accumulator.appeared(read_signed(data, self._chain_id))
        except ChainError as error:
            # Ignored, or the stream would fail here at every attempt. Its effect shows when mined.
            _log.info("an unconfirmed transaction is ignored: %s", error)

    def _roll_back(self, data: Any) -> None:  # noqa: ANN401 - as above
        self._tip = block_status(data)
        height, count = self._tip.height, int(data["transactionCount"])
        self._finalized = min(self._finalized, height)
        known = self._mined.get(height)
        self._mined = {each: ids for each, ids in self._mined.items() if each < height}
        if known is None:
            # A block from before this stream: awaited transactions must be queried.
            self._accumulator.rolled_back(height - 1)
            self._accumulator.missed()
            return
        self._mined[height] = remaining = known[:count]
        cut = len(known) > count
        self._accumulator.rolled_back(height - 1 if cut else height)
        for transaction_id, inclusion in remaining if cut else ():
            self._accumulator.mined(transaction_id, inclusion)
