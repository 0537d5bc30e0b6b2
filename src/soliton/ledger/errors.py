"""Errors of the ledger: why a transaction or a block is rejected.

What lives here: error types with their data, and the messages of the reference node where clients
read them. What does not: the numeric codes of the REST interface, which the shell assigns by type.

Source of the messages: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/TxValidationError.scala`` and ``state/diffs``.
"""

from __future__ import annotations

from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import InputError


class LedgerError(InputError):
    """A transaction or a block cannot be applied to the state."""


class TransactionRejected(LedgerError):
    """A transaction violates a rule that depends on the state."""


class Mistiming(TransactionRejected):
    """The timestamp of a transaction is too far from that of the block."""


class ActivationError(TransactionRejected):
    """No activated feature allows this."""


class AlreadyInState(TransactionRejected):
    """The chain already contains a transaction with this id."""

    def __init__(self, transaction_id: str, height: int) -> None:
        super().__init__(
            f"Transaction {transaction_id} is already in the state on a height of {height}"
        )
        self.transaction_id = transaction_id
        self.height = height


class AliasDoesNotExist(TransactionRejected):
    """No account has this alias."""

    def __init__(self, alias: str) -> None:
        super().__init__(f"Alias '{alias}' does not exist.")
        self.alias = alias


class AliasIsDisabled(TransactionRejected):
    """Several accounts have created this alias, so it is disabled."""

    def __init__(self, alias: str) -> None:
        super().__init__(f"AliasIsDisabled({alias})")
        self.alias = alias


class InvalidSignature(TransactionRejected):
    """A proof is not a valid signature of the sender."""


class BalanceErrors(TransactionRejected):
    """Balances would be too low: ``details`` has a message for each address."""

    def __init__(self, details: dict[str, str]) -> None:
        super().__init__("Accounts balance errors")
        self.details = details


class BlockRejected(LedgerError):
    """A block cannot be applied at ``height``."""

    def __init__(self, height: int, reason: str) -> None:
        super().__init__(f"block at height {height}: {reason}")
        self.height = height
        self.reason = reason


class BlockFromFuture(BlockRejected):
    """The time of a block is in the future; it may be valid later."""


class UnknownFeatures(BlockRejected):
    """Features are active that this version does not implement; a newer one may take the block."""


class WrongStateHash(BlockRejected):
    """The state hash in a header is not the computed one."""


class SnapshotRejected(BlockRejected):
    """Snapshots do not belong to a block; it may be valid with others."""


class TransactionInBlockRejected(BlockRejected):
    """A block contains a transaction that cannot be applied."""

    def __init__(self, height: int, transaction: AnyTransaction, cause: Exception) -> None:
        super().__init__(height, f"transaction {transaction.id.hex()}: {cause}")
        self.transaction = transaction
        self.cause = cause
