"""The matcher's client of the node in the same process.

What lives here: ``soliton.matcher.node_client.NodeClient`` on the node's state, and its events
accumulated into updates. What does not: the matcher.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.errors import OrderInvalid
from soliton.chain.features import Feature
from soliton.chain.genesis import genesis_block
from soliton.chain.orders import Order
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.errors import InputError
from soliton.ledger import orders, script_runs
from soliton.ledger.blind_environment import BlindEnvironment
from soliton.ledger.context import Context
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.script_setting import parsed_script
from soliton.ledger.script_subjects import subject_of
from soliton.ledger.scripts import (
    NotAllowedByScript,
    ScriptExecutionError,
    account_script,
    smart_assets,
)
from soliton.ledger.state import (
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSETS,
    LEASES,
    ORDER_FILLS,
    WAVES,
    State,
    Status,
)
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.http_client import refusal
from soliton.matcher.node_client import (
    AccountState,
    Asset,
    Balances,
    Broadcast,
    BroadcastAnswer,
    ChainIdentity,
    ChainStatus,
    FoundExchange,
    Inclusion,
    NodeUpdate,
    OrderPair,
    ScriptAnswer,
)
from soliton.matcher.renewal import FINAL_DEPTH, order_ids
from soliton.matcher.update_accumulator import UpdateAccumulator
from soliton.matching.account_checks import ScriptFault
from soliton.node.events import (
    BlockAppended,
    BlockExtended,
    Departure,
    NodeEvent,
    PoolAccepted,
    PoolDropped,
    RolledBack,
    Stopping,
)
from soliton.node.node import Node
from soliton.node.signatures import signed_messages
from soliton.parallel.signatures import SignatureChecker
from soliton.ride.expressions import DApp
from soliton.storage.errors import BelowProblem
from soliton.storage.indexes import address_transactions, asset_balances
from soliton.storage.retrying import retry_until_read

_FAILURES: Final = {Status.FAILED: "script_execution_failed", Status.ELIDED: "elided"}

P = ParamSpec("P")
T = TypeVar("T")


def _patient(
    method: Callable[Concatenate[LocalNode, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[LocalNode, P], Coroutine[Any, Any, T]]:
    """Make a method retry in the background while a fork's records are read from its node."""

    @wraps(method)
    async def patient(self: LocalNode, /, *args: P.args, **named: P.kwargs) -> T:
        if self.node.store.below is None:
            return await method(self, *args, **named)
        try:
            return await retry_until_read(partial(method, self, *args, **named))
        except BelowProblem as error:
            raise NodeUnavailable(str(error)) from error

    return patient


