"""The matcher of a private chain: its settings, on the node of the same process.

What lives here: choosing an account and putting the two together. What does not: the matcher.
"""

from __future__ import annotations

from soliton.crypto.keys import KeyPair
from soliton.devnet.matcher_node import LocalNode
from soliton.matcher.run import NOT_DURABLE, RunningMatcher, start_matcher
from soliton.matcher.settings import MatcherSettings, NodeAccess, Queue, RestApi
from soliton.matcher.trading_settings import TradingSettings
from soliton.matching.placement import PlacementSettings


async def start(
    local: LocalNode,
    account: KeyPair,
    host: str,
    port: int,
    api_key_hash: bytes,
    *,
    durable: bool,
    node_url: str,
    price_assets: tuple[bytes | None, ...] = (),
) -> RunningMatcher:
    """Start the matcher: it acts with ``account``; in ``price_assets`` are prices, the first in the
    list before all others. Its page leads to the node at ``node_url``.
    """
    node = local.node
    settings = MatcherSettings(
        network=node.network,
        directory=node.settings.directory / "matcher",
        account=account,
        id="devnet",
        rest_api=RestApi(address=host, port=port, api_key_hashes=(api_key_hash,)),
        queue=Queue() if durable else Queue(sync=NOT_DURABLE),
        trading=TradingSettings(
            placement=PlacementSettings(account.public_key, price_assets=price_assets)
        ),
        node=NodeAccess(url=node_url),
        clock=node.clock,
    )
    running = await start_matcher(settings, local)
    await running.matcher.working()
    return running
