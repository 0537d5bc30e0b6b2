"""The standard library that sources are compiled against: types, variables and functions.

What lives here: the object types and variables of every version, and ``library``, which combines
them with the functions of ``soliton.ride.functions.catalogue``. What does not: the fields of a
transaction (its module in ``soliton.chain.transactions``), and a source's own declarations.

Sources: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/``
``ctx/impl/{PureContext,CryptoContext,Rounding}.scala`` and
``ctx/impl/waves/{Types,Vals,WavesContext}.scala``.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import cache
from typing import Final

import msgspec

from soliton.chain.transactions.model import RideForm
from soliton.chain.transactions.table import registered
from soliton.ride.compiler.type_text import parse_type, split_outside_brackets
from soliton.ride.functions.catalogue import (
    IN_ACCOUNTS,
    IN_DAPPS,
    Function,
    functions,
    lines_of_version,
)
from soliton.ride.types import (
    ANY,
    BIG_INT,
    BOOLEAN,
    BYTES,
    INT,
    NOTHING,
    STRING,
    UNIT,
    GenericList,
    Pattern,
    Record,
    Type,
    list_of,
    record,
    tuple_of,
    union_of,
)

_HIDDEN_SINCE: Final = 6
"""Since this version, sources cannot construct transactions."""
UTILITY_PREFIX: Final = "$"
"""The prefix of functions that only the compiler can call."""


class ScriptKind(Enum):
    """The kinds of script, which differ in their library."""

    ACCOUNT = "account"
    ASSET = "asset"
    CALL = "call"
    DAPP = "dApp"


class Signature(msgspec.Struct, frozen=True):
    """An overload of a function: its name or number in the compiled script, and its types."""

    key: int | str
    arguments: tuple[Pattern, ...]
    result: Pattern


class Library(msgspec.Struct, frozen=True):
    """The predefined names of a version and kind of script. Shared; do not modify."""

    version: int
    types: dict[str, Type]
    variables: dict[str, Type]
    functions: dict[str, tuple[Signature, ...]]
    constructors: dict[str, Signature]
    verifier_input: Type
    invocation: Type
    callable_result: Type | None

    @property
    def has_type_names_at_run_time(self) -> bool:
        """Whether a script can get the type name of a value (since version 6)."""
        return f"{UTILITY_PREFIX}getType" in self.functions


# --- object types ---------------------------------------------------------------------------------

_HEADER: Final = "id: ByteVector, fee: Int, timestamp: Int, version: Int"
_PROVEN: Final = "sender: Address, senderPublicKey: ByteVector, bodyBytes: ByteVector"

_EXPRESSIONS: Final = (
    "InvokeExpressionTransaction",
    6,
    "expression: ByteVector, feeAssetId: ByteVector|Unit",
)
"""A type of the language that no network supports."""
_LISTED: Final = tuple(
    f"{name}Transaction"
    for name in (
        *("Reissue", "Burn", "MassTransfer", "Exchange", "Transfer", "SetAssetScript"),
        *("InvokeScript", "UpdateAssetInfo", "InvokeExpression", "Issue", "Lease", "LeaseCancel"),
        *("CreateAlias", "SetScript", "SponsorFee", "Data"),
    )
)
"""The order of transaction types in error messages; others follow."""

_ORDER: Final = (
    "id: ByteVector, matcherPublicKey: ByteVector, assetPair: AssetPair, orderType: Buy|Sell,"
    " price: Int, amount: Int, timestamp: Int, expiration: Int, matcherFee: Int,"
    f" matcherFeeAssetId: ByteVector|Unit, {_PROVEN}"
)

_ENTRIES: Final = """
4 BooleanEntry: key: String, value: Boolean
4 StringEntry: key: String, value: String
4 BinaryEntry: key: String, value: ByteVector
4 IntegerEntry: key: String, value: Int
4 DeleteEntry: key: String
"""

_DAPP_TYPES: Final = """
3 AttachedPayment: assetId: ByteVector|Unit, amount: Int
3 ScriptTransfer: recipient: Recipient, amount: Int, asset: ByteVector|Unit
3-3 Invocation: payment: AttachedPayment|Unit, caller: Address, callerPublicKey: ByteVector,\
 transactionId: ByteVector, fee: Int, feeAssetId: ByteVector|Unit