class LocalNode:
    """A ``NodeClient`` without a network. It waits only for signatures, which another core checks,
    and on a fork for the original node.
    """

    parallel_requests = 1
    parallel_broadcasts = 16

    def __init__(self, node: Node, signatures: SignatureChecker) -> None:
        self.node = node
        self._store = node.store
        self._signatures = signatures
        self._has_left = False
        self.is_lost = False
        """Whether a rollback was deeper than the matcher supports: blocks that it relies on may be
        gone, and it receives no more events.
        """
        self.lost: Callable[[], None] = lambda: None
        """Called then."""
        first = genesis_block(node.network)
        self._identity = ChainIdentity(node.network.chain_id, base58.encode(first.signature))

    def leave(self) -> None:
        """Refuse further transactions: the chain is not the one that they were made for."""
        self._has_left = True

    def _lose(self) -> None:
        self.is_lost = True
        self.leave()
        self.lost()

    def again(self) -> LocalNode:
        """Return a client of the same node for another matcher."""
        return LocalNode(self.node, self._signatures)

    async def identity(self) -> ChainIdentity:
        """See ``NodeClient``."""
        return self._identity

    async def status(self) -> ChainStatus:
        """See ``NodeClient``."""
        return self._status()

    def _status(self) -> ChainStatus:
        chain = self.node.chain
        return ChainStatus(chain.height, chain.last_block.id)

    @_patient
    async def block_id(self, height: int) -> bytes | None:
        """See ``NodeClient``."""
        chain = self.node.chain
        if height == chain.height:
            return chain.last_block.id
        return chain.meta(height).id if 1 <= height < chain.height else None

    async def feature_active(self, feature: int) -> bool:
        """See ``NodeClient``."""
        chain = self.node.chain
        return chain.rules.at(chain.height + 1).has(Feature(feature))

    @_patient
    async def asset(self, asset_id: AssetId) -> Asset | None:
        """See ``NodeClient``."""
        info = self._store.get(ASSETS, asset_id)
        if info is None:
            return None
        name = self._store.get(ASSET_NAMES, asset_id)
        scripted = self._store.get(ASSET_SCRIPTS, asset_id) is not None
        text = "" if name is None else name.name.decode(errors="replace")
        return Asset(text, info.decimals, scripted, info.nft)

    @_patient
    async def has_script(self, address: Address) -> bool:
        """See ``NodeClient``."""
        return account_script(address, self._store) is not None

    @_patient
    async def account(
        self, address: Address, assets: Collection[AssetId | None] | None
    ) -> AccountState:
        """See ``NodeClient``."""
        store = self._store
        balances: Balances = {}
        if assets is None:
            balances[None] = store.get(WAVES, address)
            balances |= asset_balances(store, address)
        else:
            for asset_id in assets:
                balances[asset_id] = (
                    store.get(WAVES, address)
                    if asset_id is None
                    else store.get(ASSET_BALANCES, (address, asset_id))
                )
        return AccountState(balances, store.get(LEASES, address).lease_out)

    async def was_executed(self, order_id: bytes) -> bool:
        """See ``NodeClient``."""
        return self._store.get(ORDER_FILLS, order_id).volume > 0

    async def run_scripts(
        self,
        trials: Iterable[AnyTransaction],
        order: Order,
        assets: Collection[AssetId],
        *,
        blind: bool,
    ) -> ScriptAnswer:
        """See ``NodeClient``."""
        # Balances are not checked here: the largest trial is sufficient.
        trial = next(iter(trials)) if assets else None
        return await self._run_scripts(trial, order, assets, blind=blind)

    @_patient
    async def _run_scripts(
        self,
        trial: AnyTransaction | None,
        order: Order,
        assets: Collection[AssetId],
        *,
        blind: bool,
    ) -> ScriptAnswer:
        pool = self.node.pool
        context = Context(pool.environment())
        state = pool.state()
        try:
            refused = _ask_blindly(order, state, context) if blind else None
            if refused is not None:
                return refused
            orders.check_proof(order, state, context, verify=True)
            if trial is not None:
                for asset_id in smart_assets(tuple(assets), state):
                    script_runs.run_asset(asset_id, trial, state, context)
        except NotAllowedByScript as error:
            return ScriptAnswer(ScriptFault.DENIED, error.asset_id, str(error))
        except ScriptExecutionError as error:
            return ScriptAnswer(ScriptFault.RETURNED_ERROR, error.asset_id, error.reason)
        except (TransactionRejected, OrderInvalid) as error:
            return ScriptAnswer(ScriptFault.DENIED, None, str(error))
        return ScriptAnswer()

    @_patient
    async def broadcast(self, transaction: AnyTransaction) -> BroadcastAnswer:
        """See ``NodeClient``."""
        signed = signed_messages(transaction)
        verified = signed if signed and await self._signatures.check_all(signed) else ()
        if self._has_left:
            raise NodeUnavailable("the chain has gone back, and another matcher goes on")
        try:
            self.node.broadcast(transaction, verified=verified)
        except InputError as error:
            return refusal(str(error))
        return BroadcastAnswer(Broadcast.UNCONFIRMED)

    @_patient
    async def inclusions(self, transaction_ids: Sequence[bytes]) -> dict[bytes, Inclusion]:
        """See ``NodeClient``."""
        found: dict[bytes, Inclusion] = {}
        for each in transaction_ids:
            location = self._store.transaction_location(each)
            if location is not None:
                found[each] = Inclusion(location.height, _failure(location.status))
            elif each in self.node.pool:
                found[each] = Inclusion(0)
        return found

    async def now(self) -> int:
        """See ``NodeClient``."""
        return self.node.clock()

    @_patient
    async def block_time(self, height: int) -> int:
        """See ``NodeClient``."""
        try:
            return self.node.chain.meta(height).timestamp
        except KeyError as error:
            raise NodeUnavailable(f"there is no block {height} any more") from error

    @_patient
    async def find_exchanges(
        self, account: Address, wanted: Collection[OrderPair], since: int
    ) -> dict[OrderPair, FoundExchange]:
        """See ``NodeClient``."""
        exchanges: dict[OrderPair, FoundExchange] = {}
        missing = set(wanted)
        for height, _, transaction_id in address_transactions(self._store, account):
            found = self.node.chain.transaction(transaction_id)
            if found is None:
                continue
            orders = order_ids(found.transaction)
            if orders in missing:
                inclusion = Inclusion(height, _failure(found.status))
                exchange = FoundExchange(found.transaction, inclusion)
                if not inclusion.failure:
                    exchanges[orders] = exchange
                    missing.discard(orders)
                exchanges.setdefault(orders, exchange)
            if not missing or found.transaction.timestamp < since:
                break
        return exchanges

    async def updates(self) -> AsyncGenerator[NodeUpdate, None]:
        """See ``NodeClient``; the events of one iteration of the event loop are one update."""
        gathered = _Listening(self.node.chain.height, self._lose, self._failure_of)
        self.node.events.subscribe(gathered.note)
        try:
            yield NodeUpdate(
                self._status(),
                appeared=tuple(self.node.pool.transactions()),
                changed=None,
                finalized=gathered.final_at(self.node.chain.finalized_height),
            )
            while True:
                await gathered.pending.wait()
                yield gathered.take(self._status(), self.node.chain.finalized_height)
                if gathered.ended:
                    return
        finally:
            self.node.events.unsubscribe(gathered.note)

    def _failure_of(self, transaction_id: bytes) -> str:
        """``Inclusion.failure`` of a transaction that was just mined."""
        location = self._store.transaction_location(transaction_id)
        return "" if location is None else _failure(location.status)

    async def close(self) -> None:
        """See ``NodeClient``; there is nothing to close."""


