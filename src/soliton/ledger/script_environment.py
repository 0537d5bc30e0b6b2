"""The chain as a running script sees it.

What lives here: reads of the state, of the current block, and of the blocks below (``ChainView``).
What does not: running scripts (``script_runs``), and calls of other dApps (``calls``), for which an
environment receives a function.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/smart/WavesEnvironment.scala``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.features import Feature
from soliton.chain.layouts import lenient_text
from soliton.chain.transactions.ethereum import Ethereum
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId, DataValue, wrapped
from soliton.consensus.pos import Algorithm, PoS, delay_ms
from soliton.crypto.hashes import blake2b256
from soliton.ledger.context import Context
from soliton.ledger.environment import PastTransaction
from soliton.ledger.scripts import account_script
from soliton.ledger.state import (
    ALIASES,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    DATA,
    ERC20,
    SPONSORSHIPS,
    WAVES,
    Missing,
    Overlay,
    State,
    Status,
    effective_balance_of,
    is_banned_between,
    locked_balance,
)
from soliton.ride.environment import AssetInfo, BalanceDetails, BlockInfo, Payment
from soliton.ride.errors import EvaluationError, EvaluationEscaped
from soliton.ride.values import Value

_HIT_BYTES: Final = 8
_NO_EXTRA_DELAY: Final = PoS(Algorithm.FAIR, 0, 0)

NO_ADDRESS: Final = Address(b"")

Invoke = Callable[
    [bytes, str, tuple[Value, ...], tuple[Payment, ...], int, bool], tuple[Value, int]
]
"""Calls another dApp: address, function, arguments, payments, complexity left, whether reentrant.
"""


class LedgerEnvironment:
    """The environment of a script, on top of a state.

    ``state`` includes the transaction's changes so far (it is read each time, so an overlay may
    grow); ``base`` is the state before the transaction. The script of an asset has an ``asset_id``,
    every other one the ``address`` of its account.
    """

    __slots__ = ("_address", "_asset_id", "_base", "_context", "_invoke", "_state", "_transaction")

    def __init__(
        self,
        state: State,
        base: State,
        context: Context,
        transaction_id: bytes,
        *,
        address: Address = NO_ADDRESS,
        asset_id: AssetId | None = None,
        invoke: Invoke | None = None,
    ) -> None:
        self._state = state
        self._base = base
        self._context = context
        self._transaction = transaction_id
        self._address = address
        self._asset_id = asset_id
        self._invoke = invoke

    @property
    def chain_id(self) -> int:
        return self._context.rules.chain_id

    @property
    def height(self) -> int:
        self._note_block_read()
        block = self._context.block.last_block
        return self._context.height if block is None else block.height

    @property
    def transaction_id(self) -> bytes:
        return self._transaction

    def this(self) -> bytes | AssetInfo:
        if self._asset_id is None:
            return self._address
        asset = self.asset_info(self._asset_id)
        if asset is None:
            raise EvaluationEscaped("the asset of the script does not exist")
        return asset

    # --- blocks and transactions ------------------------------------------------------------------

    def last_block(self) -> BlockInfo:
        block = self.block_info(self.height)
        if block is None:
            raise EvaluationEscaped("there is no last block")
        return block

    def _note_block_read(self) -> None:
        if self._context.witness is not None:
            self._context.witness.of_blocks()

    def _note_chain_read(self) -> None:
        if self._context.witness is not None:
            self._context.witness.of_chain()

    def block_info(self, height: int, /) -> BlockInfo | None:
        self._note_block_read()
        block, chain = self._context.block.last_block, self._context.block.below
        if block is not None and height >= block.height:
            return block if height == block.height else None
        return None if chain is None else chain.block(height)

    def transaction(self, transaction_id: bytes, /) -> AnyTransaction | None:
        found = self._find(transaction_id)
        if found is None:
            return None
        # Transfers of wallets are found after their block: ``transferById`` of wavesplatform/Waves
        # ``node/src/main/scala/com/wavesplatform/state/SnapshotBlockchain.scala``.
        by_wallet = isinstance(found.transaction.payload, Ethereum)
        return None if by_wallet and transaction_id in self._context.applied else found.transaction

    def transaction_height(self, transaction_id: bytes, /) -> int | None:
        found = self._find(transaction_id)
        return None if found is None else found.height

    def _find(self, transaction_id: bytes) -> PastTransaction | None:
        self._note_chain_read()
        context = self._context
        found = context.applied.get(transaction_id)
        if found is None and context.block.below is not None:
            found = context.block.below.transaction(transaction_id)
        return None if found is None or found.status is not Status.SUCCEEDED else found

    def calculate_delay(self, generator: bytes, balance: int, /) -> int:
        last = self.last_block()
        source = last.generation_signature if last.vrf is None else last.vrf
        hit = int.from_bytes(blake2b256(source + generator)[:_HIT_BYTES], "big")
        return delay_ms(_NO_EXTRA_DELAY, hit, last.base_target, balance)

    # --- accounts and assets ----------------------------------------------------------------------

    def asset_info(self, asset_id: bytes, /) -> AssetInfo | None:
        state = self._state
        static, volume = state.get(ASSETS, asset_id), state.get(ASSET_VOLUMES, asset_id)
        name = state.get(ASSET_NAMES, asset_id)
        if static is None or volume is None or name is None:
            return None
        return AssetInfo(
            id=asset_id,
            name=lenient_text(name.name),
            description=lenient_text(name.description),
            # Early history overflowed the quantity of some assets.
            quantity=wrapped(volume.quantity),
            decimals=static.decimals,
            issuer=from_public_key(static.issuer, self.chain_id),
            issuer_public_key=static.issuer,
            reissuable=volume.reissuable,
            scripted=state.get(ASSET_SCRIPTS, asset_id) is not None,
            min_sponsored_fee=state.get(SPONSORSHIPS, asset_id) or None,
        )

    def token_asset(self, token: bytes, /) -> bytes | None:
        return self._base.get(ERC20, token)

    def resolve_alias(self, alias: str, /) -> bytes | None:
        if alias in self._context.rules.disabled_aliases:
            return None
        return self._base.get(ALIASES, alias)

    def data(self, address: bytes, key: str, /) -> DataValue:
        value = self._state.get(DATA, (Address(address), key))
        return None if isinstance(value, Missing) else value

    def has_data(self, address: bytes, /) -> bool:
        self._note_chain_read()
        state = self._state
        if isinstance(state, Overlay) and any(owner == address for owner, _ in state.written(DATA)):
            return True
        chain = self._context.block.below
        return chain is not None and chain.has_data(Address(address))

    def balance(self, address: bytes, asset_id: bytes | None, /) -> int:
        owner, witness = Address(address), self._context.witness
        if asset_id is None:
            if witness is not None:
                witness.of_balance(WAVES, owner)
            return self._state.get(WAVES, owner)
        if witness is not None:
            witness.of_balance(ASSET_BALANCES, (owner, asset_id))
        return self._state.get(ASSET_BALANCES, (owner, asset_id))

    def balance_details(self, address: bytes, /) -> BalanceDetails:
        context, owner = self._context, Address(address)
        self._note_chain_read()
        if context.witness is not None:
            context.witness.of_balance(WAVES, owner)
        balance, height = self._state.get(WAVES, owner), self.height
        available = balance - locked_balance(self._state, owner)
        if is_banned_between(self._state, owner, height, height):
            return BalanceDetails(available, balance, 0, 0)
        top = self._state if context.rules.has(Feature.LIGHT_NODE) else self._base
        # The reference node takes the smallest balance of all states that lie on each other: before
        # the transaction, and in each call that led here.
        states = top.layers() if isinstance(top, Overlay) else (top,)
        generating = [effective_balance_of(state, owner) for state in states]
        if context.block.below is not None:
            generating.append(context.block.below.generating_balance(owner, height))
        effective = effective_balance_of(self._state, owner)
        return BalanceDetails(available, balance, min(generating), effective)

    def script(self, address: bytes, /) -> bytes | None:
        found = account_script(Address(address), self._base)
        return None if found is None else found.script

    def invoke(
        self,
        dapp: bytes,
        function: str,
        arguments: tuple[Value, ...],
        payments: tuple[Payment, ...],
        available_complexity: int,
        reentrant: bool,
        /,
    ) -> tuple[Value, int]:
        if self._invoke is None:
            raise EvaluationError("verifiers and scripts of assets cannot call dApps")
        return self._invoke(dapp, function, arguments, payments, available_complexity, reentrant)
