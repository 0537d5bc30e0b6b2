"""Frames and conversations: any bytes, in any pieces, within any bounds."""

from __future__ import annotations

import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.crypto.keys import key_pair
from soliton.node.versions import interface_version
from soliton.wire import frames, handshake, messages
from soliton.wire.connection import Broken, Connection, Dropped, HandshakeReceived, MessageReceived
from soliton.wire.errors import CannotSend, PeerFault, Verdict
from soliton.wire.handshake import MAX_BYTES, Handshake, PeerAddress
from soliton.wire.kinds import BY_CODE, BY_RECORD, KINDS, Kind
from soliton.wire.versions import ANNOUNCED, Version, application_name, is_accepted
from tests.wire.talk import R, connection, framed, greeting, heard, pieces

ids = st.binary(min_size=32, max_size=32) | st.binary(min_size=64, max_size=64)
signatures = st.binary(min_size=64, max_size=64)
keys = st.binary(min_size=32, max_size=32)
data = st.binary(min_size=1, max_size=300)
ports = st.integers(0, 65_535)


def invs() -> st.SearchStrategy[messages.MicroblockInv]:
    def of(length: int) -> st.SearchStrategy[messages.MicroblockInv]:
        same = st.binary(min_size=length, max_size=length)
        return st.builds(messages.MicroblockInv, keys, same, same, signatures)

    return st.sampled_from((32, 64)).flatmap(of)


FORMS: dict[type[messages.Message], st.SearchStrategy[messages.Message]] = {
    messages.GetPeers: st.just(messages.GetPeers()),
    messages.Peers: st.builds(
        messages.Peers,
        st.lists(st.builds(PeerAddress, st.ip_addresses(v=4), ports), max_size=20).map(tuple),
    ),
    **{
        record: st.builds(record, st.lists(signatures, max_size=10).map(tuple))
        for record in (messages.GetSignatures, messages.Signatures)
    },
    **{
        record: st.builds(
            record, st.lists(st.binary(min_size=1, max_size=127), max_size=10).map(tuple)
        )
        for record in (messages.GetBlockIds, messages.BlockIds)
    },
    messages.Score: st.builds(messages.Score, st.integers(0, 2**503)),
    **{
        record: st.builds(record, ids)
        for record in (
            messages.GetBlock,
            messages.GetBlockSnapshot,
            messages.GetMicroblock,
            messages.GetMicroblockSnapshot,
        )
    },
    messages.MicroblockInv: invs(),
    **{
        record: st.builds(record, data)
        for record in (
            messages.LegacyBlock,
            messages.ProtobufBlock,
            messages.LegacyTransaction,
            messages.ProtobufTransaction,
            messages.LegacyMicroblock,
            messages.ProtobufMicroblock,
            messages.BlockSnapshot,
            messages.MicroblockSnapshot,
            messages.EndorseBlock,
        )
    },
}
anything = st.one_of(list(FORMS.values()))
names = st.text(max_size=31)
handshakes = st.builds(
    Handshake,
    names,
    st.builds(Version, *[st.integers(0, 2**31 - 1)] * 3),
    names,
    st.integers(-(2**63), 2**63 - 1),
    st.none() | st.builds(PeerAddress, st.ip_addresses(), ports),
    st.integers(-(2**63), 2**63 - 1),
)


def test_every_kind_has_a_form() -> None:
    assert set(FORMS) == set(BY_RECORD)
    assert len(BY_CODE) == len(KINDS)


@given(st.lists(anything, max_size=8), st.lists(st.integers(1, 50), max_size=30))
def test_what_is_said_is_heard(said: list[messages.Message], sizes: list[int]) -> None:
    stream = b"".join(map(frames.encode, said))
    talking = connection(Version(1, 6, 0))
    events = heard(talking, pieces(stream, sizes))
    assert [event.message for event in events if isinstance(event, MessageReceived)] == said
    assert sum(event.size for event in events if isinstance(event, MessageReceived)) == len(stream)
    assert talking.buffered == 0


