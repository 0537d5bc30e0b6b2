"""The channel between processes: frames a byte at a time, and what goes together. Orders through it
are in ``tests/matcher/rest/test_order_channel``, transactions in ``tests/api/rest/test_readers``.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from soliton.web import channel as channel_module
from soliton.web.channel import (
    MAX_FRAME_BYTES,
    Channel,
    ChannelServer,
    ChannelSpec,
    FrameError,
    Frames,
    connect,
    frame_bytes,
)

NUMBERS = ChannelSpec[int, str](int, str, "unknown", max_waiting=100, group=4)


# --- frames ---------------------------------------------------------------------------------------


def test_frames_are_the_same_however_they_are_cut() -> None:
    wanted = [b"", b"a", b"bc" * 300, b"", b"d"]
    data = b"".join(map(frame_bytes, wanted))
    for cut in range(len(data) + 1):
        frames = Frames()
        assert [*frames.receive(data[:cut]), *frames.receive(data[cut:])] == wanted
    frames = Frames()
    assert [each for byte in data for each in frames.receive(bytes((byte,)))] == wanted


@given(st.lists(st.binary(max_size=70)), st.lists(st.integers(1, 90), min_size=1))
def test_frames_in_any_pieces(wanted: list[bytes], lengths: list[int]) -> None:
    data, frames, found = b"".join(map(frame_bytes, wanted)), Frames(), list[bytes]()
    while data:
        for length in lengths:
            found += frames.receive(data[:length])
            data = data[length:]
    assert found == wanted


def test_the_longest_frame_is_waited_for_and_a_longer_one_is_not() -> None:
    assert list(Frames().receive(MAX_FRAME_BYTES.to_bytes(4, "big"))) == []
    with pytest.raises(FrameError):
        list(Frames().receive((MAX_FRAME_BYTES + 1).to_bytes(4, "big")))


# --- groups ---------------------------------------------------------------------------------------


class Wire(asyncio.Transport):
    """What an end of a channel writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_open = self.reads = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return not self.is_open

    def abort(self) -> None:
        self.is_open = False

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


class Pair:
    """Both ends of a channel without a socket: bytes go there when the test says so."""

    def __init__(self, spec: ChannelSpec[int, str]) -> None:
        self.spec = spec
        self.channel, self.wire = Channel(spec), Wire()
        self.channel.connection_made(self.wire)
        self.answers: list[str] = []

    def submit(self, *questions: int) -> None:
        for question in questions:
            self.channel.submit(question, self.answers.append)

    def sent(self) -> list[list[tuple[int, int]]]:
        """The groups that were written since."""
        written, self.wire.written = self.wire.written, []
        return [self.spec.decode_questions(data[4:]) for data in written]

    def answer(self, group: list[tuple[int, int]], *, at_once: bool = False) -> None:
        frame = frame_bytes(msgspec.msgpack.encode([(number, str(item)) for number, item in group]))
        for piece in [frame] if at_once else [bytes((byte,)) for byte in frame]:
            self.channel.data_received(piece)


async def test_a_group_goes_as_soon_as_it_is_full_and_the_rest_at_the_end_of_a_turn() -> None:
    pair = Pair(NUMBERS)
    pair.submit(*range(10))
    assert [len(group) for group in pair.sent()] == [4, 4]
    await asyncio.sleep(0)
    (rest,) = pair.sent()
    assert rest == [(9, 8), (10, 9)]


async def test_groups_that_wait_for_the_one_before() -> None:
    pair = Pair(replace(NUMBERS, pipelined=False))
    pair.submit(*range(10))
    await asyncio.sleep(0)
    sizes = []
    while groups := pair.sent():
        (group,) = groups
        sizes.append(len(group))
        # Half of the answers open nothing yet.
        pair.answer(group[:1])
        assert len(group) == 1 or not pair.wire.written
        if group[1:]:
            pair.answer(group[1:], at_once=True)
    assert sizes == [4, 4, 2]
    assert pair.answers == [str(number) for number in range(10)]


@pytest.mark.parametrize(("limit", "sizes"), [(1, [1] * 5), (30, [3, 2]), (1_000, [4, 1])])
async def test_groups_are_limited_by_weight(limit: int, sizes: list[int]) -> None:
    pair = Pair(replace(NUMBERS, pipelined=False, group_bytes=limit, weigh=lambda _: 10))
    pair.submit(*range(5))
    await asyncio.sleep(0)
    found = []
    while groups := pair.sent():
        found += [len(group) for group in groups]
        pair.answer(groups[0])
    assert found == sizes


async def test_so_many_may_wait() -> None:
    pair = Pair(replace(NUMBERS, max_waiting=3))
    pair.submit(1, 2)
    assert not pair.channel.is_full
    pair.submit(3)
    assert pair.channel.is_full
    await asyncio.sleep(0)
    pair.answer(pair.sent()[0])
    assert not pair.channel.is_full


@pytest.mark.parametrize(
    "data", [b"\0\0\0\1\xc1", b"\xff\xff\xff\xff", b"\0\0\0\4\x91\x92\x07\xa0"]
)
async def test_an_end_that_is_not_understood_is_left(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    pair = Pair(NUMBERS)
    pair.submit(1)
    for byte in data:
        pair.channel.data_received(bytes((byte,)))
    assert not pair.wire.is_open and len(caplog.records) == 1
    pair.channel.connection_lost(None)
    assert pair.answers == ["unknown"]


async def test_questions_and_answers_over_a_socket(tmp_path: Path) -> None:
    async def slowly(question: int) -> str:
        await asyncio.sleep(0)
        return str(-question)

    def respond(question: int) -> object:
        return slowly(question) if question % 2 else str(question)

    server = ChannelServer(NUMBERS, respond)  # type: ignore[arg-type]
    await server.open(str(tmp_path / "channel"))
    channel = await connect(NUMBERS, str(tmp_path / "channel"))
    answers = await asyncio.gather(*(channel.ask(number) for number in range(50)))
    assert [int(each) for each in answers] == [-n if n % 2 else n for n in range(50)]
    server.close()
    await asyncio.wait_for(channel.lost.wait(), 60)
    assert await channel.ask(1) == "unknown"


# --- slices ---------------------------------------------------------------------------------------


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice is over after one item."""
    monkeypatch.setattr(channel_module, "SLICE_SECONDS", -1.0)


@pytest.mark.usefixtures("no_time")
async def test_answers_that_come_together_are_handled_in_slices() -> None:
    pair, passes = Pair(NUMBERS), 0
    pair.submit(*range(10))
    await asyncio.sleep(0)
    for group in pair.sent():
        pair.answer(group, at_once=True)
    assert len(pair.answers) == 1 and not pair.wire.reads
    while not pair.wire.reads:
        passes += 1
        await asyncio.sleep(0)
    assert pair.answers == [str(number) for number in range(10)] and passes >= 9


@pytest.mark.usefixtures("no_time")
async def test_answers_that_have_come_before_the_end_are_not_unknown() -> None:
    pair = Pair(NUMBERS)
    pair.submit(*range(6))
    await asyncio.sleep(0)
    first, _ = pair.sent()
    pair.answer(first, at_once=True)
    pair.wire.abort()
    pair.channel.connection_lost(None)
    assert pair.answers == ["0", "1", "2", "3", "unknown", "unknown"]
