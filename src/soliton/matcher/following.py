"""Following the node: each of its updates goes to everything that depends on the chain.

What lives here: handing an update on, and again when the node could not answer what it led to;
keeping up while another matcher leads. What does not: what is made of it (``settlement``,
``assets``, ``accounts``).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import msgspec

from soliton.matcher.accounts import Accounts
from soliton.matcher.assets import ChainKnowledge
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.node_client import NodeClient
from soliton.matcher.settlement import Settlement

_RETRY_SECONDS: Final = 1.0
KEEP_UP_SECONDS: Final = 10.0
"""How often a matcher that stands by asks what has become of the chain."""

_log = logging.getLogger(__name__)


async def follow_node(
    node: NodeClient,
    settlement: Settlement,
    chain: ChainKnowledge,
    accounts: Accounts,
    followed: asyncio.Event,
) -> None:
    """Follow for ever; ``followed`` is set after the first update."""
    async for news in node.updates():
        update = news
        await settlement.follow(update)
        while True:
            try:
                await chain.follow(update)
                await accounts.follow(update)
            except NodeUnavailable as error:
                # Nothing of an update may be skipped: what it says is not said again.
                _log.warning("cannot follow the node: %s", error)
                update = msgspec.structs.replace(update, changed=None)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                break
        followed.set()
    # A node in this process has stopped: whoever started both stops the matcher next.
    await asyncio.Event().wait()


async def keep_up(settlement: Settlement, chain: ChainKnowledge) -> None:
    """Know for ever, while another matcher leads, what is in force on the chain: both have to make
    the same transactions.
    """
    while True:
        await asyncio.sleep(KEEP_UP_SECONDS)
        if not settlement.is_active:
            try:
                await chain.refresh()
            except NodeUnavailable as error:
                _log.warning("cannot ask the node: %s", error)
