"""Reading an endless answer of an ASGI application event by event, without sockets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec

from soliton.web.types import AsgiApplication, Message

PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    data: Any
    id: str | None


class Stream:
    """A client that reads; ``pause`` makes it stop reading, as a slow one does."""

    def __init__(
        self, app: AsgiApplication, target: str, headers: dict[str, str] | None = None
    ) -> None:
        path, _, query = target.partition("?")
        scope: Message = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()],
        }
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.reads = asyncio.Event()
        self.reads.set()
        self._leaves = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._rest = b""
        self._task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> Message:
        await self._leaves.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        await self.reads.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]  # type: ignore[assignment]
            self.headers = dict(message["headers"])  # type: ignore[call-overload]
            return
        self._chunks.put_nowait(message["body"])  # type: ignore[arg-type]
        if not message.get("more_body"):
            self._chunks.put_nowait(None)

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
        self._leaves.set()
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
