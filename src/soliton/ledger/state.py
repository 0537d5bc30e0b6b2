"""The state: what a chain knows about its accounts after a block, and how changes to it are
collected.

State is a set of tables (balances, leases, data …). ``State`` reads them; an ``Overlay`` collects
writes above another state and can be nested, merged into the one below or dropped. Checking the
pool, building a block, dry runs and failed transactions are all the same mechanism.

What lives here: the tables, the protocol, the overlay. What does not: how tables are stored
(``soliton.storage``) and what changes mean for state hashes (``hashes``).

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
    """A kind of state entry: its name and the value that keys without an entry have."""

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
    """What never changes about an asset: the issuer's public key and how it came to be.

    ``origin`` is the transaction that issued it, ``height`` and ``sequence`` its place: the block,
    and which asset of the block it was, counted from 1.
    """

    issuer: bytes
    decimals: int
    nft: bool
    origin: bytes
    height: int
    sequence: int


class AssetVolume(NamedTuple):
    """How much of an asset there is (early history overflowed i64), and if there can be more."""

    reissuable: bool
    quantity: int


class AssetName(NamedTuple):
    """What an asset is called, in bytes (early names may be no text), and since which height."""

    name: bytes
    description: bytes
    height: int


class AssetScript(NamedTuple):
    """The script of a smart asset and its estimated complexity."""

    script: bytes
    complexity: int


class AccountScript(NamedTuple):
    """The script of an account; empty when it was removed.

    ``verifier_complexity`` is 0 without verifier; ``callables`` maps function names to complexities
    for each estimator version.
    """

    public_key: bytes
    script: bytes
    verifier_complexity: int
    callables: dict[int, dict[str, int]]


class LeaseInfo(NamedTuple):
    """What never changes about a lease; ``amount`` in wavelets, made by transaction ``origin``."""

    sender: bytes
    recipient: Address
    amount: int
    origin: bytes
    height: int


class LeaseState(NamedTuple):
    """Whether a lease is active; if not, since which height, and by which transaction if by one."""

    active: bool
    height: int
    transaction_id: bytes


class OrderFill(NamedTuple):
    """How much of an order was executed and how much of its matcher fee was paid."""

    volume: int
    fee: int


class Status(IntEnum):
    """How a transaction of a block was applied."""

    SUCCEEDED = 0
    FAILED = 1
    ELIDED = 2


class Missing:
    """The value of a data key that was never written, as opposed to one that was deleted."""

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
APPROVALS: Final[Table[int, int | None]] = Table("approvals", None)
BANS: Final[Table[Address, tuple[int, ...]]] = Table("bans", ())

Changes = dict[Table[Any, Any], dict[Any, Any]]
"""Values written, by table and key."""


class State(Protocol):
    """Read access to the state after some block (or above it)."""

    def get(self, table: Table[K, V], key: K) -> V:
        """The value of a key, the table's default where it has none."""

    def transaction_height(self, transaction_id: bytes) -> int | None:
        """The height of the block that holds the transaction, ``None`` where there is none."""


class Overlay:
    """Writes above another state, readable at once, not yet part of it."""

    __slots__ = ("_below", "_height", "changes", "transaction_ids")

    def __init__(self, below: State, height: int = 0) -> None:
        """``height`` is that of the block which is being applied, for the transactions recorded
        here.
        """
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
        """How many keys of a table this overlay and those below it have written."""
        below = self._below.count_written(table) if isinstance(self._below, Overlay) else 0
        return len(self.changes.get(table, ())) + below

    def written(self, table: Table[K, V]) -> Iterator[K]:
        """The keys of a table that this overlay and those below it have written."""
        yield from self.changes.get(table, ())
        if isinstance(self._below, Overlay):
            yield from self._below.written(table)

    def transaction_height(self, transaction_id: bytes) -> int | None:
        height = self.transaction_ids.get(transaction_id)
        return self._below.transaction_height(transaction_id) if height is None else height

    def record_transaction(self, transaction_id: bytes) -> None:
        """Remember that the block which is being applied holds this transaction."""
        self.transaction_ids[transaction_id] = self._height

    def moved_above(self, below: State) -> Overlay:
        """The same writes above another state. Both share them: write to neither from then on."""
        moved = Overlay(below, self._height)
        moved.changes, moved.transaction_ids = self.changes, self.transaction_ids
        return moved

    def merge(self, above: Overlay) -> None:
        """Take over everything that an overlay above this one has written."""
        changes = self.changes
        for table, written in above.changes.items():
            mine = changes.get(table)
            if mine is None:
                changes[table] = dict(written)
            else:
                mine.update(written)
        self.transaction_ids.update(above.transaction_ids)


def touched_accounts(changes: Changes) -> tuple[Address, ...]:
    """The accounts whose balances, leases or data are among the changes, each once."""
    touched: dict[Address, None] = dict.fromkeys(changes.get(WAVES, ()))
    if len(changes) > 1:
        touched.update(dict.fromkeys(changes.get(LEASES, ())))
        for table in (ASSET_BALANCES, DATA):
            touched.update((address, None) for address, _ in changes.get(table, ()))
    return tuple(touched)


def effective_balance(balance: int, leases: LeaseBalance) -> int:
    """What counts for mining: own and leased-in wavelets without the leased-out ones."""
    return balance + leases.lease_in - leases.lease_out