4-4 Invocation: payments: List[AttachedPayment], caller: Address, callerPublicKey: ByteVector,\
 transactionId: ByteVector, fee: Int, feeAssetId: ByteVector|Unit
5 Invocation: payments: List[AttachedPayment], caller: Address, callerPublicKey: ByteVector,\
 transactionId: ByteVector, fee: Int, feeAssetId: ByteVector|Unit, originCaller: Address,\
 originCallerPublicKey: ByteVector
3-3 Asset: id: ByteVector, quantity: Int, decimals: Int, issuer: Address,\
 issuerPublicKey: ByteVector, reissuable: Boolean, scripted: Boolean, sponsored: Boolean
4 Asset: id: ByteVector, quantity: Int, decimals: Int, issuer: Address,\
 issuerPublicKey: ByteVector, reissuable: Boolean, scripted: Boolean, minSponsoredFee: Int|Unit,\
 name: String, description: String
3-3 BlockInfo: timestamp: Int, height: Int, baseTarget: Int, generationSignature: ByteVector,\
 generator: Address, generatorPublicKey: ByteVector
4-6 BlockInfo: timestamp: Int, height: Int, baseTarget: Int, generationSignature: ByteVector,\
 generator: Address, generatorPublicKey: ByteVector, vrf: ByteVector|Unit
7 BlockInfo: timestamp: Int, height: Int, baseTarget: Int, generationSignature: ByteVector,\
 generator: Address, generatorPublicKey: ByteVector, vrf: ByteVector|Unit,\
 rewards: List[(Address, Int)]
3-3 WriteSet: data: List[Entry]
3-3 TransferSet: transfers: List[ScriptTransfer]
3-3 ScriptResult: writeSet: WriteSet, transferSet: TransferSet
4 Issue: name: String, description: String, quantity: Int, decimals: Int, isReissuable: Boolean,\
 compiledScript: Script|Unit, nonce: Int
