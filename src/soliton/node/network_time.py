"""The time of the network: the machine's clock, corrected by a time server (NTP).

Blocks carry the time of their generator, and one of the future is refused. So a node whose clock is
a second ahead makes blocks that its peers do not take, and cannot see why. As in the reference, the
time of a server is compared with the clock, and the difference is added.

What lives here: the corrected clock, and asking the server. What does not: what time is used for.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/utils/Time.scala``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import ntplib

NTP_PORT: Final = 123
SAMPLES: Final = 3
"""Questions each time; the answer that came soonest counts."""
ANSWER_SECONDS: Final = 5.0
UPDATE_SECONDS: Final = 600.0
RETRY_SECONDS: Final = 10.0
"""The pause after a failure; twice as long after each further one, up to ``UPDATE_SECONDS``."""
MAX_CORRECTION_MS: Final = 60_000
"""A larger difference is reported and not corrected: answers of a time server are not signed."""
WORTH_A_WARNING_MS: Final = 100
"""Blocks may be so far in the future."""
_COOKIE: Final = slice(40, 48)
_ORIGIN: Final = slice(24, 32)
_SERVER_MODE: Final = 4
_UNSYNCHRONIZED: Final = 3
_MAX_STRATUM: Final = 15

_log = logging.getLogger(__name__)


class NetworkClock:
    """The machine's clock (ms since 1970) with a correction."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.offset_ms = 0
        """What is added to the machine's clock."""

    def __call__(self) -> int:
        return self._clock() + self.offset_ms

    def correct(self, difference_ms: int, server: str) -> None:
        """Take over how much later it is for a time server, unless that is too much."""
        if abs(difference_ms) > MAX_CORRECTION_MS:
            _log.warning(
                "the clock differs by %d ms from that of %s, which is too much to be corrected: "
                "set the clock, or waves.ntp-server to a better server", difference_ms, server,
            )  # fmt: skip
            return
        if abs(difference_ms - self.offset_ms) > WORTH_A_WARNING_MS:
            _log.warning(
                "the clock differs by %d ms from that of %s and is corrected by that: a block may "
                "be %d ms ahead; let the system keep its time", difference_ms, server,
                WORTH_A_WARNING_MS,
            )  # fmt: skip
        self.offset_ms = difference_ms


class Answer(NamedTuple):
    """How much later it is for a time server, and how long its answer took, in seconds."""

    difference: float
    delay: float


class NoTime(Exception):
    """A time server gives no time that can be used."""


async def keep_time(
    clock: NetworkClock, server: str, ask: Callable[[str], Awaitable[Answer]] | None = None
) -> None:
    """Correct a clock by a time server, again and again; never returns."""
    ask = ask or ask_server
    pause, failed = RETRY_SECONDS, False
    while True:
        try:
            answers = [await ask(server) for _ in range(SAMPLES)]
        except (OSError, TimeoutError, NoTime) as error:
            level = logging.DEBUG if failed else logging.WARNING
            reason = str(error) or "no answer"
            _log.log(level, "the clock is not compared with %s: %s", server, reason)
            failed = True
            await asyncio.sleep(pause)
            pause = min(2 * pause, UPDATE_SECONDS)
            continue
        best = min(answers, key=lambda answer: answer.delay)
        clock.correct(round(best.difference * 1_000), server)
        if failed:
            _log.info("the clock is compared with %s again", server)
        pause, failed = RETRY_SECONDS, False
        await asyncio.sleep(UPDATE_SECONDS)


async def ask_server(server: str, port: int = NTP_PORT) -> Answer:
    """Ask a time server once; raises ``OSError``, ``TimeoutError`` or ``NoTime``."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(ANSWER_SECONDS):
        answered: asyncio.Future[bytes] = loop.create_future()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Question(answered), remote_addr=(server, port)
        )
        try:
            sent = ntplib.system_to_ntp_time(time.time())
            question: bytes = ntplib.NTPPacket(version=4, mode=3, tx_timestamp=sent).to_data()
            transport.sendto(question)
            data = await answered
            received = ntplib.system_to_ntp_time(time.time())
        finally:
            transport.close()
    return read_answer(question, data, received)


def read_answer(question: bytes, data: bytes, received: float) -> Answer:
    """Return the answer to a question in the bytes of a packet, received at a time of NTP; raises
    ``NoTime`` for anything else.
    """
    stats = ntplib.NTPStats()
    try:
        stats.from_data(data)
    except ntplib.NTPException as error:
        raise NoTime("its answer is no packet of NTP") from error
    if data[_ORIGIN] != question[_COOKIE]:
        raise NoTime("its answer is not one to our question")
    if stats.mode != _SERVER_MODE:
        raise NoTime("its answer is none of a server")
    if stats.leap == _UNSYNCHRONIZED or not 1 <= stats.stratum <= _MAX_STRATUM:
        raise NoTime("it does not know the time")
    stats.dest_timestamp = received
    return Answer(stats.offset, stats.delay)


class _Question(asyncio.DatagramProtocol):
    def __init__(self, answered: asyncio.Future[bytes]) -> None:
        self._answered = answered

    def datagram_received(self, data: bytes, _address: object) -> None:
        if not self._answered.done():
            self._answered.set_result(data)

    def error_received(self, error: Exception) -> None:
        if not self._answered.done():
            self._answered.set_exception(error)