class _Listening(UpdateAccumulator):
    """A listener of the node's events."""

    def __init__(
        self, height: int, lost: Callable[[], None], failure_of: Callable[[bytes], str]
    ) -> None:
        """``height`` is that of the chain; ``lost`` is called after too deep a rollback."""
        super().__init__()
        self._failure_of = failure_of
        self.ended = False
        self._highest, self._lost, self._is_lost = height, lost, False
        # The last final block of which the matcher knows.
        self._final = 0
        # Mined transactions whose changed accounts are not known yet.
        self._unexplained: set[bytes] = set()

    def note(self, event: NodeEvent) -> None:
        """Handle an event."""
        if self._is_lost:
            return
        match event:
            case BlockAppended(height=height, block=block, edited=edited):
                self._highest = max(self._highest, height)
                generator = from_public_key(block.header.generator, block.header.chain_id)
                self.changed((generator, *edited))
                self._mined(block.transactions, height)
            case BlockExtended(height=height, block=block, added=added):
                self._mined(block.transactions[len(block.transactions) - added :], height)
            case RolledBack(height=height) if height < max(
                self._final, self._highest - FINAL_DEPTH
            ):
                self._is_lost = True
                self._lost()
            case RolledBack(height=height):
                self.rolled_back(height)
            case PoolAccepted(transaction=transaction):
                self.appeared(transaction)
            case PoolDropped(transaction=transaction, moved=moved, departure=departure):
                self.vanished(transaction.id)
                if departure is Departure.MINED:
                    self._unexplained.discard(transaction.id)
                    self.changed(moved.accounts)
            case Stopping():
                self.ended = True
                self.pending.set()

    def _mined(self, transactions: Sequence[AnyTransaction], height: int) -> None:
        for transaction in transactions:
            self.mined(transaction.id, Inclusion(height, self._failure_of(transaction.id)))
            # The accounts follow when it leaves the pool; if it never was there, they do not.
            self._unexplained.add(transaction.id)

    def final_at(self, finalized: int) -> int:
        """Note, and return, the height of the last final block, as the matcher is told it."""
        self._final = max(self._final, finalized)
        return finalized

    def take(self, status: ChainStatus, finalized: int) -> NodeUpdate:
        """See ``UpdateAccumulator``."""
        if self._unexplained:
            self.all_changed()
            self._unexplained.clear()
        return super().take(status, self.final_at(finalized))


def _failure(status: int) -> str:
    """``Inclusion.failure`` for the status of a transaction of the chain."""
    return "" if status == Status.SUCCEEDED else _FAILURES[Status(status)]


def _ask_blindly(order: Order, state: State, context: Context) -> ScriptAnswer | None:
    """What the script of an order's account refuses if it cannot read the chain. Source:
    wavesplatform/matcher ``waves-ext/src/main/scala/com/wavesplatform/dex/grpc/integration/smart/
    MatcherScriptRunner.scala``.
    """
    owner = orders.owner_of(order, context.rules)
    found = account_script(owner, state)
    script = None if found is None else parsed_script(found.script)
    if script is None or (isinstance(script.content, DApp) and script.content.verifier is None):
        return None
    outcome = script_runs.run_script_in(
        BlindEnvironment(order.chain_id, owner),
        script,
        subject_of(order),
        script_runs.ScriptOwner(owner),
        context,
    )
    if outcome.error:
        return ScriptAnswer(ScriptFault.RETURNED_ERROR, None, outcome.error)
    if outcome.value is False:
        return ScriptAnswer(ScriptFault.DENIED, None, "not allowed by the account's script")
    if outcome.value is not True:
        return ScriptAnswer(ScriptFault.UNEXPECTED_RESULT, None, str(outcome.value))
    return None
