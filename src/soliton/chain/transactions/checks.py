"""Rules without state that several transaction types share.

What does not live here: their order in a type (its own module).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/validation/TxConstraints.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.chain.addresses import Alias, Recipient
from soliton.chain.errors import (
    AmountOverflow,
    InsufficientFee,
    InvalidName,
    TooBigCount,
    TooBigInBytes,
    ValueRuleError,
)
from soliton.chain.scripts import is_dapp
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import MAX_I64

MAX_ATTACHMENT_BYTES: Final = 140
MIN_NAME_BYTES: Final = 4
MAX_NAME_BYTES: Final = 16
MAX_DESCRIPTION_BYTES: Final = 1_000


def check_fee(transaction: AnyTransaction) -> None:
    """Raise ``InsufficientFee`` unless the fee is positive."""
    if transaction.fee <= 0:
        raise InsufficientFee


def check_sum(*amounts: int) -> None:
    """Raise ``AmountOverflow`` if the sum of the amounts exceeds 64 bits; none is negative."""
    if sum(amounts) > MAX_I64:
        raise AmountOverflow


def chain_of(recipient: Recipient) -> int:
    """Return the chain id in an address or alias."""
    return recipient.chain_id if isinstance(recipient, Alias) else recipient[1]


def check_chain(recipient: Recipient, transaction: AnyTransaction) -> None:
    """Raise ``ValueRuleError`` unless the recipient belongs to the transaction's chain."""
    if chain_of(recipient) != transaction.chain_id:
        raise ValueRuleError("Address or alias from other network")


def check_attachment(attachment: bytes) -> None:
    """Raise ``TooBigInBytes`` for an attachment of more than 140 bytes."""
    size = len(attachment)
    if size > MAX_ATTACHMENT_BYTES:
        raise TooBigInBytes(
            f"Invalid attachment. Length {size} bytes exceeds maximum of "
            f"{MAX_ATTACHMENT_BYTES} bytes."
        )


def check_asset_texts(name: bytes, description: bytes) -> None:
    """Check the lengths of name and description; raise ``InvalidName`` or ``TooBigCount``."""
    if not MIN_NAME_BYTES <= len(name) <= MAX_NAME_BYTES:
        raise InvalidName
    if len(description) > MAX_DESCRIPTION_BYTES:
        raise TooBigCount(MAX_DESCRIPTION_BYTES)


def check_asset_script(script: bytes | None) -> None:
    """Raise ``ValueRuleError`` if the script of an asset is a dApp."""
    if script is not None and is_dapp(script):
        raise ValueRuleError("Asset can only be assigned with Expression script, not Contract")
