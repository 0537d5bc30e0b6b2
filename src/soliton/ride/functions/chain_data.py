"""Functions that query the chain, or calculate ids as the chain does.

What lives here: data entries, balances, assets, blocks, transactions, calls of other dApps, and
the constructors that are functions. What does not: the state (``soliton.ride.environment``), the
objects of transactions (``soliton.ride.bindings``), and resolution of accounts (``recipients``).

An object of type ``Address`` can contain any bytes, even those of no address on this chain. In most
functions it then counts as an account without data.

Sources: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/
impl/waves/Functions.scala``, ``ctx/impl/EnvironmentFunctions.scala``,
``lang/v1/traits/domain/CallableAction.scala`` and
``node/src/main/scala/com/wavesplatform/transaction/smart/WavesEnvironment.scala``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from soliton.chain import addresses
from soliton.chain.errors import AliasError
from soliton.chain.transactions.ethereum import Ethereum, EthereumTransfer
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto.hashes import blake2b256
from soliton.ride import bindings
from soliton.ride.environment import AssetInfo, BlockInfo, CallContext, Payment
from soliton.ride.errors import EvaluationError, NativeCrash, ThrownError
from soliton.ride.functions import transfer_messages
from soliton.ride.functions.calling import mismatch
from soliton.ride.functions.data import checked_bytes, low_int32
from soliton.ride.functions.printing import plain_text
from soliton.ride.functions.recipients import (
    ADDRESS,
    ALIAS,
    account,
    account_of_any_form,
    account_or_none,
    address_value,
    bytes_field,
    check_recipient,
    existing_account,
    field_of,
    int_field,
    is_unit,
    resolved,
    text_field,
)
from soliton.ride.functions.text import checked_text, units_length
from soliton.ride.values import (
    MAX_STRING_BYTES,
    UNIT,
    CaseObject,
    RideList,
    Value,
    case_object,
    kind_of,
    ride_list,
    ride_tuple,
    utf8,
    weight,
)

MAX_ASSET_NAME_BYTES: Final = 16
MAX_ASSET_DESCRIPTION_BYTES: Final = 1000


# --- data -----------------------------------------------------------------------------------------


def entry_of_account(kind: type, context: CallContext, recipient: CaseObject, key: str) -> Value:
    """``getInteger`` and the like: unit if there is no entry of this type."""
    address = account(context, recipient)
    return UNIT if address is None else _entry(kind, context, address, key)


def own_entry(kind: type, name: str, arguments: Sequence[Value], context: CallContext) -> Value:
    """``getInteger`` and the like for the script's own account; as in the reference, the function
    also takes the arguments of the one for any account.
    """
    match tuple(arguments):
        case (str() as key,):
            address = context.environment.this()
            if isinstance(address, bytes):
                return _entry(kind, context, address, key)
        case (CaseObject() as recipient, str() as key):
            return entry_of_account(kind, context, recipient, key)
    raise mismatch(name, arguments)


def _entry(kind: type, context: CallContext, address: bytes, key: str) -> Value:
    value = context.environment.data(address, key)
    if value is None or type(value) is not kind:
        return UNIT
    if isinstance(value, bytes):
        return checked_bytes(value)
    return checked_text(value) if isinstance(value, str) else value


def is_data_untouched(context: CallContext, recipient: CaseObject) -> Value:
    """``isDataStorageUntouched``: whether an account has never had data."""
    address = account(context, recipient)
    return address is None or not context.environment.has_data(address)


def entry_of_list(kind: type, entries: RideList, key: str) -> Value:
    """``getInteger`` and the like of a list: the value of the first entry with the key.

    A key that is too long for a string of most functions is found nowhere.
    """
    wanted = key if weight(key) <= MAX_STRING_BYTES else None
    for entry in entries.items:
        if not isinstance(entry, CaseObject) or "key" not in entry.fields:
            raise NativeCrash("an element that is no entry")
        if entry.fields["key"] == wanted:
            if "value" not in entry.fields:
                raise NativeCrash("key not found: value")
            value = entry.fields["value"]
            return value if kind_of(value) is kind else UNIT
    return UNIT


# --- balances and scripts -------------------------------------------------------------------------


def balance_before(context: CallContext, recipient: CaseObject, asset: Value) -> Value:
    """``assetBalance`` until version 3, also of the native token."""
    if not is_unit(asset) and not isinstance(asset, bytes):
        raise mismatch("assetBalance", (recipient, asset))
    asset_id = asset if isinstance(asset, bytes) else None
    return context.environment.balance(account_of_any_form(context, recipient), asset_id)


def balance(context: CallContext, recipient: CaseObject, asset: bytes) -> Value:
    """``assetBalance`` since version 4."""
    return context.environment.balance(account_of_any_form(context, recipient), asset)


def balance_details(context: CallContext, recipient: CaseObject) -> Value:
    """``wavesBalance`` since version 4."""
    details = context.environment.balance_details(existing_account(context, recipient))
    return case_object(
        "BalanceDetails",
        {
            "available": details.available,
            "regular": details.regular,
            "generating": details.generating,
            "effective": details.effective,
        },
    )


def script_hash(context: CallContext, recipient: CaseObject) -> Value:
    """``scriptHash``: unit for an account without a script."""
    check_recipient(recipient)
    address = account_or_none(context, recipient)
    script = None if address is None else context.environment.script(address)
    return UNIT if script is None else blake2b256(script)


# --- assets, blocks, transactions -----------------------------------------------------------------


def asset_info(context: CallContext, asset_id: bytes) -> Value:
    """``assetInfo``."""
    info = context.environment.asset_info(asset_id)
    return UNIT if info is None else asset_object(info, context.version)


def asset_object(info: AssetInfo, version: int) -> CaseObject:
    """Return the object of an asset in a version of the language."""
    fields: dict[str, Value] = {
        "id": info.id,
        "quantity": info.quantity,
        "decimals": info.decimals,
        "issuer": address_value(info.issuer),
        "issuerPublicKey": info.issuer_public_key,
        "reissuable": info.reissuable,
        "scripted": info.scripted,
    }
    if version >= 4:
        fields["minSponsoredFee"] = bindings.optional(info.min_sponsored_fee)
        fields["name"] = info.name
        fields["description"] = info.description
    else:
        fields["sponsored"] = info.min_sponsored_fee is not None
    return case_object("Asset", fields)


def block_info(context: CallContext, height: int) -> Value:
    """``blockInfoByHeight``."""
    info = context.environment.block_info(low_int32(height))
    return UNIT if info is None else block_object(info, context.version)


def block_object(info: BlockInfo, version: int) -> CaseObject:
    """Return the object of a block in a version of the language."""
    fields: dict[str, Value] = {
        "timestamp": info.timestamp,
        "height": info.height,
        "baseTarget": info.base_target,
        "generationSignature": info.generation_signature,
        "generator": address_value(info.generator),
        "generatorPublicKey": info.generator_public_key,
    }
    if version >= 4:
        fields["vrf"] = bindings.optional(info.vrf)
    if version >= 7:
        fields["rewards"] = ride_list(
            ride_tuple(address_value(address), amount) for address, amount in info.rewards
        )
    return case_object("BlockInfo", fields)


def calculate_delay(context: CallContext, generator: CaseObject, balance: int) -> Value:
    """``calculateDelay``."""
    if generator.type_name != ADDRESS:
        raise mismatch("calculateDelay", (generator, balance))
    address = bytes_field(generator, "bytes")
    if len(address) > addresses.ADDRESS_LENGTH:
        raise EvaluationError(
            f"Address bytes length = {len(address)} exceeds limit = {addresses.ADDRESS_LENGTH}"
        )
    if balance <= 0:
        raise EvaluationError(f"Unexpected non-positive balance = {balance}")
    return context.environment.calculate_delay(address, balance)


def _view(context: CallContext) -> bindings.View:
    # The older rule on long scripts still applies to transactions from the chain.
    switches = msgspec.structs.replace(context.switches, whole_script_field=False)
    return bindings.View(context.version, not context.asset_script, switches)


def transaction(context: CallContext, transaction_id: bytes) -> Value:
    """``transactionById`` of versions 1 and 2."""
    found = context.environment.transaction(transaction_id)
    if found is None or isinstance(found.payload, Ethereum):
        return UNIT
    view = _view(context)
    if isinstance(found.payload, InvokeScript):
        return _invocation(found, view)
    return bindings.transaction_object(found, view)


def _invocation(found: AnyTransaction, view: bindings.View) -> Value:
    payload = found.payload
    if len(payload.payments) > 1:
        raise NativeCrash("several payments in a version that knows one")
    call = bindings.call_of(payload, found.fee_asset_id)
    return bindings.invoke_object(bindings.envelope_of(found), call, view)


def transaction_height(context: CallContext, transaction_id: bytes) -> Value:
    """``transactionHeightById``."""
    return bindings.optional(context.environment.transaction_height(transaction_id))


def transfer(context: CallContext, transaction_id: bytes) -> Value:
    """``transferTransactionById``; Ethereum transfers since version 6."""
    found = context.environment.transaction(transaction_id)
    if found is None:
        return UNIT
    view = _view(context)
    if isinstance(found.payload, Transfer):
        return bindings.transaction_object(found, view)
    action = found.payload.action if isinstance(found.payload, Ethereum) else None
    if not isinstance(action, EthereumTransfer) or context.version < 6:
        return UNIT
    asset_id = None
    if action.token is not None:
        asset_id = context.environment.token_asset(action.token)
    return bindings.transfer_object(
        bindings.foreign_envelope_of(found), action.recipient, asset_id, action.amount, view
    )


def transfer_from_protobuf(context: CallContext, data: bytes) -> Value:
    """``transferTransactionFromProto``."""
    return transfer_messages.transfer_from_protobuf(context, data, _view(context))


# --- ids ------------------------------------------------------------------------------------------


def _sized(text: str) -> bytes:
    data = utf8(text)
    return len(data).to_bytes(4, "big") + data


def _i64(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


def calculate_asset_id(context: CallContext, issue: CaseObject) -> Value:
    """``calculateAssetId``: the asset id of an action."""
    if issue.type_name != "Issue":
        raise mismatch("calculateAssetId(i: Issue)", (issue,))
    name, description = text_field(issue, "name"), text_field(issue, "description")
    if len(utf8(description)) > MAX_ASSET_DESCRIPTION_BYTES:
        raise EvaluationError(f"Description length should not exceed {MAX_ASSET_DESCRIPTION_BYTES}")
    if len(utf8(name)) > MAX_ASSET_NAME_BYTES:
        raise EvaluationError(f"Name length should not exceed {MAX_ASSET_NAME_BYTES}")
    return asset_id(
        name,
        description,
        int_field(issue, "decimals"),
        int_field(issue, "quantity"),
        field_of(issue, "isReissuable", bool) is True,
        int_field(issue, "nonce"),
        context.environment.transaction_id,
    )


def asset_id(
    name: str,
    description: str,
    decimals: int,
    quantity: int,
    reissuable: bool,
    nonce: int,
    transaction_id: bytes,
) -> bytes:
    """Return the id of an asset that a dApp issues."""
    return blake2b256(
        _sized(name)
        + _sized(description)
        + low_int32(decimals).to_bytes(4, "big", signed=True)
        + _i64(quantity)
        + int(reissuable).to_bytes(2, "big")
        + _i64(nonce)
        + transaction_id
    )


def calculate_lease_id(context: CallContext, lease: CaseObject) -> Value:
    """``calculateLeaseId``: the lease id of an action."""
    if lease.type_name != "Lease":
        raise mismatch("calculateLeaseId(l: Lease)", (lease,))
    recipient = field_of(lease, "recipient", CaseObject)
    assert isinstance(recipient, CaseObject)
    check_recipient(recipient)
    target: bytes | str
    if recipient.type_name == ADDRESS:
        target = bytes_field(recipient, "bytes")
        if len(target) > addresses.ADDRESS_LENGTH:
            raise EvaluationError(
                f"Address bytes length={len(target)} exceeds limit={addresses.ADDRESS_LENGTH}"
            )
    else:
        target = text_field(recipient, "alias")
        length = units_length(target)
        if length > addresses.ALIAS_MAX_LENGTH:
            raise EvaluationError(
                f"Alias name length={length} exceeds limit={addresses.ALIAS_MAX_LENGTH}"
            )
    return lease_id(
        target,
        int_field(lease, "nonce"),
        int_field(lease, "amount"),
        context.environment.transaction_id,
    )


def lease_id(target: bytes | str, nonce: int, amount: int, transaction_id: bytes) -> bytes:
    """Return the id of a dApp's lease to an address, or to the name of an alias."""
    recipient = target if isinstance(target, bytes) else _sized(target)
    return blake2b256(recipient + transaction_id + _i64(nonce) + _i64(amount))


