"""Why the ledger refuses a transaction or a block.

What lives here: typed refusals with their values, in the words of the reference node where clients
read them. What does not: the numeric codes of the REST interface, which the shell assigns by type.

Source of the words: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/TxValidationError.scala`` and ``state/diffs``.
"""

from __future__ import annotations

from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import InputError


class LedgerError(InputError):
    """A transaction or a block that cannot follow the state."""


class TransactionRejected(LedgerError):
    """A rule on state that a transaction breaks (the general kind)."""


class Mistiming(TransactionRejected):
    """A timestamp too far from that of the block."""


class ActivationError(TransactionRejected):
    """Something that no activated feature allows."""


class AlreadyInState(TransactionRejected):
    """A transaction whose id the chain holds already."""

    def __init__(self, transaction_id: str, height: int) -> None:
        super().__init__(
            f"Transaction {transaction_id} is already in the state on a height of {height}"
        )
        self.transaction_id = transaction_id
        self.height = height


class AliasDoesNotExist(TransactionRejected):
    """An alias that leads to no account."""

    def __init__(self, alias: str) -> None:
        super().__init__(f"Alias '{alias}' does not exists.")
        self.alias = alias


class AliasIsDisabled(TransactionRejected):
    """An alias that more than one account created, and that therefore leads nowhere any more."""

    def __init__(self, alias: str) -> None:
        super().__init__(f"AliasIsDisabled({alias})")
        self.alias = alias


class InvalidSignature(TransactionRejected):
    """A proof that is no signature of the sender."""


class BalanceErrors(TransactionRejected):
    """Accounts that would have less than nothing: ``details`` has a text for each address."""

    def __init__(self, details: dict[str, str]) -> None:
        super().__init__("Accounts balance errors")
        self.details = details


class BlockRejected(LedgerError):
    """A block that cannot be applied; ``height`` is where it would stand."""

    def __init__(self, height: int, reason: str) -> None:
        super().__init__(f"block at height {height}: {reason}")
        self.height = height
        self.reason = reason


class BlockFromFuture(BlockRejected):
    """A block whose time has not come: it may be good then."""


class WrongStateHash(BlockRejected):
    """A header whose state hash is not the one that its transactions lead to."""


class SnapshotRejected(BlockRejected):
    """Snapshots that cannot be those of a block: it may be good with others."""


class TransactionInBlockRejected(BlockRejected):
    """A block with a transaction that cannot be applied."""

    def __init__(self, height: int, transaction: AnyTransaction, cause: Exception) -> None:
        super().__init__(height, f"transaction {transaction.id.hex()}: {cause}")
        self.transaction = transaction
        self.cause = cause
