"""What a rule may know besides the transaction and the state, and what a rules module hands over.

Source of the split: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/TransactionDiffer.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from soliton.chain.addresses import Recipient
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto.curve25519 import SignedMessage
from soliton.ledger.environment import BlockEnvironment, PastTransaction
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import Overlay, State, Table
from soliton.ledger.state_changes import Invoked
from soliton.ledger.traces import UNKNOWN, Traces
from soliton.ride.observation import Observer


class Witness(Protocol):
    """Is told what scripts ask for that whoever keeps an eye on the state does not see."""

    def of_balance(self, table: Table[Any, Any], key: object) -> None:
        """For the very amount of a balance: to rules it has to suffice."""

    def of_blocks(self) -> None:
        """For the height or for a block."""

    def of_chain(self) -> None:
        """For something else that the chain holds, but its state."""


class Context(msgspec.Struct, frozen=True):
    """How transactions are applied: in which block, and what is wanted besides.

    Scripts see the transactions in ``applied``, which came before in the block. Signatures that
    were not verified are left in ``unverified``; of a ``draft`` neither signature nor verifier are
    asked for. ``watch`` is called while scripts run or are estimated and may raise, for one
    ``ride.errors.Interrupted``.

    With a ``limit`` of complexity only so much of what a transaction may fail by is run, and what
    would come after it counts as done well: this is how the pool looks at transactions. What
    scripts do is added to ``traces`` where these are wanted, an ``observer`` is told each step, and
    a ``witness`` is told what they ask for.
    """

    block: BlockEnvironment
    applied: Mapping[bytes, PastTransaction] = {}
    unverified: list[SignedMessage] = []
    draft: bool = False
    watch: Callable[[], None] | None = None
    limit: int | None = None
    traces: Traces | None = None
    witness: Witness | None = None
    observer: Observer | None = None

    @property
    def rules(self) -> Rules:
        """The rules of the block."""
        return self.block.rules

    @property
    def height(self) -> int:
        """The height of the block."""
        return self.block.height

    @property
    def timestamp(self) -> int:
        """The time of the block (ms)."""
        return self.block.timestamp

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


def nobody_else(_transaction: AnyTransaction) -> tuple[bytes, ...]:
    """For a type that only its sender signs."""
    return ()


def no_end(_transaction: AnyTransaction) -> None:
    """For a type that holds as long as its timestamp does."""
    return


def unknown_purpose(_transaction: AnyTransaction, _asset_id: AssetId) -> str:
    """For a type of which nobody has said what its assets are there for."""
    return UNKNOWN


def as_purpose(words: str) -> Callable[[AnyTransaction, AssetId], str]:
    """For a type whose assets are all there for the same."""
    return lambda _transaction, _asset_id: words


def names_nobody(_transaction: AnyTransaction, _state: State) -> tuple[Recipient, ...]:
    """For a type that names accounts in its own fields alone."""
    return ()


class PoolRules(msgspec.Struct, frozen=True):
    """How the pool treats transactions of a type while they wait.

    ``signers`` are the keys of those who sign besides the sender, ``ends`` is the time (ms) until
    which it is valid, if anything but its timestamp says so. With ``only_adds`` the balances of
    others do not decide about it. ``runs_scripts`` tells whether it counts as one that does
    (``None``: where the sender has a script); ``sets_script`` that a script is estimated.
    """

    signers: Callable[[AnyTransaction], tuple[bytes, ...]] = nobody_else
    ends: Callable[[AnyTransaction], int | None] = no_end
    only_adds: bool = False
    runs_scripts: bool | None = None
    sets_script: bool = False


class TypeRules(msgspec.Struct, frozen=True):
    """The rules of one transaction type: what its module in ``ledger.rules`` exports as ``RULES``.

    ``activation`` raises when nothing that is active allows the transaction; ``minimum_fee`` is in
    wavelets, extra fees for scripts aside; ``sending`` is the early check that the sender has what
    is sent, ``None`` where there is none; ``apply`` puts balance changes into the portfolio and
    everything else into the overlay, and gives the complexity of scripts if it runs any; a
    call of a dApp takes its fee itself.

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

    ``purpose`` tells traces what an asset has to do with the transaction; ``names`` finds accounts
    that only the state knows; ``pool`` is for those that wait.
    """

    activation: Callable[[AnyTransaction, Context], None]
    minimum_fee: Callable[[AnyTransaction, Rules], int]
    sending: Callable[[AnyTransaction, State, Context], None] | None
    apply: Callable[[AnyTransaction, Overlay, Portfolio, Context], Invoked | int | None]
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
    purpose: Callable[[AnyTransaction, AssetId], str] = unknown_purpose
    names: Callable[[AnyTransaction, State], tuple[Recipient, ...]] = names_nobody
    pool: PoolRules = PoolRules()
