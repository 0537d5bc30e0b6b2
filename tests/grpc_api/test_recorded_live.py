"""A live run of the reference node, with microblocks and rollbacks: the same blocks through our
node, and the same events in the same order on every stream.

The first stream of the recording holds all key blocks and microblocks, so it says what to do.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Collection, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from soliton.chain import blocks, microblocks
from soliton.chain.proto.block_pb2 import SignedMicroBlock
from soliton.grpc_api.proto.blockchain_updates_pb2 import SubscribeEvent
from soliton.grpc_api.proto.blocks_api_pb2 import BlockWithHeight
from soliton.grpc_api.proto.events_pb2 import BlockchainUpdated
from soliton.node.node import Node
from tests.api.chain import PrivateChain
from tests.grpc_api.serving import Called, Client, Stream, eventually, served
from tests.grpc_api.test_recorded_calls import difference as calls_difference
from tests.grpc_api.test_recorded_updates import SERVICE, plain
from tests.grpc_api.test_recorded_updates import difference as updates_difference
from tests.node import recorded
from tests.vectors import report

FIRST = "A"
Line = dict[str, Any]


@pytest.fixture
def node(shared: Path, tmp_path: Path) -> Iterator[Node]:
    config = shared / "golden" / "grpc-r" / "network.conf"
    made = PrivateChain(tmp_path, config=config).node
    yield made
    made.close()


class Replay:
    """A node to which the events of a stream happen."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.removed: list[BlockchainUpdated] = []

    def happen(self, update: BlockchainUpdated) -> None:
        """Put a block or a microblock on the chain. Rollbacks are noted, for ``roll_back``."""
        node = self.node
        if update.HasField("rollback"):
            self.removed.append(update)
            return
        body = update.append.WhichOneof("body")
        if body == "block" and update.height == 1:
            return
        self.removed.clear()
        with node.writing():
            if body == "block":
                data = update.append.block.block.SerializeToString()
                node.chain.append(blocks.decode(data, node.network.chain_id))
                node.chain.flush()
            else:
                message: SignedMicroBlock = update.append.micro_block.micro_block
                micro = microblocks.decode(message.SerializeToString(), node.network.chain_id)
                node.chain.extend(
                    micro.transactions, micro.state_hash, micro.total_signature, micro.signature
                )
        node.follow_chain()

    def roll_back(self) -> None:
        """Take off what was noted. A key block takes off microblocks itself."""
        of_blocks = [each for each in self.removed if not each.rollback.type]
        if of_blocks:
            with self.node.writing():
                self.node.chain.rollback(of_blocks[-1].height)
            self.node.follow_chain()


def update_of(line: Line) -> BlockchainUpdated:
    return SubscribeEvent.FromString(base64.b64decode(line["message"])).update


async def test_a_live_run_gives_the_same_events(shared: Path, node: Node) -> None:
    await check_events(shared, node)
    await check_calls(shared, node)


async def check_events(shared: Path, node: Node) -> None:
    """The run itself, on every stream."""
    lines = recorded.lines(shared / "golden" / "grpc-r" / "live.jsonl.gz")
    told: dict[str, list[BlockchainUpdated]] = {}
    for line in lines:
        if line["kind"] == "event":
            told.setdefault(line["stream"], []).append(update_of(line))
    ended = {line["stream"]: line["code"] for line in lines if line["kind"] == "end"}
    streams: dict[str, Stream] = {}
    async with served(node) as client:
        await replay(lines, told[FIRST], node, client, streams)
        for name, stream in streams.items():
            await eventually(partial(has, stream, len(told[name])))
            if ended[name] == "OK":
                await eventually(partial(getattr, stream, "done"))
    wrong = miscounted(told[FIRST])
    for name, stream in streams.items():
        given = [SubscribeEvent.FromString(each).update for each in stream.found]
        compare(name, told[name], given, wrong)
        assert (stream.code or "CANCELLED") == ended[name]
        report.compared(f"golden live stream {name}", len(given), len(told[name]), BUT)


