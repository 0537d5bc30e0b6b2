"""An asyncio client of a node, with the same methods as ``node``.

What lives here: ``AsyncNode`` and its handle of a sent transaction. What does not: the requests of
its methods (``routes``, ``sending``), and connections (``async_transport``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import aclosing
from typing import Any

import msgspec

from soliton.client import sending
from soliton.client.amounts import Amount, units
from soliton.client.async_transport import AsyncTransport
from soliton.client.binding import AsyncRunner, async_iterating, awaiting
from soliton.client.errors import NodeBroken, NodeTimeout, NodeUnreachable
from soliton.client.events import Event, EventStream
from soliton.client.making import Whom
from soliton.client.node import ISSUE
from soliton.client.payments import PaymentEvent, PaymentStream
from soliton.client.records import Confirmations, Mined
from soliton.client.routes import accounts as of_accounts
from soliton.client.routes import assets as of_assets
from soliton.client.routes import blocks as of_blocks
from soliton.client.routes import network as of_network
from soliton.client.routes import scripts as of_scripts
from soliton.client.routes import transactions as of_transactions
from soliton.client.steps import MAX_CLOCK_OFFSET, Core
from soliton.client.transaction import Transaction, chain_number
from soliton.client.transport import ANSWER_SECONDS


class AsyncSent:
    """A transaction that a node has accepted."""

    __slots__ = ("_node", "transaction")

    def __init__(self, node: AsyncNode, transaction: Transaction) -> None:
        """``AsyncNode.send`` makes one."""
        self._node = node
        self.transaction = transaction
        """The transaction as it was sent, with the corrected fee and timestamp."""

    @property
    def id(self) -> str:
        """The transaction's id."""
        return self.transaction.id

    @property
    def asset_id(self) -> str | None:
        """The id of the new asset, for an issue, else ``None``."""
        return self.id if self.transaction.type == ISSUE else None

    async def wait(
        self,
        timeout: float = 60,  # noqa: ASYNC109
        confirmations: Confirmations = 0,
    ) -> Mined:
        """Wait until the transaction is in a block with ``confirmations`` blocks above it, or, with
        ``confirmations="finalized"``, in a final block.

        ``timeout`` is in seconds. Raises ``ScriptFailed`` if its script has failed in the block,
        ``TransactionLost`` if the node has dropped it, ``StillWaiting`` at the timeout.
        """
        found = await self._node.wait(self.id, timeout, confirmations)
        return msgspec.structs.replace(found, asset_id=self.asset_id)

    def __repr__(self) -> str:
        return f"<AsyncSent {self.transaction.type_name} {self.id}>"


