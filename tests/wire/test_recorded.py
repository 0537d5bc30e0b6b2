"""Recorded conversations of the reference nodes: every byte of both sides is read and written."""

from __future__ import annotations

import base64
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from soliton.chain import blocks, microblocks, snapshots
from soliton.chain.transactions import codec
from soliton.wire import frames, handshake, messages
from soliton.wire.connection import Broken, Connection, Event, HandshakeReceived, MessageReceived
from soliton.wire.errors import Verdict
from soliton.wire.handshake import Handshake
from soliton.wire.versions import Version
from tests.vectors import shared_root
from tests.wire.talk import framed, heard, pieces

RECORDINGS = sorted((shared_root() / "golden" / "p2p").glob("*/*.jsonl.gz"))
MISBEHAVIOUR = shared_root() / "golden" / "p2p" / "misbehave" / "misbehave.json"

pytestmark = pytest.mark.skipif(not RECORDINGS, reason="no recorded conversations here")


def records(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def chain_of(rows: list[dict[str, Any]]) -> int:
    (found, _) = handshake.decode(base64.b64decode(rows[0]["base64"])) or pytest.fail(
        "no handshake"
    )
    return ord(found.application[-1])


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_both_sides_of_a_conversation(path: Path) -> None:
    rows = records(path)
    chain_id = chain_of(rows)
    chance = random.Random(path.parent.name)
    for side in ("A", "B"):
        said = [row for row in rows if row["from"] == side]
        first, *rest = [base64.b64decode(row["base64"]) for row in said]
        stream = first + b"".join(framed(r["code"], p) for r, p in zip(said[1:], rest, strict=True))
        talking = Connection(_own(chain_id), "waves", chain_id)
        parts = pieces(stream, (chance.choice((1, 3, 17, 1_000)) for _ in stream))
        introduced, *events = heard(talking, parts)
        assert isinstance(introduced, HandshakeReceived)
        assert handshake.encode(introduced.handshake) == first
        assert len(events) == len(rest)
        for row, payload, event in zip(said[1:], rest, events, strict=True):
            assert isinstance(event, MessageReceived), event
            assert _same(frames.encode(event.message), framed(row["code"], payload), event)
            _check_content(event.message, chain_id)
        assert talking.buffered == 0


def _own(chain_id: int) -> handshake.Handshake:
    return Handshake(f"waves{chr(chain_id)}", Version(1, 5, 7), "we", 9, None, 0)


def _same(ours: bytes, theirs: bytes, event: MessageReceived) -> bool:
    """Whether they are equal; the sign of a score is written by one node and not by another."""
    if isinstance(event.message, messages.Score):
        return ours[17:].lstrip(b"\0") == theirs[17:].lstrip(b"\0")
    return ours == theirs


def _check_content(message: messages.Message, chain_id: int) -> None:
    """What is carried can be read, and signatures hold."""
    match message:
        case messages.LegacyBlock(data) | messages.ProtobufBlock(data):
            assert blocks.signature_is_valid(blocks.decode(data, chain_id))
        case messages.LegacyMicroblock(data) | messages.ProtobufMicroblock(data):
            assert microblocks.signature_is_valid(microblocks.decode(data, chain_id))
        case messages.ProtobufTransaction(data):
            codec.decode_protobuf(data, chain_id)
        case messages.BlockSnapshot(data):
            snapshots.decode_block(data, chain_id)
        case messages.MicroblockSnapshot(data):
            snapshots.decode_microblock(data, chain_id)
        case messages.MicroblockInv():
            assert message.is_signed(chain_id)


# Reasons of the reference node that are about bytes, and not about what a node makes of them.
_FIRST = ("first bytes", "handshake with the node's own nonce")
_ABOUT_BYTES = ("Malformed", "Corrupted", "Invalid message", "An invalid")


def _differs(case: dict[str, Any]) -> str | None:
    """Why we do not do what the reference node did, where we do not."""
    name = case["case"]
    if name == "code 38":
        return "we know the message"
    if "garbage" in name and name.startswith(("Block (23)", "Transaction (25)")):
        return "what is carried is read by who wants it"
    if any("base64" not in each or each.get("cut") for each in case["sent"]) and not (
        "limit" in name or "addresses" in name
    ):
        return "not all bytes were recorded"
    return None


def _cases() -> list[dict[str, Any]]:
    if not MISBEHAVIOUR.is_file():
        return []
    found: list[dict[str, Any]] = json.loads(MISBEHAVIOUR.read_text())["targets"]["scala"]["cases"]
    return found


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case["case"])
def test_who_breaks_the_protocol_is_told_from_who_does_not(case: dict[str, Any]) -> None:
    if reason := _differs(case):
        pytest.skip(reason)
    chain_id = ord("P")
    talking = Connection(_own(chain_id), "waves", chain_id)
    sent = [base64.b64decode(each["base64"]) for each in case["sent"] if "base64" in each]
    events: list[Event] = []
    if not any(each["what"] in _FIRST for each in case["sent"]):
        events += talking.receive(handshake.encode(_own(chain_id)))
    events += heard(talking, sent)
    faults = [event.fault for event in events if isinstance(event, Broken)]
    reason = case["blacklisted"]
    about_bytes = isinstance(reason, str) and reason.startswith(_ABOUT_BYTES)
    blacklisted = [fault for fault in faults if fault.verdict is Verdict.BLACKLIST]
    assert bool(blacklisted) == about_bytes, (reason, faults)
    if faults and not blacklisted:
        assert case["closed"] is not None
