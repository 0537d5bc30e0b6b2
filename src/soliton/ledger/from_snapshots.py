"""Applying transactions from snapshots instead of executing them, as light nodes do.

The state hash in the header authenticates the snapshots of a block. In addition, and for headers
without one, invariants of every transaction are checked: no wavelets are created, no balance is
negative, and nothing is issued twice.

What lives here: converting a record of ``soliton.chain.snapshots`` to changes of the state. What
does not: the opposite (``snapshots``), when snapshots are used (``soliton.p2p``), hashes
(``apply``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/protobuf/PBSnapshots.scala`` (``fromProtobuf``).
"""

from __future__ import annotations

import contextlib
from typing import Final

from soliton.chain.addresses import PUBLIC_KEY_LENGTH, from_public_key, make_alias
from soliton.chain.snapshots import AccountScript as ScriptRecord
from soliton.chain.snapshots import AssetScript as AssetScriptRecord
from soliton.chain.snapshots import GenerationCommitment, Snapshot
from soliton.chain.transactions.commit_to_generation import CommitToGeneration
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import DataValue
from soliton.ledger import assets, generators, script_setting
from soliton.ledger.context import Context
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.state import (
    ACCOUNT_SCRIPTS,
    ALIASES,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    DATA,
    ERC20,
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    ORDER_FILLS,
    SPONSORSHIPS,
    WAVES,
    AccountScript,
    AssetInfo,
    AssetName,
    AssetScript,
    AssetVolume,
    Commitment,
    LeaseBalance,
    LeaseInfo,
    LeaseState,
    OrderFill,
    Overlay,
    State,
)

MAX_DECIMALS: Final = 8
MAX_KEY_BYTES: Final = 400
MAX_VALUE_BYTES: Final = 32_767
"""The limits for a data entry, whether a transaction or a script writes it."""


def overlay_of(
    snapshot: Snapshot, transaction: AnyTransaction, state: State, context: Context, burnt: int
) -> Overlay:
    """Return the changes of a transaction as an overlay of the state, including the generator's
    part of the fee.

    ``burnt`` wavelets of the fee belong to no account until the next generator receives them.
    Raises ``TransactionRejected`` or another ``InputError``.
    """
    _check_forms(snapshot, context.rules.chain_id)
    overlay = Overlay(state, context.height)
    _put_balances(snapshot, transaction, overlay, context, burnt)
    _put_assets(snapshot, transaction, overlay, context)
    _put_leases(snapshot, transaction, overlay, context)
    if snapshot.alias is not None:
        if overlay.get(ALIASES, snapshot.alias.name) is not None:
            raise TransactionRejected("its snapshot has an alias that is taken")
        overlay.put(ALIASES, snapshot.alias.name, snapshot.alias.address)
    for fill in snapshot.order_fills:
        overlay.put(ORDER_FILLS, fill.order_id, OrderFill(fill.volume, fill.fee))
    if snapshot.account_script is not None:
        script = snapshot.account_script
        address = from_public_key(script.public_key, context.rules.chain_id)
        overlay.put(ACCOUNT_SCRIPTS, address, _account_script(script, context))
    for account in snapshot.account_data:
        for entry in account.entries:
            overlay.put(DATA, (account.address, entry.key), entry.value)
    for sponsorship in snapshot.sponsorships:
        overlay.put(SPONSORSHIPS, sponsorship.asset_id, sponsorship.min_fee)
    _put_commitment(snapshot, transaction, overlay, context)
    overlay.record_transaction(transaction.id)
    return overlay


def _check_forms(snapshot: Snapshot, chain_id: int) -> None:
    """Raise for values that no transaction writes, or that cannot be hashed or stored."""
    script = snapshot.account_script
    keys = [each.issuer for each in snapshot.new_assets]
    keys += [each.sender_public_key for each in snapshot.new_leases]
    keys += [] if script is None else [script.public_key]
    if any(len(each) != PUBLIC_KEY_LENGTH for each in keys):
        raise TransactionRejected("its snapshot has a public key of another length")
    if any(not 0 <= each.decimals <= MAX_DECIMALS for each in snapshot.new_assets):
        raise TransactionRejected("its snapshot has an asset with too many decimals")
    scripts = [each.script for each in (script, snapshot.asset_script) if each is not None]
    if any(len(each) > script_setting.MAX_DAPP_BYTES_V6 for each in scripts):
        raise TransactionRejected("its snapshot has a script that is too large")
    if snapshot.alias is not None:
        make_alias(snapshot.alias.name, chain_id)
    entries = (entry for account in snapshot.account_data for entry in account.entries)
    if any(
        len(each.key.encode()) > MAX_KEY_BYTES or _size(each.value) > MAX_VALUE_BYTES
        for each in entries
    ):
        raise TransactionRejected("its snapshot has data that is too long")


