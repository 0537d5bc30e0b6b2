"""The interface between scripts and the chain, and the context of a run.

What lives here: the protocol ``Environment`` with its records, the ``Switches`` that depend on the
height, and the ``CallContext`` that library functions receive. What does not: the implementation
(the ledger).

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
"""By the older complexity rules, a call of a script's own function is free, so functions that call
one another twice would run for ages. The reference has no such limit: its estimators reject these
scripts. Scripts that they accept stay far below the limit.
"""
PORTION: Final = 100
"""``watch`` is called after so many units of complexity, which take milliseconds at the most
(``benchmarks/ride_dearest.py``).
"""
WATCHED_COST: Final = 50
"""``watch`` is called before functions of this complexity, too."""


class Switches(msgspec.Struct, frozen=True):
    """Rules of the language that depend on features and heights. The defaults are today's."""

    new_complexity: bool = True
    """Feature 17: only functions cost complexity, and named library functions a fixed amount."""
    lexical_scope: bool = True
    """``estimator_sum_overflow_fix_height``: the body of a function sees the names in scope at its
    declaration; before, those at its call.
    """
    fixed_thrown_error: bool = True
    """Feature 22: ``ThrownError`` costs the complexity spent, as other errors do."""
    code_points: bool = True
    """Feature 16: versions 1 to 4 of the language measure strings in code points; before, in UTF-16
    units.
    """
    new_pow_precision: bool = True
    """Feature 16 and ``enforce_transfer_validation_after``: the later rounding of ``pow``."""
    whole_script_field: bool = True
    """Feature 18: the field ``script`` of a transaction has scripts of more than 32767 bytes."""
    correct_object_version: bool = True
    """Feature 16: the verifier of a dApp sees objects of its own version; before, of version 3."""
    vrf: bool = True
    """Feature 15: blocks have a ``vrf``."""
    ecrecover_fix: bool = True
    """Feature 24: ``ecrecover`` keeps the leading zeros of a key."""
    light_node: bool = True
    """Feature 22: generating balances and other results follow the rules of that feature."""


CURRENT_SWITCHES = Switches()


class BalanceDetails(msgspec.Struct, frozen=True, gc=False):
    """The balances of an account in the native token."""

    available: int
    regular: int
    generating: int
    effective: int


class AssetInfo(msgspec.Struct, frozen=True, gc=False):
    """An asset. ``min_sponsored_fee`` is ``None`` if it is not sponsored."""

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
    """A block. ``rewards`` has addresses and amounts."""

    timestamp: int
    height: int
    base_target: int
    generation_signature: bytes
    generator: bytes
    generator_public_key: bytes
    vrf: bytes | None = None
    rewards: tuple[tuple[bytes, int], ...] = ()


class Payment(msgspec.Struct, frozen=True, gc=False):
    """A payment attached to a call; ``asset_id`` is ``None`` for the native token."""

    asset_id: bytes | None
    amount: int


class Environment(Protocol):
    """The state of the chain, including the changes that this transaction has made.

    Addresses are 26 bytes. Methods return ``None`` if the requested object does not exist.
    """

    @property
    def chain_id(self) -> int:
        """The network's byte in addresses."""

    @property
    def height(self) -> int:
        """The value of ``height``."""

    @property
    def transaction_id(self) -> bytes:
        """The id of the current transaction; empty for an order."""

    def this(self) -> bytes | AssetInfo:
        """Return the value of ``this``: the account's address, or the asset of an asset script."""

    def last_block(self) -> BlockInfo:
        """Return the value of ``lastBlock``."""

    def block_info(self, height: int, /) -> BlockInfo | None:
        """Return the block at a height."""

    def transaction(self, transaction_id: bytes, /) -> AnyTransaction | None:
        """Return a transaction that succeeded."""

    def transaction_height(self, transaction_id: bytes, /) -> int | None:
        """Return the height of a transaction that succeeded."""

    def asset_info(self, asset_id: bytes, /) -> AssetInfo | None:
        """Return the current state of an asset."""

    def token_asset(self, token: bytes, /) -> bytes | None:
        """Return the asset whose id begins with these 20 bytes, its id in Ethereum wallets."""

    def resolve_alias(self, alias: str, /) -> bytes | None:
        """Return the address of an alias."""

    def data(self, address: bytes, key: str, /) -> DataValue:
        """Return the value of a key in an account's data storage."""

    def has_data(self, address: bytes, /) -> bool:
        """Whether an account ever had an entry in its data storage."""

    def balance(self, address: bytes, asset_id: bytes | None, /) -> int:
        """Return the balance of an account in an asset, or in the native token for ``None``."""

    def balance_details(self, address: bytes, /) -> BalanceDetails:
        """Return the balances of an account in the native token."""

    def script(self, address: bytes, /) -> bytes | None:
        """Return the script of an account."""

    def calculate_delay(self, generator: bytes, balance: int, /) -> int:
        """Return the delay, in ms, of a generator with this balance after the last block."""

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
        """Call another dApp; return its result and the remaining complexity.

        Raises ``InvocationFailed`` or ``FailOrReject`` with the remaining complexity.
        """


class CallContext:
    """The context of a run, for library functions.

    ``left`` is the remaining complexity, after the cost of the current function; only a function
    that runs other scripts changes it. It is counted in portions: ``remaining`` of the present one,
    with the ``reserve`` behind it. ``variables`` caches the values of variables that
    depend on the run. ``journal`` has the chain's responses, for a run that may be repeated after
    it has called other scripts. ``subject`` returns the value of ``tx``. ``calls`` counts the
    script's own calls where they are free (see ``MAX_FREE_CALLS``). ``missing`` has the arguments
    of the function that found nothing last, for the message of ``value``. ``watch`` is called
    between portions, and may cancel or leave the run (see ``evaluator.Setting``).
    """

    __slots__ = (
        "asset_script",
        "calls",
        "environment",
        "journal",
        "missing",
        "remaining",
        "reserve",
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
        self.missing: tuple[Value, ...] = ()
        self.variables: dict[str, Value] = {}
        self.journal: list[tuple[Value | EvaluationError, int]] = []
        self.environment = environment
        self.version = version
        self.switches = switches
        self.remaining = self.reserve = 0
        self.left = remaining
        self.asset_script = asset_script

    @property
    def left(self) -> int:
        """The remaining complexity."""
        return self.remaining + self.reserve

    @left.setter
    def left(self, value: int) -> None:
        portion = value if self.watch is None else min(value, PORTION)
        self.remaining, self.reserve = portion, value - portion
