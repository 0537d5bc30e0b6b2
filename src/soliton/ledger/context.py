"""The context that a transaction is applied in, and the interface of a rules module.

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
    """Is notified of reads by scripts that do not show in reads of the state."""

    def of_balance(self, table: Table[Any, Any], key: object) -> None:
        """The exact amount of a balance was read; rules only compare it."""

    def of_blocks(self) -> None:
        """The height or a block was read."""

    def of_chain(self) -> None:
        """Other data of the chain, outside of its state, was read."""


class Context(msgspec.Struct, frozen=True):
    """The block that transactions are applied in, and options.

    Scripts see the earlier transactions of the block in ``applied``. Signatures that were not
    verified are added to ``unverified``; for a ``draft`` neither signature nor verifier is checked.
    ``watch`` is called while scripts run or are estimated; it may raise, for example
    ``ride.errors.Interrupted``.

    With a ``limit`` of complexity, scripts that a transaction may fail by are run only up to that
    limit, and count as successful beyond it; the pool uses this. Results of scripts are added to
    ``traces``, an ``observer`` is notified of each step, and a ``witness`` of reads.
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
        """Return the context with the limit reduced by the complexity spent."""
        if self.limit is None:
            return self
        return msgspec.structs.replace(self, limit=self.limit - complexity)


def always(_rules: Rules) -> bool:
    """Default: the id must be unique at every height."""
    return True


def no_fee_assets(_transaction: AnyTransaction) -> tuple[AssetId, ...]:
    """Default: no additional fees in assets whose scripts are run."""
    return ()


def no_assets(_transaction: AnyTransaction, _state: State) -> tuple[AssetId, ...]:
    """Default: no assets whose scripts are run."""
    return ()


def no_other_signers(_transaction: AnyTransaction) -> tuple[bytes, ...]:
    """Default: only the sender signs."""
    return ()


def no_end(_transaction: AnyTransaction) -> None:
    """Default: only the timestamp limits the validity."""
    return


def unknown_purpose(_transaction: AnyTransaction, _asset_id: AssetId) -> str:
    """Default: the purpose of the assets is unknown."""
    return UNKNOWN


def constant_purpose(purpose: str) -> Callable[[AnyTransaction, AssetId], str]:
    """All assets have the same purpose."""
    return lambda _transaction, _asset_id: purpose


def no_named_accounts(_transaction: AnyTransaction, _state: State) -> tuple[Recipient, ...]:
    """Default: all accounts are in the transaction's own fields."""
    return ()


class PoolRules(msgspec.Struct, frozen=True):
    """How the pool treats transactions of a type.

    ``signers`` are the public keys of other signers than the sender; ``ends`` is the time (ms) at
    which the transaction expires, if not by its timestamp. With ``only_adds`` its validity does not
    depend on balances of other accounts. ``runs_scripts`` is whether it counts as running scripts
    (``None``: if the sender has one); ``sets_script`` whether a script is estimated.
    """

    signers: Callable[[AnyTransaction], tuple[bytes, ...]] = no_other_signers
    ends: Callable[[AnyTransaction], int | None] = no_end
    only_adds: bool = False
    runs_scripts: bool | None = None
    sets_script: bool = False


class TypeRules(msgspec.Struct, frozen=True):
    """The rules of one transaction type, which its module in ``ledger.rules`` exports as ``RULES``.

    ``activation`` raises unless active features allow the transaction. ``minimum_fee`` is in
    wavelets, without extra fees for scripts. ``sending`` is the early check of the sender's
    balances, if the type has one. ``apply`` adds balance changes to the portfolio and everything
    else to the overlay, and returns the complexity of scripts that it runs; a call of a dApp takes
    its fee itself.

    ``unique`` is whether an id may occur only once on the chain. The scripts of ``assets`` are run;
    each scripted one costs the extra fee, or each of ``charged_assets`` where these differ. The
    scripts of ``fee_assets`` are run as well, but neither count nor cost anything. ``funds`` checks
    more than the payment of the fee; without ``checks_funds`` there is no such check. ``proofs``
    checks other signatures than that of the transaction, and returns the complexity of verifiers;
    ``signed`` lists these signatures for batch verification, or ``None`` if they need other proofs.
    ``proven`` is false if the sender follows from the signature, so that neither proofs nor a
    verifier are checked. ``may_fail`` allows failure at the cost of the fee. ``sponsored`` is false
    if a fee in an asset is not exchanged with the sponsor.

    ``purpose`` describes an asset's role for traces; ``names`` returns accounts that follow only
    from the state; ``pool`` has the rules of the pool.
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
    names: Callable[[AnyTransaction, State], tuple[Recipient, ...]] = no_named_accounts
    pool: PoolRules = PoolRules()
