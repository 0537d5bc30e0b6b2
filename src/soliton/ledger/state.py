"""The state of a chain after a block, and overlays that collect changes to it.

State is a set of tables (balances, leases, data …). ``State`` reads them. An ``Overlay`` collects
writes on top of another state; it can be nested, merged into the one below, or dropped. The pool,
block building, dry runs and failed transactions all use this mechanism.

What lives here: the tables, the protocol, the overlay. What does not: storing tables
(``soliton.storage``), state hashes (``hashes``).

Source of the entities: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/StateSnapshot.scala``.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.values import AssetId, DataValue

K = TypeVar("K")
V = TypeVar("V")


class Table(Generic[K, V]):
    """A kind of state entry: its name, and the default value of keys without an entry."""

    __slots__ = ("default", "name")

    def __init__(self, name: str, default: V) -> None:
        self.name = name
        self.default = default

    def __repr__(self) -> str:
        return f"Table({self.name})"


class LeaseBalance(NamedTuple):
    """Wavelets leased to an account (``lease_in``) and by it (``lease_out``)."""

    lease_in: int
    lease_out: int


class AssetInfo(msgspec.Struct, frozen=True, gc=False):
    """The constant properties of an asset.

    ``origin`` is the transaction that issued it, ``height`` the block, and ``sequence`` its number
    among the assets of that block, counted from 1.
    """

    issuer: bytes
    decimals: int
    nft: bool
    origin: bytes
    height: int
    sequence: int


class AssetVolume(NamedTuple):
    """The quantity of an asset (in early history beyond i64), and whether it can be increased."""

    reissuable: bool
    quantity: int


class AssetName(NamedTuple):
    """The name of an asset, in bytes (early ones may not be valid text), and its first height."""

    name: bytes
    description: bytes
    height: int


class AssetScript(NamedTuple):
    """The script of a smart asset and its estimated complexity."""

    script: bytes
    complexity: int


class AccountScript(NamedTuple):
    """The script of an account, empty if it was removed.

    ``verifier_complexity`` is 0 without a verifier; ``callables`` maps function names to
    complexities for each estimator version.
    """

    public_key: bytes
    script: bytes
    verifier_complexity: int
    callables: dict[int, dict[str, int]]


class LeaseInfo(NamedTuple):
    """The constant properties of a lease: ``amount`` in wavelets, created by transaction
    ``origin``.
    """

    sender: bytes
    recipient: Address
    amount: int
    origin: bytes
    height: int


class LeaseState(NamedTuple):
    """Whether a lease is active; if not, the height and the transaction (if any) that ended it."""

    active: bool
    height: int
    transaction_id: bytes


class Commitment(NamedTuple):
    """A generator's commitment to a period: its public key, its key for endorsements, and the
    transaction.
    """

    public_key: bytes
    endorser_key: bytes
    transaction_id: bytes


class OrderFill(NamedTuple):
    """The executed amount of an order, and the matcher fee that was paid."""

    volume: int
    fee: int


class Status(IntEnum):
    """The status of a transaction of a block."""

    SUCCEEDED = 0
    FAILED = 1
    ELIDED = 2


class Missing:
    """The value of a data key that was never written, in contrast to a deleted one."""

    __slots__ = ()


MISSING: Final = Missing()
NO_LEASES: Final = LeaseBalance(0, 0)
NO_FILL: Final = OrderFill(0, 0)

WAVES: Final[Table[Address, int]] = Table("waves", 0)
ASSET_BALANCES: Final[Table[tuple[Address, AssetId], int]] = Table("asset_balances", 0)
LEASES: Final[Table[Address, LeaseBalance]] = Table("leases", NO_LEASES)
DATA: Final[Table[tuple[Address, str], DataValue | Missing]] = Table("data", MISSING)
ASSETS: Final[Table[AssetId, AssetInfo | None]] = Table("assets", None)
SPONSORSHIPS: Final[Table[AssetId, int]] = Table("sponsorships", 0)
ALIASES: Final[Table[str, Address | None]] = Table("aliases", None)
ASSET_VOLUMES: Final[Table[AssetId, AssetVolume | None]] = Table("asset_volumes", None)
ASSET_NAMES: Final[Table[AssetId, AssetName | None]] = Table("asset_names", None)
ASSET_SCRIPTS: Final[Table[AssetId, AssetScript | None]] = Table("asset_scripts", None)
ERC20: Final[Table[bytes, AssetId | None]] = Table("erc20", None)
ACCOUNT_SCRIPTS: Final[Table[Address, AccountScript | None]] = Table("account_scripts", None)
LEASE_INFO: Final[Table[bytes, LeaseInfo | None]] = Table("lease_info", None)
LEASE_STATES: Final[Table[bytes, LeaseState | None]] = Table("lease_states", None)
ORDER_FILLS: Final[Table[bytes, OrderFill]] = Table("order_fills", NO_FILL)
COMMITMENTS: Final[Table[tuple[int, int], Commitment | None]] = Table("commitments", None)
"""By the first height of a period and the generator's index, the order of the chain."""
GENERATORS: Final[Table[tuple[int, bytes], int]] = Table("generators", 0)
"""By the first height of a period and an address or a key for endorsements: the generator's index,
counted from 1. Under an empty name their number.
"""
CONFLICTS: Final[Table[tuple[int, int], int]] = Table("conflicts", 0)
"""By the first height of a period and a generator's index: the height of the block that shows its
conflicting endorsement.
"""
DEPOSITS: Final[Table[Address, int]] = Table("deposits", 0)
"""Wavelets locked by commitments to the present and the next period."""
APPROVALS: Final[Table[int, int | None]] = Table("approvals", None)
BANS: Final[Table[Address, tuple[int, ...]]] = Table("bans", ())