# --- constructors ---------------------------------------------------------------------------------

_ISSUE_FIELDS: Final = (
    "name",
    "description",
    "quantity",
    "decimals",
    "isReissuable",
    "compiledScript",
    "nonce",
)
_LEASE_FIELDS: Final = ("recipient", "amount", "nonce")


def issue(arguments: Sequence[Value], _context: CallContext) -> Value:
    """``Issue`` with a script and a nonce; like other constructors, it does not check types."""
    return case_object("Issue", dict(zip(_ISSUE_FIELDS, arguments, strict=False)))


def simple_issue(arguments: Sequence[Value], context: CallContext) -> Value:
    """``Issue`` without a script and a nonce."""
    return issue((*arguments, UNIT, 0), context)


def lease(arguments: Sequence[Value], _context: CallContext) -> Value:
    """``Lease``."""
    return case_object("Lease", dict(zip(_LEASE_FIELDS, arguments, strict=False)))


def simple_lease(arguments: Sequence[Value], context: CallContext) -> Value:
    """``Lease`` without a nonce."""
    return lease((*arguments, 0), context)


# --- calls of other dApps -------------------------------------------------------------------------


def invoke(reentrant: bool, arguments: Sequence[Value], context: CallContext) -> Value:
    """``invoke`` and ``reentrantInvoke``; sets the remaining complexity."""
    dapp = _called_dapp(context, arguments[0] if arguments else None)
    function = _called_function(arguments[1] if len(arguments) > 1 else None)
    if len(arguments) != 4 or not isinstance(arguments[3], RideList):
        raise EvaluationError("Unexpected args")
    payments = tuple(_payment(payment) for payment in arguments[3].items)
    passed = arguments[2]
    if not isinstance(passed, RideList):
        raise NativeCrash(str(mismatch("invoke", arguments)))
    result, context.left = context.environment.invoke(
        dapp, function, passed.items, payments, context.left, reentrant
    )
    return result


