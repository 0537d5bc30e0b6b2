"""Applying edits to the state.

Edits keep the state consistent: an asset's quantity follows its balances, a lease changes both
balances, a script gets its complexities. What lives here: applying the records of ``edits``. What
does not: when they are applied (``apply``).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

from soliton.chain.addresses import Address, from_public_key, make_alias, parse_address
from soliton.chain.transactions.data import MAX_KEY_BYTES, MAX_VALUE_BYTES
from soliton.chain.values import MAX_I64, MIN_I64, AssetId, DataValue
from soliton.crypto import base58
from soliton.crypto.hashes import blake2b256
from soliton.ledger import leases, script_setting
from soliton.ledger.context import Context
from soliton.ledger.edits import (
    AliasEdit,
    AssetBalanceEdit,
    BalanceEdit,
    DataEdit,
    Edit,
    EditRejected,
    LeaseCancelEdit,
    LeaseEdit,
    ScriptEdit,
)
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.state import (
    ACCOUNT_SCRIPTS,
    ALIASES,
    ASSET_BALANCES,
    ASSET_VOLUMES,
    ASSETS,
    DATA,
    DEPOSITS,
    LEASE_INFO,
    LEASES,
    WAVES,
    AccountScript,
    AssetVolume,
    Changes,
    Overlay,
    touched_accounts,
)

MAX_EDITS: Final = 100
"""Edits of one block; the same limit as for entries of a data transaction."""
_MAX_ID_CHARS: Final = 44
_PREFIX: Final = "base64:"
_KEY_BYTES: Final = 32
_LEASE_LABEL: Final = b"lease by hand"


def apply_edits(edits: Sequence[Edit], overlay: Overlay, context: Context) -> int:
    """Apply edits in order and return how many wavelets they add to the total.

    Raises ``EditRejected``, or errors of the rules that it uses.
    """
    if len(edits) > MAX_EDITS:
        raise EditRejected(f"{len(edits)} changes at once: {MAX_EDITS} are allowed")
    minted = 0
    for number, edit in enumerate(edits):
        if isinstance(edit, BalanceEdit):
            minted += _set_balance(edit, overlay, context)
        elif isinstance(edit, LeaseEdit):
            _lease(edit, number, overlay, context)
        else:
            _WRITERS[type(edit)](edit, overlay, context)
    parent = context.block.parent
    if parent is not None and parent.total_waves + minted > MAX_I64:
        raise EditRejected(f"there would be more than {MAX_I64} wavelets")
    return minted


def edited_accounts(changes: Changes) -> tuple[Address, ...]:
    """Return all accounts that the changes concern."""
    if not changes:
        return ()
    touched = dict.fromkeys(touched_accounts(changes))
    touched |= dict.fromkeys(changes.get(ACCOUNT_SCRIPTS, ()))
    touched |= dict.fromkeys(filter(None, changes.get(ALIASES, {}).values()))
    return tuple(touched)


def _amount(amount: int) -> int:
    if not 0 <= amount <= MAX_I64:
        raise EditRejected(f"an amount of {amount}: 0 to {MAX_I64} are allowed")
    return amount


def _address(text: str, context: Context) -> Address:
    return parse_address(text, context.rules.chain_id)


def _bytes58(text: str, what: str) -> bytes:
    data = base58.decode(text, _MAX_ID_CHARS)
    if len(data) != _KEY_BYTES:
        raise EditRejected(f"{what} of {len(data)} bytes: {_KEY_BYTES} expected")
    return data


def _set_balance(edit: BalanceEdit, overlay: Overlay, context: Context) -> int:
    address, amount = _address(edit.address, context), _amount(edit.amount)
    leased = overlay.get(LEASES, address).lease_out
    if amount < leased:
        raise EditRejected(f"{edit.address} leases {leased} wavelets: it cannot have only {amount}")
    if amount < leased + (deposit := overlay.get(DEPOSITS, address)):
        raise EditRejected(
            f"{edit.address} has a deposit of {deposit} wavelets for generation: it cannot have "
            f"only {amount}"
        )
    before = overlay.get(WAVES, address)
    overlay.put(WAVES, address, amount)
    return amount - before


def _set_asset_balance(edit: AssetBalanceEdit, overlay: Overlay, context: Context) -> None:
    address, amount = _address(edit.address, context), _amount(edit.amount)
    asset_id: AssetId = _bytes58(edit.asset_id, "an asset's id")
    info, volume = overlay.get(ASSETS, asset_id), overlay.get(ASSET_VOLUMES, asset_id)
    if info is None or volume is None:
        raise EditRejected(f"there is no asset {edit.asset_id}")
    before = overlay.get(ASSET_BALANCES, (address, asset_id))
    quantity = volume.quantity + amount - before
    if quantity > (1 if info.nft else MAX_I64):
        raise EditRejected(f"there would be {quantity} of the asset {edit.asset_id}")
    overlay.put(ASSET_BALANCES, (address, asset_id), amount)
    overlay.put(ASSET_VOLUMES, asset_id, AssetVolume(volume.reissuable, quantity))


def _set_data(edit: DataEdit, overlay: Overlay, context: Context) -> None:
    if not edit.key or len(edit.key.encode()) > MAX_KEY_BYTES:
        raise EditRejected(f"a key has 1 to {MAX_KEY_BYTES} bytes")
    overlay.put(DATA, (_address(edit.address, context), edit.key), _value(edit))


def _value(edit: DataEdit) -> DataValue:
    value = edit.value
    size = 0
    match edit.type, value:
        case None, None:
            return None
        case "boolean", bool():
            return value
        case "integer", int() if not isinstance(value, bool) and MIN_I64 <= value <= MAX_I64:
            return value
        case "string", str():
            size = len(value.encode())
        case "binary", str():
            data = _decoded(value)
            return data if len(data) <= MAX_VALUE_BYTES else _too_long(len(data))
        case _:
            raise EditRejected(f"the value of {edit.key!r} is no {edit.type or 'deletion'}")
    return value if size <= MAX_VALUE_BYTES else _too_long(size)


def _too_long(size: int) -> NoReturn:
    raise EditRejected(f"a value of {size} bytes: {MAX_VALUE_BYTES} are allowed")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise EditRejected(f"not base64: {error}") from error


def _set_script(edit: ScriptEdit, overlay: Overlay, context: Context) -> None:
    address = _address(edit.address, context)
    known = overlay.get(ACCOUNT_SCRIPTS, address)
    key = bytes(_KEY_BYTES) if known is None else known.public_key
    if edit.public_key is not None:
        key = _bytes58(edit.public_key, "a public key")
        if from_public_key(key, context.rules.chain_id) != address:
            raise EditRejected(f"{edit.address} has another public key than {edit.public_key}")
    script = AccountScript(key, b"", 0, {})
    if edit.script is not None:
        code = _decoded(edit.script)
        if len(code) > script_setting.MAX_DAPP_BYTES_V6:
            raise EditRejected(
                f"a script of {len(code)} bytes: {script_setting.MAX_DAPP_BYTES_V6} are allowed"
            )
        complexities = script_setting.estimate(code, False, context)
        script = AccountScript(key, code, complexities.verifier, complexities.callables)
    overlay.put(ACCOUNT_SCRIPTS, address, script)


def _set_alias(edit: AliasEdit, overlay: Overlay, context: Context) -> None:
    name = make_alias(edit.alias, context.rules.chain_id).name
    overlay.put(ALIASES, name, _address(edit.address, context))


def _lease(edit: LeaseEdit, number: int, overlay: Overlay, context: Context) -> None:
    place = context.height.to_bytes(4, "big") + number.to_bytes(2, "big")
    lease_id = blake2b256(_LEASE_LABEL + place + context.timestamp.to_bytes(8, "big"))
    if not _amount(edit.amount):
        raise EditRejected("a lease of nothing")
    portfolio = Portfolio()
    leases.lease(
        lease_id,
        lease_id,
        _bytes58(edit.sender_public_key, "a public key"),
        _address(edit.recipient, context),
        edit.amount,
        0,
        overlay,
        portfolio,
        context,
    )
    portfolio.write(overlay)


def _cancel_lease(edit: LeaseCancelEdit, overlay: Overlay, context: Context) -> None:
    lease_id = _bytes58(edit.lease_id, "a lease's id")
    info = overlay.get(LEASE_INFO, lease_id)
    if info is None:
        raise EditRejected(f"there is no lease {edit.lease_id}")
    portfolio = Portfolio()
    leases.cancel(lease_id, lease_id, info.sender, overlay, portfolio, context)
    portfolio.write(overlay)


_WRITERS: Final[dict[type, Callable[[Any, Overlay, Context], None]]] = {
    AssetBalanceEdit: _set_asset_balance,
    DataEdit: _set_data,
    ScriptEdit: _set_script,
    AliasEdit: _set_alias,
    LeaseCancelEdit: _cancel_lease,
}
