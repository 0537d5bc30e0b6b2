"""From an order that somebody sent to a command in the journal, and the same for cancellations.

The placements of one account happen one after the other, in the order in which they came; those of
different accounts do not wait for each other. What an order needs is set aside before its command
goes to the journal, so the next order of the account sees what is left.

What lives here: the checks in their order with the questions to the node between them. What does
not: the checks (``soliton.matching``), the journal (``sequencer``), what follows (``effects``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/actors/address/AddressActor.scala``,
``model/ValidationStages.scala``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec

from soliton.chain import orders
from soliton.chain.addresses import Address, from_public_key
from soliton.chain.orders import PRICE_CONSTANT, Order, PriceMode, Side
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import TYPE, Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.matcher.accounts import Account, Accounts
from soliton.matcher.assets import ChainKnowledge
from soliton.matcher.exchanges import exchange_version, transaction_fee, transaction_price
from soliton.matcher.node_client import NodeClient
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.sequencer import Outcome, Sequencer, tell_future
from soliton.matcher.settings import MatcherSettings
from soliton.matching import errors
from soliton.matching.account_checks import (
    ScriptFault,
    account_script_refusal,
    asset_script_refusal,
    available_for_spending,
    check_account,
    check_order_count,
    check_script_version,
    duplicate,
    forged,
    other_price_mode,
    signature_to_verify,
    signed_name,
)
from soliton.matching.commands import (
    CancelOrder,
    CancelSource,
    PlaceMarketOrder,
    PlaceOrder,
)
from soliton.matching.engine import Engine
from soliton.matching.errors import MatcherError
from soliton.matching.events import Event, OrderCanceled
from soliton.matching.model import ActiveOrder, OrderStatus, limit_order, market_order
from soliton.matching.pairs import AssetPair, pair_of
from soliton.matching.placement import PlacementContext, PlacementSettings
from soliton.matching.rates import Rates
from soliton.matching.validation import AcceptedFees, check_order, check_pair
from soliton.parallel.signatures import SignatureChecker

MAX_COUNTER_LEVELS = 100_000
"""A market order that reaches deeper than this into a book is not looked at further."""
_TRIAL_VERSION = 2
_PROTOBUF_VERSION = 4


class Placing:
    """Taking orders and cancellations. Use from one event loop."""

    def __init__(
        self,
        settings: MatcherSettings,
        placement: PlacementSettings,
        engine: Engine,
        node: NodeClient,
        chain: ChainKnowledge,
        database: OrdersDatabase,
        sequencer: Sequencer,
        rates: Rates,
        signatures: SignatureChecker,
    ) -> None:
        self._settings = settings
        self._placement = placement
        self._engine = engine
        self._node = node
        self._chain = chain
        self._database = database
        self._sequencer = sequencer
        self._rates = rates
        self._signatures = signatures

    # --- placing ----------------------------------------------------------------------------------

    async def place(
        self, order: Order, accounts: Accounts, *, market: bool, is_signed: bool | None
    ) -> None:
        """Take an order; returns when the engine has processed it. ``is_signed`` as
        ``MatcherCore.place``.

        Raises ``MatcherError`` or ``NodeUnavailable``; then nothing is set aside for it.
        """
        given, order = order, in_asset_decimals(order)
        if order is not given:
            # What was signed is something else.
            is_signed = None
        if not self._chain.knows(order):
            await self._learn(order)
        fees = self._check(order)
        owner = from_public_key(order.sender_public_key, order.chain_id)
        await self._check_sender(order, accounts.get(owner), accounts, is_signed)
        # The account may have been let go meanwhile; from here on it is held.
        account = accounts.get(owner)
        check_order_count(len(account.balances.orders) + len(account.queued), self._placement)
        if order.id in account.queued:
            raise duplicate(order)
        account.queued.add(order.id)
        try:
            async with account.lock:
                applied = await self._store(order, account, accounts, fees, market=market)
        finally:
            account.queued.discard(order.id)
        # The command is on its way whether or not its sender still waits.
        await applied

    async def _store(
        self,
        order: Order,
        account: Account,
        accounts: Accounts,
        fees: AcceptedFees,
        *,
        market: bool,
    ) -> asyncio.Future[list[Event]]:
        """The last checks of an order whose turn it is; what it needs is set aside then, and its
        command is on its way to the journal. The future is its sender's alone.
        """
        await self._check_new(order, account)
        await accounts.ensure(
            account, (order.amount_asset, order.price_asset, order.matcher_fee_asset, None)
        )
        if accounts.over:
            raise MatcherError(errors.MATCHER_IS_STARTING)
        command = self._reserve(order, account, fees, market=market)
        applied: asyncio.Future[list[Event]] = asyncio.get_running_loop().create_future()

        names = {order.id, signed_name(order) or order.id}

        def tell(outcome: Outcome) -> None:
            account.placing -= names
            if isinstance(outcome, MatcherError):
                account.balances.release(order.id)
            tell_future(applied, outcome)

        try:
            self._sequencer.give(command, tell)
        except MatcherError:
            account.balances.release(order.id)
            raise
        account.placing |= names
        return applied

    async def _learn(self, order: Order) -> None:
        """Ask the node for the assets of an order, but not about pairs that are not traded
        anyway.
        """
        pair = pair_of(order)
        check_pair(pair, self._placement, None)
        await self._chain.learn((pair.price_asset, pair.amount_asset, order.matcher_fee_asset))

    def _check(self, order: Order) -> AcceptedFees:
        pair = pair_of(order)
        check_pair(pair, self._placement, self._chain.assets)
        market = None
        if self._placement.deviations is not None:
            book = self._engine.book(pair)
            market = None if book is None else book.status()
        return check_order(
            order,
            PlacementContext(
                settings=self._placement,
                matching=self._engine.settings,
                last_offset=self._engine.last_offset,
                now=self._settings.clock(),
                assets=self._chain.assets,
                rates=self._rates,
                features=self._chain.features,
                matcher_is_scripted=self._chain.matcher_scripted,
                market=market,
            ),
        )

    async def _check_sender(
        self, order: Order, account: Account, accounts: Accounts, is_signed: bool | None
    ) -> None:
        """The signature, or all scripts that have a say."""
        scripted = account.scripted
        if scripted is None:
            scripted = await accounts.has_script(account)
        if scripted:
            check_script_version(order)
        else:
            claim = signature_to_verify(order)
            if claim is not None:
                if is_signed is None:
                    is_signed = await self._signatures.check(*claim)
                if not is_signed:
                    raise await self._why_forged(order)
        smart = self._chain.scripted(order)
        if not scripted and not smart:
            return
        answer = await self._node.run_scripts(self._trials(order), order, smart)
        if answer.fault is None:
            return
        blamed = answer.asset_id
        if blamed is None and answer.fault is ScriptFault.EXCEPTION and not scripted:
            blamed = min(smart)
        if blamed is None:
            raise account_script_refusal(order, answer.fault, answer.words)
        raise asset_script_refusal(blamed, answer.fault, answer.words)

    async def _why_forged(self, order: Order) -> MatcherError:
        """The refusal of an order without a valid signature. Libraries sign version 4 with another
        price mode unless they are told: that is said, with what to set.
        """
        for mode in PriceMode if order.version >= _PROTOBUF_VERSION else ():
            if mode is not order.price_mode:
                other = orders.build(msgspec.structs.replace(order, price_mode=mode))
                claim = signature_to_verify(other)
                if claim is not None and await self._signatures.check(*claim):
                    decimals = self._chain.decimals
                    both = decimals(order.amount_asset), decimals(order.price_asset)
                    return other_price_mode(other, *both)
        return forged(order)

    def _trials(self, order: Order) -> Iterator[AnyTransaction]:
        """Exchanges of the order with one of the matcher's own, which scripts are asked about: of
        all of it, and of the least that is worth anything, without fees.
        """
        yield self._trial(order, order.amount, order.matcher_fee)
        least = -(-PRICE_CONSTANT // order.price)
        if least < order.amount:
            yield self._trial(order, least, 0)

    def _trial(self, order: Order, amount: int, matcher_fee: int) -> AnyTransaction:
        account, now = self._settings.account, self._settings.clock()
        counter = orders.sign(
            orders.build(
                msgspec.structs.replace(
                    order,
                    sender_public_key=account.public_key,
                    side=Side.SELL if order.side is Side.BUY else Side.BUY,
                    timestamp=now,
                    proofs=(),
                    eip712_signature=None,
                )
            ),
            account.private_key,
        )
        around = self._chain.surroundings(order, counter)
        version = max(
            exchange_version(self._engine.settings, self._engine.last_offset + 1, around),
            _TRIAL_VERSION,
        )
        buys = order.side is Side.BUY
        transaction = codec.build(
            TYPE,
            Exchange(
                order1=order if buys else counter,
                order2=counter if buys else order,
                amount=amount,
                price=transaction_price(order.price, version, around),
                buy_matcher_fee=matcher_fee,
                sell_matcher_fee=matcher_fee,
            ),
            version=version,
            chain_id=order.chain_id,
            sender_public_key=account.public_key,
            fee=transaction_fee(around),
            timestamp=now,
        )
        return codec.sign(transaction, account.private_key)

    async def _check_new(self, order: Order, account: Account) -> None:
        known = account.balances.orders
        if order.id in known or order.id in account.placing or self._database.knows(order.id):
            raise duplicate(order)
        name = signed_name(order)
        if name is not None and (name in account.placing or self._database.knows_signed(name)):
            raise duplicate(order)
        if await self._node.was_executed(order.id):
            raise duplicate(order)

    def _reserve(
        self, order: Order, account: Account, fees: AcceptedFees, *, market: bool
    ) -> PlaceOrder | PlaceMarketOrder:
        """Check the balance and set aside what the order needs; no pause in between."""
        balances = account.balances
        least, const = fees.percent_min_fee, fees.percent_const_min_fee
        if not market:
            active = limit_order(order, least, const)
            check_account(active, balances.tradable, (), self._chain.assets)
            balances.place(active)
            return PlaceOrder(order, least, const)
        available = available_for_spending(order, balances.tradable)
        active = market_order(order, available, least, const)
        book = self._engine.book(pair_of(order))
        levels = []
        if book is not None:
            counters = book.asks if order.side is Side.BUY else book.bids
            levels = counters.depth(MAX_COUNTER_LEVELS)
        check_account(active, balances.tradable, levels, self._chain.assets)
        balances.place(active)
        return PlaceMarketOrder(order, available, least, const)

    # --- cancelling -------------------------------------------------------------------------------

    async def cancel(
        self, order_id: bytes, owner: Address, source: CancelSource, accounts: Accounts
    ) -> None:
        """Cancel an order of an account; raises ``MatcherError``."""
        account = accounts.peek(owner)
        active = None if account is None else account.balances.orders.get(order_id)
        if account is not None and (order_id in account.queued or order_id in account.placing):
            raise MatcherError(errors.ORDER_IS_PLACING, id=base58.encode(order_id))
        if account is None or active is None:
            raise self._not_active(order_id, owner)
        if active.is_market:
            raise MatcherError(errors.MARKET_ORDER_CANCEL, id=base58.encode(order_id))
        if order_id in account.canceling:
            raise MatcherError(errors.ORDER_CANCELED, id=base58.encode(order_id))
        events = await asyncio.shield(self.submit_cancel(active, account, source))
        if not any(isinstance(event, OrderCanceled) for event in events):
            raise self._not_active(order_id, owner)

    def submit_cancel(
        self, active: ActiveOrder, account: Account, source: CancelSource
    ) -> asyncio.Future[list[Event]]:
        """Send a cancellation on its way; raises ``MatcherError`` at once, or in the future."""
        order = active.order
        pair = AssetPair(order.amount_asset, order.price_asset)
        applied = self._sequencer.submit(CancelOrder(pair, order.id, source, account.address))
        account.canceling.add(order.id)
        applied.add_done_callback(lambda done: _canceled(done, account, order.id))
        return applied

    def _not_active(self, order_id: bytes, owner: Address) -> MatcherError:
        """Why an order that is not active cannot be cancelled."""
        info = self._database.order(order_id)
        kind = errors.ORDER_NOT_FOUND
        if info is not None and info.owner == owner:
            filled = info.status is OrderStatus.FILLED
            kind = errors.ORDER_FULL if filled else errors.ORDER_CANCELED
        return MatcherError(kind, id=base58.encode(order_id))


def in_asset_decimals(order: Order) -> Order:
    """The order in the only price mode that a matcher knows for its version."""
    if order.version < _PROTOBUF_VERSION or order.price_mode is PriceMode.ASSET_DECIMALS:
        return order
    return orders.build(msgspec.structs.replace(order, price_mode=PriceMode.ASSET_DECIMALS))


def _canceled(done: asyncio.Future[list[Event]], account: Account, order_id: bytes) -> None:
    account.canceling.discard(order_id)
    if not done.cancelled():
        # A refusal was told to whoever waits; an expired order is tried again.
        done.exception()
