"""What scripts may ask of the chain, and what the functions of the library get to see of a run.

What lives here: the protocol ``Environment`` with its records, the ``Switches`` that depend on the
height, and the ``CallContext`` that every library function is handed. What does not: the answers,
which the ledger gives.

Sources: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/traits/Environment.scala`` and
``node/src/main/scala/com/wavesplatform/transaction/smart/script/ScriptRunner.scala``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import DataValue
from soliton.ride.errors import EvaluationError
from soliton.ride.values import Value

MAX_FREE_CALLS: Final = 200_000
"""In the older way of counting a call of a script's own function costs nothing, so that functions
that call one another twice would run for ages. The reference has no such limit: its estimators
refuse these scripts. All that they let pass stays far below.
"""


class Switches(msgspec.Struct, frozen=True):
    """Rules of the language that came with features and heights, by what they switch on.

    The defaults are those of today.
    """

    new_complexity: bool = True
    """Feature 17: only functions cost complexity, and named library functions a fixed amount."""
    lexical_scope: bool = True
    """``estimator_sum_overflow_fix_height``: the body of a function sees the names of the place
    where it was declared, before: of the place where it is called.
    """
    fixed_thrown_error: bool = True
    """Feature 22: ``ThrownError`` costs what was spent, as every other error."""
    code_points: bool = True
    """Feature 16: versions 1 to 4 of the language measure text in characters, before in UTF-16."""
    new_pow_precision: bool = True
    """Feature 16 and ``enforce_transfer_validation_after``: the later rounding of ``pow``."""
    whole_script_field: bool = True
    """Feature 18: the field ``script`` of a transaction shows scripts of more than 32767 bytes."""
    correct_object_version: bool = True
    """Feature 16: the verifier of a dApp sees objects of its own version, before: of version 3."""
    vrf: bool = True
    """Feature 15: blocks have a ``vrf``."""
    light_node: bool = True
    """Feature 22: generating balances and other answers as of that feature."""


CURRENT_SWITCHES = Switches()


class BalanceDetails(msgspec.Struct, frozen=True, gc=False):
    """The balances of an account in the chain's own coin."""

    available: int
    regular: int
    generating: int
    effective: int


class AssetInfo(msgspec.Struct, frozen=True, gc=False):
    """What scripts see of an asset; ``min_sponsored_fee`` is ``None`` for one that is not
    sponsored.
    """

    id: bytes
    name: str
    description: str
    quantity: int
    decimals: int
    issuer: bytes
    issuer_public_key: bytes
    reissuable: bool
    scripted: bool
    min_sponsored_fee: int | None


class BlockInfo(msgspec.Struct, frozen=True, gc=False):
    """What scripts see of a block; ``rewards`` are addresses and amounts."""

    timestamp: int
    height: int
    base_target: int
    generation_signature: bytes
    generator: bytes
    generator_public_key: bytes
    vrf: bytes | None = None
    rewards: tuple[tuple[bytes, int], ...] = ()


class Payment(msgspec.Struct, frozen=True, gc=False):
    """An amount that goes along with a call; ``asset_id`` is ``None`` for the chain's coin."""

    asset_id: bytes | None
    amount: int


class Environment(Protocol):
    """The chain as a running script sees it, with the changes that this transaction has made.

    Addresses are 26 bytes, ids are bytes. ``None`` says that there is no such thing.
    """

    @property
    def chain_id(self) -> int:
        """The byte of the network in addresses."""

    @property
    def height(self) -> int:
        """The value of ``height``."""

    @property
    def transaction_id(self) -> bytes:
        """The id of the transaction under way; empty for an order."""

    def this(self) -> bytes | AssetInfo:
        """The address of the account or dApp, or the asset, that the script belongs to."""

    def last_block(self) -> BlockInfo:
        """The value of ``lastBlock``."""

    def block_info(self, height: int, /) -> BlockInfo | None:
        """The block at a height."""

    def transaction(self, transaction_id: bytes, /) -> AnyTransaction | None:
        """A transaction that succeeded."""

    def transaction_height(self, transaction_id: bytes, /) -> int | None:
        """Where a transaction that succeeded is."""

    def asset_info(self, asset_id: bytes, /) -> AssetInfo | None:
        """An asset as it is now."""

    def token_asset(self, token: bytes, /) -> bytes | None:
        """The asset whose id begins with the 20 bytes by which Ethereum wallets know it."""

    def resolve_alias(self, alias: str, /) -> bytes | None:
        """The address that an alias leads to."""

    def data(self, address: bytes, key: str, /) -> DataValue:
        """The value under a key in an account's data storage."""

    def has_data(self, address: bytes, /) -> bool:
        """Whether an account ever had an entry in its data storage."""

    def balance(self, address: bytes, asset_id: bytes | None, /) -> int:
        """The balance of an account in an asset or in the chain's coin."""

    def balance_details(self, address: bytes, /) -> BalanceDetails:
        """The balances of an account in the chain's coin."""

    def script(self, address: bytes, /) -> bytes | None:
        """The script of an account."""

    def calculate_delay(self, generator: bytes, balance: int, /) -> int:
        """How long a generator with a balance would have to wait after the last block."""

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
        """Call another dApp: what it returned, and the complexity left over.

        Raises ``InvocationFailed`` or ``FailOrReject``, which carry the complexity left over.
        """


class CallContext:
    """One run of one script, as the functions of the library see it.

    ``remaining`` is the complexity left. The evaluator has taken the cost of the function from it
    already; only a function that runs other scripts changes it. ``variables`` holds the values of
    names that depend on the run, as far as they are known. ``journal`` has the answers of the chain
    where a run may have to be repeated after it called other scripts. ``subject`` makes what the
    name ``tx`` stands for. ``calls`` counts calls of the script's own functions where they are free
    (see ``MAX_FREE_CALLS``). ``watch`` may stop the run, see ``evaluator.Setting``.
    """

    __slots__ = (
        "asset_script",
        "calls",
        "environment",
        "journal",
        "remaining",
        "subject",
        "switches",
        "variables",
        "version",
        "watch",
    )

    def __init__(
        self,
        environment: Environment,
        version: int,
        switches: Switches = CURRENT_SWITCHES,
        remaining: int = 0,
        asset_script: bool = False,
        subject: Callable[[], Value] | None = None,
        watch: Callable[[], None] | None = None,
    ) -> None:
        self.subject = subject
        self.watch = watch
        self.calls = 0
        self.variables: dict[str, Value] = {}
        self.journal: list[tuple[Value | EvaluationError, int]] = []
        self.environment = environment
        self.version = version
        self.switches = switches
        self.remaining = remaining
        self.asset_script = asset_script
