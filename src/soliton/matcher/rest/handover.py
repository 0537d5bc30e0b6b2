"""The way of orders from processes that read them to the one that places them, and back.

A worker reads an order, looks at its signature and hands it over; the matcher says what became of
it. Both go over a unix socket as lists in frames: what comes in one turn of an event loop goes
together, but not so many that the other side has nothing to do meanwhile.

What lives here: both ends. What does not: reading orders (``front``) and placing them
(``application``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import lru_cache
from typing import Final, cast

import msgspec

from soliton.chain.orders import Order, PriceMode, Side
from soliton.chain.values import AssetId
from soliton.errors import EnvironmentProblem
from soliton.matcher.rest.answers import Answer
from soliton.web.types import Headers

GROUP: Final = 8
"""Orders that are sent as soon as there are so many."""
MAX_WAITING: Final = 10_000
"""Orders of one worker that are under way at the same time; it hands over no more."""
MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
"""Far above what a group of orders or answers takes."""
KEPT_VALUES: Final = 16_384
_LENGTH_BYTES: Final = 4

_log = logging.getLogger(__name__)

_Row = tuple[
    int, int, bytes, bytes, bytes | None, bytes | None, Side, int, int, int, int, int,
    bytes | None, PriceMode, bytes | None, tuple[bytes, ...], bytes | None, bytes, bytes,
]  # fmt: skip
"""The fields of an ``Order`` in their order."""


class _Handed(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """An order on its way; ``number`` is the one by which its worker will know it again."""

    number: int
    is_signed: bool | None
    row: _Row


class _Outcome(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """What became of it: nothing is said about one that was taken."""

    number: int
    refusal: tuple[bytes, int, bytes, Headers] | None


_encode: Final = msgspec.msgpack.Encoder().encode
_decode_handed: Final = msgspec.msgpack.Decoder(list[_Handed]).decode
_decode_outcomes: Final = msgspec.msgpack.Decoder(list[_Outcome]).decode
_row_of: Final = msgspec.structs.astuple

Tell = Callable[[Answer | None], None]
"""Is called once: with the refusal of an order, or with nothing if it was taken. May not raise."""
Place = Callable[[Order, bool | None], Awaitable[Answer | None]]
"""Places an order, and raises nothing; gives back the refusal, if it is refused."""


class FrameError(Exception):
    """What came is no frame."""


class _Frames:
    """Takes what comes apart into frames."""

    def __init__(self) -> None:
        self._data = b""

    def take(self, data: bytes) -> Iterator[bytes]:
        """The frames that are complete by now; raises ``FrameError``."""
        data, place = self._data + data, 0
        while len(data) - place >= _LENGTH_BYTES:
            start = place + _LENGTH_BYTES
            length = int.from_bytes(data[place:start], "big")
            if length > MAX_FRAME_BYTES:
                raise FrameError(f"a frame of {length} bytes")
            if len(data) < start + length:
                break
            place = start + length
            yield data[start:place]
        self._data = data[place:]


def _frame(items: object) -> bytes:
    data = _encode(items)
    return len(data).to_bytes(_LENGTH_BYTES, "big") + data


# --- the worker's end -----------------------------------------------------------------------------


class Handover(asyncio.Protocol):
    """Hands orders over. Use from one event loop."""

    def __init__(self, unknown: Answer) -> None:
        """``unknown`` is the answer for orders of which nobody will say what became of them."""
        self.lost = asyncio.Event()
        """Set when nobody takes orders here any more."""
        self._unknown = unknown
        self._transport: asyncio.Transport | None = None
        self._frames = _Frames()
        self._waiting: dict[int, Tell] = {}
        self._gathered: list[_Handed] = []
        self._is_due = False
        self._last = 0

    @property
    def is_full(self) -> bool:
        """Whether as many orders are under way as there may be."""
        return len(self._waiting) >= MAX_WAITING

    def hand(self, order: Order, is_signed: bool | None, tell: Tell) -> None:
        """Hand an order over; ``tell`` is called later, and not by this call."""
        loop = asyncio.get_running_loop()
        if self.lost.is_set():
            loop.call_soon(tell, self._unknown)
            return
        self._last += 1
        self._waiting[self._last] = tell
        self._gathered.append(_Handed(self._last, is_signed, cast("_Row", _row_of(order))))
        if len(self._gathered) >= GROUP:
            self._send()
        elif not self._is_due:
            self._is_due = True
            loop.call_soon(self._send_rest)

    def close(self) -> None:
        """Hand over no more."""
        if self._transport is not None:
            self._transport.close()

    def _send_rest(self) -> None:
        self._is_due = False
        if self._gathered:
            self._send()

    def _send(self) -> None:
        gathered, self._gathered = self._gathered, []
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_frame(gathered))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        for frame in self._frames.take(data):
            for outcome in _decode_outcomes(frame):
                refusal = outcome.refusal
                tell = self._waiting.pop(outcome.number)
                tell(None if refusal is None else Answer(*refusal))

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.lost.set()
        waiting, self._waiting = self._waiting, {}
        for tell in waiting.values():
            tell(self._unknown)


async def connect(path: str, unknown: Answer) -> Handover:
    """The way to the matcher that listens at ``path``; raises ``EnvironmentProblem``."""
    loop = asyncio.get_running_loop()
    try:
        _, handover = await loop.create_unix_connection(lambda: Handover(unknown), path)
    except OSError as error:
        raise EnvironmentProblem(f"cannot connect to {path}: {error}") from error
    return handover


# --- the matcher's end ----------------------------------------------------------------------------


class OrderGate:
    """Takes the orders of all workers."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._server: asyncio.Server | None = None
        self._open: set[_Taker] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, path: str) -> None:
        """Begin; raises ``EnvironmentProblem``."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_unix_server(
                lambda: _Taker(self._place, self._open, self._tasks), path
            )
        except OSError as error:
            raise EnvironmentProblem(f"cannot listen on {path}: {error}") from error

    def close(self) -> None:
        """Take no more, and end the checks of orders that are under way: nobody hears of them any
        more. What is on its way to the journal goes there all the same.
        """
        if self._server is not None:
            self._server.close()
        for taker in list(self._open):
            taker.end()
        for task in self._tasks:
            task.cancel()


class _Taker(asyncio.Protocol):
    """The orders of one worker."""

    def __init__(self, place: Place, takers: set[_Taker], tasks: set[asyncio.Task[None]]) -> None:
        self._place = place
        self._takers = takers
        self._tasks = tasks
        self._transport: asyncio.Transport | None = None
        self._frames = _Frames()
        self._outcomes: list[_Outcome] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._takers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._transport = None
        self._takers.discard(self)

    def data_received(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        try:
            for frame in self._frames.take(data):
                for handed in _decode_handed(frame):
                    task = loop.create_task(self._take(handed))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
        except (FrameError, msgspec.MsgspecError) as error:
            _log.error("a worker that hands over orders is not understood: %s", error)
            self.end()

    def end(self) -> None:
        """Take no more from this worker."""
        if self._transport is not None:
            self._transport.abort()

    async def _take(self, handed: _Handed) -> None:
        refusal = await self._place(_order(handed.row), handed.is_signed)
        said = None
        if refusal is not None:
            said = (refusal.body, refusal.status, refusal.content_type, refusal.headers)
        if not self._outcomes:
            asyncio.get_running_loop().call_soon(self._tell)
        self._outcomes.append(_Outcome(handed.number, said))

    def _tell(self) -> None:
        outcomes, self._outcomes = self._outcomes, []
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_frame(outcomes))


@lru_cache(maxsize=KEPT_VALUES)
def _known(value: bytes) -> bytes:
    return value


def _order(row: _Row) -> Order:
    """The order with these fields; the same account's key and the same asset are one object."""
    amount_asset, price_asset, fee_asset = row[4], row[5], row[12]
    return Order(
        row[0],
        row[1],
        _known(row[2]),
        _known(row[3]),
        amount_asset and AssetId(_known(amount_asset)),
        price_asset and AssetId(_known(price_asset)),
        *row[6:12],
        fee_asset and AssetId(_known(fee_asset)),
        *row[13:],
    )
