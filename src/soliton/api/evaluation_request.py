"""The body of a request to evaluate a dApp's expression or function.

What lives here: reading it, with all errors of its members together. What does not: the evaluation
(``rest.evaluation``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/utils/
UtilsEvaluationRequest.scala`` and ``state/BlockchainOverrides.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeVar

import msgspec

from soliton.api import errors
from soliton.api.errors import ApiError
from soliton.api.json_transactions import Members
from soliton.api.lookup import about_base58, decode_id
from soliton.api.translate import json_faults, refusal
from soliton.chain.addresses import Address, from_public_key, parse_address
from soliton.chain.errors import AddressError, JsonFieldError, ValueRuleError
from soliton.chain.function_calls import DEFAULT_CALL, FunctionCall, read_call_json
from soliton.chain.json_kinds import (
    expect_long,
    member,
    read_asset_id,
    read_long,
    read_string,
)
from soliton.chain.transactions.invoke_script import PAYMENTS, Payment, check_payments
from soliton.chain.transactions.json_reader import parse_public_key
from soliton.chain.values import MAX_I64, MIN_I64, AssetId
from soliton.crypto import base58
from soliton.errors import InputError
from soliton.ledger.dry_run import Caller
from soliton.ride import environment
from soliton.ride.bindings import Call, argument_value

T = TypeVar("T")

MAX_PAYMENTS: Final = 10
NO_KEY: Final = bytes(32)
_STATE: Final = "state"
_MAX_LONG_CHARS: Final = 20
_NO_ID: Final = base58.encode(bytes(32))


class Balances(msgspec.Struct, frozen=True):
    """The balances that a request gives to an account; ``None`` leaves the coin's as it is."""

    address: Address
    waves: int | None
    assets: Mapping[AssetId, int]


class Invocation(msgspec.Struct, frozen=True):
    """The members of a request with a call, before their values are checked."""

    call: FunctionCall
    payments: tuple[Payment, ...]
    id: str
    fee: int
    fee_asset: str | None
    sender: str | None
    key: str


class Asked(msgspec.Struct, frozen=True):
    """A request: what to evaluate, as source or as a call, and the balances that it overrides."""

    what: str | Invocation
    balances: tuple[Balances, ...]


def read_body(body: Members, chain_id: int, fee: int) -> Asked:
    """Read a request; ``fee`` is the default one. Raises ``ApiError``."""
    faults: list[JsonFieldError] = []

    def take(name: str, read: Callable[[Any, int], T], default: T) -> T:
        value = body.get(name)
        try:
            return default if value is None else read(value, chain_id)
        except JsonFieldError as error:
            faults.append(error.below(f"obj.{name}"))
        except InputError as error:
            faults.append(JsonFieldError(f"obj.{name}", str(error)))
        return default

    unchanged: tuple[Balances, ...] = ()
    balances = take(_STATE, _overrides, unchanged)
    source = None if faults else body.get("expr")
    found = Invocation(
        call=take("call", read_call_json, None) or DEFAULT_CALL,
        payments=take("payment", PAYMENTS.json.read, ()),
        id=take("id", read_string, _NO_ID),
        fee=take("fee", read_long, fee),
        fee_asset=take("feeAssetId", read_string, None),
        sender=take("sender", read_string, None),
        key=take("senderPublicKey", read_string, base58.encode(NO_KEY)),
    )
    if isinstance(source, str):
        if not faults and len(body.keys() - {_STATE}) > 1:
            raise errors.CONFLICTING_REQUEST_STRUCTURE.error()
        return Asked(source, balances)
    if faults:
        raise errors.WRONG_JSON.error(cause=None, validationErrors=json_faults(faults))
    return Asked(found, balances)


def public_key(asked: Asked, family: str) -> bytes:
    """The public key of the caller; raises ``ApiError``, or ``ValueRuleError`` for a length that no
    key has.
    """
    if isinstance(asked.what, str):
        return NO_KEY
    try:
        return parse_public_key(asked.what.key)
    except ValueRuleError:
        raise
    except InputError as error:
        raise refusal(error, family) from error


