"""The matcher of a private chain: its settings, on the node of the same process.

What lives here: choosing an account and putting the two together. What does not: the matcher.
"""

from __future__ import annotations

from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import ACCOUNT_COUNT, account_seed_phrase
from soliton.devnet.matcher_node import LocalNode
from soliton.matcher.run import NOT_DURABLE, RunningMatcher, start_matcher
from soliton.matcher.settings import MatcherSettings, Queue, RestApi


async def start(
    local: LocalNode, host: str, port: int, api_key_hash: bytes, *, durable: bool
) -> RunningMatcher:
    """Start the matcher: it acts with the last of the funded accounts."""
    node = local.node
    settings = MatcherSettings(
        network=node.network,
        directory=node.settings.directory / "matcher",
        account=key_pair(account_seed_phrase(ACCOUNT_COUNT)),
        id="devnet",
        rest_api=RestApi(address=host, port=port, api_key_hashes=(api_key_hash,)),
        queue=Queue() if durable else Queue(sync=NOT_DURABLE),
        clock=node.clock,
    )
    running = await start_matcher(settings, local)
    await running.matcher.working()
    return running