class AsyncNode(AsyncRunner):
    """The coroutine version of ``Node``, with ``async for`` in place of ``for``. Use it from one
    event loop.

    >>> node = AsyncNode("http://127.0.0.1:6869")  # doctest: +SKIP
    >>> await node.balance("3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF")  # doctest: +SKIP
    10000000000000000
    """

    _transport: AsyncTransport

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float = ANSWER_SECONDS,
        retries: int = 3,
        chain_id: int | str | None = None,
        max_fee: Amount | None = None,
        max_clock_offset: float = MAX_CLOCK_OFFSET,
    ) -> None:
        """``timeout`` is the time limit of a response in seconds, ``retries`` the limit on repeated
        attempts. The ``api_key`` is sent on the few routes for which a node may require it.

        A node is not trusted in what is signed: with a ``chain_id``, the chain is not requested
        from it, and transactions of other chains are not sent. ``max_fee``, an amount of the coin,
        is the limit to which ``send`` raises fees, in place of each transaction's own;
        ``max_clock_offset`` that on following the node's clock, in seconds. Raises ``InputError``
        for an invalid URL. Nothing is sent yet.
        """
        self._transport = AsyncTransport(url, timeout=timeout)
        self._exchange = self._transport.exchange
        self._pause = asyncio.sleep
        self._core = Core(
            api_key=api_key,
            retries=retries,
            chain_id=None if chain_id is None else chain_number(chain_id),
            max_fee=None if max_fee is None else units(max_fee),
            max_clock_offset=max_clock_offset,
        )
        self.url = url

    @property
    def chain_id(self) -> Coroutine[Any, Any, int]:
        """The node's chain id, an awaitable. It is requested once and cached."""
        return self._run(of_network.chain_id(self._core))

    async def send(self, transaction: Transaction, *, max_fee: Amount | None = None) -> AsyncSent:
        """Broadcast a transaction and return once the node has accepted it.

        A default fee is raised to what scripts and sponsorship require, and a default timestamp is
        adjusted to the node's clock, so the id may differ from that of the argument. ``max_fee``,
        an amount of the fee's asset, is the limit on that; by default the client's own, or the
        transaction's (``Transaction.max_fee``). Raises ``FeeTooHigh`` or ``ClockTooFar`` if the
        node wants more, ``ScriptRefused`` if a script rejects it, another ``NodeRefused``, or
        ``OutcomeUnknown`` if it cannot be known whether it arrived.
        """
        return AsyncSent(self, await self._run(sending.send(self._core, transaction, max_fee)))

    async def events(
        self,
        *kinds: str,
        addresses: Iterable[Whom] = (),
        types: Iterable[int] = (),
        since: int | None = None,
        after: str | None = None,
    ) -> AsyncIterator[Event]:
        """Yield events as they happen, without end: blocks, microblocks and transactions, or only
        the given ``kinds`` (``unconfirmed`` includes ``left``, for the pool; ``finalized`` is the
        last block that no fork replaces), and always rollbacks.

        A lost connection is replaced without missing an event of the chain. Pass an event's ``id``
        as ``after`` to resume after it. ``since`` is a starting height, at most 10,000 blocks back;
        ``addresses`` and ``types`` filter the transactions. Raises ``NotFound`` for nodes other
        than Soliton's, which have no events.
        """
        stream = EventStream(kinds, addresses=addresses, types=types, since=since, after=after)
        while True:
            try:
                async with aclosing(self._transport.stream(stream.request())) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, bytes):
                            for event in stream.received(piece):
                                yield event
                        elif (pause := stream.opened(piece)) is not None:
                            await self._pause(pause)
                            break
            except (NodeUnreachable, NodeTimeout, NodeBroken):
                pass
            await self._pause(stream.lost())

    async def payments(
        self,
        to: Whom | Iterable[Whom] | None = None,
        *,
        confirmations: Confirmations = 1,
        after: str | PaymentEvent | None = None,
        since: int | None = None,
        exchanges: bool = False,
    ) -> AsyncIterator[PaymentEvent]:
        """Yield payments as they come, without end, each once, and what forks take back.

        ``to`` is an account, several, or ``None`` for all. A payment is reported once its block has
        so many blocks above it, at least one, or, with ``confirmations="finalized"``, once no fork
        can replace it; then nothing is taken back. ``exchanges`` adds the proceeds of orders. Pass
        a payment's ``cursor`` as ``after`` to resume after it, at any node; ``since`` is a starting
        height, by default the next block. Raises ``InputError`` if a cursor is none of this chain.
        """
        stream = PaymentStream(
            to, confirmations=confirmations, after=after, since=since, exchanges=exchanges
        )
        while True:
            for event in await self._run(stream.batch(self._core)):
                yield event

    def __repr__(self) -> str:
        return f"<AsyncNode {self.url}>"

    broadcast = awaiting(sending.broadcast)
    dry_run = awaiting(sending.dry_run)
    wait = awaiting(sending.wait)

    addresses = awaiting(of_accounts.addresses)
    address_of_public_key = awaiting(of_accounts.address_of_public_key)
    is_address = awaiting(of_accounts.is_address)
    balance = awaiting(of_accounts.balance)
    balances = awaiting(of_accounts.balances)
    balance_details = awaiting(of_accounts.balance_details)
    confirmed_balance = awaiting(of_accounts.confirmed_balance)
    effective_balance = awaiting(of_accounts.effective_balance)
    balance_history = awaiting(of_accounts.balance_history)
    asset_balances = awaiting(of_accounts.asset_balances)
    nfts = async_iterating(of_accounts.nfts)
    data = awaiting(of_accounts.data)
    data_entry = awaiting(of_accounts.data_entry)
    script = awaiting(of_accounts.script)
    functions = awaiting(of_accounts.functions)
    aliases = awaiting(of_accounts.aliases)
    address_by_alias = awaiting(of_accounts.address_by_alias)
    active_leases = awaiting(of_accounts.active_leases)
    lease = awaiting(of_accounts.lease)
    leases = awaiting(of_accounts.leases)

    asset = awaiting(of_assets.asset)
    assets = awaiting(of_assets.assets)
    asset_distribution = async_iterating(of_assets.asset_distribution)
    assets_of_ethereum = awaiting(of_assets.assets_of_ethereum)
    ethereum_abi = awaiting(of_assets.ethereum_abi)

    height = awaiting(of_blocks.height)
    finalized_height = awaiting(of_blocks.finalized_height)
    last_block = awaiting(of_blocks.last_block)
    block_at = awaiting(of_blocks.block_at)
    block = awaiting(of_blocks.block)
    blocks = async_iterating(of_blocks.blocks)
    last_header = awaiting(of_blocks.last_header)
    header_at = awaiting(of_blocks.header_at)
    header = awaiting(of_blocks.header)
    headers = async_iterating(of_blocks.headers)
    blocks_by = async_iterating(of_blocks.blocks_by)
    height_of = awaiting(of_blocks.height_of)
    height_at = awaiting(of_blocks.height_at)
    block_delay = awaiting(of_blocks.block_delay)
    wait_for_height = awaiting(of_blocks.wait_for_height)

    transaction = awaiting(of_transactions.transaction)
    transactions = awaiting(of_transactions.transactions)
    status = awaiting(of_transactions.status)
    statuses = awaiting(of_transactions.statuses)
    history = async_iterating(of_transactions.history)
    unconfirmed = awaiting(of_transactions.unconfirmed)
    unconfirmed_size = awaiting(of_transactions.unconfirmed_size)
    unconfirmed_transaction = awaiting(of_transactions.unconfirmed_transaction)
    merkle_proofs = awaiting(of_transactions.merkle_proofs)
    snapshot = awaiting(of_transactions.snapshot)
    least_fee = awaiting(of_transactions.least_fee)
    validate = awaiting(of_transactions.validate)
    simulate = awaiting(of_transactions.simulate)

    compile = awaiting(of_scripts.compile)
    decompile = awaiting(of_scripts.decompile)
    estimate = awaiting(of_scripts.estimate)
    evaluate = awaiting(of_scripts.evaluate)
    evaluate_call = awaiting(of_scripts.evaluate_call)

    is_soliton = awaiting(of_network.is_soliton)
    node_version = awaiting(of_network.node_version)
    node_status = awaiting(of_network.node_status)
    readiness = awaiting(of_network.readiness)
    time = awaiting(of_network.time)
    features = awaiting(of_network.features)
    voting = awaiting(of_network.voting)
    reward = awaiting(of_network.reward)
    peers = awaiting(of_network.peers)
    state_hash = awaiting(of_network.state_hash)
    get_json = awaiting(of_network.get_json)
    post_json = awaiting(of_network.post_json)
