"""Reading an endless answer of an application event by event, without sockets."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

import msgspec

from soliton.web.answers import Awaited, Service, Whole
from soliton.web.answers import Stream as StreamAnswer

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    data: Any
    id: str | None


class Stream:
    """A client that reads; ``pause`` makes it stop reading, as a slow one does."""

    def __init__(
        self, app: Service[Any], target: str, headers: dict[str, str] | None = None
    ) -> None:
        path, _, query = target.partition("?")
        lower = {k.lower().encode(): v.encode() for k, v in (headers or {}).items()}
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.reads = asyncio.Event()
        self.reads.set()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._rest = b""
        request = app.request_class("GET", path, query.encode(), lower)
        self._task = asyncio.ensure_future(self._read(app, request))

    async def _read(self, app: Service[Any], request: Any) -> None:
        found = app.respond(request)
        if isinstance(found, Awaited):
            found = await found.work
        assert isinstance(found, Whole | StreamAnswer)
        await self.reads.wait()
        self.status, self.headers = found.status, dict(found.headers)
        if isinstance(found, Whole):
            self._chunks.put_nowait(found.body)
            return
        try:
            async for chunk in found.chunks:
                await self.reads.wait()
                self._chunks.put_nowait(chunk)
            self._chunks.put_nowait(None)
        finally:
            await found.chunks.aclose()  # type: ignore[attr-defined]

    async def line(self) -> bytes | None:
        """The next block of lines, ``None`` at the end."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while b"\n\n" not in self._rest:
                chunk = await self._chunks.get()
                if chunk is None:
                    return None
                self._rest += chunk
        found, _, self._rest = self._rest.partition(b"\n\n")
        return found

    async def event(self) -> Event | None:
        """The next event, comments left out."""
        while (found := await self.line()) is not None:
            fields = dict(part.split(b": ", 1) for part in found.split(b"\n") if part[:1] != b":")
            if b"event" in fields:
                where = fields.get(b"id")
                return Event(
                    fields[b"event"].decode(),
                    msgspec.json.decode(fields[b"data"]),
                    None if where is None else where.decode(),
                )
        return None

    async def until(self, name: str) -> list[Event]:
        """All events up to the first with a name."""
        found: list[Event] = []
        while True:
            event = await self.event()
            assert event is not None, f"ended before {name}: {found}"
            found.append(event)
            if event.name == name:
                return found

    async def names(self, count: int) -> list[str]:
        """The next events in short: name, height, and number of transactions."""
        found = [await self.event() for _ in range(count)]
        return [short(event) for event in found if event is not None]

    async def close(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def body(self) -> Any:
        """The whole of an answer that is no stream."""
        await self._task
        return msgspec.json.decode(self._chunks.get_nowait() or b"")


def short(event: Event) -> str:
    data = event.data
    match event.name:
        case "block":
            return f"block {data['height']} {data['transactionCount']}"
        case "microblock":
            return f"microblock {data['height']} {data['transactionCount']} {data['added']}"
        case "transaction":
            return f"transaction {data['height']} {data['index']}"
        case "rollback" | "synced":
            return f"{event.name} {data['height']} {data['transactionCount']}"
        case "left":
            return f"left {data['why']}"
        case _:
            return event.name