4 Reissue: assetId: ByteVector, quantity: Int, isReissuable: Boolean
4 Burn: assetId: ByteVector, quantity: Int
4 SponsorFee: assetId: ByteVector, minSponsoredAssetFee: Int|Unit
5 Lease: recipient: Recipient, amount: Int, nonce: Int
5 LeaseCancel: leaseId: ByteVector
"""

_HIDDEN_ACTIONS: Final = frozenset({"Issue"})
_ISSUE_ACTIONS: Final = ("Issue", "Reissue", "Burn", "SponsorFee")
_LEASE_ACTIONS: Final = ("Lease", "LeaseCancel")
_ENTRY_NAMES: Final = ("BooleanEntry", "StringEntry", "BinaryEntry", "IntegerEntry", "DeleteEntry")
_ROUNDING: Final = ("Up", "HalfDown", "Down", "HalfUp", "HalfEven", "Ceiling", "Floor")
_ROUNDING_SINCE_V5: Final = _ROUNDING[2:]
DIGESTS: Final = (
    "NoAlg", "Md5", "Sha1", "Sha224", "Sha256", "Sha384", "Sha512",
    "Sha3224", "Sha3256", "Sha3384", "Sha3512",
)  # fmt: skip

RESERVED_VARIABLES: Final = frozenset(
    {
        *("Buy", "Sell", "height", "lastBlock", "nil", "this", "tx", "unit"),
        *(name.upper() for name in (*_ROUNDING_SINCE_V5, *DIGESTS)),
    }
)
"""Names that compaction does not use."""


def _rows(table: str, version: int) -> list[tuple[str, str]]:
    rows = (line.partition(": ") for line in lines_of_version(table, version))
    return [(name, fields) for name, _, fields in rows]


def _record(name: str, fields: str, names: dict[str, Type], *, hidden: bool = False) -> Record:
    parts = []
    for field in split_outside_brackets(fields, ","):
        label, _, text = field.partition(": ")
        parts.append((label, _plain(parse_type(text, names))))
    return record(name, parts, hidden)


def _plain(pattern: Pattern) -> Type:
    assert not isinstance(pattern, GenericList)
    return pattern  # type: ignore[return-value]


class _Transactions(msgspec.Struct):
    obsolete: list[Record]
    active: list[Record]
    of_assets: list[Record]


def _transactions(version: int, names: dict[str, Type], *, proofs: bool) -> _Transactions:
    found = _Transactions([], [], [])
    proven = f", {_PROVEN}"
    last = ", proofs: List[ByteVector]" if proofs else ""

    def add(title: str, fields: str) -> Record:
        return _record(title, fields, names, hidden=version >= _HIDDEN_SINCE)

    rows: dict[str, tuple[Record, RideForm | None]] = {}
    for kind in registered():
        form = kind.ride
        if form is not None and form.since <= version:
            fields = f"{_typed(form, form.fields, version)}, {_HEADER}"
            if form.proven:
                tail = _typed(form, form.tail, version)
                fields += proven + (f", {tail}" if tail else "") + last
            rows[kind.title] = add(kind.title, fields), form
    title, since, text = _EXPRESSIONS
    if version >= since:
        rows[title] = add(title, f"{text}, {_HEADER}{proven}{last}"), None
    for title in sorted(rows, key=_rank):
        each, form = rows[title]
        (found.obsolete if form is not None and form.obsolete else found.active).append(each)
        if form is None or form.for_assets:
            found.of_assets.append(each)
    return found


def _rank(title: str) -> int:
    return _LISTED.index(title) if title in _LISTED else len(_LISTED)


def _typed(form: RideForm, names: Iterable[str], version: int) -> str:
    """Return the fields of a version with their types."""
    types = ((name, form.extra[name].type_in(version)) for name in names)
    return ", ".join(f"{name}: {of}" for name, of in types if of)


class _Types(msgspec.Struct):
    names: dict[str, Type]
    hidden_names: dict[str, Type]
    """Names for the tables of this module and the catalogue of functions."""
    asset_transactions: list[Record]
    transactions: list[Record]


def _build_types(version: int, *, proofs: bool) -> _Types:
    names: dict[str, Type] = {each.name: each for each in (UNIT, INT, BOOLEAN, BYTES, STRING)}
    if version >= 5:
        names["BigInt"] = BIG_INT
    for mode in _ROUNDING if version < 5 else _ROUNDING_SINCE_V5:
        names[mode] = record(mode, hidden=True)
    extra: dict[str, Type] = {"Any": ANY, "Nothing": NOTHING, "Script": record("Script")}
    extra["Rounding"] = union_of(
        [names[mode] for mode in (_ROUNDING if version < 5 else _ROUNDING_SINCE_V5)]
    )
    if version >= 3:
        for digest in DIGESTS:
            names[digest] = record(digest, hidden=version > 3)
        label = "RsaDigestAlgs" if version in (4, 5) else None
        digests = union_of([names[digest] for digest in DIGESTS], label)
        names[digests.name] = extra["Digest"] = digests
    names["Address"] = _record("Address", "bytes: ByteVector", names)
    names["Alias"] = _record("Alias", "alias: String", names)
    extra["Recipient"] = union_of([names["Address"], names["Alias"]])
    scope = {**names, **extra}

    def add(name: str, fields: str, *, hidden: bool = False) -> None:
        names[name] = scope[name] = _record(name, fields, scope, hidden=hidden)

    add("Transfer", "recipient: Recipient, amount: Int")
    add("AssetPair", "amountAsset: ByteVector|Unit, priceAsset: ByteVector|Unit")
    scope["Buy"], scope["Sell"] = record("Buy", hidden=True), record("Sell", hidden=True)
    attachment = ", attachment: ByteVector|Unit" if version >= 8 else ""
    add("Order", _ORDER + attachment + (", proofs: List[ByteVector]" if proofs else ""))
    _add_entries(version, names, scope)
    if version >= 3:
        for name, fields in _rows(_DAPP_TYPES, version):
            add(name, fields, hidden=name in _HIDDEN_ACTIONS)
    return _with_transactions(version, names, scope, proofs=proofs)


def _add_entries(version: int, names: dict[str, Type], scope: dict[str, Type]) -> None:
    if version < 4:
        value = "key: String, value: Int|Boolean|ByteVector|String"
        names["DataEntry"] = scope["DataEntry"] = _record("DataEntry", value, scope)
        scope["Entry"] = names["DataEntry"]
        return
    for name, fields in _rows(_ENTRIES, version):
        names[name] = scope[name] = _record(name, fields, scope)
    scope["Entry"] = union_of([names[name] for name in _ENTRY_NAMES])
    names["BalanceDetails"] = scope["BalanceDetails"] = _record(
        "BalanceDetails", "available: Int, regular: Int, generating: Int, effective: Int", scope
    )


def _with_transactions(
    version: int, names: dict[str, Type], scope: dict[str, Type], *, proofs: bool
) -> _Types:
    found = _transactions(version, scope, proofs=proofs)
    obsolete, active = found.obsolete, found.active
    for each in (*obsolete, *active):
        names[each.name] = scope[each.name] = each
    names["Transaction"] = union_of(active, "Transaction")
    scope["AnyTransaction"] = union_of([*obsolete, *active])
    return _Types(names, scope, found.of_assets, active)


def _callable_result(version: int, names: dict[str, Type]) -> Type | None:
    """Return the type that callable functions must return, or ``None`` before version 3."""
    if version < 3:
        return None
    if version == 3:
        return union_of([names[name] for name in ("WriteSet", "TransferSet", "ScriptResult")])
    actions = [*_ENTRY_NAMES, "ScriptTransfer", *_ISSUE_ACTIONS]
    if version == 4:
        return list_of(union_of([names[name] for name in actions]))
    results = list_of(union_of([names[name] for name in (*actions, *_LEASE_ACTIONS)]))
    return union_of([results, tuple_of([results, ANY])])


# --- variables and functions ----------------------------------------------------------------------


def _variables(version: int, kind: ScriptKind, types: _Types) -> dict[str, Type]:
    names = types.names
    found: dict[str, Type] = {"unit": UNIT, "height": INT}
    for mode in _ROUNDING if version < 5 else _ROUNDING_SINCE_V5:
        found[mode.upper()] = names[mode]
    if version >= 2:
        sides = union_of([types.hidden_names["Buy"], types.hidden_names["Sell"]])
        found["Buy"] = found["Sell"] = sides
    if version >= 3:
        found["nil"] = list_of(NOTHING)
        found["lastBlock"] = names["BlockInfo"]
        found["this"] = names["Asset" if kind is ScriptKind.ASSET else "Address"]
        for digest in DIGESTS:
            found[digest.upper()] = names[digest]
    if kind is not ScriptKind.DAPP:
        order = [] if kind is ScriptKind.ASSET else [names["Order"]]
        possible = types.asset_transactions if kind is ScriptKind.ASSET else types.transactions
        found["tx"] = union_of([*order, *possible])
    return found


_LISTS_OF_UNIONS: Final = frozenset({405, 406, 407, 408, 409, 425})
"""Functions that also accept a union of lists."""


def _signature(function: Function, names: dict[str, Type]) -> Signature:
    arguments = []
    for text in function.arguments:
        argument = parse_type(text, names)
        if function.key in _LISTS_OF_UNIONS:
            inner = parse_type(text.removeprefix("List[").removesuffix("]"), names)
            argument = GenericList(inner, argument.name)
        arguments.append(argument)
    return Signature(function.key, tuple(arguments), parse_type(function.result, names))


def is_available(where: str, kind: ScriptKind) -> bool:
    """Whether a function with this restriction of the catalogue can be used in a kind of script."""
    if where == IN_DAPPS:
        return kind in (ScriptKind.DAPP, ScriptKind.CALL)
    return where != IN_ACCOUNTS or kind in (ScriptKind.DAPP, ScriptKind.ACCOUNT)


def _functions(
    version: int, kind: ScriptKind, names: dict[str, Type]
) -> dict[str, tuple[Signature, ...]]:
    found: dict[str, list[Signature]] = {}
    for function in functions(version):
        if not is_available(function.where, kind):
            continue
        name = function.name
        if name.startswith("_"):
            name = UTILITY_PREFIX + name[1:]
        found.setdefault(name, []).append(_signature(function, names))
    return {name: tuple(signatures) for name, signatures in found.items()}


@cache
def library(version: int, kind: ScriptKind) -> Library:
    """Return the library of a version and kind of script."""
    types = _build_types(version, proofs=kind is not ScriptKind.ASSET)
    constructors = {
        name: Signature(name, tuple(of for _, of in each.fields), each)
        for name, each in types.names.items()
        if isinstance(each, Record) and not each.hidden
    }
    return Library(
        version,
        types.names,
        _variables(version, kind, types),
        _functions(version, kind, types.hidden_names),
        constructors,
        union_of([types.names["Order"], *types.transactions], "VerifierInput"),
        types.names.get("Invocation", ANY),
        _callable_result(version, types.names),
    )
