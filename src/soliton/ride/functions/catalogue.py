"""The functions of the library: numbers, names, types and costs, per version of the language.

What lives here: the table, and the records made from it. What does not: the implementations
(``library``), and the types (``compiler.library``).

A line of the table has the key, the name in sources, the types of arguments and result, the costs,
and a restriction of use, if any. A cost ``4:20`` applies from version 4 on, until the next one;
``4:-`` ends the function. Types are written as in sources, with the type variables ``A``, ``B`` and
``T``, and these short names: ``Recipient`` is ``Address|Alias``, ``Entry`` is ``DataEntry`` before
version 4 and the five typed entries since, ``Rounding`` the rounding modes, ``Digest`` the digest
algorithms, ``AnyTransaction`` all types of transactions, ``Tuple`` a tuple of any length.

Compiled scripts refer to native functions (numeric keys) by number, and to the others by their key,
which is not always the name in sources.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/FunctionIds.scala`` and
``ctx/impl/{PureContext,CryptoContext}.scala``, ``ctx/impl/waves/{Functions,WavesContext}.scala``.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec

from soliton.ride.expressions import LAST_VERSION

IN_DAPPS: Final = "dapp"
"""Only for dApps and called expressions."""
IN_ACCOUNTS: Final = "account"
"""Only for scripts of accounts, including dApps, not of assets."""

EQUAL, IS_INSTANCE_OF, THROW, GET_TYPE, GET_ELEMENT = 0, 1, 2, 3, 401
CALLS_OF_DAPPS: Final = frozenset((1020, 1021))
"""The functions that call another dApp."""
POW_BIG_INT_TO_HALF: Final = 0x10000 + 118
"""The function in the body of ``sqrtBigInt``: ``pow`` with a BigInt constant as exponent, which no
expression can represent. No script can contain such a large function number.
"""

_POW_BIG_INT: Final = 118
_MAX_TUPLE: Final = 22
_FIRST_TUPLE_ID: Final = 1300
_FIRST_GROTH16_ID: Final = 2400
_FIRST_BN256_GROTH16_ID: Final = 2450
_BN256_GROTH16_COSTS: Final = (
    800, 850, 950, 1000, 1050, 1100, 1150, 1200, 1250, 1300, 1350, 1400, 1450, 1550, 1600,
)  # fmt: skip

_NATIVE: Final = """
0; ==; T, T; Boolean; 1:1
1; _isInstanceOf; T, String; Boolean; 1:1
2; throw; String; Nothing; 1:1
3; _getType; T; String; 6:1
100; +; Int, Int; Int; 1:1
101; -; Int, Int; Int; 1:1
102; >; Int, Int; Boolean; 1:1
103; >=; Int, Int; Boolean; 1:1
104; *; Int, Int; Int; 1:1
105; /; Int, Int; Int; 1:1
106; %; Int, Int; Int; 1:1
107; fraction; Int, Int, Int; Int; 1:1 5:14 6:1
108; pow; Int, Int, Int, Int, Int, Rounding; Int; 3:100 6:28
109; log; Int, Int, Int, Int, Int, Rounding; Int; 3:100
110; fraction; Int, Int, Int, Rounding; Int; 6:1
118; pow; BigInt, Int, BigInt, Int, Int, Rounding; BigInt; 5:200 6:270
119; log; BigInt, Int, BigInt, Int, Int, Rounding; BigInt; 5:200
200; size; ByteVector; Int; 1:1
201; take; ByteVector, Int; ByteVector; 1:1 4:6 9:2
202; drop; ByteVector, Int; ByteVector; 1:1 4:6 9:2
203; +; ByteVector, ByteVector; ByteVector; 1:10 4:2
204; takeRight; ByteVector, Int; ByteVector; 6:6 9:2
205; dropRight; ByteVector, Int; ByteVector; 6:6 9:2
300; +; String, String; String; 1:10 4:20 6:1
303; take; String, Int; String; 1:1 4:20 9:2
304; drop; String, Int; String; 1:1 4:20 9:2
305; size; String; Int; 1:1
306; takeRight; String, Int; String; 6:20 9:2
307; dropRight; String, Int; String; 6:20 9:2
310; toBigInt; Int; BigInt; 5:1
311; +; BigInt, BigInt; BigInt; 5:8 8:1
312; -; BigInt, BigInt; BigInt; 5:8 8:1
313; *; BigInt, BigInt; BigInt; 5:64 8:1
314; /; BigInt, BigInt; BigInt; 5:64 8:1
315; %; BigInt, BigInt; BigInt; 5:64 8:1
316; fraction; BigInt, BigInt, BigInt; BigInt; 5:128 6:1
317; fraction; BigInt, BigInt, BigInt, Rounding; BigInt; 5:128 6:1
318; -; BigInt; BigInt; 5:8 8:1
319; >; BigInt, BigInt; Boolean; 5:8 8:1
320; >=; BigInt, BigInt; Boolean; 5:8 8:1
400; size; List[T]; Int; 1:2 9:1
401; getElement; List[T], Int; T; 1:2 9:1
405; median; List[Int]; Int; 4:20
406; max; List[Int]; Int; 4:3
407; min; List[Int]; Int; 4:3
408; max; List[BigInt]; BigInt; 5:192 8:6
409; min; List[BigInt]; BigInt; 5:192 8:6
410; toBytes; Int; ByteVector; 1:1
411; toBytes; String; ByteVector; 1:1 4:8
412; toBytes; Boolean; ByteVector; 1:1
413; toBytes; BigInt; ByteVector; 5:65 8:1
414; toBigInt; ByteVector; BigInt; 5:65 8:1
415; toBigInt; ByteVector, Int, Int; BigInt; 5:65 8:1
416; toInt; BigInt; Int; 5:1
420; toString; Int; String; 1:1
421; toString; Boolean; String; 1:1
422; toString; BigInt; String; 5:65 6:1
423; parseBigIntValue; String; BigInt; 5:65 8:1
424; parseBigInt; String; BigInt|Unit; 5:65 8:1
425; median; List[BigInt]; BigInt; 5:160 8:35
500; sigVerify; ByteVector, ByteVector, ByteVector; Boolean; 1:100 4:200 6:180
501; keccak256; ByteVector; ByteVector; 1:10 4:200 6:195
502; blake2b256; ByteVector; ByteVector; 1:10 4:200 6:136
503; sha256; ByteVector; ByteVector; 1:10 4:200 6:118 9:36
504; rsaVerify; Digest, ByteVector, ByteVector, ByteVector; Boolean; 3:300 4:1000
600; toBase58String; ByteVector; String; 1:10 4:3
601; fromBase58String; String; ByteVector; 1:10 4:1
602; toBase64String; ByteVector; String; 1:10 4:35 9:3
603; fromBase64String; String; ByteVector; 1:10 4:40 9:12
604; toBase16String; ByteVector; String; 3:10 9:4
605; fromBase16String; String; ByteVector; 3:10 9:4
606; toBase64String_1C; ByteVector; String; 9:1
607; fromBase64String_1C; String; ByteVector; 9:1
608; toBase16String_1C; ByteVector; String; 9:1
609; fromBase16String_1C; String; ByteVector; 9:1
700; checkMerkleProof; ByteVector, ByteVector, ByteVector; Boolean; 3:30 4:-
701; createMerkleRoot; List[ByteVector], ByteVector, Int; ByteVector; 4:30 9:3
800; groth16Verify; ByteVector, ByteVector, ByteVector; Boolean; 4:2700
801; bn256Groth16Verify; ByteVector, ByteVector, ByteVector; Boolean; 4:1650
900; ecrecover; ByteVector, ByteVector; ByteVector; 4:70
901; calculateDelay; Address, Int; Int; 8:1
902; validateCertificateChain; List[ByteVector], List[ByteVector], Int; ByteVector; 9:43
903; p256Verify; ByteVector, ByteVector, ByteVector; Boolean; 9:43
1000; transactionById; ByteVector; AnyTransaction|Unit; 1:100 3:-
1001; transactionHeightById; ByteVector; Int|Unit; 1:100 4:20
1003; assetBalance; Recipient, ByteVector|Unit; Int; 1:100 4:-
1004; assetInfo; ByteVector; Asset|Unit; 3:100 4:15
1005; blockInfoByHeight; Int; BlockInfo|Unit; 3:100 4:5
1006; transferTransactionById; ByteVector; TransferTransaction|Unit; 3:100 4:60
1007; wavesBalance; Recipient; BalanceDetails; 4:10
1008; assetBalance; Recipient, ByteVector; Int; 4:10
1009; scriptHash; Recipient; ByteVector|Unit; 5:200
1020; invoke; Recipient, String|Unit, List[Any], List[AttachedPayment]; Any; 5:75; dapp
1021; reentrantInvoke; Recipient, String|Unit, List[Any], List[AttachedPayment]; Any; 5:75; dapp
1040; getInteger; List[Entry], String; Int|Unit; 1:10
1041; getBoolean; List[Entry], String; Boolean|Unit; 1:10
1042; getBinary; List[Entry], String; ByteVector|Unit; 1:10
1043; getString; List[Entry], String; String|Unit; 1:10
1050; getInteger; Recipient, String; Int|Unit; 1:100 4:10
1051; getBoolean; Recipient, String; Boolean|Unit; 1:100 4:10
1052; getBinary; Recipient, String; ByteVector|Unit; 1:100 4:10
1053; getString; Recipient, String; String|Unit; 1:100 4:10
1054; isDataStorageUntouched; Recipient; Boolean; 5:10
1055; getInteger; String; Int|Unit; 5:10; account
1056; getBoolean; String; Boolean|Unit; 5:10; account
1057; getBinary; String; ByteVector|Unit; 5:10; account
1058; getString; String; String|Unit; 5:10; account
1060; addressFromRecipient; Recipient; Address; 1:100 4:5
1061; toString; Address; String; 3:10 6:1
1062; addressFromString; String; Address|Unit; 4:1
1063; addressFromPublicKey; ByteVector; Address; 6:1
1070; transferTransactionFromProto; ByteVector; TransferTransaction|Unit; 4:5
1080; calculateAssetId; Issue; ByteVector; 4:10
1081; calculateLeaseId; Lease; ByteVector; 5:1
1090; Issue; String, String, Int, Int, Boolean; Issue; 4:1
1091; Issue; String, String, Int, Int, Boolean, Script|Unit, Int; Issue; 4:1
1092; Lease; Recipient, Int; Lease; 5:1
1093; Lease; Recipient, Int, Int; Lease; 5:1
1100; cons; A, List[B]; List[A|B]; 3:2 4:1
1101; :+; List[A], B; List[A|B]; 4:1
1102; ++; List[A], List[B]; List[A|B]; 4:4
1103; indexOf; List[T], T; Int|Unit; 4:5
1104; lastIndexOf; List[T], T; Int|Unit; 4:5
1105; removeByIndex; List[T], Int; List[T]; 4:7 8:4 9:1
1106; replaceByIndex; List[T], Int, T; List[T]; 8:4 9:1
1107; fill; Int, T; List[T]; 9:2
1200; toUtf8String; ByteVector; String; 3:20 4:7
1201; toInt; ByteVector; Int; 3:10 4:1
1202; toInt; ByteVector, Int; Int; 3:10 4:1
1203; indexOf; String, String; Int|Unit; 3:20 4:3
1204; indexOf; String, String, Int; Int|Unit; 3:20 4:3
1205; split; String, String; List[String]; 3:100 4:75 6:1
1206; parseInt; String; Int|Unit; 3:20 4:2
1207; lastIndexOf; String, String; Int|Unit; 3:20 4:3
1208; lastIndexOf; String, String, Int; Int|Unit; 3:20 4:3
1209; makeString; List[String], String; String; 4:30 6:1
1210; makeString_2C; List[String], String; String; 6:2
1211; makeString_11C; List[String], String; String; 6:11
1212; split_4C; String, String; List[String]; 6:4
1213; split_51C; String, String; List[String]; 6:51
1214; replaceFirst; String, String, String; String; 9:2
1215; replaceAll; String, String, String; String; 9:2
1350; size; Tuple; Int; 6:1
2500; sigVerify_8Kb; ByteVector, ByteVector, ByteVector; Boolean; 4:47 6:43
2501; sigVerify_16Kb; ByteVector, ByteVector, ByteVector; Boolean; 4:57 6:50
2502; sigVerify_32Kb; ByteVector, ByteVector, ByteVector; Boolean; 4:70 6:64
2503; sigVerify_64Kb; ByteVector, ByteVector, ByteVector; Boolean; 4:102 6:93
2504; sigVerify_128Kb; ByteVector, ByteVector, ByteVector; Boolean; 4:172 6:150
2600; rsaVerify_16Kb; Digest, ByteVector, ByteVector, ByteVector; Boolean; 4:500
2601; rsaVerify_32Kb; Digest, ByteVector, ByteVector, ByteVector; Boolean; 4:550
2602; rsaVerify_64Kb; Digest, ByteVector, ByteVector, ByteVector; Boolean; 4:625
2603; rsaVerify_128Kb; Digest, ByteVector, ByteVector, ByteVector; Boolean; 4:750
2700; keccak256_16Kb; ByteVector; ByteVector; 4:10 6:20
2701; keccak256_32Kb; ByteVector; ByteVector; 4:25 6:39
2702; keccak256_64Kb; ByteVector; ByteVector; 4:50 6:74
2703; keccak256_128Kb; ByteVector; ByteVector; 4:100 6:147
2800; blake2b256_16Kb; ByteVector; ByteVector; 4:10 6:13
2801; blake2b256_32Kb; ByteVector; ByteVector; 4:25 6:29
2802; blake2b256_64Kb; ByteVector; ByteVector; 4:50 6:58
2803; blake2b256_128Kb; ByteVector; ByteVector; 4:100 6:115
2900; sha256_16Kb; ByteVector; ByteVector; 4:10 6:12 9:5
2901; sha256_32Kb; ByteVector; ByteVector; 4:25 6:23 9:9
2902; sha256_64Kb; ByteVector; ByteVector; 4:50 6:47 9:17
2903; sha256_128Kb; ByteVector; ByteVector; 4:100 6:93 9:32
"""

_NAMED: Final = """
!; !; Boolean; Boolean; 1:11 3:1
!=; !=; T, T; Boolean; 1:26 3:1
-; -; Int; Int; 1:9 3:1
@extrNative(1040); getIntegerValue; List[Entry], String; Int; 3:10
@extrNative(1041); getBooleanValue; List[Entry], String; Boolean; 3:10
@extrNative(1042); getBinaryValue; List[Entry], String; ByteVector; 3:10
@extrNative(1043); getStringValue; List[Entry], String; String; 3:10
@extrNative(1050); getIntegerValue; Recipient, String; Int; 3:100 4:10
@extrNative(1051); getBooleanValue; Recipient, String; Boolean; 3:100 4:10
@extrNative(1052); getBinaryValue; Recipient, String; ByteVector; 3:100 4:10
@extrNative(1053); getStringValue; Recipient, String; String; 3:100 4:10
@extrNative(1055); getIntegerValue; String; Int; 5:10; account
@extrNative(1056); getBooleanValue; String; Boolean; 5:10; account
@extrNative(1057); getBinaryValue; String; ByteVector; 5:10; account
@extrNative(1058); getStringValue; String; String; 5:10; account
@extrNative(1062); addressFromStringValue; String; Address; 4:1
@extrUser(addressFromString); addressFromStringValue; String; Address; 3:124 4:-
@extrUser(getBinary); getBinaryValue; List[Entry], Int; ByteVector; 3:30 4:4 9:2
@extrUser(getBoolean); getBooleanValue; List[Entry], Int; Boolean; 3:30 4:4 9:2
@extrUser(getInteger); getIntegerValue; List[Entry], Int; Int; 3:30 4:4 9:2
@extrUser(getString); getStringValue; List[Entry], Int; String; 3:30 4:4 9:2
addressFromPublicKey; addressFromPublicKey; ByteVector; Address; 1:82 4:63 6:-
addressFromString; addressFromString; String; Address|Unit; 1:124 4:-
contains; contains; String, String; Boolean; 4:3
containsElement; containsElement; List[T], T; Boolean; 4:5
dropRight; dropRight; String, Int; String; 1:19 4:20 6:-
dropRightBytes; dropRight; ByteVector, Int; ByteVector; 1:19 4:6 6:-
extract; extract; T|Unit; T; 1:13 4:-
fraction; fraction; Int, Int, Int, Rounding; Int; 5:17 6:-
getBinary; getBinary; List[Entry], Int; ByteVector|Unit; 1:30 4:4 9:2
getBoolean; getBoolean; List[Entry], Int; Boolean|Unit; 1:30 4:4 9:2
getInteger; getInteger; List[Entry], Int; Int|Unit; 1:30 4:4 9:2
getString; getString; List[Entry], Int; String|Unit; 1:30 4:4 9:2
isDefined; isDefined; T|Unit; Boolean; 1:35 3:1
parseIntValue; parseIntValue; String; Int; 3:20 4:2
sqrt; sqrt; Int, Int, Int, Rounding; Int; 6:2
sqrtBigInt; sqrt; BigInt, Int, Int, Rounding; BigInt; 6:5
takeRight; takeRight; String, Int; String; 1:19 4:20 6:-
takeRightBytes; takeRight; ByteVector, Int; ByteVector; 1:19 4:6 6:-
throw; throw; -; Nothing; 1:2 3:1
value; value; T|Unit; T; 3:13 4:2
valueOrElse; valueOrElse; T|Unit, T; T; 4:2
valueOrErrorMessage; valueOrErrorMessage; T|Unit, String; T; 3:13 4:2
wavesBalance; wavesBalance; Recipient; Int; 1:109 4:-
"""


class Function(msgspec.Struct, frozen=True):
    """A function of the library, in all its versions."""

    key: int | str
    name: str
    arguments: tuple[str, ...]
    result: str
    costs: dict[int, int]
    """By version; only versions that have the function."""
    where: str = ""


def lines_of_version(table: str, version: int) -> list[str]:
    """Return the lines of a table for a version, without their versions (``1-3``, ``4``)."""
    lines = []
    for line in table.strip().splitlines():
        versions, _, rest = line.partition(" ")
        first, _, last = versions.partition("-")
        if int(first) <= version <= int(last or LAST_VERSION):
            lines.append(rest)
    return lines


def _rows(table: str) -> list[Function]:
    functions = []
    for line in table.strip().splitlines():
        key, name, arguments, result, costs, *where = line.split("; ")
        functions.append(
            Function(
                int(key) if key.isdigit() else key,
                name,
                () if arguments == "-" else tuple(arguments.split(", ")),
                result,
                _costs(costs),
                where[0] if where else "",
            )
        )
    return functions


def _costs(text: str) -> dict[int, int]:
    costs: dict[int, int] = {}
    for step in text.split():
        since, _, cost = step.partition(":")
        for version in range(int(since), LAST_VERSION + 1):
            if cost == "-":
                costs.pop(version, None)
            else:
                costs[version] = int(cost)
    return costs


def _families() -> list[Function]:
    """Return the tuple constructors by size, and the Groth16 functions by number of inputs."""
    functions = []
    letters = tuple(chr(ord("A") + index) for index in range(_MAX_TUPLE))
    for size in range(2, _MAX_TUPLE + 1):
        types = letters[:size]
        functions.append(
            Function(
                _FIRST_TUPLE_ID + size - 2,
                f"_Tuple{size}",
                types,
                f"({', '.join(types)})",
                _costs("4:1"),
            )
        )
    three = ("ByteVector",) * 3
    for index, cost in enumerate(_BN256_GROTH16_COSTS):
        inputs = f"{index + 1}inputs"
        functions += [
            Function(
                _FIRST_GROTH16_ID + index,
                f"groth16Verify_{inputs}",
                three,
                "Boolean",
                _costs(f"4:{1200 + 100 * index}"),
            ),
            Function(
                _FIRST_BN256_GROTH16_ID + index,
                f"bn256Groth16Verify_{inputs}",
                three,
                "Boolean",
                _costs(f"4:{cost}"),
            ),
        ]
    return functions


FUNCTIONS: Final = (*_rows(_NATIVE), *_families(), *_rows(_NAMED))
"""All functions of all versions."""


@cache
def functions(version: int) -> tuple[Function, ...]:
    """Return the functions of a version."""
    return tuple(function for function in FUNCTIONS if version in function.costs)


@cache
def costs(version: int) -> dict[int | str, int]:
    """Return the costs of the functions of a version, by key. Shared; do not modify."""
    table = {function.key: function.costs[version] for function in functions(version)}
    if "sqrtBigInt" in table:
        table[POW_BIG_INT_TO_HALF] = table[_POW_BIG_INT]
    return table
