"""The clock that is corrected by a time server, and what is no answer of one."""

from __future__ import annotations

import asyncio
import logging
import struct
import time
from pathlib import Path
from typing import cast

import pytest

from soliton.node import network_time
from soliton.node.network_time import Answer, NetworkClock, NoTime, ask_server, keep_time
from soliton.node.settings import load_settings

EPOCH = 2_208_988_800


def stamp(seconds: float) -> bytes:
    """A time since 1970 as NTP writes it."""
    whole = int(seconds)
    return struct.pack(">II", whole + EPOCH, int((seconds - whole) * 2**32))


class Server(asyncio.DatagramProtocol):
    """A time server whose clock is ahead; it may be wrong in other ways."""

    def __init__(
        self, ahead: float, first: int = 0x24, stratum: int = 2, *, echo: bool = True
    ) -> None:
        self.ahead, self.first, self.stratum, self.echo = ahead, first, stratum, echo

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        now = stamp(time.time() + self.ahead)
        head = struct.pack(">BBbb", self.first, self.stratum, 6, -20)
        origin = data[40:48] if self.echo else bytes(8)
        self.transport.sendto(head + bytes(12) + now + origin + now + now, address)


async def asked(server: Server) -> Answer:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: server, ("127.0.0.1", 0))
    try:
        return await ask_server("127.0.0.1", transport.get_extra_info("sockname")[1])
    finally:
        transport.close()


@pytest.mark.parametrize("ahead", [0.0, 3_600.0, -86_400.0])
def test_a_server_tells_how_much_later_it_is(ahead: float) -> None:
    answer = asyncio.run(asked(Server(ahead)))
    # Half of the delay is all that is not known.
    assert abs(answer.difference - ahead) <= answer.delay / 2 + 0.001


@pytest.mark.parametrize(
    "server",
    [
        Server(0, echo=False),
        Server(0, stratum=0),
        Server(0, stratum=16),
        Server(0, first=0xE4),
        Server(0, first=0x23),
    ],
    ids=["of another question", "kiss of death", "no stratum", "not synchronized", "a client"],
)
def test_what_is_no_answer_of_a_time_server(server: Server) -> None:
    with pytest.raises(NoTime):
        asyncio.run(asked(server))


def test_bytes_that_are_no_packet() -> None:
    with pytest.raises(NoTime):
        network_time.read_answer(bytes(48), b"no", 0.0)


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_time, "ANSWER_SECONDS", 0.05)

    class Silent(Server):
        def datagram_received(self, data: bytes, address: tuple[str, int]) -> None: ...

    with pytest.raises(TimeoutError):
        asyncio.run(asked(Silent(0)))


def test_a_clock_is_corrected_within_limits(caplog: pytest.LogCaptureFixture) -> None:
    clock = NetworkClock(lambda: 1_000_000)
    clock.correct(40, "a server")
    assert (clock(), caplog.text) == (1_000_040, "")
    with caplog.at_level(logging.WARNING):
        clock.correct(-1_000, "a server")
        assert clock() == 999_000
        assert "differs by -1000 ms" in caplog.text
        caplog.clear()
        clock.correct(-1_050, "a server")
        assert (clock(), caplog.text) == (998_950, "")
        # Nobody has signed it.
        clock.correct(network_time.MAX_CORRECTION_MS + 1, "a server")
    assert clock() == 998_950
    assert "too much" in caplog.text


def test_the_quickest_answer_counts_and_a_failure_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[Answer | Exception] = [
        OSError("no route"), NoTime("it does not know the time"),
        Answer(5.0, 0.9), Answer(1.5, 0.1), Answer(-3.0, 0.5),
    ]  # fmt: skip
    pauses: list[float] = []
    clock = NetworkClock(lambda: 0)

    async def ask(_server: str) -> Answer:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if not answers:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError), caplog.at_level(logging.INFO):
        asyncio.run(keep_time(clock, "a server", ask))
    assert clock.offset_ms == 1_500
    assert pauses == [10.0, 20.0, 600.0]
    # One line for both failures.
    assert caplog.text.count("not compared") == 1


def test_the_setting(tmp_path: Path) -> None:
    assert load_settings(network="devnet", data_dir=tmp_path).ntp_server == "pool.ntp.org"
    own = load_settings(network="devnet", data_dir=tmp_path, overrides={"ntp-server": ""})
    assert not own.ntp_server