@given(anything)
def test_frames_are_those_of_the_description(message: messages.Message) -> None:
    assert frames.encode(message) == framed(BY_RECORD[type(message)].code, message.encode())


@given(handshakes, st.binary(max_size=40))
def test_handshakes(said: Handshake, more: bytes) -> None:
    stream = handshake.encode(said)
    assert len(stream) <= MAX_BYTES
    assert handshake.decode(stream + more) == (said, len(stream))
    for length in range(len(stream)):
        assert handshake.decode(stream[:length]) is None


def test_long_names_are_cut_between_letters() -> None:
    said = Handshake("wavesR", Version(1, 5, 7), "ü" * 100, 1, None, 0)
    found = handshake.decode(handshake.encode(said))
    assert found is not None
    assert found[0].node_name == "ü" * 63


@given(st.lists(st.binary(max_size=80), max_size=20))
def test_any_bytes_come_to_events(parts: list[bytes]) -> None:
    """Nothing but our own blame, which ends the conversation."""
    for talking in (connection(), Connection(greeting(), "waves", R)):
        events = heard(talking, parts)
        broken = [event for event in events if isinstance(event, Broken)]
        assert len(broken) <= 1
        if broken:
            assert events[-1] == broken[0]
            assert talking.is_over
            assert talking.receive(frames.encode(messages.GetPeers())) == []


@given(anything, st.data())
def test_a_changed_byte_is_blamed_or_read(message: messages.Message, more: st.DataObject) -> None:
    stream = bytearray(frames.encode(message))
    place = more.draw(st.integers(0, len(stream) - 1))
    stream[place] ^= more.draw(st.integers(1, 255))
    for event in connection().receive(bytes(stream)):
        assert isinstance(event, MessageReceived | Broken)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_kind_is_longer_than_its_limit(kind: Kind) -> None:
    """The header alone is enough to refuse it: nothing is held for it."""
    length = kind.limit + 1
    head = struct.pack(">IIBI", 13 + length, 0x12345678, kind.code, length)
    talking = connection()
    (event,) = talking.receive(head)
    assert isinstance(event, Broken)
    assert event.fault.verdict is Verdict.BLACKLIST
    assert talking.buffered == 0


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (struct.pack(">I", 8), "a frame of 8 bytes"),
        (struct.pack(">I", 0xFFFFFFFF), "a frame of 4294967295 bytes"),
        (struct.pack(">IB", 9, 0x13), "not a frame"),
        (struct.pack(">IIBI", 9, 0x12345679, 1, 0), "not a frame"),
        (struct.pack(">IIBI", 9, 0x12345678, 99, 0), "message 99"),
        (struct.pack(">IIBi", 9, 0x12345678, 22, -1), "GetBlock of -1 bytes"),
        (struct.pack(">IIBI", 10, 0x12345678, 1, 0), "in a frame of 10 bytes"),
        (struct.pack(">IIBI", 80, 0x12345678, 22, 32), "in a frame of 80 bytes"),
        (framed(24, b"\1")[:-1] + b"\2", "wrong checksum"),
        (framed(2, struct.pack(">i", -1)), "Peers: a list of -1"),
        (framed(2, struct.pack(">iIi", 1, 1, 65_536)), "Peers: a peer at port 65536"),
        (framed(2, struct.pack(">iIi", 2, 1, 1)), "Peers: a list of 2"),
        (framed(2, b"\0"), "Peers: a list without a count"),
        (framed(21, struct.pack(">i", 1) + bytes(63)), "Signatures: a list of 1"),
        (framed(33, struct.pack(">i", 1_000_000)), "BlockIds: a list of 1000000 ids"),
        (framed(33, struct.pack(">iBB", 1, 0, 1)), "BlockIds: an id of 0 bytes"),
        (framed(33, struct.pack(">iBB", 1, 128, 1)), "BlockIds: an id of 128 bytes"),
        (framed(33, struct.pack(">iBB", 1, 2, 1)), "does not end with its payload"),
        (framed(33, struct.pack(">iBBB", 1, 1, 1, 1)), "does not end with its payload"),
        (framed(22, bytes(31)), "GetBlock: a block id of 31 bytes"),
        (framed(34, bytes(63)), "GetBlockSnapshot: a block id of 63 bytes"),
        (framed(26, bytes(159)), "MicroblockInv: an announcement of 159 bytes"),
        (framed(26, bytes(162)), "MicroblockInv: an announcement of 162 bytes"),
        (framed(29, b""), "ProtobufBlock: a message without content"),
        (framed(1, b"\0"), "GetPeers of 1 bytes"),
    ],
)  # fmt: skip
def test_what_is_no_frame(stream: bytes, words: str) -> None:
    events = connection().receive(stream)
    assert isinstance(events[-1], Broken)
    assert words in events[-1].fault.reason
    assert events[-1].fault.verdict is Verdict.BLACKLIST


