"""Type 19, commit to generation: joins the generators of the next period, with a deposit.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/CommitToGenerationTransactionDiff.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import Address, address_text
from soliton.chain.features import Feature
from soliton.chain.transactions.commit_to_generation import CommitToGeneration, commitment_message
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58, bls
from soliton.crypto.errors import InvalidBlsKey, InvalidBlsSignature
from soliton.ledger import generators
from soliton.ledger.context import Context, TypeRules
from soliton.ledger.errors import ActivationError, TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.state import Commitment, Overlay, effective_balance_of


def _apply(
    transaction: AnyTransaction, overlay: Overlay, _portfolio: Portfolio, context: Context
) -> None:
    payload: CommitToGeneration = transaction.payload
    current, key = context.block.period, payload.endorser_public_key
    if current is None:
        raise ActivationError("DeterministicFinality is not yet activated")
    if payload.generation_period_start != current.next.start:
        raise TransactionRejected(
            f"Expected the next period start height {current.next.start}, "
            f"got {payload.generation_period_start}"
        )
    _check_keys(payload)
    sender = common.sender_of(transaction)
    taken = generators.first_taken(overlay, current.next, sender, key)
    if taken == sender:
        raise TransactionRejected(f"{address_text(sender)} is already committed")
    if taken is not None:
        raise TransactionRejected(
            f"BLS key {base58.encode(key)} is already committed, try another key"
        )
    commitment = Commitment(transaction.sender_public_key, key, transaction.id)
    generators.commit(overlay, current.next, sender, commitment)
    _check_balance(sender, transaction.fee, overlay, context)


def _check_keys(payload: CommitToGeneration) -> None:
    key = payload.endorser_public_key
    try:
        bls.check_public_key(key)
    except InvalidBlsKey as error:
        raise TransactionRejected(f"Invalid endorser public key: {error}") from error
    try:
        bls.check_signature(
            (key,),
            commitment_message(key, payload.generation_period_start),
            payload.commitment_signature,
        )
    except InvalidBlsSignature as error:
        raise TransactionRejected(f"Invalid commitment signature: {error}") from error


def _check_balance(sender: Address, fee: int, overlay: Overlay, context: Context) -> None:
    """Raise ``TransactionRejected`` unless the sender can generate with what is left, in all blocks
    that count.
    """
    rules, below = context.rules, context.block.below
    balance = effective_balance_of(overlay, sender) - fee
    if below is not None:
        balance = min(balance, below.generating_balance(sender, context.height))
    if sender in context.block.bans:
        balance = 0
    if balance < rules.minimum_generating_balance:
        raise TransactionRejected(
            f"Generating balance {balance} is less than {rules.minimum_generating_balance} "
            "required for block generation"
        )


RULES = TypeRules(
    common.activation(Feature.DETERMINISTIC_FINALITY),
    common.base_fee,
    None,
    _apply,
    sponsored=False,
)
