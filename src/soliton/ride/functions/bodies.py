"""The named functions of the library, which are written in the language.

What lives here: their parameters and bodies, as expressions, and the error messages of ``value``.
What does not: their costs (``catalogue``), and their evaluation, with its own rules of complexity
(the evaluator).

The expressions are those of the reference, node by node: the older complexity rules count their
nodes, and an error inside costs the complexity spent so far.

Sources: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/
impl/PureContext.scala`` and ``impl/waves/Functions.scala``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import msgspec

from soliton.chain.addresses import ADDRESS_PREFIX
from soliton.ride.expressions import (
    FALSE,
    TRUE,
    Block,
    BytesConst,
    Call,
    Expression,
    GetField,
    If,
    Let,
    LongConst,
    ObjectConst,
    Ref,
    StringConst,
)
from soliton.ride.functions import catalogue
from soliton.ride.functions.catalogue import (
    EQUAL,
    GET_ELEMENT,
    IS_INSTANCE_OF,
    POW_BIG_INT_TO_HALF,
    THROW,
)
from soliton.ride.functions.printing import plain_text
from soliton.ride.values import CaseObject, Value

SUBTRACT: Final = 101
POW: Final = 108
SIZE_OF_BYTES: Final = 200
TAKE_BYTES: Final = 201
DROP_BYTES: Final = 202
ADD_BYTES: Final = 203
TAKE_STRING: Final = 303
DROP_STRING: Final = 304
SIZE_OF_STRING: Final = 305
INT_TO_BIG_INT: Final = 310
FRACTION_BIG_INT_ROUNDED: Final = 317
BIG_INT_TO_INT: Final = 416
KECCAK256: Final = 501
BLAKE2B256: Final = 502
FROM_BASE58: Final = 601
ASSET_BALANCE: Final = 1003
INDEX_OF_ELEMENT: Final = 1103
INDEX_OF_TEXT: Final = 1203
PARSE_INT: Final = 1206
KECCAK256_16KB: Final = 2700
BLAKE2B256_16KB: Final = 2800

DEFAULT_THROW_MESSAGE: Final = "Explicit script termination"
ADDRESS_VERSION: Final = 1
ADDRESS_LENGTH: Final = 26
CHECKSUM_LENGTH: Final = 4
PUBLIC_KEY_HASH_LENGTH: Final = 20

_DATA_TYPES: Final = {
    "getInteger": "Int",
    "getBoolean": "Boolean",
    "getBinary": "ByteVector",
    "getString": "String",
}
VALUE: Final = "value"
"""The key of the function whose error message depends on the expression of its argument."""
_UNIT: Final = Ref("unit")
_EXTRACT: Final = "@extr"


class NamedFunction(msgspec.Struct, frozen=True):
    """The parameters and the body of a named function."""

    parameters: tuple[str, ...]
    body: Expression


@cache
def named_functions(version: int, chain_id: int) -> dict[str, NamedFunction]:
    """Return the named functions of a version by key. Shared; do not modify.

    ``chain_id`` is the network's byte in addresses, which two bodies contain.
    """
    found = _all_versions()
    if version <= 3:
        found |= _until_version_3(chain_id)
    if version <= 5:
        found["addressFromPublicKey"] = _address_from_public_key(version, chain_id)
    for function in catalogue.functions(version):
        if isinstance(function.key, str) and function.key.startswith(_EXTRACT):
            found[function.key] = _extracting(function.key, version)
    names = {function.key for function in catalogue.functions(version)}
    return {name: function for name, function in found.items() if name in names}


def missing_value_message(argument: Expression, inner: Sequence[Value]) -> str:
    """Return the error message of ``value`` for an argument that is ``unit``.

    ``argument`` is the expression of the argument; ``inner`` has the values of its arguments if it
    is a call.
    """
    base = "value() called on unit value"
    match argument:
        case Call(function=key):
            return _missing_result_message(key, inner, base)
        case GetField(field=field):
            return f"{base} while accessing field '{field}'"
        case Ref(name=name):
            return f"{base} by reference '{name}'"
        case Block(old=True):
            return f"{base} after let block evaluation"
        case Block():
            return f"{base} after block evaluation"
        case If():
            return f"{base} after condition evaluation"
        case _:
            return base


def _missing_result_message(key: int | str, inner: Sequence[Value], base: str) -> str:
    name = _source_name(key)
    values = [plain_text(value) for value in inner]
    if key in (1050, 1051, 1052, 1053):
        address = inner[0]
        field = next(iter(address.fields.values()), "") if isinstance(address, CaseObject) else ""
        return (
            f"value by key '{values[1]}' not found for the address base58'{plain_text(field)}' "
            f"on function '{name}Value' call"
        )
    if key in (1055, 1056, 1057, 1058):
        return (
            f"value by key '{values[0]}' not found for the contract address "
            f"on function '{name}Value' call"
        )
    if key in (1040, 1041, 1042, 1043):
        return f"value by key '{values[1]}' not found in the list on function '{name}Value' call"
    if key in _DATA_TYPES:
        return f"value by index {values[1]} not found in the list on function '{name}Value' call"
    return f"{base} on function '{name}' call"


def _source_name(key: int | str) -> str:
    if isinstance(key, str):
        return key
    return next((f.name for f in catalogue.FUNCTIONS if f.key == key), str(key))


def _all_versions() -> dict[str, NamedFunction]:
    found = {
        "!=": _function("@a @b", Call("!", (Call(EQUAL, (Ref("@a"), Ref("@b"))),))),
        "!": _function("@p", If(Ref("@p"), FALSE, TRUE)),
        "-": _function("@n", Call(SUBTRACT, (LongConst(0), Ref("@n")))),
        "throw": NamedFunction((), Call(THROW, (StringConst(DEFAULT_THROW_MESSAGE),))),
        "extract": _unless_unit("extract() called on unit value"),
        "value": _unless_unit("value() called on unit value"),
        "valueOrElse": _function(
            "@value @alternative",
            If(Call(EQUAL, (Ref("@value"), _UNIT)), Ref("@alternative"), Ref("@value")),
        ),
        "valueOrErrorMessage": _function(
            "@a @msg",
            If(Call(EQUAL, (Ref("@a"), _UNIT)), Call(THROW, (Ref("@msg"),)), Ref("@a")),
        ),
        "isDefined": _function("@a", Call("!=", (Ref("@a"), _UNIT))),
        "contains": _function(
            "@source @substr",
            Call("isDefined", (Call(INDEX_OF_TEXT, (Ref("@source"), Ref("@substr"))),)),
        ),
        "containsElement": _function(
            "@list @element",
            Call(
                "!=",
                (Call(INDEX_OF_ELEMENT, (Ref("@list"), Ref("@element"))), ObjectConst("Unit", ())),
            ),
        ),
        "parseIntValue": _function(
            "str",
            Call(
                "valueOrErrorMessage",
                (
                    Call(PARSE_INT, (Ref("str"),)),
                    StringConst("Error while parsing string to integer"),
                ),
            ),
        ),
        "fraction": _rounded_fraction(),
        "sqrt": _square_root(),
        "sqrtBigInt": _square_root_of_big_int(),
        "takeRight": _from_the_right(DROP_STRING, SIZE_OF_STRING),
        "dropRight": _from_the_right(TAKE_STRING, SIZE_OF_STRING),
        "takeRightBytes": _from_the_right(DROP_BYTES, SIZE_OF_BYTES),
        "dropRightBytes": _from_the_right(TAKE_BYTES, SIZE_OF_BYTES),
    }
    for name, data_type in _DATA_TYPES.items():
        found[name] = _entry_by_index(data_type)
    return found


def _function(parameters: str, body: Expression) -> NamedFunction:
    return NamedFunction(tuple(parameters.split()), body)


def _unless_unit(message: str) -> NamedFunction:
    return _function(
        "@a",
        If(Call(EQUAL, (Ref("@a"), _UNIT)), Call(THROW, (StringConst(message),)), Ref("@a")),
    )


def _from_the_right(function: int, size: int) -> NamedFunction:
    length = Call(size, (Ref("@xs"),))
    return _function(
        "@xs @number",
        Call(function, (Ref("@xs"), Call(SUBTRACT, (length, Ref("@number"))))),
    )


def _rounded_fraction() -> NamedFunction:
    numbers = tuple(
        Call(INT_TO_BIG_INT, (Ref(name),)) for name in ("@value", "@numerator", "@denominator")
    )
    return _function(
        "@value @numerator @denominator @round",
        Call(BIG_INT_TO_INT, (Call(FRACTION_BIG_INT_ROUNDED, (*numbers, Ref("@round"))),)),
    )


def _square_root() -> NamedFunction:
    numbers = (Ref("@number"), Ref("@precision"), LongConst(5), LongConst(1))
    return _function(
        "@number @precision @resultPrecision @round",
        Call(POW, (*numbers, Ref("@resultPrecision"), Ref("@round"))),
    )


def _square_root_of_big_int() -> NamedFunction:
    names = ("@number", "@precision", "@resultPrecision", "@round")
    return NamedFunction(names, Call(POW_BIG_INT_TO_HALF, tuple(Ref(name) for name in names)))


def _entry_by_index(data_type: str) -> NamedFunction:
    entry = Call(GET_ELEMENT, (Ref("@data"), Ref("@index")))
    choice = If(
        Call(IS_INSTANCE_OF, (Ref("@val"), StringConst(data_type))),
        Ref("@val"),
        _UNIT,
    )
    return _function("@data @index", Block(Let("@val", GetField(entry, "value")), choice, old=True))


def _extracting(key: str, version: int) -> NamedFunction:
    """Return ``getIntegerValue`` or the like: ``value`` of the function in the key's brackets."""
    inside = key[key.index("(") + 1 : -1]
    target: int | str = int(inside) if inside.isdigit() else inside
    if target in ("addressFromString", 1062):
        parameters: tuple[str, ...] = ("@@string",)
    elif target in _DATA_TYPES:
        parameters = ("@@data", "@@index")
    elif target in (1055, 1056, 1057, 1058):
        parameters = ("@key",)
    elif target in (1040, 1041, 1042, 1043):
        parameters = ("@data", "@key")
    else:
        parameters = ("@addressOrAlias", "@key")
    inner = Call(target, tuple(Ref(name) for name in parameters))
    return NamedFunction(parameters, Call("value" if version >= 4 else "extract", (inner,)))