def test_a_frame_of_nothing_passes() -> None:
    assert connection().receive(bytes(8) + framed(1, b"")) == [
        MessageReceived(messages.GetPeers(), 13)
    ]


def test_what_is_not_wanted_is_never_held() -> None:
    talking = connection(unwanted={36})
    head, size = framed(36, bytes(100))[:13], 3_000_000
    head = struct.pack(">IIBI", 13 + size, 0x12345678, 36, size)
    assert talking.receive(head) == []
    for _ in range(0, size, 1_000):
        assert talking.receive(bytes(1_000)) == []
        assert talking.buffered < 1_000
    assert talking.receive(bytes(4) + framed(1, b"")) == [
        Dropped(BY_CODE[36]),
        MessageReceived(messages.GetPeers(), 13),
    ]
    talking.discard(())
    assert talking.receive(framed(36, b"x")) == [MessageReceived(messages.BlockSnapshot(b"x"), 18)]


@pytest.mark.parametrize(
    ("first", "verdict"),
    [
        (handshake.encode(greeting(application="wavesX")), Verdict.SUSPEND),
        (handshake.encode(greeting(version=Version(0, 12, 9))), Verdict.SUSPEND),
        (handshake.encode(greeting(version=Version(2, 0, 0))), Verdict.SUSPEND),
        (b"\x80", Verdict.BLACKLIST),
        (handshake.encode(greeting())[:-12] + struct.pack(">i", 5), Verdict.BLACKLIST),
        (handshake.encode(greeting())[:-12] + struct.pack(">i", -1), Verdict.BLACKLIST),
        (handshake.encode(greeting())[:-12] + struct.pack(">iIi", 8, 1, 70_000), Verdict.BLACKLIST),
        (handshake.encode(greeting())[:-12] + struct.pack(">iIi", 8, 1, -1), Verdict.BLACKLIST),
    ],
)
def test_whom_we_do_not_talk_to(first: bytes, verdict: Verdict) -> None:
    talking = Connection(greeting(), "waves", R)
    (event,) = talking.receive(first)
    assert isinstance(event, Broken)
    assert event.fault.verdict is verdict


@pytest.mark.parametrize(
    ("family", "version", "accepted"),
    [
        ("waves", (0, 12, 99), False), ("waves", (0, 13, 0), True), ("waves", (0, 99, 0), True),
        ("waves", (1, 0, 0), True), ("waves", (1, 99, 0), True), ("waves", (2, 0, 0), False),
        ("zbs", (0, 16, 3), True), ("zbs", (0, 12, 0), False), ("zbs", (1, 5, 0), True),
        ("tn", (1, 1, 9), False), ("tn", (1, 1, 10), True), ("tn", (1, 2, 0), True),
        ("tn", (1, 0, 99), False), ("tn", (0, 16, 0), False), ("tn", (2, 2, 0), False),
    ],
)  # fmt: skip
def test_versions(family: str, version: tuple[int, int, int], accepted: bool) -> None:
    assert is_accepted(family, Version(*version)) is accepted


