"""What a rule may know besides the transaction and the state, and what a rules module hands over.

Source of the split: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/TransactionDiffer.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto.curve25519 import SignedMessage
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.scripts import NO_SCRIPTS, Scripts
from soliton.ledger.state import Overlay, State, Status, Table
from soliton.ledger.state_changes import StateChanges
from soliton.ledger.traces import Traces
from soliton.ride.environment import BlockInfo


class PastTransaction(msgspec.Struct, frozen=True, gc=False):
    """A transaction of the chain: where it is, and how it was applied."""

    transaction: AnyTransaction
    height: int
    status: Status


class ChainView(Protocol):
    """What scripts may ask about the blocks below the one under way."""

    def block(self, height: int, /) -> BlockInfo | None:
        """A block."""

    def transaction(self, transaction_id: bytes, /) -> PastTransaction | None:
        """A transaction."""

    def generating_balance(self, address: Address, height: int, /) -> int:
        """The smallest effective balance of an account in the blocks that count at a height, as
        far as they are below it; 0 while it is banned.
        """

    def has_data(self, address: Address, /) -> bool:
        """Whether an account ever had an entry in its data storage."""


class Witness(Protocol):
    """Is told what scripts ask for that whoever keeps an eye on the state does not see."""

    def of_balance(self, table: Table[Any, Any], key: object) -> None:
        """For the very amount of a balance: to rules it has to suffice."""

    def of_blocks(self) -> None:
        """For the height or for a block."""

    def of_chain(self) -> None:
        """For something else that the chain holds, but its state."""


class Context(msgspec.Struct, frozen=True):
    """The block in which a transaction is applied: its height, its time and its parent's (ms), its
    rules, and who runs scripts.

    Scripts see ``block`` as the last one, with the transactions in ``applied`` that came before in
    it, and below it ``chain``. Who runs them leaves in ``state_changes`` what a transaction's dApp
    did, by the transaction's id. Signatures that were not verified are left in ``unverified``.
    ``watch`` is called while scripts run or are estimated and may raise, for one
    ``ride.errors.Interrupted``.

    With a ``limit`` of complexity only so much of what a transaction may fail by is run, and what
    would come after it counts as done well: this is how the pool looks at transactions. What
    scripts do is added to ``traces`` where these are wanted, and a ``witness`` is told what they
    ask for.
    """

    height: int
    timestamp: int
    parent_timestamp: int | None
    rules: Rules
    scripts: Scripts = NO_SCRIPTS
    block: BlockInfo | None = None
    applied: Mapping[bytes, PastTransaction] = {}
    chain: ChainView | None = None
    state_changes: dict[bytes, StateChanges] = {}
    unverified: list[SignedMessage] = []
    watch: Callable[[], None] | None = None
    limit: int | None = None
    traces: Traces | None = None
    witness: Witness | None = None

    def left_after(self, complexity: int) -> Context:
        """The same where so much has been run."""
        if self.limit is None:
            return self
        return msgspec.structs.replace(self, limit=self.limit - complexity)


def always(_rules: Rules) -> bool:
    """For a switch that does not depend on the height."""
    return True


def no_fee_assets(_transaction: AnyTransaction) -> tuple[AssetId, ...]:
    """For a type with no further fees in assets whose scripts would have a say."""
    return ()


def no_assets(_transaction: AnyTransaction, _state: State) -> tuple[AssetId, ...]:
    """For a type that moves no assets whose scripts would have a say."""
    return ()


class TypeRules(msgspec.Struct, frozen=True):
    """The rules of one transaction type: what its module in ``ledger.rules`` exports as ``RULES``.

    ``activation`` raises when nothing that is active allows the transaction; ``minimum_fee`` is in
    wavelets, extra fees for scripts aside; ``sending`` is the early check that the sender has what
    is sent, ``None`` where there is none; ``apply`` puts balance changes into the portfolio and
    everything else into the overlay, and gives the complexity of scripts if it runs any.

    ``unique`` tells whether an id may occur only once on the chain. The scripts of ``assets`` have
    a say; the extra fee is due for each of them that has one, or of ``charged_assets`` where these
    differ. ``fee_assets`` have a say as well, whose complexity does not count and which cost
    nothing. ``funds`` checks more than that the fee can be paid, which ``checks_funds`` switches
    off altogether. ``proofs`` checks what is signed besides the transaction (and gives the
    complexity of verifiers); ``signed`` lists signatures among it for those who want to verify them
    before, ``None`` when there may be other proofs. ``proven`` is off where the signature tells who
    the sender is, so that neither proofs nor a verifier are asked. ``may_fail`` allows to fail at
    the cost of the fee. ``sponsored`` is off where an asset as fee is not exchanged with its
    sponsor.
    """

    activation: Callable[[AnyTransaction, Context], None]
    minimum_fee: Callable[[AnyTransaction, Rules], int]
    sending: Callable[[AnyTransaction, State, Context], None] | None
    apply: Callable[[AnyTransaction, Overlay, Portfolio, Context], int | None]
    unique: Callable[[Rules], bool] = always
    assets: Callable[[AnyTransaction, State], tuple[AssetId, ...]] = no_assets
    fee_assets: Callable[[AnyTransaction], tuple[AssetId, ...]] = no_fee_assets
    charged_assets: Callable[[AnyTransaction, State, Rules], tuple[AssetId, ...]] | None = None
    checks_funds: bool = True
    funds: Callable[[AnyTransaction, State, Context], None] | None = None
    proven: bool = True
    proofs: Callable[[AnyTransaction, State, Context, bool], int] | None = None
    signed: Callable[[AnyTransaction], tuple[SignedMessage, ...] | None] | None = None
    may_fail: bool = False
    sponsored: bool = True
