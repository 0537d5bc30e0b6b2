"""A matcher in a process of its own: ``python _matcher_server.py DIRECTORY WORKERS``.

Its journal waits for the disk, as usual. Its node is one that has much of everything for everybody,
takes every transaction, and mines it a second later: so what is measured is the matcher, with the
making and signing of exchange transactions.

What lives here: the process. What does not: any load.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from pathlib import Path

from soliton.chain import networks
from soliton.chain.addresses import Address
from soliton.chain.features import Feature
from soliton.chain.orders import Order
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.cli.matcher_run import listening
from soliton.cli.process import run_program
from soliton.crypto.hashes import blake2b256
from soliton.crypto.keys import key_pair
from soliton.matcher.node_client import (
    AccountState,
    Asset,
    Broadcast,
    BroadcastAnswer,
    ChainIdentity,
    ChainStatus,
    NodeUpdate,
    ScriptAnswer,
)
from soliton.matcher.run import start_matcher
from soliton.matcher.settings import MatcherSettings, RestApi
from soliton.matcher.trading_settings import TradingSettings
from soliton.matching.placement import PlacementSettings
from soliton.web.clock import wall_clock

NETWORK = networks.load("devnet")
MATCHER = key_pair("matcher of the benchmark")
DOLLAR = blake2b256(b"the price asset of the benchmark")
MUCH = 10**17
BLOCK_SECONDS = 1.0
MAX_ORDERS = 10**9


class GenerousNode:
    """A ``NodeClient`` that agrees with everything."""

    parallel_requests = 1
    parallel_broadcasts = 1

    def __init__(self) -> None:
        self._height = 1
        self._sent: dict[bytes, None] = {}
        self._heights: dict[bytes, int] = {}

    def _status(self) -> ChainStatus:
        return ChainStatus(self._height, self._height.to_bytes(32, "big"))

    async def identity(self) -> ChainIdentity:
        """A chain like the one of the settings."""
        return ChainIdentity(NETWORK.chain_id, "the first block of the benchmark")

    async def status(self) -> ChainStatus:
        """The last block."""
        return self._status()

    async def feature_active(self, feature: int) -> bool:
        """All are."""
        return feature in set(Feature)

    async def asset(self, asset_id: AssetId) -> Asset | None:
        """A dollar, whatever is asked for."""
        del asset_id
        return Asset("US dollar", 2, scripted=False)

    async def has_script(self, address: Address) -> bool:
        """Nobody has one."""
        del address
        return False

    async def account(
        self, address: Address, assets: Collection[AssetId | None] | None
    ) -> AccountState:
        """Much of everything."""
        del address
        return AccountState(dict.fromkeys(assets or (None, DOLLAR), MUCH))

    async def was_executed(self, order_id: bytes) -> bool:
        """Nothing was."""
        del order_id
        return False

    async def run_scripts(
        self, trials: Iterable[AnyTransaction], order: Order, assets: Collection[AssetId]
    ) -> ScriptAnswer:
        """There are none."""
        del trials, order, assets
        return ScriptAnswer()

    async def broadcast(self, transaction: AnyTransaction) -> BroadcastAnswer:
        """Taken."""
        self._sent[transaction.id] = None
        return BroadcastAnswer(Broadcast.UNCONFIRMED)

    async def heights(self, transaction_ids: Sequence[bytes]) -> dict[bytes, int]:
        """What was mined."""
        return {each: self._heights[each] for each in transaction_ids if each in self._heights}

    async def now(self) -> int:
        """The time of this machine."""
        return wall_clock()

    async def block_time(self, height: int) -> int:
        """Long ago: nothing is ever too late."""
        del height
        return 0

    async def find_exchange(
        self, trader: Address, orders: frozenset[bytes], since: int
    ) -> tuple[AnyTransaction, int] | None:
        """Nobody asks."""
        del trader, orders, since
        return None

    async def updates(self) -> AsyncGenerator[NodeUpdate, None]:
        """A block every second, with all that was sent before it."""
        mined: dict[bytes, None] = {}
        while True:
            self._heights.update(dict.fromkeys(mined, self._height))
            yield NodeUpdate(
                self._status(),
                confirmed=tuple((each, self._height) for each in mined),
                changed=None,
            )
            await asyncio.sleep(BLOCK_SECONDS)
            self._height += 1
            mined, self._sent = self._sent, {}

    async def close(self) -> None:
        """Nothing to end."""


async def serve(directory: Path, workers: int) -> None:
    """Until the process is ended."""
    trading = TradingSettings(placement=PlacementSettings(b"", price_assets=(DOLLAR,)))
    settings = MatcherSettings(
        network=NETWORK,
        directory=directory,
        account=MATCHER,
        rest_api=RestApi(port=0, workers=workers),
        trading=trading,
        max_active_orders=MAX_ORDERS,
    )
    running = await start_matcher(settings, GenerousNode(), listening(settings))
    await running.matcher.working()
    print(f"port {running.port}", flush=True)
    await running.matcher.ended()


if __name__ == "__main__":
    run_program(lambda: serve(Path(sys.argv[1]), int(sys.argv[2])))
