"""Type 18, Ethereum: a transfer or the call of a dApp, signed by an Ethereum wallet.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/EthereumTransactionDiff.scala`` and
``transaction/EthereumTransaction.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.chain.addresses import ETHEREUM_KEY_BITS, address_text
from soliton.chain.features import Feature
from soliton.chain.transactions.ethereum import (
    TRANSFER_DATA_LENGTH,
    Ethereum,
    EthereumCall,
    EthereumTransfer,
    claimed_chain_id,
)
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.secp256k1 import HALF_ORDER
from soliton.ledger import invocation, script_runs
from soliton.ledger.context import Context, TypeRules
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules.transfer import move
from soliton.ledger.rules_at import Rules
from soliton.ledger.scripts import account_script, smart_assets
from soliton.ledger.state import ERC20, Overlay, State
from soliton.ledger.state_changes import Invoked

_INVOKE_SCRIPT: Final = 16


def _minimum_fee(transaction: AnyTransaction, rules: Rules) -> int:
    if isinstance(transaction.payload.action, EthereumCall):
        return rules.fees.base[_INVOKE_SCRIPT]
    return common.base_fee(transaction, rules)


def _charged_assets(
    transaction: AnyTransaction, state: State, _rules: Rules
) -> tuple[AssetId, ...]:
    action = transaction.payload.action
    if not isinstance(action, EthereumTransfer) or action.token is None:
        return ()
    asset_id = state.get(ERC20, action.token)
    return () if asset_id is None else (asset_id,)


def _check_signature(transaction: AnyTransaction, rules: Rules) -> None:
    number = int.from_bytes(transaction.sender_public_key, "big")
    # Early rules refused keys that are shorter as a two's complement number.
    if number.bit_length() < ETHEREUM_KEY_BITS and not rules.has(Feature.CONSENSUS_IMPROVEMENTS):
        raise TransactionRejected("Invalid public key")
    if not rules.refuses_variants:
        return
    payload: Ethereum = transaction.payload
    claimed, own = claimed_chain_id(payload.v), transaction.chain_id
    if claimed is not None and claimed != own:
        raise TransactionRejected(
            f"Transaction chain ID Some({claimed}) does not match current chain ID {own}"
        )
    if payload.s > HALF_ORDER:
        raise TransactionRejected("Non-canonical ECDSA signature")


def _transfer(
    transaction: AnyTransaction, overlay: Overlay, portfolio: Portfolio, context: Context
) -> int:
    payload: Ethereum = transaction.payload
    action = payload.action
    assert isinstance(action, EthereumTransfer), "calls go another way"
    asset_id, complexity = None, 0
    if action.token is not None:
        exact = context.rules.has(Feature.BLOCK_REWARD_DISTRIBUTION)
        if exact and len(payload.data) != TRANSFER_DATA_LENGTH:
            raise TransactionRejected("Invalid asset data size for Ethereum Transfer")
        asset_id = overlay.get(ERC20, action.token)
        if asset_id is None:
            raise TransactionRejected(f"Can't resolve ERC20 address {base58.encode(action.token)}")
        for smart in smart_assets((asset_id,), overlay):
            complexity = script_runs.run_asset(smart, transaction, overlay, context)
    move(transaction, action.recipient, asset_id, action.amount, overlay, portfolio, context)
    return complexity


def _apply(
    transaction: AnyTransaction, overlay: Overlay, portfolio: Portfolio, context: Context
) -> Invoked | int:
    _check_signature(transaction, context.rules)
    action = transaction.payload.action
    if isinstance(action, EthereumTransfer):
        return _transfer(transaction, overlay, portfolio, context)
    if account_script(action.d_app, overlay) is None:
        raise TransactionRejected(f"No script at address {address_text(action.d_app)}")
    return invocation.invoke_by_wallet(transaction, action, overlay, context)


RULES = TypeRules(
    common.activation(Feature.RIDE_V6),
    _minimum_fee,
    None,
    _apply,
    charged_assets=_charged_assets,
    proven=False,
)
