"""The stream of events of a node: what happens on the chain and in the pool, and going on after a
break.

What lives here: events, their reader, and what to do when the stream ends; without input or output.
What does not: connections, and what an event means (``docs/reference/events.md``).
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
"""The node says something every 15 seconds: a stream that is silent for longer is lost."""
_CLOSED: Final = "closed"


class Event(msgspec.Struct, frozen=True):
    """Something that happened: ``kind`` is ``block``, ``microblock``, ``transaction``,
    ``rollback``, ``unconfirmed``, ``left`` or ``synced``; ``data`` all about it. ``id`` names the
    place on the chain behind it: give it as ``after`` to go on there, even in another process.
    """

    kind: str
    data: dict[str, Any]
    id: str | None = None

    @property
    def height(self) -> int | None:
        """The height that it is about."""
        value = self.data.get("height")
        return value if isinstance(value, int) else None

    @property
    def transaction(self) -> TransactionInfo | None:
        """The transaction that it is about, if it is about one."""
        value = self.data.get("transaction")
        return transaction_info(value) if isinstance(value, dict) else None

    @property
    def header(self) -> BlockHeader | None:
        """The header of the new block, if there is one."""
        return msgspec.convert(self.data, BlockHeader) if self.kind == "block" else None


class EventStream:
    """One stream, over as many connections as it takes: the request for the next connection, the
    events in what comes, the pause after a loss.
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
        """What to ask for next: from the beginning, or behind the last event that came."""
        self._rest, self._fields = b"", {}
        headers: tuple[tuple[str, str], ...] = (("Accept", "text/event-stream"),)
        since = self._since
        if self._place is not None:
            headers, since = (*headers, ("Last-Event-ID", self._place)), None
        path = "/events" + query(**self._filters, **{"from": since})
        return Request("GET", path, headers=headers, seconds=SILENCE_SECONDS)

    def opened(self, answer: Answer) -> float | None:
        """``None`` if a connection's head is that of a stream, or for how long to pause; raises
        ``NodeRefused``.
        """
        if answer.status == 200:
            return None
        if answer.status not in BUSY:
            raise refused(answer)
        return min(retry_after(answer), MAX_PAUSE)

    def received(self, data: bytes) -> list[Event]:
        """The events in what came; raises ``NodeBroken`` for what is no stream of events."""
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
            raise NodeBroken(f"no event of a node: {error}") from error
        name = fields[b"event"].decode(errors="replace")
        place = fields.get(b"id")
        if place is not None:
            self._place = place.decode(errors="replace")
        self._pause = FIRST_PAUSE
        if name == _CLOSED:
            return None
        return Event(name, data, None if place is None else self._place)

    def lost(self) -> float:
        """For how long to pause before the next connection, when one has ended: longer each time
        nothing came.
        """
        pause, self._pause = self._pause, min(2 * self._pause, MAX_PAUSE)
        return pause