def _called_dapp(context: CallContext, recipient: Value | None) -> bytes:
    if isinstance(recipient, CaseObject):
        if recipient.type_name == ADDRESS:
            address = recipient.fields.get("bytes")
            if isinstance(address, bytes):
                return address
            raise ThrownError("Unexpected address bytes")
        if recipient.type_name == ALIAS:
            alias = recipient.fields.get("alias")
            if not isinstance(alias, str):
                raise ThrownError("Unexpected alias arg")
            return _dapp_of_alias(context, alias)
    raise ThrownError("Unexpected recipient arg")


def _dapp_of_alias(context: CallContext, alias: str) -> bytes:
    try:
        addresses.make_alias(alias, context.environment.chain_id)
    except AliasError as error:
        raise NativeCrash(str(error)) from None
    try:
        return resolved(context, alias)
    except EvaluationError as error:
        raise ThrownError(str(error)) from None


def _called_function(name: Value | None) -> str:
    if isinstance(name, str):
        return str(name)
    if is_unit(name):
        return "default"
    raise ThrownError("Unexpected name arg")


def _payment(payment: Value) -> Payment:
    if not isinstance(payment, CaseObject) or payment.type_name != "AttachedPayment":
        raise ThrownError(f"Unexpected payment arg {plain_text(payment)}")
    asset, amount = payment.fields.get("assetId"), payment.fields.get("amount")
    if type(amount) is not int or not (is_unit(asset) or isinstance(asset, bytes)):
        raise ThrownError("Unexpected payment args")
    return Payment(asset if isinstance(asset, bytes) else None, amount)
