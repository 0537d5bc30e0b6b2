"""Following the node: each of its updates goes to everything that depends on the chain.

What lives here: handing an update on, and again when the node could not answer what it led to;
keeping up while another matcher leads. What does not: what is made of it (``settlement``,
``assets``, ``accounts``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec

from soliton.matcher.accounts import Accounts
from soliton.matcher.assets import ChainKnowledge
from soliton.matcher.effects import Effects
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.log_throttle import throttled
from soliton.matcher.node_client import NodeClient, NodeUpdate
from soliton.matcher.settlement import Settlement

_RETRY_SECONDS: Final = 1.0

_log = throttled(logging.getLogger(__name__))


async def follow_node(
    node: NodeClient,
    settlement: Settlement,
    chain: ChainKnowledge,
    accounts: Accounts,
    followed: asyncio.Event,
) -> None:
    """Follow for ever; ``followed`` is set after the first update."""
    async for news in _news(node, settlement, accounts):
        update, is_noted = news, False
        while True:
            try:
                if not is_noted:
                    await settlement.follow(update)
                    is_noted = True
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


async def _news(
    node: NodeClient, settlement: Settlement, accounts: Accounts
) -> AsyncGenerator[NodeUpdate, None]:
    """What the node tells, and between that what was found by asking it: both have to be heard in
    one place, one after the other.
    """
    async with contextlib.aclosing(_generated(node.updates())) as updates:
        told = asyncio.ensure_future(anext(updates, None))
        found = asyncio.ensure_future(settlement.found.wait())
        try:
            while True:
                await asyncio.wait((told, found), return_when=asyncio.FIRST_COMPLETED)
                if told.done():
                    update = told.result()
                    if update is None:
                        return
                    yield update
                    told = asyncio.ensure_future(anext(updates, None))
                if found.done():
                    update = await _found_update(node, settlement, accounts)
                    if update is not None:
                        yield update
                    found = asyncio.ensure_future(settlement.found.wait())
        finally:
            told.cancel()
            found.cancel()
            await asyncio.gather(told, found, return_exceptions=True)


async def _generated(updates: AsyncIterator[NodeUpdate]) -> AsyncGenerator[NodeUpdate, None]:
    async for update in updates:
        yield update


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
    settlement: Settlement, seconds: float, question: Callable[[], Awaitable[None]]
) -> None:
    """Ask the node for ever, at an interval, while another matcher leads and sends."""
    while True:
        await asyncio.sleep(seconds)
        if not settlement.is_active:
            try:
                await question()
            except NodeUnavailable as error:
                _log.warning("cannot ask the node: %s", error)


async def until_answered(question: Callable[[], Awaitable[None]]) -> None:
    """Ask the node until it answers."""
    while True:
        try:
            await question()
        except NodeUnavailable as error:
            _log.warning("waiting for the node: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


async def load_accounts(accounts: Accounts, effects: Effects, settlement: Settlement) -> None:
    """Know the accounts of all resting orders, and what exchanges that are not on the chain take
    from anybody; raises ``NodeUnavailable``.
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
