"""The result of a callable function: actions and a value.

What lives here: the actions, reading them from the values that scripts return, and their ids. What
does not: applying them (``actions``), and their limits (``action_limits``).

Sources: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ScriptResult.scala`` and
``v1/traits/domain/CallableAction.scala``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from soliton.chain.addresses import Address, Alias, Recipient, make_alias
from soliton.chain.values import AssetId, DataEntry
from soliton.errors import InputError
from soliton.ride.compiler.library import ScriptKind, library
from soliton.ride.environment import Environment
from soliton.ride.errors import EvaluationError, NativeCrash
from soliton.ride.functions import chain_data
from soliton.ride.functions.printing import plain_text
from soliton.ride.values import UNIT, CaseObject, RideList, Value, kind_of, utf8

MAX_DECIMALS: Final = 8
_FIRST_WITH_LISTS: Final = 4
_FIRST_WITH_VALUES: Final = 5


class Transfer(msgspec.Struct, frozen=True, gc=False):
    """Sends ``amount`` to ``address``; ``recipient`` is that or its alias."""

    address: bytes
    recipient: Recipient
    amount: int
    asset_id: AssetId | None


class Issue(msgspec.Struct, frozen=True, gc=False):
    """Issues a new asset."""

    id: AssetId
    name: str
    description: str
    quantity: int
    decimals: int
    reissuable: bool
    nonce: int


class Reissue(msgspec.Struct, frozen=True, gc=False):
    """Increases the quantity of an asset."""

    asset_id: AssetId
    quantity: int
    reissuable: bool


class Burn(msgspec.Struct, frozen=True, gc=False):
    """Decreases the quantity of an asset."""

    asset_id: AssetId
    quantity: int


class SponsorFee(msgspec.Struct, frozen=True, gc=False):
    """Starts or ends the sponsorship of an asset."""

    asset_id: AssetId
    min_fee: int | None


class Lease(msgspec.Struct, frozen=True, gc=False):
    """Leases coins."""

    id: bytes
    recipient: Recipient
    amount: int
    nonce: int


class LeaseCancel(msgspec.Struct, frozen=True, gc=False):
    """Ends a lease."""

    id: bytes


Action = DataEntry | Transfer | Issue | Reissue | Burn | SponsorFee | Lease | LeaseCancel
BALANCE_ACTIONS: Final = (Transfer, Lease, LeaseCancel)


class Result(msgspec.Struct, frozen=True):
    """The actions in order, and the value for a calling dApp."""

    actions: tuple[Action, ...]
    value: Value = UNIT

    @property
    def entries(self) -> list[DataEntry]:
        """The data entries among the actions."""
        return [action for action in self.actions if isinstance(action, DataEntry)]


class Reader(msgspec.Struct, frozen=True):
    """Parameters of reading: the dApp's version, its environment, the transaction, and whether
    aliases are allowed as recipients.
    """

    version: int
    environment: Environment
    transaction_id: bytes
    aliases: bool


def read_result(value: Value, reader: Reader) -> Result:
    """Read the value that a function returned; raise ``EvaluationError`` if it is invalid."""
    if reader.version < _FIRST_WITH_LISTS:
        if isinstance(value, CaseObject):
            return _read_sets(value, reader)
    elif isinstance(value, RideList):
        return Result(_read_actions(value, reader))
    elif isinstance(value, CaseObject) and reader.version >= _FIRST_WITH_VALUES:
        actions = value.fields.get("_1")
        if isinstance(actions, RideList) and "_2" in value.fields:
            return Result(_read_actions(actions, reader), value.fields["_2"])
        raise _unexpected(value.type_name, reader)
    raise _unexpected(f"({plain_text(value)},V{reader.version})", reader)


def _unexpected(found: str, reader: Reader, instead: str = "") -> EvaluationError:
    """Return the error for an answer; ``found`` is the wrong part of it as the reference prints it,
    ``instead`` what belongs there.
    """
    wanted = library(reader.version, ScriptKind.DAPP).callable_result
    assert wanted is not None, "only dApps are called"
    expected = f" instead of {instead}" if instead else ""
    return EvaluationError(
        f"CallableFunction needs to return {wanted.name}, but got '{found}'{expected}"
    )


def _options(value: CaseObject, *names: str) -> str:
    """Return fields that may be missing as the reference prints them."""
    found = [value.fields.get(name) for name in names]
    texts = ["None" if each is None else f"Some({plain_text(each)})" for each in found]
    return texts[0] if len(texts) == 1 else f"({','.join(texts)})"


# --- version 3 ------------------------------------------------------------------------------------


def _read_sets(value: CaseObject, reader: Reader) -> Result:
    match value.type_name:
        case "WriteSet":
            return Result(_read_writes(value, reader))
        case "TransferSet":
            return Result(_read_transfers(value, reader))
        case "ScriptResult":
            return Result(_read_both_sets(value, reader))
    raise _unexpected(value.type_name, reader)


def _read_both_sets(value: CaseObject, reader: Reader) -> tuple[Action, ...]:
    """Read both sets; a crash in the second one comes before an error in the first one."""
    fault: EvaluationError | None = None
    entries: tuple[Action, ...] = ()
    try:
        writes = _present(value, "writeSet")
        if not _is(writes, "WriteSet"):
            raise _unexpected(plain_text(writes), reader, "data")
        entries = _read_writes(_object(writes), reader)
    except NativeCrash:
        raise
    except EvaluationError as error:
        fault = error
    transfers = _present(value, "transferSet")
    if not _is(transfers, "TransferSet"):
        raise fault or _unexpected(plain_text(transfers), reader, "transfers")
    try:
        moved = _read_transfers(_object(transfers), reader)
    except NativeCrash:
        raise
    except EvaluationError as error:
        raise fault or error from None
    if fault is not None:
        raise fault
    return (*entries, *moved)


def _read_writes(value: CaseObject, reader: Reader) -> tuple[Action, ...]:
    entries = []
    for item in _items(value, "data", reader):
        if not _is(item, "DataEntry"):
            raise _unexpected(plain_text(item), reader, "DataEntry")
        entries.append(_entry(_object(item), (int, bool, bytes, str), reader))
    return tuple(entries)


def _read_transfers(value: CaseObject, reader: Reader) -> tuple[Action, ...]:
    transfers = []
    for item in _items(value, "transfers", reader):
        if not _is(item, "ScriptTransfer"):
            raise _unexpected(plain_text(item), reader, "TransferSet")
        transfers.append(_transfer(_object(item), reader))
    return tuple(transfers)


def _items(value: CaseObject, field: str, reader: Reader) -> tuple[Value, ...]:
    items = _present(value, field)
    if not isinstance(items, RideList):
        raise _unexpected(plain_text(items), reader, f"List({field})")
    return items.items


def _present(value: CaseObject, field: str) -> Value:
    """Return a field that the reference node takes to be there: constructors called with too few
    arguments leave some out. Raises ``NativeCrash``.
    """
    if field not in value.fields:
        raise NativeCrash(f"key not found: {field}")
    return value.fields[field]


def _is(value: Value, name: str) -> bool:
    return isinstance(value, CaseObject) and value.type_name == name


def _object(value: Value) -> CaseObject:
    assert isinstance(value, CaseObject), "checked by the caller"
    return value


# --- from version 4 on ----------------------------------------------------------------------------


def _read_actions(values: RideList, reader: Reader) -> tuple[Action, ...]:
    actions = []
    for value in values.items:
        read = _READERS.get(value.type_name) if isinstance(value, CaseObject) else None
        if read is None or (read in _SINCE_V5 and reader.version < _FIRST_WITH_VALUES):
            raise _unexpected(plain_text(value), reader)
        actions.append(read(_object(value), reader))
    return tuple(actions)


def _entry(value: CaseObject, kinds: tuple[type, ...], reader: Reader) -> DataEntry:
    key, content = value.fields.get("key"), value.fields.get("value")
    if isinstance(key, str) and (kind := kind_of(content)) in kinds and content is not None:
        assert isinstance(content, (int, bytes, str)), kind
        return DataEntry(_text(key), _text(content) if isinstance(content, str) else content)
    fields = ", ".join(f"{name} -> {plain_text(each)}" for name, each in value.fields.items())
    raise _unexpected(f"can't reconstruct {value.type_name} from Map({fields})", reader)


def _delete_entry(value: CaseObject, reader: Reader) -> DataEntry:
    key = value.fields.get("key")
    if not isinstance(key, str):
        raise _unexpected(_options(value, "key"), reader, "DeleteEntry")
    return DataEntry(_text(key), None)


def _text(text: str) -> str:
    """Return text as it is stored: without unpaired surrogates."""
    return text if text.isascii() else utf8(text).decode()


def _transfer(value: CaseObject, reader: Reader) -> Transfer:
    to, amount, asset = (_present(value, name) for name in ("recipient", "amount", "asset"))
    if not isinstance(to, CaseObject) or type(amount) is not int:
        texts = ",".join(map(plain_text, (to, amount, asset)))
        raise _unexpected(f"({texts})", reader, "ScriptTransfer")
    if isinstance(asset, CaseObject) and not asset.fields:
        asset_id = None
    elif isinstance(asset, bytes):
        asset_id = asset
    else:
        raise _unexpected(f"can't reconstruct token from {plain_text(asset)}", reader)
    recipient = _recipient(to, reader)
    address: bytes | None = recipient if isinstance(recipient, bytes) else None
    if isinstance(recipient, Alias):
        try:
            make_alias(recipient.name, recipient.chain_id)
        except InputError as error:
            # The reference node crashes here.
            raise NativeCrash(str(error)) from error
        address = reader.environment.resolve_alias(recipient.name)
        if address is None:
            raise EvaluationError(f"Alias '{recipient.text()}' does not exist.")
    assert address is not None, "a recipient is an address or an alias"
    return Transfer(address, recipient, amount, asset_id)


def _recipient(value: CaseObject, reader: Reader) -> Recipient:
    if value.type_name == "Address":
        data = _present(value, "bytes")
        if isinstance(data, bytes):
            return Address(data)
        raise _unexpected(f"can't reconstruct address from {plain_text(data)}", reader)
    if value.type_name == "Alias" and reader.aliases:
        name = _present(value, "alias")
        if isinstance(name, str):
            return Alias(reader.environment.chain_id, str(name))
        raise _unexpected(f"can't reconstruct alias from {plain_text(name)}", reader)
    raise _unexpected(plain_text(value), reader, "recipient")


def _issue(value: CaseObject, reader: Reader) -> Issue:
    fields = value.fields
    name, description = fields.get("name"), fields.get("description")
    quantity, decimals = fields.get("quantity"), fields.get("decimals")
    reissuable, nonce = fields.get("isReissuable"), fields.get("nonce")
    script = fields.get("compiledScript")
    if (
        not isinstance(name, str)
        or not isinstance(description, str)
        or type(quantity) is not int
        or type(decimals) is not int
        or type(reissuable) is not bool
        or type(nonce) is not int
        or script is None
    ):
        raise EvaluationError("Invalid arguments")
    if script is not UNIT:
        raise EvaluationError("Issuing scripted asset isn't supported")
    if not 0 <= decimals <= MAX_DECIMALS:
        raise EvaluationError(f"Invalid decimals {decimals}")
    asset_id = chain_data.asset_id(
        name, description, decimals, quantity, reissuable, nonce, reader.transaction_id
    )
    return Issue(asset_id, str(name), str(description), quantity, decimals, reissuable, nonce)


def _reissue(value: CaseObject, reader: Reader) -> Reissue:
    fields = value.fields
    asset_id, quantity = fields.get("assetId"), fields.get("quantity")
    reissuable = fields.get("isReissuable")
    if type(asset_id) is bytes and type(quantity) is int and type(reissuable) is bool:
        return Reissue(asset_id, quantity, reissuable)
    found = _options(value, "assetId", "quantity", "isReissuable")
    raise _unexpected(found, reader, "Reissue")


def _burn(value: CaseObject, reader: Reader) -> Burn:
    asset_id, quantity = value.fields.get("assetId"), value.fields.get("quantity")
    if type(asset_id) is bytes and type(quantity) is int:
        return Burn(asset_id, quantity)
    raise _unexpected(_options(value, "assetId", "quantity"), reader, "Burn")


def _sponsor_fee(value: CaseObject, reader: Reader) -> SponsorFee:
    asset_id, fee = value.fields.get("assetId"), value.fields.get("minSponsoredAssetFee")
    if type(asset_id) is bytes and fee is not None:
        if type(fee) is int:
            return SponsorFee(asset_id, fee)
        if fee is UNIT:
            return SponsorFee(asset_id, None)
        text = f"can't reconstruct minSponsoredAssetFee from {plain_text(fee)}"
        raise _unexpected(text, msgspec.structs.replace(reader, version=_FIRST_WITH_LISTS))
    raise _unexpected(_options(value, "assetId", "minSponsoredAssetFee"), reader, "SponsorFee")


def _lease(value: CaseObject, reader: Reader) -> Lease:
    fields = value.fields
    to, amount, nonce = fields.get("recipient"), fields.get("amount"), fields.get("nonce")
    if isinstance(to, CaseObject) and type(amount) is int and type(nonce) is int:
        recipient = _recipient(to, reader)
        target = recipient.name if isinstance(recipient, Alias) else recipient
        lease_id = chain_data.lease_id(target, nonce, amount, reader.transaction_id)
        return Lease(lease_id, recipient, amount, nonce)
    raise _unexpected(_options(value, "recipient", "amount", "nonce"), reader, "Lease")


def _lease_cancel(value: CaseObject, reader: Reader) -> LeaseCancel:
    lease_id = value.fields.get("leaseId")
    if type(lease_id) is bytes:
        return LeaseCancel(lease_id)
    raise _unexpected(_options(value, "leaseId"), reader, "LeaseCancel")


def _typed(kind: type) -> Callable[[CaseObject, Reader], Action]:
    return lambda value, reader: _entry(value, (kind,), reader)


_READERS: Final[dict[str, Callable[[CaseObject, Reader], Action]]] = {
    "IntegerEntry": _typed(int),
    "BooleanEntry": _typed(bool),
    "BinaryEntry": _typed(bytes),
    "StringEntry": _typed(str),
    "DeleteEntry": _delete_entry,
    "ScriptTransfer": _transfer,
    "Issue": _issue,
    "Reissue": _reissue,
    "Burn": _burn,
    "SponsorFee": _sponsor_fee,
    "Lease": _lease,
    "LeaseCancel": _lease_cancel,
}
_SINCE_V5: Final = (_lease, _lease_cancel)