def _size(value: DataValue) -> int:
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes) else 0


def _put_balances(
    snapshot: Snapshot, transaction: AnyTransaction, overlay: Overlay, context: Context, burnt: int
) -> None:
    rules = context.rules
    negative_allowed = context.timestamp < rules.temporary_negative_until
    total = 0
    for balance in snapshot.balances:
        if balance.amount < 0 and not negative_allowed:
            raise TransactionRejected("its snapshot has a balance below zero")
        if balance.asset_id is None:
            total += balance.amount - overlay.get(WAVES, balance.address)
            overlay.put(WAVES, balance.address, balance.amount)
        else:
            overlay.put(ASSET_BALANCES, (balance.address, balance.asset_id), balance.amount)
    if total != -burnt and transaction.id not in rules.fixed_outcomes:
        raise TransactionRejected(f"its snapshot has {total + burnt} wavelets from nowhere")
    for leases in snapshot.lease_balances:
        overlay.put(LEASES, leases.address, LeaseBalance(leases.lease_in, leases.lease_out))


def _put_assets(
    snapshot: Snapshot, transaction: AnyTransaction, overlay: Overlay, context: Context
) -> None:
    sequence = overlay.count_written(ASSETS)
    for asset in snapshot.new_assets:
        short = assets.erc20_address(asset.asset_id)
        if overlay.get(ERC20, short) is not None:
            raise TransactionRejected("its snapshot has a new asset that was there before")
        sequence += 1
        info = AssetInfo(
            asset.issuer, asset.decimals, asset.nft, transaction.id, context.height, sequence
        )
        overlay.put(ASSETS, asset.asset_id, info)
        overlay.put(ERC20, short, asset.asset_id)
        overlay.put(ASSET_SCRIPTS, asset.asset_id, None)
    for volume in snapshot.asset_volumes:
        overlay.put(ASSET_VOLUMES, volume.asset_id, AssetVolume(volume.reissuable, volume.quantity))
    for name in snapshot.asset_names:
        overlay.put(
            ASSET_NAMES, name.asset_id, AssetName(name.name, name.description, context.height)
        )
    if snapshot.asset_script is not None:
        script = snapshot.asset_script
        overlay.put(ASSET_SCRIPTS, script.asset_id, _asset_script(script, context))


def _put_leases(
    snapshot: Snapshot, transaction: AnyTransaction, overlay: Overlay, context: Context
) -> None:
    for lease in snapshot.new_leases:
        if overlay.get(LEASE_INFO, lease.lease_id) is not None:
            raise TransactionRejected("its snapshot has a new lease that was there before")
        info = LeaseInfo(
            lease.sender_public_key, lease.recipient, lease.amount, transaction.id, context.height
        )
        overlay.put(LEASE_INFO, lease.lease_id, info)
        overlay.put(LEASE_STATES, lease.lease_id, LeaseState(True, 0, b""))
    for lease_id in snapshot.cancelled_leases:
        if overlay.get(LEASE_INFO, lease_id) is None:
            raise TransactionRejected("its snapshot ends a lease that never was")
        overlay.put(LEASE_STATES, lease_id, LeaseState(False, context.height, transaction.id))


def _put_commitment(
    snapshot: Snapshot, transaction: AnyTransaction, overlay: Overlay, context: Context
) -> None:
    payload, period = transaction.payload, context.block.period
    expected = None
    if isinstance(payload, CommitToGeneration):
        expected = GenerationCommitment(transaction.sender_public_key, payload.endorser_public_key)
    if snapshot.generation_commitment != expected:
        raise TransactionRejected("its snapshot has another commitment to generation")
    if expected is None:
        return
    if period is None or payload.generation_period_start != period.next.start:
        raise TransactionRejected("its snapshot has a commitment to another generation period")
    sender = from_public_key(expected.sender_public_key, context.rules.chain_id)
    keys = sender, expected.endorser_public_key
    if generators.first_taken(overlay, period.next, *keys) is not None:
        raise TransactionRejected("its snapshot has a commitment to generation that is taken")
    commitment = Commitment(expected.sender_public_key, keys[1], transaction.id)
    generators.commit(overlay, period.next, sender, commitment)


def _asset_script(record: AssetScriptRecord, context: Context) -> AssetScript:
    # The snapshot does not contain its complexity.
    try:
        complexity = script_setting.estimate(record.script, True, context).verifier
    except TransactionRejected:
        complexity = 0
    return AssetScript(record.script, complexity)


def _account_script(record: ScriptRecord, context: Context) -> AccountScript:
    # The snapshot contains only the verifier's complexity; clients need those of the functions.
    callables: dict[int, dict[str, int]] = {}
    if record.script:
        with contextlib.suppress(TransactionRejected):
            callables = script_setting.estimate(record.script, False, context).callables
    return AccountScript(record.public_key, record.script, record.verifier_complexity, callables)
