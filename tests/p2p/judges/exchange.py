"""The Scala matcher as a process on a node of ours that serves its extension.

What lives here: the settings of both, starting, asking, waiting. What does not: any check.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from soliton.client.account import Account
from soliton.client.matcher import Matcher
from soliton.client.node import Node
from soliton.client.order import Order
from soliton.client.transaction import Transaction
from soliton.node.rest_settings import api_key_hash_text
from tests.p2p.judges.chain import CHAIN_ID, PrivateChain, account
from tests.p2p.judges.programs import (
    API_KEY,
    Judged,
    NotYet,
    Ours,
)
from tests.p2p.judges.programs import until as until_then
from tests.ports import free_port

MATCHER = os.environ.get("SOLITON_JUDGE_MATCHER")
COIN = 10**8
FEE = 300_000
SEED = b"judges: the Scala matcher"
POOL = Account.from_account_seed(b"judges: a liquidity pool", CHAIN_ID)
PATIENCE_SECONDS = 120.0
_EXTENSIONS = [
    "com.wavesplatform.events.BlockchainUpdates",
    "com.wavesplatform.dex.grpc.integration.DEXExtension",
]


def until(holds: Callable[[], bool], what: str) -> None:
    """Return when something holds that comes with the next blocks."""
    until_then(holds, what, PATIENCE_SECONDS)


class Serving(Ours):
    """A node of ours that serves the Scala matcher; it mines, and its ports stay."""

    def __init__(self, directory: Path) -> None:
        super().__init__(PrivateChain(), directory, 0, mines=True)
        self.updates_port, self.matcher_port = free_port(), free_port()
        self.client = Node(self.url, api_key=API_KEY, chain_id=CHAIN_ID)

    def command(self, peers: tuple[str, ...]) -> list[str]:
        found = super().command(peers)
        settings: dict[str, object] = {
            "extensions": _EXTENSIONS,
            "blockchain-updates.host": "127.0.0.1",
            "blockchain-updates.grpc-port": self.updates_port,
            "dex.grpc.integration.port": self.matcher_port,
            "dex.lp-accounts.public-keys": [POOL.public_key],
        }
        with (self.directory / "node.conf").open("a") as file:
            file.writelines(f"waves.{key} = {json.dumps(each)}\n" for key, each in settings.items())
        return found

    def mined(self, transaction: Transaction) -> str:
        """Send a transaction; its id, when there is a block above it."""
        sent = self.client.send(transaction)
        sent.wait(confirmations=1)
        return sent.id

    def roll_back(self, height: int, *, keeps: bool) -> None:
        """Take blocks back down to a height; what was in them is kept in the pool, or is not."""
        self.ask("/debug/rollback", {"rollbackTo": height, "returnTransactionsToUtx": keeps})


class ScalaMatcher(Judged):
    """The Scala matcher (``SOLITON_JUDGE_MATCHER`` is a text file with its class path)."""

    kind = "Scala matcher"

    def __init__(self, node: Serving, directory: Path) -> None:
        super().__init__(directory)
        self.node = node
        self.client = Matcher(self.url)
        self.account = Account.from_account_seed(SEED, CHAIN_ID)

    def start(self) -> None:
        assert MATCHER is not None
        pools, path = self.directory / "pools", self.directory / "dex.conf"
        pools.write_text(POOL.public_key + "\n")
        settings: dict[str, object] = {
            "root-directory": str(self.directory),
            "address-scheme-character": chr(CHAIN_ID),
            "account-storage.type": "in-mem",
            "account-storage.in-mem.seed-in-base-64": base64.b64encode(SEED).decode(),
            "lp-accounts.file-path": str(pools),
            "ntp-server": "127.0.0.1",
            "rest-api.port": self.port,
            "rest-api.api-key-hashes": [api_key_hash_text(API_KEY)],
            "waves-blockchain-client.grpc.target": f"127.0.0.1:{self.node.matcher_port}",
            "waves-blockchain-client.blockchain-updates-grpc.target": (
                f"127.0.0.1:{self.node.updates_port}"
            ),
            "exchange-transaction-broadcast.interval": "1s",
            "order-v-4-start-offset": -1,
        }
        lines = [f"waves.dex.{key} = {json.dumps(each)}" for key, each in settings.items()]
        lines.append("akka.loglevel = INFO")
        path.write_text("\n".join(lines) + "\n")
        memory = ["-Xmx700m", "-Xss4m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        opened = ["--add-opens=java.base/java.lang=ALL-UNNAMED"]
        command = ["java", *memory, *opened, "-cp", Path(MATCHER).read_text().strip()]
        self.begin([*command, "com.wavesplatform.dex.Application", str(path)])
        until(self.works, f"a matcher that works: {self.log}")

    def works(self) -> bool:
        """Whether it has caught up with its queue, and follows the node."""
        found = self.ask("/matcher/debug/status")
        is_following = found["blockchain"]["status"] == "Working"
        return bool(is_following and found["service"] == "Working")

    def order(
        self, who: Account, side: str, amount: int, price: int, pair: Any, **more: Any
    ) -> Order:
        """An order of gold or another asset against the coin, signed and not placed."""
        asset, price_asset = pair
        return who.order(
            side, amount, asset, price, price_asset, matcher=self.account.public_key, **more
        )

    def is_filled(self, order: Order) -> bool:
        return self.client.order_status(order).status == "Filled"

    def exchanges(self, order: Order) -> list[str]:
        """The ids of the exchanges of an order, all of them below the last block, which may lose
        microblocks; raises ``NotYet``.
        """
        found = [each["id"] for each in self.ask(f"/matcher/transactions/{order.id}")]
        for each in found:
            if self.node.ask(f"/transactions/info/{each}")["height"] >= self.node.height():
                raise NotYet(f"{each} is in the last block")
        return found

    def tradable(self, who: Account, pair: Any) -> dict[str, int]:
        """What the matcher says an account can spend."""
        asset, price = (each or "WAVES" for each in pair)
        return dict(self.ask(f"/matcher/orderbook/{asset}/{price}/tradableBalance/{who.address}"))


@contextlib.contextmanager
def trading(directory: Path) -> Iterator[tuple[Serving, ScalaMatcher]]:
    """A node that mines and a matcher on it."""
    node = Serving(directory / "node")
    matcher = ScalaMatcher(node, directory / "matcher")
    try:
        node.start()
        # It pays for an exchange before it has the fees of its orders.
        node.mined(Account(account(1), CHAIN_ID).transfer(matcher.account, COIN))
        matcher.start()
        yield node, matcher
    finally:
        matcher.client.close()
        node.client.close()
        matcher.stop()
        node.stop()


__all__ = ["COIN", "FEE", "MATCHER", "POOL", "ScalaMatcher", "Serving", "trading", "until"]
