"""Recipients: resolution of addresses and aliases, which scripts can forge.

What lives here: type-checked access to fields of objects, resolution of recipients, and the
functions that convert strings, keys and recipients to addresses. What does not: queries on accounts
(``chain_data``).

Sources: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/
impl/EnvironmentFunctions.scala``, ``impl/waves/Functions.scala`` and
``node/src/main/scala/com/wavesplatform/{transaction/smart/WavesEnvironment,account/Recipient}.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.chain import addresses
from soliton.chain.errors import AddressError, AliasError
from soliton.chain.layouts import lenient_text
from soliton.ride.environment import CallContext
from soliton.ride.errors import EvaluationError, NativeCrash, ThrownError
from soliton.ride.functions.calling import mismatch
from soliton.ride.functions.data import checked_bytes
from soliton.ride.functions.printing import plain_text
from soliton.ride.functions.text import checked_text
from soliton.ride.values import UNIT, CaseObject, Value, case_object, kind_of

ADDRESS: Final = "Address"
ALIAS: Final = "Alias"
_ADDRESS_START: Final = bytes((addresses.ADDRESS_VERSION,))
_ALIAS_START: Final = bytes((addresses.ALIAS_VERSION,))
_ALIAS_HEAD: Final = 4
"""The version, the chain id and the length of the name."""


def field_of(subject: CaseObject, name: str, kind: type) -> Value:
    """Return a field of an object; raise ``NativeCrash`` if it has another type."""
    value = subject.fields.get(name)
    if kind_of(value) is not kind:
        raise NativeCrash(f"{subject.type_name} without a field {name} of its type")
    assert value is not None
    return value


def is_unit(value: Value | None) -> bool:
    """Whether a value is ``unit``."""
    return isinstance(value, CaseObject) and value.type_name == UNIT.type_name


def text_field(subject: CaseObject, name: str) -> str:
    """Return a field of type String; raise ``NativeCrash`` if it is none."""
    value = field_of(subject, name, str)
    assert isinstance(value, str)
    return str(value)


def bytes_field(subject: CaseObject, name: str) -> bytes:
    """Return a field of type ByteVector; raise ``NativeCrash`` if it is none."""
    value = field_of(subject, name, bytes)
    assert isinstance(value, bytes)
    return value


def int_field(subject: CaseObject, name: str) -> int:
    """Return a field of type Int; raise ``NativeCrash`` if it is none."""
    value = field_of(subject, name, int)
    assert type(value) is int
    return value


def resolved(context: CallContext, alias: str) -> bytes:
    """Return the address of an alias; raise ``EvaluationError`` if there is none."""
    try:
        known = addresses.make_alias(alias, context.environment.chain_id)
    except AliasError as error:
        raise EvaluationError(f"GenericError({error})") from None
    address = context.environment.resolve_alias(alias)
    if address is None:
        raise EvaluationError(f"Alias '{known.text()}' does not exist.")
    return address


def _checked(chain_id: int, address: bytes) -> bytes:
    try:
        return addresses.check_address(address, chain_id)
    except AddressError as error:
        raise EvaluationError(f"InvalidAddress({error})") from None


def account(context: CallContext, recipient: CaseObject) -> bytes | None:
    """Return the address of a recipient, or ``None`` if that is invalid. Raise ``EvaluationError``
    if the object is neither an address nor an alias.
    """
    if recipient.type_name not in (ADDRESS, ALIAS):
        raise EvaluationError(f"{plain_text(recipient)} neither Address nor alias")
    name, shown = ("bytes", "'bytes'") if recipient.type_name == ADDRESS else ("alias", "alias")
    if name not in recipient.fields:
        raise EvaluationError(f"Can't find {shown}")
    return account_or_none(context, recipient)


def account_or_none(context: CallContext, recipient: CaseObject) -> bytes | None:
    """Return the address of an address or alias object, or ``None`` if it is invalid."""
    own = context.environment.chain_id
    address = bytes_field(recipient, "bytes") if recipient.type_name == ADDRESS else None
    alias = "" if address is not None else text_field(recipient, "alias")
    try:
        return resolved(context, alias) if address is None else _checked(own, address)
    except EvaluationError:
        return None


def check_recipient(recipient: CaseObject) -> None:
    """Raise ``ThrownError`` for an object that is neither an address nor an alias."""
    if recipient.type_name not in (ADDRESS, ALIAS):
        raise ThrownError(f"Unexpected recipient type {recipient.type_name}")


def existing_account(context: CallContext, recipient: CaseObject) -> bytes:
    """Return the address of a recipient; raise ``EvaluationError`` if it is invalid."""
    check_recipient(recipient)
    if recipient.type_name == ALIAS:
        return resolved(context, text_field(recipient, "alias"))
    return _checked(context.environment.chain_id, bytes_field(recipient, "bytes"))


def account_of_any_form(context: CallContext, recipient: CaseObject) -> bytes:
    """Return the address of a recipient where the bytes of an address may also be those of an
    alias, or of an address on another chain.

    Raises ``EvaluationError`` if it is invalid, and ``NativeCrash`` if its bytes begin like none.
    """
    check_recipient(recipient)
    if recipient.type_name == ALIAS:
        return existing_account(context, recipient)
    data = bytes_field(recipient, "bytes")
    if data[:1] == _ALIAS_START:
        return _account_of_alias_bytes(context, data)
    if data[:1] != _ADDRESS_START:
        raise NativeCrash(f"Not a valid recipient: {plain_text(data)}")
    own = context.environment.chain_id
    return _checked(data[1] if len(data) == addresses.ADDRESS_LENGTH else own, data)


def _account_of_alias_bytes(context: CallContext, data: bytes) -> bytes:
    if len(data) < _ALIAS_HEAD:
        raise EvaluationError("GenericError(Bad alias bytes)")
    alias = addresses.Alias(data[1], lenient_text(data[_ALIAS_HEAD:]))
    if alias.chain_id != context.environment.chain_id:
        raise EvaluationError(f"Alias '{alias.text()}' does not exist.")
    return resolved(context, alias.name)


def address_value(address: bytes) -> CaseObject:
    """Return the object of an address; raise ``EvaluationError`` if it is too long."""
    return case_object(ADDRESS, {"bytes": checked_bytes(address)})


def address_from_recipient(context: CallContext, recipient: CaseObject) -> Value:
    """``addressFromRecipient``: an address unchanged, an alias resolved."""
    if recipient.type_name == ADDRESS:
        return recipient
    if recipient.type_name != ALIAS:
        raise mismatch("addressFromRecipient", (recipient,))
    alias = text_field(recipient, "alias")
    try:
        addresses.make_alias(alias, context.environment.chain_id)
    except AliasError as error:
        raise NativeCrash(str(error)) from None
    return address_value(resolved(context, alias))


def address_from_text(context: CallContext, text: str) -> Value:
    """``addressFromString`` since version 4: unit for an invalid address."""
    try:
        return address_value(addresses.parse_address(text, context.environment.chain_id))
    except AddressError:
        return UNIT


def address_from_public_key(context: CallContext, key: bytes) -> Value:
    """``addressFromPublicKey`` since version 6."""
    if len(key) not in (addresses.PUBLIC_KEY_LENGTH, addresses.ETHEREUM_KEY_LENGTH):
        raise EvaluationError(f"invalid public key length: {len(key)}")
    return address_value(addresses.from_public_key(key, context.environment.chain_id))


def address_to_text(address: CaseObject) -> Value:
    """``toString`` of an address: its bytes in Base58, without a check."""
    if address.type_name != ADDRESS:
        raise mismatch("toString(a: Address)", (address,))
    return checked_text(plain_text(bytes_field(address, "bytes")))