BUT = "the supply of the first block after a rollback, a defect of the reference"


def has(stream: Stream, count: int) -> bool:
    return len(stream.found) >= count


async def replay(
    lines: list[Line],
    told: list[BlockchainUpdated],
    node: Node,
    client: Client,
    streams: dict[str, Stream],
) -> None:
    """Let everything happen in its order, each time behind what came of it before."""
    replaying, happened = Replay(node), 0
    for line in lines:
        if line["kind"] == "subscribe":
            request = base64.b64decode(line["request"])
            streams[line["stream"]] = client.stream(f"/{SERVICE}/Subscribe", request)
            await eventually(partial(has, streams[line["stream"]], 1))
        if line["kind"] != "event" or line["stream"] != FIRST:
            continue
        replaying.happen(told[happened])
        happened += 1
        following = told[happened] if happened < len(told) else None
        if replaying.removed:
            if following is None or following.HasField("append"):
                replaying.roll_back()
            of_micros = all(each.rollback.type for each in replaying.removed)
            if of_micros:
                continue
            if following is not None and following.HasField("rollback"):
                continue
        await eventually(partial(has, streams[FIRST], happened))


def miscounted(told: list[BlockchainUpdated]) -> set[bytes]:
    """The key blocks, by their VRF, of which the reference counts one reward too many."""
    return {
        each.append.block.vrf
        for before, each in pairwise(told)
        if before.HasField("rollback") and each.append.HasField("block")
    }


def compare(
    name: str,
    told: list[BlockchainUpdated],
    given: list[BlockchainUpdated],
    wrong: Collection[bytes],
) -> None:
    for number, (one, other) in enumerate(zip(told, given, strict=False)):
        for each in (one, other):
            if each.append.block.vrf in wrong and each.append.HasField("block"):
                each.append.block.updated_waves_amount = 0
        assert plain(one) == plain(other), (name, number)
    assert len(given) == len(told)


async def check_calls(shared: Path, node: Node) -> None:
    """What is known of the chain in the end."""
    folder = shared / "golden" / "grpc-r"
    data = list(recorded.records(folder / "live-blocks.bin"))
    last = BlockWithHeight.FromString(data[-1])
    # The recorder has started its node anew, which forgets the block that grows.
    with node.writing():
        node.chain.rollback(last.height)
    node.follow_chain()
    assert node.chain.last_block.header.reference == last.block.header.reference
    rows = recorded.lines(folder / "live-final.jsonl.gz")
    equal: Counter[str] = Counter()
    wrong_supply = miscounted(list(map(update_of, first_stream(folder))))
    async with served(node) as client:
        for number, row in enumerate(rows):
            found = await client.call(
                f"/{row['service']}/{row['method']}",
                base64.b64decode(row["request"]),
                stream=row["stream"],
                expected=len(row["responses"]) if row["code"] == "OPEN" else None,
            )
            if row["service"] == SERVICE:
                fault = updates_difference(row, found, wrong_supply)
            else:
                tolerate(row, found)
                fault = calls_difference(row, found)
            assert fault == (), (number, row["method"])
            equal[row["method"]] += 1
    report.compared("golden live-final", equal.total(), len(rows), "; ".join((BUT, *TOLERATED)))


TOLERATED = (
    "NFTs that the reference lists twice after a rollback",
    "the order of leases of one block that was made of microblocks",
)


def tolerate(row: Line, found: Called) -> None:
    """Let be what the reference does not do twice in the same way."""
    if row["method"] == "GetNFTList":
        row["responses"] = list(dict.fromkeys(row["responses"]))
    if row["method"] == "GetActiveLeases":
        row["responses"].sort()
        found.responses.sort(key=base64.b64encode)


def first_stream(folder: Path) -> list[Line]:
    lines = recorded.lines(folder / "live.jsonl.gz")
    return [each for each in lines if each["kind"] == "event" and each["stream"] == FIRST]
