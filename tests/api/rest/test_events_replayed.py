"""A client that follows the events has the chain, whatever happens and whenever it comes back."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.api.event_ids import UnknownPlace, find_place
from soliton.crypto import base58
from tests.amounts import examples
from tests.api.chain import RICH, PrivateChain
from tests.api.streams import Event, Stream
from tests.node import forging
from tests.node.pools import refresh

Chains = dict[int, list[str]]


class Follower:
    """A client with its own copy of the chain: the ids of the transactions of each block."""

    def __init__(self, chain: PrivateChain) -> None:
        self.chain = chain
        self.blocks: Chains = {}
        self.pool: set[str] = set()
        self._last: str | None = None
        self._stream: Stream | None = None

    async def come(self) -> None:
        """Connect, or connect again behind the last event."""
        await self.leave()
        target = "/events?events=block,microblock,transaction,unconfirmed"
        headers = {"last-event-id": self._last} if self._last else {}
        self.pool.clear()
        self._stream = Stream(self.chain.app, target if headers else f"{target}&from=1", headers)
        await self._read_until("synced")

    async def leave(self) -> None:
        if self._stream is not None:
            await self._stream.close()
            self._stream = None

    async def catch_up(self) -> None:
        """Read what has happened, up to a transaction that is sent for this."""
        if self._stream is None:
            return
        sent = base58.encode(self.chain.send(self.chain.data(seen=1)).id)
        while sent not in self.pool:
            await self._read_until("unconfirmed")
        assert self.blocks == blocks_of(self.chain)

    async def _read_until(self, name: str) -> None:
        assert self._stream is not None
        for event in await self._stream.until(name):
            self._take(event)

    def _take(self, event: Event) -> None:
        data = event.data
        match event.name:
            case "block":
                assert data["height"] == len(self.blocks) + 1
                self.blocks[data["height"]] = []
            case "transaction":
                transactions = self.blocks[data["height"]]
                assert data["index"] == len(transactions)
                transactions.append(data["transaction"]["id"])
            case "rollback":
                kept = {at: ids for at, ids in self.blocks.items() if at <= data["height"]}
                del kept[data["height"]][data["transactionCount"] :]
                self.blocks = kept
            case "unconfirmed":
                self.pool.add(data["transaction"]["id"])
            case "left":
                self.pool.discard(data["id"])
        self._last = event.id or self._last


def do(chain: PrivateChain, step: str, number: int) -> None:
    match step:
        case "send":
            chain.send(chain.transfer())
        case "mine":
            chain.mine()
        case "grow":
            forging.mine_micro(chain.node, RICH)
        case "back":
            forging.roll_back(
                chain.node, max(1, chain.node.chain.height - number), keep=number % 2 == 0
            )
        case "shrink":
            _shrink(chain)


def _shrink(chain: PrivateChain) -> None:
    """Take the last block back to its first form, and put another one on top of that."""
    forms = chain.node.chain.liquid_ids()
    if len(forms) > 1:
        chain.node.chain.shorten(forms[0])
        refresh(chain.node.pool)
        chain.mine()


STEPS = st.tuples(
    st.sampled_from(
        ["send", "send", "mine", "grow", "grow", "back", "shrink", "come", "leave", "read"]
    ),
    st.integers(0, 4),
)


@settings(max_examples=examples(60))
@given(steps=st.lists(STEPS, max_size=30))
def test_the_copy_is_the_chain(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(follow(PrivateChain(Path(directory)), steps))


async def follow(chain: PrivateChain, steps: list[tuple[str, int]]) -> None:
    follower = Follower(chain)
    for step, number in steps:
        if step == "come":
            await follower.come()
        elif step == "leave":
            await follower.leave()
        elif step == "read":
            await follower.catch_up()
        else:
            do(chain, step, number)
            # Now and then the client gets its turn, now and then much happens before.
            if number % 3 == 0:
                await asyncio.sleep(0)
    await follower.come()
    assert follower.blocks == blocks_of(chain)
    waiting = {base58.encode(each.id) for each in chain.node.pool.transactions()}
    assert follower.pool == waiting
    await follower.leave()
    assert chain.app.context.event_streams.open == 0
    chain.node.close()


def blocks_of(chain: PrivateChain) -> Chains:
    return {
        height: [base58.encode(each.id) for each in chain.node.chain.block_at(height).transactions]
        for height in range(1, chain.node.chain.height + 1)
    }


@settings(max_examples=examples(300))
@given(
    text=st.one_of(
        st.text(max_size=200),
        st.from_regex(r"\d{1,11}(\.\d{1,11}){2}\.[\w=-]{0,20}\.[\w=-]{0,70}", fullmatch=True),
    )
)
def test_ids_of_strangers(small: PrivateChain, text: str) -> None:
    try:
        found = find_place(small.node.chain, text)
    except UnknownPlace:
        return
    assert 1 <= found.place.height <= small.node.chain.height


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> PrivateChain:
    made = PrivateChain(tmp_path_factory.mktemp("small"))
    made.mine()
    return made