def _until_version_3(chain_id: int) -> dict[str, NamedFunction]:
    return {
        "wavesBalance": _function(
            "@addressOrAlias", Call(ASSET_BALANCE, (Ref("@addressOrAlias"), _UNIT))
        ),
        "addressFromString": _address_from_string(chain_id),
    }


def _secure_hash(data: Expression, version: int) -> Expression:
    if version >= 4:
        return Call(KECCAK256_16KB, (Call(BLAKE2B256_16KB, (data,)),))
    return Call(KECCAK256, (Call(BLAKE2B256, (data,)),))


def _address_from_public_key(version: int, chain_id: int) -> NamedFunction:
    prefix = BytesConst(bytes((ADDRESS_VERSION, chain_id)))
    hashed = _secure_hash(Ref("@publicKey"), version)
    start = Call(ADD_BYTES, (prefix, Call(TAKE_BYTES, (hashed, LongConst(PUBLIC_KEY_HASH_LENGTH)))))
    name = "@afpk_withoutChecksum"
    checksum = Call(TAKE_BYTES, (_secure_hash(Ref(name), version), LongConst(CHECKSUM_LENGTH)))
    whole = Block(Let(name, start), Call(ADD_BYTES, (Ref(name), checksum)), old=True)
    return _function("@publicKey", Call("Address", (whole,)))