Changes = dict[Table[Any, Any], dict[Any, Any]]
"""Values written, by table and key."""


class State(Protocol):
    """Read access to a state."""

    def get(self, table: Table[K, V], key: K) -> V:
        """Return the value of a key, or the table's default."""

    def transaction_height(self, transaction_id: bytes) -> int | None:
        """Return the height of the block that contains the transaction, or ``None``."""


class Overlay:
    """A state with writes on top of another state."""

    __slots__ = ("_below", "_height", "changes", "transaction_ids")

    def __init__(self, below: State, height: int = 0) -> None:
        """``height`` is that of the block being applied, for recorded transactions."""
        self._below = below
        self._height = height
        self.changes: Changes = {}
        self.transaction_ids: dict[bytes, int] = {}

    def get(self, table: Table[K, V], key: K) -> V:
        written = self.changes.get(table)
        if written is not None and key in written:
            value: V = written[key]
            return value
        return self._below.get(table, key)

    def put(self, table: Table[K, V], key: K, value: V) -> None:
        """Write a value."""
        written = self.changes.get(table)
        if written is None:
            self.changes[table] = {key: value}
        else:
            written[key] = value

    def count_written(self, table: Table[Any, Any]) -> int:
        """Return how many keys of a table this overlay and those below it have written."""
        below = self._below.count_written(table) if isinstance(self._below, Overlay) else 0
        return len(self.changes.get(table, ())) + below

    def written(self, table: Table[K, V]) -> Iterator[K]:
        """Yield the keys of a table that this overlay and those below it have written."""
        yield from self.changes.get(table, ())
        if isinstance(self._below, Overlay):
            yield from self._below.written(table)

    def layers(self) -> Iterator[Overlay]:
        """Yield this overlay and those below it."""
        yield self
        if isinstance(self._below, Overlay):
            yield from self._below.layers()

    def transaction_height(self, transaction_id: bytes) -> int | None:
        height = self.transaction_ids.get(transaction_id)
        return self._below.transaction_height(transaction_id) if height is None else height

    def record_transaction(self, transaction_id: bytes) -> None:
        """Record that the block being applied contains this transaction."""
        self.transaction_ids[transaction_id] = self._height

    def moved_above(self, below: State) -> Overlay:
        """Return the same writes on top of another state. They are shared: do not write to either
        overlay afterwards.
        """
        moved = Overlay(below, self._height)
        moved.changes, moved.transaction_ids = self.changes, self.transaction_ids
        return moved

    def merge(self, above: Overlay) -> None:
        """Add the writes of an overlay above this one."""
        changes = self.changes
        for table, written in above.changes.items():
            mine = changes.get(table)
            if mine is None:
                changes[table] = dict(written)
            else:
                mine.update(written)
        self.transaction_ids.update(above.transaction_ids)


def touched_accounts(changes: Changes) -> tuple[Address, ...]:
    """Return the accounts whose balances, leases or data are among the changes."""
    touched: dict[Address, None] = dict.fromkeys(changes.get(WAVES, ()))
    if len(changes) > 1:
        touched.update(dict.fromkeys(changes.get(LEASES, ())))
        for table in (ASSET_BALANCES, DATA):
            touched.update((address, None) for address, _ in changes.get(table, ()))
    return tuple(touched)


def effective_balance(balance: int, leases: LeaseBalance, deposit: int) -> int:
    """Return the effective balance: own plus leased-in minus leased-out wavelets, minus the deposit
    of commitments.
    """
    return balance + leases.lease_in - leases.lease_out - deposit


def effective_balance_of(state: State, address: Address) -> int:
    """Return the effective balance of an account."""
    return effective_balance(
        state.get(WAVES, address), state.get(LEASES, address), state.get(DEPOSITS, address)
    )


def locked_balance(state: State, address: Address) -> int:
    """Return the wavelets of an account that it cannot spend: leased out, or a deposit."""
    return state.get(LEASES, address).lease_out + state.get(DEPOSITS, address)


def is_banned_between(state: State, address: Address, bottom: int, top: int) -> bool:
    """Whether a block at one of these heights, both included, challenged one of the account's."""
    return any(bottom <= height <= top for height in state.get(BANS, address))


def effective_balance_at(state: State, address: Address, height: int) -> int:
    """Return the effective balance of an account at the height of a state: 0 if the block there
    challenged one of the account's.

    Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/Blockchain.scala``
    (``hasBannedEffectiveBalance``).
    """
    if is_banned_between(state, address, height, height):
        return 0
    return effective_balance_of(state, address)
