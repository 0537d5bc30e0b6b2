"""A node's stream of events on the chain and in the pool, and its resumption.

What lives here: events, their parser, and the reconnection, without input or output. What does not:
connections, and the meaning of each event (``docs/reference/events.md``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from soliton.client.errors import NodeBroken
from soliton.client.making import Whom
from soliton.client.records import BlockHeader, TransactionInfo, transaction_info
from soliton.client.steps import (
    BUSY,
    FIRST_PAUSE,
    MAX_PAUSE,
    Answer,
    Request,
    query,
    refused,
    retry_after,
)

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
SILENCE_SECONDS: Final = 60.0
"""Longest silence of a live stream: the node sends something every 15 seconds."""
_CLOSED: Final = "closed"


class Event(msgspec.Struct, frozen=True):
    """An event: ``kind`` is ``block``, ``microblock``, ``finalized``, ``transaction``,
    ``rollback``, ``unconfirmed``, ``left`` or ``synced``; ``data`` is its JSON object. ``id`` is
    the position on the chain after it: pass it as ``after`` to resume there, even in another
    process.
    """

    kind: str
    data: dict[str, Any]
    id: str | None = None

    @property
    def height(self) -> int | None:
        """The height of the event, ``None`` if it has none."""
        value = self.data.get("height")
        return value if isinstance(value, int) else None

    @property
    def transaction(self) -> TransactionInfo | None:
        """The transaction of the event, ``None`` if it has none."""
        value = self.data.get("transaction")
        return transaction_info(value) if isinstance(value, dict) else None

    @property
    def header(self) -> BlockHeader | None:
        """The header of a new block, ``None`` for other events."""
        return msgspec.convert(self.data, BlockHeader) if self.kind == "block" else None


class EventStream:
    """The state of one stream over any number of successive connections: the next request, the
    events in received bytes, the pause after a loss.
    """

    def __init__(
        self,
        kinds: Iterable[str] = (),
        *,
        addresses: Iterable[Whom] = (),
        types: Iterable[int] = (),
        since: int | None = None,
        after: str | None = None,
    ) -> None:
        self._filters = {
            "events": ",".join(kinds) or None,
            "address": [each if isinstance(each, str) else each.address for each in addresses],
            "type": list(types),
        }
        self._since = since
        self._place = after
        self._pause = FIRST_PAUSE
        self._rest = b""
        self._fields: dict[bytes, bytes] = {}

    def request(self) -> Request:
        """Return the next request: from the beginning, or after the last event received."""
        self._rest, self._fields = b"", {}
        headers: tuple[tuple[str, str], ...] = (("Accept", "text/event-stream"),)
        since = self._since
        if self._place is not None:
            headers, since = (*headers, ("Last-Event-ID", self._place)), None
        path = "/events" + query(**self._filters, **{"from": since})
        return Request("GET", path, headers=headers, seconds=SILENCE_SECONDS)

    def opened(self, answer: Answer) -> float | None:
        """Check the head of a response: ``None`` if the stream is open, else the pause in seconds
        before the next attempt. Raises ``NodeRefused``.
        """
        if answer.status == 200:
            return None
        if answer.status not in BUSY:
            raise refused(answer)
        return min(retry_after(answer), MAX_PAUSE)

    def received(self, data: bytes) -> list[Event]:
        """Return the events in a chunk; raises ``NodeBroken`` if it is not a stream of events."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            raise NodeBroken(f"a line of more than {MAX_LINE_BYTES} bytes")
        found = []
        for line in lines:
            name, _, value = line.rstrip(b"\r").partition(b":")
            if name:
                self._fields[name] = value.removeprefix(b" ")
            elif line.strip() == b"":
                event = self._made()
                if event is not None:
                    found.append(event)
        return found

    def _made(self) -> Event | None:
        fields, self._fields = self._fields, {}
        if b"event" not in fields:
            return None
        try:
            data = msgspec.json.decode(fields.get(b"data", b"{}"), type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as error:
            raise NodeBroken(f"invalid event from the node: {error}") from error
        name = fields[b"event"].decode(errors="replace")
        place = fields.get(b"id")
        if place is not None:
            self._place = place.decode(errors="replace")
        self._pause = FIRST_PAUSE
        if name == _CLOSED:
            return None
        return Event(name, data, None if place is None else self._place)

    def lost(self) -> float:
        """Return the pause in seconds before the next connection; it doubles, up to a limit, until
        an event arrives.
        """
        pause, self._pause = self._pause, min(2 * self._pause, MAX_PAUSE)
        return pause