def _address_from_string(chain_id: int) -> NamedFunction:
    """``addressFromString`` of versions 1 to 3, where invalid Base58 is an error."""
    text = Ref("@string")
    prefix_length = LongConst(len(ADDRESS_PREFIX))
    stripped = If(
        Call(EQUAL, (Call(TAKE_STRING, (text, prefix_length)), StringConst(ADDRESS_PREFIX))),
        Call(DROP_STRING, (text, prefix_length)),
        text,
    )
    address = Ref("@afs_addrBytes")
    checksum_length = LongConst(CHECKSUM_LENGTH)
    hashed = _secure_hash(Call("dropRightBytes", (address, checksum_length)), 3)
    checks = (
        Call(EQUAL, (Call(SIZE_OF_BYTES, (address,)), LongConst(ADDRESS_LENGTH))),
        Call(
            EQUAL,
            (Call(TAKE_BYTES, (address, LongConst(1))), BytesConst(bytes((ADDRESS_VERSION,)))),
        ),
        Call(
            EQUAL,
            (
                Call(TAKE_BYTES, (Call(DROP_BYTES, (address, LongConst(1))), LongConst(1))),
                BytesConst(bytes((chain_id,))),
            ),
        ),
        Call(
            EQUAL,
            (
                Call("takeRightBytes", (address, checksum_length)),
                Call(TAKE_BYTES, (hashed, checksum_length)),
            ),
        ),
    )
    result: Expression = Call("Address", (address,))
    for check in reversed(checks):
        result = If(check, result, _UNIT)
    return _function(
        "@string",
        Block(Let(address.name, Call(FROM_BASE58, (stripped,))), result, old=True),
    )
