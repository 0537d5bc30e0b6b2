"""Placing orders: from a received order to a command in the journal.

The placements of one account run one after the other, in the order of arrival; those of different
accounts run concurrently. The balance an order needs is reserved before its command is submitted,
so the account's next order sees what is left.

What lives here: the sequence of checks, with the requests to the node between them. What does not:
the checks (``soliton.matching``), the journal (``sequencer``), the effects (``effects``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/actors/address/AddressActor.scala``,
``model/ValidationStages.scala``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from soliton.chain import orders
from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.orders import PRICE_CONSTANT, Order, PriceMode, Side
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import TYPE, Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.matcher.accounts import Account, Accounts
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.exchanges import (
    exchange_version,
    transaction_fee,
    transaction_price,
    with_parameters,
)
from soliton.matcher.fee_funds import FeeFunds
from soliton.matcher.log_throttle import throttled
from soliton.matcher.node_watch import NodeWatch
from soliton.matcher.replica import Replica
from soliton.matcher.sequencer import Outcome, resolve
from soliton.matching import errors
from soliton.matching.account_checks import (
    ScriptFault,
    account_script_refusal,
    asset_script_refusal,
    available_for_spending,
    check_account,
    check_key,
    check_order_count,
    check_script_version,
    duplicate,
    forged,
    other_price_mode,
    signature_to_verify,
    signed_name,
)
from soliton.matching.arithmetic import corrected_amount
from soliton.matching.book import LevelTotal
from soliton.matching.commands import PlaceMarketOrder, PlaceOrder
from soliton.matching.errors import MatcherError
from soliton.matching.events import Event
from soliton.matching.model import limit_order, market_order
from soliton.matching.pairs import asset_text, pair_of
from soliton.matching.placement import PlacementContext, PlacementSettings
from soliton.matching.rates import Rates
from soliton.matching.validation import AcceptedFees, check_order, check_pair

MAX_UNWRITTEN: Final = 2_000_000
"""The maximum number of unwritten changes of the orders database; beyond it, orders are rejected.
"""
MAX_COUNTER_LEVELS: Final = 100_000
"""The number of levels up to which the price of a market order is checked."""
_TRIAL_VERSION: Final = 2
_PROTOBUF_VERSION: Final = 4

_log = throttled(logging.getLogger(__name__))


class Placing:
    """Places orders. Use from one event loop."""

    def __init__(
        self, replica: Replica, watch: NodeWatch, placement: PlacementSettings, rates: Rates
    ) -> None:
        self._settings = replica.settings
        self._session = replica.session
        self._engine = replica.engine
        self._node = replica.node
        self._chain = replica.chain
        self._database = replica.database
        self._sequencer = replica.sequencer
        self._signatures = replica.signatures
        self._watch = watch
        self._placement = placement
        self._rates = rates
        self._fee_funds = FeeFunds(replica)

    async def place(self, order: Order, *, market: bool, is_signed: bool | None = None) -> None:
        """Place an order; returns once the journal has stored it and the engine has processed it.

        ``is_signed`` is whether its ``signature_to_verify`` is valid, if the caller has verified
        it. Raises ``MatcherError``; then nothing stays reserved for it.
        """
        accounts = self._session.require_accounts()
        if self._watch.is_silent:
            raise MatcherError(errors.WAVES_NODE_CONNECTION_BROKEN)
        if self._database.unwritten > MAX_UNWRITTEN:
            raise MatcherError(errors.CAN_NOT_PERSIST_EVENT)
        try:
            await self._place(order, accounts, market=market, is_signed=is_signed)
        except NodeUnavailable as error:
            _log.warning("an order could not be checked: %s", error)
            raise MatcherError(errors.WAVES_NODE_CONNECTION_BROKEN) from error

    async def _place(
        self, order: Order, accounts: Accounts, *, market: bool, is_signed: bool | None
    ) -> None:
        given, order = order, in_asset_decimals(order)
        if order is not given:
            # The caller verified the signature of other bytes.
            is_signed = None
        if not self._chain.knows(order):
            await self._learn(order)
        fees = self._check(order)
        owner = from_public_key(order.sender_public_key, order.chain_id)
        self._check_defaults(owner)
        await self._check_sender(order, accounts.get(owner), accounts, is_signed)
        # The account may have been evicted meanwhile; from here on it is held.
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
        # The command is in flight even if its sender no longer waits.
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
        """Do the last checks, reserve the balance and submit the command. The caller may cancel the
        returned future without affecting the command.
        """
        await self._check_new(order, account)
        await accounts.ensure(
            account, (order.amount_asset, order.price_asset, order.matcher_fee_asset, None)
        )
        await self._fee_funds.refresh(accounts)
        if accounts.stopped:
            raise MatcherError(errors.MATCHER_IS_STARTING)
        if not self._session.trusted.is_set():
            # Its balances may be those of another chain.
            raise MatcherError(errors.WAVES_NODE_CONNECTION_BROKEN)
        promised = self._fee_funds.promise(order, accounts)
        try:
            command = self._reserve(order, account, fees, market=market)
        except BaseException:
            self._fee_funds.release(promised)
            raise
        applied: asyncio.Future[list[Event]] = asyncio.get_running_loop().create_future()

        names = {order.id, signed_name(order) or order.id}

        def on_outcome(outcome: Outcome) -> None:
            account.placing -= names
            self._fee_funds.release(promised)
            if isinstance(outcome, MatcherError):
                account.balances.release(order.id)
            resolve(applied, outcome)

        try:
            self._sequencer.enqueue(command, on_outcome)
        except MatcherError:
            account.balances.release(order.id)
            self._fee_funds.release(promised)
            raise
        account.placing |= names
        return applied

    def check_again(self, order: Order) -> AcceptedFees:
        """Check whether an order that was placed before would be accepted now, apart from its
        signature and balances. Raises ``MatcherError``.
        """
        if not self._chain.knows(order):
            raise MatcherError(errors.ASSET_NOT_FOUND, assetId=asset_text(order.amount_asset))
        self._check_defaults(from_public_key(order.sender_public_key, order.chain_id))
        return self._check(order)

    def _check_defaults(self, owner: Address) -> None:
        default = self._database.default_of(owner)
        if default is not None and self._settings.clock() < default.until:
            raise MatcherError(
                errors.ACCOUNT_UNRELIABLE,
                address=address_text(owner),
                count=default.count,
                until=default.until,
            )

    async def _learn(self, order: Order) -> None:
        """Load the assets of an order from the node, unless the pair is not traded anyway."""
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
        """Verify the signature, or run the scripts of the account and the assets."""
        scripted = account.scripted
        if scripted is None:
            scripted = await accounts.has_script(account)
        if scripted:
            check_script_version(order)
        else:
            check_key(order, self._chain.features)
            claim = signature_to_verify(order)
            if claim is not None:
                if is_signed is None:
                    is_signed = await self._signatures.check(*claim)
                if not is_signed:
                    raise await self._why_forged(order)
        smart = self._chain.scripted(order)
        if not scripted and not smart:
            return
        shown = self._as_executed(order, order.amount, scripted=scripted)
        blind = order.sender_public_key not in self._engine.settings.lp_accounts
        trials = self._trials(order, scripted)
        answer = await self._node.run_scripts(trials, shown, smart, blind=blind)
        if answer.fault is None:
            return
        blamed = answer.asset_id
        if blamed is None and answer.fault is ScriptFault.EXCEPTION and not scripted:
            blamed = min(smart)
        if blamed is None:
            raise account_script_refusal(order, answer.fault, answer.message)
        raise asset_script_refusal(blamed, answer.fault, answer.message)

    async def _why_forged(self, order: Order) -> MatcherError:
        """The error for an invalid signature. Libraries sign version 4 with another price mode by
        default: if that is the cause, the message says so, and what to set.
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

    def _as_executed(self, order: Order, amount: int, *, scripted: bool) -> Order:
        """The order as the script of its account sees it in an execution of an amount."""
        if not scripted:
            return order
        executed, offset = corrected_amount(amount, order.price), self._engine.last_offset + 1
        return with_parameters(order, self._engine.settings, offset, executed, order.price)

    def _trials(self, order: Order, scripted: bool) -> Iterator[AnyTransaction]:
        """Exchanges of the order with one of the matcher's own, to run scripts on: one of the whole
        amount, and one of the smallest possible amount without fees.
        """
        yield self._trial(order, order.amount, order.matcher_fee, scripted=scripted)
        least = -(-PRICE_CONSTANT // order.price)
        if least < order.amount:
            yield self._trial(order, least, 0, scripted=scripted)

    def _trial(
        self, order: Order, amount: int, matcher_fee: int, *, scripted: bool
    ) -> AnyTransaction:
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
        context = self._chain.exchange_context(order, counter)
        version = max(
            exchange_version(self._engine.settings, self._engine.last_offset + 1, context),
            _TRIAL_VERSION,
        )
        buys = order.side is Side.BUY
        shown = self._as_executed(order, amount, scripted=scripted)
        transaction = codec.build(
            TYPE,
            Exchange(
                order1=shown if buys else counter,
                order2=counter if buys else shown,
                amount=amount,
                price=transaction_price(order.price, version, context),
                buy_matcher_fee=matcher_fee,
                sell_matcher_fee=matcher_fee,
            ),
            version=version,
            chain_id=order.chain_id,
            sender_public_key=account.public_key,
            fee=transaction_fee(context),
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
        """Check the balance and reserve what the order needs, without a pause in between."""
        balances = account.balances
        least, const = fees.percent_min_fee, fees.percent_const_min_fee
        if not market:
            active = limit_order(order, least, const)
            check_account(active, balances.tradable, (), self._chain.assets)
            balances.place(active)
            return PlaceOrder(order, least, const)
        available = available_for_spending(order, balances.tradable)
        active = market_order(order, available, least, const, whole_units=True)
        book = self._engine.book(pair_of(order))
        levels: Iterable[LevelTotal] = ()
        if book is not None:
            counters = book.asks if order.side is Side.BUY else book.bids
            levels = islice(counters.by_priority(), MAX_COUNTER_LEVELS)
        check_account(active, balances.tradable, levels, self._chain.assets)
        balances.place(active)
        return PlaceMarketOrder(order, available, least, const, whole_units=True)


def in_asset_decimals(order: Order) -> Order:
    """The order in the only price mode that the matcher accepts for its version."""
    if order.version < _PROTOBUF_VERSION or order.price_mode is PriceMode.ASSET_DECIMALS:
        return order
    return orders.build(msgspec.structs.replace(order, price_mode=PriceMode.ASSET_DECIMALS))
