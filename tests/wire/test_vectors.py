"""Every frame and handshake that another implementation wrote, read and written again."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

import pytest

from soliton.wire import frames, handshake, messages
from soliton.wire.connection import MessageReceived
from soliton.wire.handshake import Handshake, PeerAddress
from soliton.wire.messages import Message
from soliton.wire.versions import Version
from tests.vectors import load_vectors, report
from tests.wire.talk import connection, framed, heard, pieces

MESSAGES = "p2p_messages"
CAPTURE = "p2p_capture"


LISTS: dict[str, Callable[..., Message]] = {
    "GetBlockIDs": messages.GetBlockIds,
    "BlockIDs": messages.BlockIds,
    "GetSignatures": messages.GetSignatures,
    "Signatures": messages.Signatures,
}
CARRIED: dict[str, Callable[..., Message]] = {
    "GetBlock": messages.GetBlock,
    "GetBlockSnapshot": messages.GetBlockSnapshot,
    "MicroBlockRequest": messages.GetMicroblock,
    "MicroBlockSnapshotRequest": messages.GetMicroblockSnapshot,
    "Block": messages.LegacyBlock,
    "PBBlock": messages.ProtobufBlock,
    "Transaction": messages.LegacyTransaction,
    "PBTransaction": messages.ProtobufTransaction,
    "BlockSnapshot": messages.BlockSnapshot,
}


def named(name: str, fields: dict[str, Any]) -> Message | Handshake:
    """What the fields of a vector say."""
    if name == "Handshake":
        return handshake_of(fields)
    if name in LISTS:
        (ids,) = fields.values()
        return LISTS[name](tuple(map(bytes.fromhex, ids)))
    if name in CARRIED:
        value = fields[next(key for key in fields if key.endswith("_hex") or "id" in key)]
        return CARRIED[name](bytes.fromhex(value))
    if name == "Score":
        return messages.Score(int(fields["score_be_hex"], 16))
    if name == "MicroBlockInv":
        parts = ("sender", "total_block_id", "reference", "signature")
        return messages.MicroblockInv(*(bytes.fromhex(fields[part]) for part in parts))
    assert name in ("GetPeers", "Peers") and not fields.get("peers"), name
    return messages.GetPeers() if name == "GetPeers" else messages.Peers(())


def handshake_of(fields: dict[str, Any]) -> Handshake:
    """The handshake of a vector."""
    address, declared = fields["declared_address"], None
    if address:
        declared = PeerAddress(ipaddress.ip_address(address), fields["declared_port"])
    return Handshake(
        fields["application_name"],
        Version(*fields["version"]),
        fields["node_name"],
        fields["nonce"],
        declared,
        fields["timestamp"],
    )


def test_messages_of_another_implementation() -> None:
    for vector in load_vectors(MESSAGES):
        data = bytes.fromhex(vector["hex"])
        expected = named(vector["name"], vector["fields"])
        if isinstance(expected, Handshake):
            assert handshake.decode(data) == (expected, len(data))
            assert handshake.encode(expected) == data
        else:
            assert heard(connection(), pieces(data, [1] * 40)) == [
                MessageReceived(expected, len(data))
            ]
            assert frames.encode(expected) == data
        report.ran(MESSAGES, 1)


def test_what_a_miner_said() -> None:
    for vector in load_vectors(CAPTURE):
        payload = bytes.fromhex(vector["payload"])
        data = framed(vector["id"], payload)
        (event,) = connection().receive(data)
        assert isinstance(event, MessageReceived)
        if isinstance(event.message, messages.Score):
            # That node writes no sign.
            assert event.message.encode().lstrip(b"\0") == payload.lstrip(b"\0")
        else:
            assert frames.encode(event.message) == data
        if isinstance(event.message, messages.MicroblockInv):
            assert event.message.is_signed(ord(vector["scheme"]))
        report.ran(CAPTURE, 1)


@pytest.mark.parametrize("length", [0, 1, 49])
def test_a_handshake_that_is_not_whole_is_waited_for(length: int) -> None:
    data = bytes.fromhex(
        "06776176657352000000010000000500000007026e310000000000000007000000087f000001"
        "00001acf0000000000000000"
    )
    assert handshake.decode(data[:length]) is None
    found, used = handshake.decode(data + b"more") or (None, 0)
    assert used == len(data) == 50
    assert found == Handshake(
        "wavesR",
        Version(1, 5, 7),
        "n1",
        7,
        PeerAddress(ipaddress.ip_address("127.0.0.1"), 6863),
        0,
    )
