"""State changes with the values before and after, of one transaction or of several.

What lives here: ``Update``, made from changes of the state, merged, reversed, and as a message.
What does not: the state before (``past``), blocks (``block_updates``).

Source: wavesplatform/Waves ``grpc-server/src/main/scala/com/wavesplatform/events/events.scala``
(``StateUpdate``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.layouts import lenient_text
from soliton.chain.protobuf import write_data_entry
from soliton.chain.snapshots import volume_bytes
from soliton.chain.values import AssetId, DataEntry, DataValue, wrapped
from soliton.grpc_api.proto import events_pb2 as pb
from soliton.ledger.state import (
    ACCOUNT_SCRIPTS,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    DATA,
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    SPONSORSHIPS,
    WAVES,
    AssetInfo,
    AssetName,
    AssetScript,
    AssetVolume,
    Changes,
    LeaseBalance,
    Missing,
    State,
)

V = TypeVar("V")

_ASSET_TABLES: Final = (ASSETS, ASSET_VOLUMES, ASSET_NAMES, ASSET_SCRIPTS, SPONSORSHIPS)


class Details(NamedTuple):
    """The details of an asset at one time."""

    info: AssetInfo
    volume: AssetVolume
    name: AssetName
    script: AssetScript | None
    sponsorship: int


class Lease(NamedTuple):
    """A lease at one time."""

    lease_id: bytes
    active: bool
    amount: int
    sender: bytes
    recipient: Address
    origin: bytes


class Update:
    """Values before and after, by key, in the order of first appearance."""

    __slots__ = ("assets", "balances", "data", "deleted_aliases", "leases", "leasing", "scripts")

    def __init__(self) -> None:
        self.balances: dict[tuple[Address, AssetId | None], tuple[int, int]] = {}
        self.leasing: dict[Address, tuple[LeaseBalance, LeaseBalance]] = {}
        self.data: dict[tuple[Address, str], tuple[DataValue, DataValue]] = {}
        self.assets: dict[AssetId, tuple[Details | None, Details | None]] = {}
        self.leases: dict[bytes, Lease] = {}
        self.scripts: dict[Address, tuple[bytes, bytes]] = {}
        self.deleted_aliases: list[str] = []

    def is_empty(self) -> bool:
        """Whether nothing changed; individual leases do not count."""
        return not (self.balances or self.leasing or self.data or self.assets or self.scripts)

    def asset_ids(self) -> Iterable[AssetId]:
        """Yield the assets of all changes, some more than once."""
        for _, asset_id in self.balances:
            if asset_id is not None:
                yield asset_id
        yield from self.assets

    def message(self) -> pb.StateUpdate:
        """Return the protobuf message."""
        made = pb.StateUpdate(deleted_aliases=self.deleted_aliases)
        for (address, asset_id), (before, after) in self.balances.items():
            balance = made.balances.add(address=address, amount_before=before)
            balance.amount_after.SetInParent()
            if asset_id is not None:
                balance.amount_after.asset_id = asset_id
            balance.amount_after.amount = after
        for address, (leased_before, leased) in self.leasing.items():
            made.leasing_for_address.add(
                address=address,
                in_after=leased.lease_in,
                out_after=leased.lease_out,
                in_before=leased_before.lease_in,
                out_before=leased_before.lease_out,
            )
        for (address, key), (old, new) in self.data.items():
            entry = made.data_entries.add(address=address)
            write_data_entry(entry.data_entry, DataEntry(key, new))
            write_data_entry(entry.data_entry_before, DataEntry(key, old))
        for asset_id, (old_details, new_details) in self.assets.items():
            asset = made.assets.add()
            if old_details is not None:
                _fill_details(asset.before, asset_id, old_details)
            if new_details is not None:
                _fill_details(asset.after, asset_id, new_details)
        for lease in self.leases.values():
            made.individual_leases.add(
                lease_id=lease.lease_id,
                status_after=_ACTIVE if lease.active else _INACTIVE,
                amount=lease.amount,
                sender=lease.sender,
                recipient=lease.recipient,
                origin_transaction_id=lease.origin,
            )
        for address, (script_before, script) in self.scripts.items():
            made.scripts.add(address=address, before=script_before, after=script)
        return made


_ACTIVE: Final = pb.StateUpdate.LeaseUpdate.ACTIVE
_INACTIVE: Final = pb.StateUpdate.LeaseUpdate.INACTIVE


def _fill_details(message: pb.StateUpdate.AssetDetails, asset_id: AssetId, found: Details) -> None:
    info, volume, name, script, sponsorship = found
    message.asset_id = asset_id
    message.issuer = info.issuer
    message.decimals = info.decimals
    message.name = lenient_text(name.name)
    message.description = lenient_text(name.description)
    message.reissuable = volume.reissuable
    message.volume = wrapped(volume.quantity)
    message.safe_volume = volume_bytes(volume.quantity)
    if script is not None:
        message.script_info.script = script.script
        message.script_info.complexity = script.complexity
    message.sponsorship = sponsorship
    message.nft = info.nft
    message.last_updated = name.height
    message.sequence_in_block = info.sequence
    message.issue_height = info.height


def update_of(changes: Changes, before: State, height: int) -> Update:
    """Return the update for changes to a state: those of the block at a height, or of one of its
    microblocks (height 0).
    """
    made = Update()
    for address, after in _written(changes, WAVES):
        old = before.get(WAVES, address)
        if old != after:
            made.balances[address, None] = old, after
    for key, after in _written(changes, ASSET_BALANCES):
        old = before.get(ASSET_BALANCES, key)
        if old != after:
            made.balances[key] = old, after
    for address, leased in _written(changes, LEASES):
        was = before.get(LEASES, address)
        if was != leased:
            made.leasing[address] = was, leased
    for key, value in _written(changes, DATA):
        made.data[key] = _value(before.get(DATA, key)), _value(value)
    new = changes.get(ASSETS, {})
    if new:
        # As in the reference, new assets are numbered from this transaction on.
        first = min(info.sequence for info in new.values()) - 1
        renumbered = {
            name: msgspec.structs.replace(info, sequence=info.sequence - first)
            for name, info in new.items()
        }
        changes = {**changes, ASSETS: renumbered}
    touched = dict.fromkeys(key for table in _ASSET_TABLES for key in changes.get(table, ()))
    for asset_id in touched:
        made.assets[asset_id] = (
            details(before, asset_id, height),
            details(_Above(changes, before), asset_id, height),
        )
    # As in the reference, active leases come first.
    states = sorted(_written(changes, LEASE_STATES), key=lambda item: not item[1].active)
    for lease_id, state in states:
        info = _Above(changes, before).get(LEASE_INFO, lease_id)
        if info is not None:
            made.leases[lease_id] = Lease(
                lease_id, state.active, info.amount, info.sender, info.recipient, info.origin
            )
    for address, script in _written(changes, ACCOUNT_SCRIPTS):
        earlier = before.get(ACCOUNT_SCRIPTS, address)
        made.scripts[address] = _script(earlier), _script(script)
    return made


def _written(changes: Changes, table: object) -> Iterable[tuple[Any, Any]]:
    found = changes.get(table)  # type: ignore[call-overload]
    return found.items() if found else ()


def _value(value: DataValue | Missing) -> DataValue:
    return None if isinstance(value, Missing) else value


def _script(found: Any) -> bytes:  # noqa: ANN401 - an account's script or none
    return b"" if found is None else bytes(found.script)


class _Above:
    """A state with changes applied."""

    __slots__ = ("_below", "_changes")

    def __init__(self, changes: Changes, below: State) -> None:
        self._changes = changes
        self._below = below

    def get(self, table: Any, key: Any) -> Any:  # noqa: ANN401 - of any table
        written = self._changes.get(table)
        if written is not None and key in written:
            return written[key]
        return self._below.get(table, key)


def details(
    state: Any,  # noqa: ANN401 - reads as ``State``
    asset_id: AssetId,
    height: int,
) -> Details | None:
    """Return the details of an asset in the block at a height, ``None`` if it does not exist."""
    info, name = state.get(ASSETS, asset_id), state.get(ASSET_NAMES, asset_id)
    volume = state.get(ASSET_VOLUMES, asset_id)
    if info is None or name is None or volume is None:
        return None
    if info.height == height:
        # The reference reads the height before it appends the block, but after for microblocks.
        info = msgspec.structs.replace(info, height=height - 1)
    script, fee = state.get(ASSET_SCRIPTS, asset_id), state.get(SPONSORSHIPS, asset_id)
    return Details(info, volume, name, script, fee)


# --- several updates ------------------------------------------------------------------------------


def merged(updates: Iterable[Update]) -> Update:
    """Combine successive updates: the first values before, the last values after."""
    made = Update()
    for each in updates:
        for name in ("balances", "leasing", "data", "assets", "scripts"):
            mine: dict[Any, tuple[Any, Any]] = getattr(made, name)
            for key, (before, after) in getattr(each, name).items():
                mine[key] = (mine[key][0] if key in mine else before), after
        for lease in each.leases.values():
            # As in the reference, of several leases of one transaction only the last one stays.
            made.leases[lease.origin] = lease
        made.deleted_aliases += each.deleted_aliases
    return made


def reverse(update: Update) -> Update:
    """Return the inverse of an update."""
    made = Update()
    for name in ("balances", "leasing", "data", "assets", "scripts"):
        found: dict[Any, tuple[Any, Any]] = getattr(update, name)
        setattr(made, name, {key: (after, before) for key, (before, after) in found.items()})
    # The newest first, as in every rollback.
    made.leases = {
        key: lease._replace(active=not lease.active)
        for key, lease in reversed(update.leases.items())
    }
    made.deleted_aliases = list(update.deleted_aliases)
    return made
