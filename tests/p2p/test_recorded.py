"""Recorded conversations of the reference nodes, with a node of ours in the place of either side.

It reads every message, asks for what the recorded node asked for, answers questions with the same
bytes, tells of the same blocks, microblocks and transactions, and ends with the same chain and the
same state. What the protocol leaves open is not compared: the time of scores, how many ids of
blocks that the peer has named itself are repeated in the next question, random signatures.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from soliton.chain import microblocks, snapshots
from soliton.chain.snapshots import AccountData, BlockSnapshot, Snapshot
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.ledger import apply
from soliton.ledger.transactions import Applied, apply_transaction
from soliton.wire import messages
from soliton.wire.messages import Message
from tests.p2p.replay import BLOCKS, MICROBLOCKS, Recording, Replay, Row
from tests.vectors import report, shared_root

FILES = sorted((shared_root() / "golden" / "p2p").glob("*/*.jsonl.gz"))
TRANSACTION = messages.ProtobufTransaction
PLACES = [(file, side) for file in FILES for side in "AB"]

WITHOUT_GENESIS_REWARD = ("scala-go-sync", "go-go-legacy")
"""With features 1 to 14 the genesis block has a reward in the Scala node and here, but not in the
Go node, which the legacy hashes show.
"""

pytestmark = pytest.mark.skipif(not FILES, reason="no recorded conversations here")


def _name(place: tuple[Path, str]) -> str:
    file, side = place
    return f"{file.parent.name}-{file.name.removesuffix('.jsonl.gz')}-{side}"


@pytest.mark.parametrize("place", PLACES, ids=_name)
def test_a_node_of_ours_in_the_place_of_either_side(
    place: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, side = place
    replay = Replay(tmp_path, Recording(file.parent, file.name.removesuffix(".jsonl.gz")), side)
    executed: list[bytes] = []

    def execute(transaction: AnyTransaction, *arguments: Any, **options: Any) -> Applied:
        executed.append(transaction.id)
        return apply_transaction(transaction, *arguments, **options)

    monkeypatch.setattr(apply, "apply_transaction", execute)
    try:
        asyncio.run(replay.run())
        assert not (replay.light and executed)
        assert replay.hung_up == []
        assert replay.jobs.faulty_forks == {}
        check_what_was_read(replay)
        check_questions(replay)
        check_answers(replay)
        check_news(replay)
        check_chain(replay, last=file.name != "before.jsonl.gz")
    finally:
        replay.close()
    report.ran("golden/p2p", len(replay.recording.rows))


def check_what_was_read(replay: Replay) -> None:
    traffic = replay.core.traffic
    rows = [row for row in replay.recording.rows if row.side == replay.other]
    read = {type(row.message).__name__ for row in rows}
    unread = {"Peers"} if replay.light else {"BlockSnapshot", "MicroblockSnapshot", "Peers"}
    assert read - unread <= traffic.messages_in.keys()
    assert replay.core.blames == {}


def check_questions(replay: Replay) -> None:
    kinds = (messages.GetBlock, messages.GetMicroblock)
    told = (messages.GetBlockSnapshot, messages.GetMicroblockSnapshot) if replay.light else ()
    for kind in (*kinds, *told):
        asked = [each for each in replay.said if isinstance(each, kind)]
        theirs = [row.message for row in replay.recorded(kind)]
        assert [each for each in asked if each in theirs] == theirs
        # News that come while blocks are loaded are asked for by whom they come too early.
        assert len(asked) - len(theirs) <= 1
    first = next((each for each in replay.said if isinstance(each, messages.GetBlockIds)), None)
    wanted = replay.recorded(messages.GetBlockIds)
    if first is not None and wanted:
        message = wanted[0].message
        assert isinstance(message, messages.GetBlockIds)
        # Of one side of a fork not all blocks were recorded: our node began below them.
        assert message.ids[-len(first.ids) :] == first.ids
    assert (first is None) == (not wanted)


def check_answers(replay: Replay) -> None:
    chain_id = replay.recording.network.chain_id
    for request, ours, theirs in replay.answers:
        if theirs is None:
            # A Go node is silent when nothing follows; others name the one id that both have.
            assert isinstance(ours, messages.BlockIds)
            assert len(ours.ids) == 1
        elif isinstance(theirs, MICROBLOCKS):
            assert isinstance(ours, MICROBLOCKS)
            one, other = (microblocks.decode(each.data, chain_id) for each in (ours, theirs))
            # Go nodes send those of old blocks as protobuf, Scala nodes do not.
            assert (one.signed, one.total_block_id) == (other.signed, other.total_block_id)
            assert microblocks.signature_is_valid(one)
        elif isinstance(theirs, messages.BlockSnapshot):
            assert isinstance(ours, messages.BlockSnapshot), request
            _check_snapshots(
                *(snapshots.decode_block(each.data, chain_id) for each in (ours, theirs))
            )
        elif isinstance(theirs, messages.MicroblockSnapshot):
            assert isinstance(ours, messages.MicroblockSnapshot), request
            _check_snapshots(
                *(snapshots.decode_microblock(each.data, chain_id) for each in (ours, theirs))
            )
        elif isinstance(theirs, messages.BlockIds):
            assert isinstance(ours, messages.BlockIds)
            count = len(ours.ids)
            assert ours.ids == theirs.ids[:count]
            # A block that was made between question and answer.
            assert all(each in replay.recording.news for each in theirs.ids[count:])
        else:
            assert ours == theirs, request


def _check_snapshots(ours: BlockSnapshot, theirs: BlockSnapshot) -> None:
    """All that a transaction changed is equal; only new assets stand in an order that counts."""
    assert ours.block_id == theirs.block_id
    assert len(ours.snapshots) == len(theirs.snapshots)
    for one, other in zip(ours.snapshots, theirs.snapshots, strict=True):
        assert one.new_assets == other.new_assets
        for name in Snapshot.__struct_fields__:
            assert _in_order(getattr(one, name)) == _in_order(getattr(other, name)), name


def _in_order(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    if value and isinstance(value[0], AccountData):
        value = tuple((each.address, sorted(map(repr, each.entries))) for each in value)
    return sorted(value, key=repr)


def check_news(replay: Replay) -> None:
    """What our side was the first to have is told to the other side, which tells of the rest."""
    recording = replay.recording
    told = [
        row.message
        for row in replay.recorded(*BLOCKS)
        # Some blocks stand on others that were never recorded.
        if not row.asked and recording.news[row.about] == replay.side and recording.path(row.about)
    ]
    assert [each for each in replay.said if isinstance(each, BLOCKS)] == told
    invs = {
        each.signed_bytes(0) for each in replay.said if isinstance(each, messages.MicroblockInv)
    }
    for row in replay.recorded(messages.MicroblockInv):
        inv = row.message
        assert isinstance(inv, messages.MicroblockInv)
        whole = all(recording.path(each) for each in (inv.total_id, inv.reference))
        if whole and not _has(replay.recorded(messages.MicroblockInv, side=replay.other), inv):
            assert inv.signed_bytes(0) in invs
    transactions = {each.data for each in replay.said if isinstance(each, TRANSACTION)}
    theirs = {row.message.encode() for row in replay.recorded(TRANSACTION)}
    theirs -= {row.message.encode() for row in replay.recorded(TRANSACTION, side=replay.other)}
    # Our pool counts with what waits in it: of two calls of which one can succeed it takes one.
    assert all("already done" in reason for reason in replay.refused.values())
    assert theirs <= transactions | replay.refused.keys()


def _has(rows: list[Row], message: Message) -> bool:
    return any(row.message == message for row in rows)


def check_chain(replay: Replay, *, last: bool) -> None:
    chain = replay.node.chain
    recorded: list[dict[str, Any]] = replay.recording.meta["chain"][replay.side]
    assert len(recorded) == chain.height or not last
    name = replay.recording.meta["name"]
    scala = replay.recording.meta[replay.side]["type"] == "Scala node"
    for row in recorded[: chain.height]:
        meta = chain.meta(row["height"])
        assert base58.encode(meta.id) == row["id"], row["height"]
        if "snapshotHash" in row:
            assert base58.encode(meta.snapshot_hash) == row["snapshotHash"], row["height"]
        if "stateHash" in row and (scala or name not in WITHOUT_GENESIS_REWARD):
            assert chain.state_hash(row["height"]).total.hex() == row["stateHash"], row["height"]
    scores = [each for each in replay.said if isinstance(each, messages.Score)]
    assert scores[-1] == replay.recorded(messages.Score)[-1].message or not last