def test_peers_accept_the_version_that_we_announce() -> None:
    assert all(is_accepted(family, version) for family, version in ANNOUNCED.items())
    # Source: wavesplatform/gowaves pkg/node/peers/peer_manager.go, for nodes that announce 1.5.
    assert abs(ANNOUNCED["waves"].minor - 5) < 2
    assert str(ANNOUNCED["waves"]) == interface_version("waves")


@pytest.mark.parametrize(
    ("family", "letter", "name"),
    [("waves", "W", "wavesW"), ("zbs", "Z", "zbsZ"), ("tn", "L", "TNL"), ("waves", "R", "wavesR")],
)
def test_names_of_networks(family: str, letter: str, name: str) -> None:
    assert application_name(family, ord(letter)) == name


def test_a_network_of_another_family_refuses_for_longer() -> None:
    talking = Connection(greeting(application="TNL"), "tn", ord("L"))
    (event,) = talking.receive(handshake.encode(greeting(application="wavesL")))
    assert isinstance(event, Broken)
    assert event.fault.verdict is Verdict.BLACKLIST


@pytest.mark.parametrize(
    ("version", "unknown"),
    [
        ((0, 16, 3), {29, 30, 31, 32, 33, 34, 35, 36, 37, 38}),
        ((1, 1, 10), {29, 30, 31, 32, 33, 34, 35, 36, 37, 38}),
        ((1, 2, 0), {34, 35, 36, 37, 38}),
        ((1, 4, 9), {34, 35, 36, 37, 38}),
        ((1, 5, 0), set()),
    ],
)
def test_nobody_is_told_what_his_version_does_not_know(
    version: tuple[int, int, int], unknown: set[int]
) -> None:
    talking = connection(Version(*version))
    assert {kind.code for kind in KINDS if not talking.can_send(kind.record)} == unknown
    if unknown:
        with pytest.raises(CannotSend):
            talking.send(messages.EndorseBlock(b"x"))


def test_messages_come_after_both_handshakes() -> None:
    talking = Connection(greeting(), "waves", R)
    with pytest.raises(CannotSend):
        talking.send(messages.GetPeers())
    assert talking.introduce() == handshake.encode(greeting())
    with pytest.raises(CannotSend):
        talking.introduce()
    with pytest.raises(CannotSend):
        talking.send(messages.GetPeers())
    # The first message may come in the same segment.
    peer = greeting(2)
    events = talking.receive(handshake.encode(peer) + framed(24, b"\x01"))
    assert events == [HandshakeReceived(peer), MessageReceived(messages.Score(1), 18)]
    assert talking.send(messages.GetPeers()) == framed(1, b"")
    talking.close()
    with pytest.raises(CannotSend):
        talking.send(messages.GetPeers())


def test_what_is_too_long_is_not_sent() -> None:
    with pytest.raises(CannotSend):
        connection().send(messages.ProtobufTransaction(bytes(184_321)))
    with pytest.raises(CannotSend):
        connection().send(messages.GetBlockIds((bytes(64),) * 201))


def test_more_peers_than_fit_are_left_out_and_so_is_ipv6() -> None:
    four = [PeerAddress(ipaddress.IPv4Address(number), 6868) for number in range(1, 1_002)]
    six = PeerAddress(ipaddress.IPv6Address(1), 6868)
    (event,) = connection().receive(frames.encode(messages.Peers((six, *four))))
    assert isinstance(event, MessageReceived)
    assert event.message == messages.Peers(tuple(four[:1_000]))


def test_announcements_are_signed() -> None:
    pair = key_pair("generator")
    made = messages.announce(pair.private_key, pair.public_key, bytes(32), b"\1" * 32, R)
    assert made.is_signed(R)
    assert not made.is_signed(R + 1)
    with pytest.raises(PeerFault):
        messages.MicroblockInv.decode(made.encode()[:-1])
