"""The limits on actions of a dApp: those of one call, and of all calls of a transaction together.

What does not live here: applying the actions (``actions``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/invoke/InvokeDiffsCommon.scala`` and
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/ContractLimits.scala``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from soliton.chain.features import Feature
from soliton.chain.values import MAX_I64, DataEntry, entry_bytes, payload_size
from soliton.crypto import base58
from soliton.ledger.rules_at import Rules
from soliton.ledger.script_results import (
    BALANCE_ACTIONS,
    Action,
    Burn,
    Issue,
    Lease,
    LeaseCancel,
    Reissue,
    Result,
    SponsorFee,
    Transfer,
)
from soliton.ride.values import utf8

MAX_ENTRIES: Final = 100
MAX_ENTRY_BYTES: Final = 5_120
MAX_TOTAL_ENTRY_BYTES: Final = 15_360
MAX_KEY_BYTES: Final = 400
MAX_KEY_BYTES_BEFORE_V4: Final = 100
MAX_ACTIONS_BEFORE_V5: Final = 10
MAX_ACTIONS_BEFORE_V6: Final = 30
MAX_BALANCE_ACTIONS: Final = 100
MAX_ASSET_ACTIONS: Final = 30
MIN_NAME_BYTES: Final = 4
MAX_NAME_BYTES: Final = 16
MAX_DESCRIPTION_UNITS: Final = 1_000
"""In UTF-16 code units, as the JVM counts."""
_V4: Final = 4
_V5: Final = 5
_V6: Final = 6


class Counts(msgspec.Struct, frozen=True):
    """The number of actions of each kind, and the size of the data entries in bytes: of one result,
    or what a transaction has left.
    """

    actions: int
    balance: int
    asset: int
    entries: int
    entry_bytes: int

    def minus(self, other: Counts) -> Counts:
        """Return the difference."""
        return Counts(
            self.actions - other.actions,
            self.balance - other.balance,
            self.asset - other.asset,
            self.entries - other.entries,
            self.entry_bytes - other.entry_bytes,
        )


def max_actions(version: int) -> int:
    """Return the limit for one call before version 6."""
    return MAX_ACTIONS_BEFORE_V5 if version < _V5 else MAX_ACTIONS_BEFORE_V6


def allowance(version: int) -> Counts:
    """Return the limits for all calls of a transaction; ``version`` is that of its dApp."""
    return Counts(
        max_actions(version),
        MAX_BALANCE_ACTIONS,
        MAX_ASSET_ACTIONS,
        MAX_ENTRIES,
        MAX_TOTAL_ENTRY_BYTES,
    )


def count(result: Result, rules: Rules) -> Counts:
    """Count the actions of a result."""
    entries = result.entries
    balance = sum(isinstance(action, BALANCE_ACTIONS) for action in result.actions)
    actions = len(result.actions) - len(entries)
    return Counts(actions, balance, actions - balance, len(entries), entries_size(entries, rules))


def entries_size(entries: Sequence[DataEntry], rules: Rules) -> int:
    """Return the size of data entries in bytes, as limits count it."""
    if rules.has(Feature.RIDE_V6):
        return payload_size(tuple(entries))
    return sum(len(entry_bytes(entry)) for entry in entries)


def total_fault(counts: Counts, left: Counts, version: int) -> str | None:
    """Return why a result exceeds what the transaction has left, or ``None``; for the bytes of data
    entries see ``bytes_fault``.
    """
    if counts.entries > left.entries:
        return "Stored data count limit is exceeded"
    if counts.entry_bytes > left.entry_bytes:
        return None
    if version < _V6:
        return "Actions count limit is exceeded" if counts.actions > left.actions else None
    if counts.balance > left.balance:
        return "ScriptTransfer, Lease, LeaseCancel actions count limit is exceeded"
    if counts.asset > left.asset:
        return "Issue, Reissue, Burn, SponsorFee actions count limit is exceeded"
    return None


def bytes_fault(counts: Counts, left: Counts) -> str | None:
    """Return why the data entries of a result exceed what the transaction has left, or ``None``."""
    if counts.entries > left.entries or counts.entry_bytes <= left.entry_bytes:
        return None
    actual = MAX_TOTAL_ENTRY_BYTES + counts.entry_bytes - left.entry_bytes
    return f"Storing data size should not exceed {MAX_TOTAL_ENTRY_BYTES}, actual: {actual} bytes"


def field_fault(actions: Sequence[Action]) -> str | None:
    """Return the first invalid field of an action (since version 4), or ``None``."""
    for action in actions:
        match action:
            case Reissue(quantity=amount) if amount < 0:
                return f"Negative reissue quantity = {amount}"
            case Burn(quantity=amount) if amount < 0:
                return f"Negative burn quantity = {amount}"
            case Transfer(amount=amount) if amount < 0:
                return f"Negative transfer amount = {amount}"
            case Lease(amount=amount) if amount < 0:
                return f"Negative lease amount = {amount}"
            case SponsorFee(min_fee=int() as amount) if amount < 0:
                return f"Negative sponsor amount = {amount}"
            case Issue():
                fault = issue_fault(action)
                if fault is not None:
                    return fault
    return None


def issue_fault(issue: Issue) -> str | None:
    """Return what is wrong with the name or description of a new asset, or ``None``."""
    if not MIN_NAME_BYTES <= len(utf8(issue.name)) <= MAX_NAME_BYTES:
        return "Invalid asset name"
    if len(issue.description.encode("utf-16-le", "surrogatepass")) // 2 > MAX_DESCRIPTION_UNITS:
        return "Invalid asset description"
    return None


class CallResult(msgspec.Struct, frozen=True):
    """The result of a call, with the versions of its dApp and of the transaction's dApp.

    ``empty_keys`` is whether the transaction's version allows them; ``pays_itself`` whether the
    dApp called itself with payments.
    """

    result: Result
    dapp: bytes
    version: int
    root_version: int
    empty_keys: bool
    pays_itself: bool


def result_fault(call: CallResult, rules: Rules) -> str | None:
    """Return the first limit that a result exceeds by itself, or ``None``."""
    actions = call.result.actions
    return (
        _entries_fault(call, rules)
        or _lease_cancels_fault(actions)
        or _amount_fault(call, rules)
        or _self_fault(call, rules)
        or _transfers_fault(actions)
    )


def _entries_fault(call: CallResult, rules: Rules) -> str | None:
    entries = call.result.entries
    if len(entries) > MAX_ENTRIES:
        return f"WriteSet can't contain more than {MAX_ENTRIES} entries"
    if not call.empty_keys and not all(entry.key for entry in entries):
        return "Empty keys aren't allowed in tx version >= 2"
    limit = MAX_KEY_BYTES if call.version >= _V4 else MAX_KEY_BYTES_BEFORE_V4
    for entry in entries:
        length = len(entry.key.encode())
        if length > limit:
            return f"Data entry key size = {length} bytes must be less than {limit}"
        if length == 0 and call.version >= _V4:
            return "Data entry key should not be empty"
    size = entries_size(entries, rules)
    if size > MAX_ENTRY_BYTES:
        return f"WriteSet size can't exceed {MAX_ENTRY_BYTES} bytes, actual: {size} bytes"
    return None


def _lease_cancels_fault(actions: Sequence[Action]) -> str | None:
    ids = [action.id for action in actions if isinstance(action, LeaseCancel)]
    if len(set(ids)) == len(ids):
        return None
    seen: set[bytes] = set()
    duplicates: dict[bytes, None] = {}
    for lease_id in ids:
        if lease_id in seen:
            duplicates[lease_id] = None
        seen.add(lease_id)
    return f"Duplicate LeaseCancel id(s): {', '.join(map(base58.encode, duplicates))}"


def _amount_fault(call: CallResult, rules: Rules) -> str | None:
    counts = count(call.result, rules)
    by_root = rules.has(Feature.BLOCK_REWARD_DISTRIBUTION)
    if (call.root_version if by_root else call.version) >= _V6:
        if counts.balance > MAX_BALANCE_ACTIONS:
            return (
                "Too many ScriptTransfer, Lease, LeaseCancel actions: max: "
                f"{MAX_BALANCE_ACTIONS}, actual: {counts.balance}"
            )
        if counts.asset > MAX_ASSET_ACTIONS:
            return (
                "Too many Issue, Reissue, Burn, SponsorFee actions: max: "
                f"{MAX_ASSET_ACTIONS}, actual: {counts.asset}"
            )
        return None
    limit = max_actions(call.version)
    if counts.actions > limit:
        return f"Too many script actions: max: {limit}, actual: {counts.actions}"
    return None


def _self_fault(call: CallResult, rules: Rules) -> str | None:
    if not rules.has(Feature.BLOCK_V5) or call.version < _V4:
        return None
    if call.pays_itself:
        return "DApp self-payment is forbidden since V4"
    for action in call.result.actions:
        if isinstance(action, Transfer) and action.address == call.dapp:
            return "DApp self-transfer is forbidden since V4"
    return None


def _transfers_fault(actions: Sequence[Action]) -> str | None:
    amounts = [action.amount for action in actions if isinstance(action, Transfer)]
    if any(amount < 0 for amount in amounts):
        return "Negative amount"
    return "ScriptTransfer overflow" if sum(amounts) > MAX_I64 else None
