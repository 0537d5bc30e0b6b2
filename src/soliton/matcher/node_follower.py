"""Following the node: each of its updates goes to everything that depends on the chain.

What lives here: distributing updates, with retries when the node does not answer further requests;
periodic requests while another matcher leads. What does not: processing the updates
(``settlement``, ``assets``, ``accounts``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import msgspec

from soliton.matcher.accounts import Accounts
from soliton.matcher.assets import ChainKnowledge
from soliton.matcher.effects import Effects
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.log_throttle import throttled
from soliton.matcher.node_client import NodeClient, NodeUpdate
from soliton.matcher.node_watch import NodeWatch
from soliton.matcher.settlement import Settlement

_RETRY_SECONDS: Final = 1.0

_log = throttled(logging.getLogger(__name__))


async def follow_node(
    node: NodeClient,
    settlement: Settlement,
    chain: ChainKnowledge,
    accounts: Accounts,
    watch: NodeWatch,
    followed: asyncio.Event,
) -> None:
    """Follow the node forever; ``followed`` is set after the first update. Raises
    ``WrongChain``.
    """
    async for received in _updates(node, settlement, accounts):
        update, is_admitted, is_settled = received, False, False
        while True:
            try:
                if not is_admitted:
                    # While this fails, further news wait in the stream.
                    update = await watch.admit(update)
                    is_admitted = True
                if not is_settled:
                    await settlement.follow(update)
                    is_settled = True
                await chain.follow(update)
                await accounts.follow(update)
                await watch.remember(update.status.height, settlement.final)
            except NodeUnavailable as error:
                # No part of an update may be skipped: it is not sent again.
                _log.warning("cannot follow the node: %s", error)
                update = msgspec.structs.replace(update, changed=None)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                break
        followed.set()
    # A node in this process has stopped: the program stops the matcher next.
    await asyncio.Event().wait()


async def _updates(
    node: NodeClient, settlement: Settlement, accounts: Accounts
) -> AsyncGenerator[NodeUpdate, None]:
    """The node's updates, merged with transactions that were found by request: both must be
    processed in one place, one after the other.
    """
    async with contextlib.aclosing(node.updates()) as updates:
        pushed = asyncio.ensure_future(anext(updates, None))
        found = asyncio.ensure_future(settlement.found.wait())
        try:
            while True:
                await asyncio.wait((pushed, found), return_when=asyncio.FIRST_COMPLETED)
                if pushed.done():
                    update = pushed.result()
                    if update is None:
                        return
                    yield update
                    pushed = asyncio.ensure_future(anext(updates, None))
                if found.done():
                    update = await _found_update(node, settlement, accounts)
                    if update is not None:
                        yield update
                    found = asyncio.ensure_future(settlement.found.wait())
        finally:
            pushed.cancel()
            found.cancel()
            await asyncio.gather(pushed, found, return_exceptions=True)


async def _found_update(
    node: NodeClient, settlement: Settlement, accounts: Accounts
) -> NodeUpdate | None:
    try:
        status = await node.status()
    except NodeUnavailable as error:
        _log.warning("cannot follow the node: %s", error)
        await asyncio.sleep(_RETRY_SECONDS)
        return None
    confirmed = settlement.take_found()
    changed = accounts.waiting_for(each for each, _ in confirmed)
    return NodeUpdate(status, confirmed=confirmed, changed=changed)


async def while_another_leads(
    settlement: Settlement, seconds: float, request: Callable[[], Awaitable[None]]
) -> None:
    """Repeat a request to the node at an interval, forever, while another matcher leads."""
    while True:
        await asyncio.sleep(seconds)
        if not settlement.is_active:
            try:
                await request()
            except NodeUnavailable as error:
                _log.warning("cannot ask the node: %s", error)


async def until_answered(request: Callable[[], Awaitable[None]]) -> None:
    """Retry a request until the node answers."""
    while True:
        try:
            await request()
        except NodeUnavailable as error:
            _log.warning("waiting for the node: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


async def load_accounts(accounts: Accounts, effects: Effects, settlement: Settlement) -> None:
    """Load the accounts of all resting orders, and the outflows of exchanges that are not on the
    chain; raises ``NodeUnavailable``.
    """
    for book in effects.engine.books():
        for active in book.orders():
            account = accounts.adopt(active)
            await accounts.ensure(account, tuple(account.balances.reserved))
            effects.expirations.add(active)
    for transaction_id in list(settlement.off_chain):
        transaction = settlement.outstanding(transaction_id)
        if transaction is not None:
            accounts.expect(transaction)