def invocation(
    asked: Invocation, key: bytes, dapp: Address, chain_id: int, family: str
) -> tuple[Call, Caller]:
    """The call and its caller; raises ``ApiError``."""
    name, fee_asset = _decoded(asked.id), asked.fee_asset
    asset = None if fee_asset is None else AssetId(_decoded(fee_asset))
    try:
        if asked.sender is None:
            caller = from_public_key(key, chain_id)
        else:
            caller = parse_address(asked.sender, chain_id)
        if len(asked.payments) > MAX_PAYMENTS:
            raise errors.invalid_request(
                f"Script payment amount={len(asked.payments)} should not exceed {MAX_PAYMENTS}"
            )
        check_payments(asked.payments)
        arguments = tuple(map(argument_value, asked.call.args))
    except InputError as error:
        raise refusal(error, family) from error
    payments = tuple(environment.Payment(each.asset_id, each.amount) for each in asked.payments)
    call = Call(dapp, asked.call.function, arguments, payments, asset)
    return call, Caller(caller, key, name, asked.fee, asset)


def _decoded(text: str) -> bytes:
    data = decode_id(text)
    if data is None:
        raise errors.invalid_request(about_base58(text))
    return data


# --- balances -------------------------------------------------------------------------------------


def _overrides(value: object, chain_id: int) -> tuple[Balances, ...]:
    return member(value, "accounts", _accounts, chain_id, ())


def _accounts(value: object, chain_id: int) -> tuple[Balances, ...]:
    def read(text: str, account: object) -> Balances:
        waves = member(account, "regularBalance", _balance, chain_id, None)
        assets: Mapping[AssetId, int] = member(account, "assetBalances", _assets, chain_id, {})
        try:
            address = parse_address(text, chain_id)
        except AddressError as error:
            message = f"Can't parse Address in accounts: InvalidAddress({error})"
            raise JsonFieldError("", message) from error
        return Balances(address, waves, assets)

    return tuple(_members(value, read))


def _assets(value: object, chain_id: int) -> Mapping[AssetId, int]:
    def read(text: str, balance: object) -> tuple[AssetId, int]:
        return AssetId(read_asset_id(text, chain_id)), _balance(balance, chain_id)

    return dict(_members(value, read))


def _members(value: object, read: Callable[[str, object], T]) -> list[T]:
    """The members of an object, each converted; raises ``JsonFieldError`` with its path."""
    if not isinstance(value, dict):
        raise JsonFieldError("", "error.expected.jsobject")
    found = []
    for name, item in value.items():
        try:
            found.append(read(name, item))
        except JsonFieldError as error:
            raise error.below(f".{name}") from error
    return found


def _balance(value: object, _chain_id: int) -> int:
    """An amount that is not negative, as a number or a text."""
    if isinstance(value, str):
        number = _long(value)
    elif isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise JsonFieldError("", "error.expected.jsnumberorjsstring")
    else:
        try:
            number = expect_long(value)
        except JsonFieldError as error:
            raise JsonFieldError("", "error.invalid.long") from error
    if number < 0:
        raise JsonFieldError("", "error.expected.txnonnegativeamount")
    return number


def _long(text: str) -> int:
    if len(text) > _MAX_LONG_CHARS:
        raise JsonFieldError("", "error.expected.numberdigitlimit")
    digits = text[1:] if text[:1] in ("+", "-") else text
    number = int(text) if digits.isascii() and digits.isdecimal() else MAX_I64 + 1
    if not MIN_I64 <= number <= MAX_I64:
        raise JsonFieldError("", "error.expected.numberformatexception")
    return number


def with_request(error: ApiError, body: Members, address: str) -> Members:
    """The answer to a request that cannot be evaluated: it has status 200, as in the reference."""
    return error.body() | body | {"address": address}
