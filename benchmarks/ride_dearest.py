"""What a script can make a node do for one unit of complexity: every function of every version of
the language at the dearest of many arguments, and every construct.

Run ``.venv/bin/python benchmarks/ride_dearest.py`` (about three minutes), optionally with ``--all``
for all lines, ``--version N`` and ``--function NAME``. It prints four tables, the dearest first:

- **functions**: µs of CPU for each unit. All are numbered functions with values as arguments, or
  library functions that are written in the language. An implementation that several versions have
  is measured once, and stands in the version where it costs least;
- **calls that fail**: these end the script, so they happen once in a run, and count as a whole;
- **constructs**: whole scripts, by the compiled code and by the exact evaluator, which runs a
  script again that reaches its limit. Expressions are free, so what counts is the time for each;
- **units full of expressions**: functions as large as a script may be, which cost one unit.

``ride_dearest.txt`` has a recent result. It exits with 1 if something is beyond ``MAX_MICROS``,
``MAX_NANOS`` or ``MAX_EXACT_NANOS``.

Arguments are all combinations of values that are as large, as deep or as long as the limits of the
language allow, or that make an algorithm slow (texts that match almost everywhere, numbers that are
just too large). As many are called as fit into ``SECONDS``, and the dearest of them several times.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import math
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from soliton.crypto import base58
from soliton.crypto.groth16 import BLS12_381, BN254
from soliton.ride import expressions
from soliton.ride.compiler import compile_source
from soliton.ride.compiler.library import ScriptKind
from soliton.ride.environment import CallContext, Switches
from soliton.ride.errors import EvaluationError
from soliton.ride.evaluator_compiler import Program
from soliton.ride.evaluator_library import load_library
from soliton.ride.evaluator_machine import Machine
from soliton.ride.expressions import LAST_VERSION, AnnotatedFunction, DApp, Func, Ref
from soliton.ride.functions import catalogue
from soliton.ride.functions.library import implementations
from soliton.ride.script import parse_script
from soliton.ride.values import (
    NIL,
    UNIT,
    BigInt,
    CaseObject,
    RideList,
    Value,
    case_object,
    ride_list,
    ride_tuple,
)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.ride.static_environment import ADDRESS, StaticEnvironment

MAX_MICROS = 200.0
"""The bound of a unit of complexity in a function, on the machine of docs/dependencies.md."""
MAX_NANOS = 1_000.0
"""The bound of an expression in compiled code."""
MAX_EXACT_NANOS = 10_000.0
"""The bound of an expression in the exact evaluator."""
KEPT = 8
"""So many of the dearest combinations are measured again."""
REPEATS = 5
MOST = 6_000
"""The limit of combinations for a function; others are chosen at random, always the same ones."""
SECONDS = 0.4
"""The time for the combinations of a function, and for the dearest of them."""
OLD_KEYS = frozenset((108, 118, 303, 304, 305, 900, 1203, 1204, 1205, 1207, 1208))
"""Functions whose rules depended on features, in versions that were there before."""
LAST_OLD_VERSION = 4

BIG_BYTES = bytes(range(256)) * 648
TYPES: dict[str, list[Value]] = {
    "Int": [0, 1, -1, 2, 5, 8, 18, 499, 999, 16_000, 32_767, 165_947, 2**31, 2**63 - 1, -(2**63)],
    "Boolean": [True, False],
    "BigInt": [
        BigInt(0),
        BigInt(1),
        BigInt(5),
        BigInt(10**18 + 1),
        BigInt(2**255 - 19),
        BigInt(2**511 - 1),
        BigInt(-(2**511)),
        BigInt(int("7" * 153)),
    ],
    "ByteVector": [
        b"",
        bytes(32),
        bytes([255]) * 64,
        bytes([255]) * 26,
        b"a" * 500,
        b"a" * 8_192,
        b"z" * 16_384,
        "冬".encode() * 10_922,
        "😀".encode() * 8_191,
        b"x" * 32_767,
        b"z" * 32_768,
        BIG_BYTES[:65_536],
        BIG_BYTES[:131_072],
        "冬".encode() * 51_200,
        b"u" * 153_600,
        BIG_BYTES[:165_000],
    ],
    "String": [
        "",
        "a",
        "冬",
        "😀",
        "\ud83d",
        "aaaaa",
        "," * 19,
        "," * 999,
        "," * 32_000,
        "," * 6_000,
        "a" * 450 + "b",
        "a" * 2_400,
        "a" * 1_200 + "b" + "a" * 1_100,
        "a" * 32_767,
        "a" * 29_999,
        "a" * 14_999 + "b" + "a" * 14_000,
        "b" + "a" * 16_000,
        "a" * 16_000 + "b",
        "b" + "a" * 5_000,
        "a" * 28_900 + "b",
        "ab" * 16_000,
        "ab" * 8_000 + "c",
        "冬" * 10_922,
        "冬" * 5_000 + "b" + "冬" * 400,
        "冬" * 9_000 + "b",
        "😀" * 8_191,
        "😀" * 4_000 + "b" + "😀" * 4_000,
        "\ud83d" * 10_000,
        "0" * 32_000,
        "٠" * 16_000,
        "٠۰" * 8_000,
        "1" * 32_000,
        "9" * 155,
        "9" * 18,
        "z" * 100,
        "1" * 100,
        "A" * 43_000,
        "base64:" + "A" * 32_000,
        "ab" * 16_300,
        base58.encode(ADDRESS),
    ],
}
HEAVY_BYTES = ride_list([BIG_BYTES[:32_000]] * 10)
WIDE = ride_tuple(*[ride_tuple(*[ride_tuple(*range(22))] * 10)] * 15)


def _nested(depth: int) -> RideList:
    value = NIL
    for _ in range(depth):
        value = RideList((value,), value.weight + 40)
    return value


def _deep_objects(depth: int) -> Value:
    value: Value = UNIT
    for _ in range(depth):
        value = case_object("Some", {"x": value})
    return value


ENTRIES = ride_list([case_object("StringEntry", {"key": "a" * 100, "value": "b"})] * 900)
LISTS: list[Value] = [
    NIL,
    ride_list(range(1000)),
    ride_list(range(464)),
    ride_list([5] * 999 + [6]),
    ride_list([True] * 1000),
    ride_list([BigInt(2**511 - 1)] * 1000),
    ride_list([BigInt(number) for number in range(150)]),
    ride_list(["a" * 300] * 1000),
    ride_list(["a"] * 70),
    ride_list(["冬" * 2] * 70),
    ride_list(["冬" * 20] * 100),
    ride_list(["冬" * 10] * 1000),
    ride_list(["", *[""] * 999]),
    ride_list([NIL] * 300),
    ride_list([bytes(32)] * 16),
    ride_list([bytes([255]) * 900] * 30),
    ride_list([b"\xff" * 300] * 1000),
    ride_list([ride_tuple(1, 2)] * 900),
    ride_list([case_object("Some", {"x": "a" * 40})] * 290),
    HEAVY_BYTES,
    _nested(320),
    _nested(8_600),
    ride_list([_nested(320)] * 20),
    ride_list([WIDE]),
    ENTRIES,
]
ANY: list[Value] = [
    1,
    "a" * 12_990,
    "冬" * 4_330,
    b"a" * 32_767,
    UNIT,
    WIDE,
    _deep_objects(4_500),
    _deep_objects(180),
    case_object("Some", {"x": ride_list(range(440))}),
    *LISTS,
]
ADDRESSES: list[Value] = [
    case_object("Address", {"bytes": ADDRESS}),
    case_object("Address", {"bytes": b"\1T" + bytes(24)}),
    case_object("Address", {"bytes": BIG_BYTES[:32_000]}),
    case_object("Address", {"bytes": b"\2T\0\x04" + b"a" * 32_000}),
    case_object("Alias", {"alias": "a" * 30}),
    case_object("Alias", {"alias": "a" * 32_000}),
    case_object("Other", {"x": HEAVY_BYTES}),
]
ROUNDINGS: list[Value] = [
    CaseObject(name, {}, 40) for name in ("Down", "HalfUp", "HalfEven", "Ceiling")
]
DIGESTS: list[Value] = [
    CaseObject(name, {}, 40) for name in ("NoAlg", "Sha256", "Sha512", "Sha3512")
]


def _copies(values: Sequence[Value]) -> list[Value]:
    """Equal values that are not the same objects, so that a comparison has to look into them."""
    return [_copy(value) for value in values]


def _copy(value: Value) -> Value:
    if isinstance(value, str) and type(value) is str:
        return "".join(list(value)) if len(value) > 1 else value
    if isinstance(value, bytes):
        return bytes(bytearray(value))
    if isinstance(value, RideList) and value.weight < 20_000:
        return RideList(tuple(_copy(item) for item in value.items), value.weight)
    if isinstance(value, CaseObject) and value is not UNIT and value.weight < 14_000:
        fields = {name: _copy(item) for name, item in value.fields.items()}
        return CaseObject(value.type_name, fields, value.weight)
    return value


def values_of(kind: str, place: int) -> list[Value]:
    """The values of a type, as sources name it."""
    if kind in TYPES:
        return TYPES[kind] if place == 0 else _copies(TYPES[kind])
    if kind.startswith("List["):
        return LISTS if place == 0 else _copies(LISTS)
    if kind == "Rounding":
        return ROUNDINGS
    if kind == "Digest":
        return DIGESTS
    if kind in ("Recipient", "Address"):
        return ADDRESSES
    if kind == "Tuple":
        return [ride_tuple(1, 2), ride_tuple(*range(22)), WIDE]
    if kind == "String|Unit":
        return ["a" * 300, "f", UNIT]
    if kind == "ByteVector|Unit":
        return [UNIT, bytes(32), BIG_BYTES[:32_000]]
    if kind == "Script|Unit":
        return [UNIT]
    if kind == "Issue":
        texts = ["a" * 16, "冬" * 5, "a" * 32_000]
        return [
            CaseObject("Issue", dict(zip(_ISSUE, values, strict=True)), 300)
            for values in itertools.product(texts, texts, [2**63 - 1], [8], [True], [UNIT], [1])
        ]
    if kind == "Lease":
        return [
            CaseObject("Lease", {"recipient": each, "amount": 2**63 - 1, "nonce": 1}, 300)
            for each in ADDRESSES
        ]
    return ANY if place == 0 else _copies(ANY)


_ISSUE = ("name", "description", "quantity", "decimals", "isReissuable", "compiledScript", "nonce")
_G1, _G2 = bytes([1]) + bytes(31), bytes(64)


def special(key: int | str) -> Iterator[Sequence[Value]]:
    """Arguments that no combination of general values has."""
    from tests.vectors import load_vectors

    if key in (800, 801) or (isinstance(key, int) and 2400 <= key < 2500):
        curve = "bls12_381" if key == 800 or (isinstance(key, int) and key < 2450) else "bn254"
        known = {"bls12_381": BLS12_381, "bn254": BN254}[curve]
        for count in range(17):
            for fill in (b"\0", b"\1", b"\xff"):
                yield (
                    fill * known.key_length(count),
                    fill * known.proof_length,
                    fill * (32 * count),
                )
        with suppress(Exception):
            for vector in load_vectors("groth16"):
                fields = [bytes.fromhex(str(vector[name])) for name in ("vk", "proof", "inputs")]
                yield tuple(fields)
    elif key == 900:
        for r in ("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798", "ff" * 32):
            for last in (0, 1, 27, 28):
                yield b"G" * 32, bytes.fromhex(r) + b"\x11" * 32 + bytes([last])
        yield from ((b"G" * 32, bytes([n]) * 64 + b"\x1b") for n in range(1, 60))
    elif key == 504 or (isinstance(key, int) and 2600 <= key < 2604):
        yield from _rsa()
    elif key == 500 or (isinstance(key, int) and 2500 <= key < 2505):
        yield from _signatures()
    elif key == 700:
        for depth in (16, 1000, 4000):
            yield bytes(32), (b"\1\x20" + bytes(32)) * depth, b"x" * 1000
    elif key == 1070:
        yield from _messages()


def _rsa() -> Iterator[Sequence[Value]]:
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    digest = CaseObject("Sha256", {}, 40)
    for size in (1024, 2048, 4096):
        private = rsa.generate_private_key(public_exponent=65_537, key_size=size)
        der = private.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        for message in (b"x", BIG_BYTES[:16_384], BIG_BYTES[:131_072]):
            signature = private.sign(message, padding.PKCS1v15(), hashes.SHA256())
            yield digest, message, signature, der
            yield CaseObject("Sha3512", {}, 40), message, signature, der
    for bits in (1024, 2048, 4096, 8192, 16_384, 65_536, 131_072):
        modulus, exponent = (1 << bits) - 159, (1 << (bits - 1)) - 1
        for power in (3, 65_537, (1 << 64) - 1, exponent):
            der = _rsa_key(modulus, power)
            if len(der) <= 32_767:
                yield digest, b"x", b"\x77" * (bits // 8), der


def _rsa_key(modulus: int, exponent: int) -> bytes:
    def element(tag: int, data: bytes) -> bytes:
        size = len(data)
        if size < 128:
            return bytes([tag, size]) + data
        octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
        return bytes([tag, 128 + len(octets)]) + octets + data

    def number(value: int) -> bytes:
        return element(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))

    inner = element(0x30, number(modulus) + number(exponent))
    algorithm = bytes.fromhex("300d06092a864886f70d0101010500")
    return element(0x30, algorithm + element(3, b"\0" + inner))


def _signatures() -> Iterator[Sequence[Value]]:
    from soliton.crypto.curve25519 import sign
    from soliton.crypto.keys import key_pair

    pair = key_pair("dearest")
    for size in (1, 8_192, 16_384, 32_768, 65_536, 131_072, 153_600):
        message = BIG_BYTES[:size]
        good = sign(pair.private_key, message)
        yield message, good, pair.public_key
        yield message, good[:32] + bytes([255]) * 32, pair.public_key
        yield message, bytes(64), bytes(32)
        yield message, good, bytes([255]) * 32


def _messages() -> Iterator[Sequence[Value]]:
    from soliton.chain.proto.transaction_pb2 import SignedTransaction

    signed = SignedTransaction()
    body = signed.waves_transaction
    body.chain_id, body.sender_public_key, body.version = ord("T"), b"k" * 32, 3
    body.fee.amount = body.transfer.amount.amount = 1
    body.transfer.recipient.public_key_hash = b"h" * 20
    body.transfer.attachment = b"a" * 140
    signed.proofs.extend([b"p" * 64] * 8)
    data = signed.SerializeToString()
    room = 32_700 - len(data)
    for size in (room, 150_000):
        yield (data,)
        yield (data + b"\x12\x00" * (size // 2),)
        yield (data + b"\x9a\x06\x00" * (size // 3),)
        yield (data + b"\xa0\x06\x00" * (size // 3),)
        yield (b"\x0a\x00" * (size // 2) + data,)
        yield (data + b"\xa3\x06" * 60 + b"\xa4\x06" * 60,)


def arguments_of(function: catalogue.Function, chance: random.Random) -> Iterator[Sequence[Value]]:
    """The arguments that a function is tried with."""
    yield from special(function.key)
    pools = [values_of(kind, place) for place, kind in enumerate(function.arguments)]
    if function.key in (108, 109, 118, 119, "sqrt", "sqrtBigInt", "fraction"):
        pools = [
            _scales(kind, values) for kind, values in zip(function.arguments, pools, strict=True)
        ]
    count = math.prod(map(len, pools))
    if count <= MOST:
        yield from itertools.product(*pools)
        return
    for _ in range(MOST):
        yield tuple(chance.choice(values) for values in pools)


def _scales(kind: str, values: list[Value]) -> list[Value]:
    if kind == "Int":
        return [0, 1, 5, 8, 17, 18, 3, 198_765_432, 2**62 + 1, 2**63 - 1, 10**9 + 7]
    return values


def seconds(call: Callable[[], object]) -> tuple[float, bool]:
    """CPU time of a call, and whether it ends in a value."""
    start = time.thread_time()
    try:
        call()
    except EvaluationError:
        return time.thread_time() - start, False
    return time.thread_time() - start, True


Call = Callable[[Sequence[Value]], object]


class Measured(NamedTuple):
    """The dearest call that succeeds, and the dearest that fails, with their arguments."""

    micros: float
    shown: str
    failed_micros: float
    failed_shown: str


class Dearest(NamedTuple):
    """A function in the versions that have the same implementation."""

    name: str
    versions: str
    cost: int
    measured: Measured

    @property
    def for_unit(self) -> float:
        """µs for each unit of complexity."""
        return self.measured.micros / max(self.cost, 1)


def measure(call: Call, candidates: Iterable[Sequence[Value]]) -> Measured:
    """Try arguments, and measure the dearest ones again."""
    tried: dict[bool, list[tuple[float, int, Sequence[Value]]]] = {True: [], False: []}
    end = time.thread_time() + SECONDS
    for number, arguments in enumerate(candidates):
        spent, ends = seconds(partial(call, arguments))
        tried[ends].append((spent, number, arguments))
        if time.thread_time() > end:
            break
    found = {True: (0.0, ""), False: (0.0, "")}
    for ends, some in tried.items():
        some.sort(key=lambda each: each[:2], reverse=True)
        end = time.thread_time() + SECONDS / 2
        for _, _, arguments in some[:KEPT]:
            times = [seconds(partial(call, arguments))[0]]
            while len(times) < REPEATS and time.thread_time() < end:
                times.append(seconds(partial(call, arguments))[0])
            found[ends] = max(found[ends], (min(times) * 1e6, ", ".join(map(shown, arguments))))
    return Measured(*found[True], *found[False])


def numbered(version: int, function: catalogue.Function, switches: Switches) -> Call:
    """The call of a numbered function."""
    assert isinstance(function.key, int)
    implementation = implementations(version)[function.key]
    context = CallContext(StaticEnvironment(), version, switches, 10**9)
    return lambda arguments: implementation(arguments, context)


def written(version: int, key: str) -> Call:
    """The call of a function that is written in the language, by its compiled code."""
    library = load_library(version, ScriptKind.DAPP, ord("T"))
    names = tuple(f"p{number}" for number in range(len(library.named[key].parameters)))
    body = expressions.Call(key, tuple(map(Ref, names)))
    program = Program(library, True, False)
    entry = program.function(AnnotatedFunction("i", Func("go", names, body)), False)

    def call(arguments: Sequence[Value]) -> object:
        context = CallContext(StaticEnvironment(), version, Switches(), 10**9)
        return entry.run(context, UNIT, tuple(arguments))

    return call


OLD = Switches(code_points=False, new_pow_precision=False, ecrecover_fix=False)


def functions(only: int | None, name: str | None) -> list[Dearest]:
    """Measure all functions of all versions."""
    measured: dict[object, Measured] = {}
    rows: dict[tuple[object, int], list[int]] = {}
    names: dict[object, str] = {}
    for version in range(1, LAST_VERSION + 1):
        for function in catalogue.functions(version):
            key = function.key
            if only not in (None, version) or name not in (None, function.name):
                continue
            if key in catalogue.CALLS_OF_DAPPS:
                continue
            # A body in the language calls functions that have changed, so versions differ.
            same = (key, implementations(version)[key] if isinstance(key, int) else version)
            rules = [Switches()]
            if key in OLD_KEYS and version <= LAST_OLD_VERSION:
                rules.append(OLD)
            for switches in rules:
                identity = (*same, switches is OLD)
                if identity not in measured:
                    if isinstance(key, int):
                        call = numbered(version, function, switches)
                    elif key in load_library(version, ScriptKind.DAPP, ord("T")).named:
                        call = written(version, key)
                    else:
                        continue
                    gc.collect()
                    chance = random.Random(0)
                    measured[identity] = measure(call, arguments_of(function, chance))
                    old = ", old rules" if switches is OLD else ""
                    names[identity] = f"{function.name} ({key}{old})"
                rows.setdefault((identity, function.costs[version]), []).append(version)
    return [
        Dearest(names[identity], _spans(versions), cost, measured[identity])
        for (identity, cost), versions in rows.items()
    ]


def _spans(versions: list[int]) -> str:
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]}-{versions[-1]}"


def shown(value: Value) -> str:
    """A short text of an argument."""
    if isinstance(value, str | bytes):
        text = repr(value[:6])
        return text if len(value) <= 6 else f"{text}..[{len(value)}]"
    if isinstance(value, RideList):
        return f"list of {len(value.items)}, {int(value.weight)}"
    if isinstance(value, CaseObject):
        return f"{value.type_name}, {int(value.weight)}"
    number = value.value if isinstance(value, BigInt) else value
    return str(number) if abs(number) < 10**6 else f"{float(number):.0e}"


# --- constructs -----------------------------------------------------------------------------------

PLACES = 8
"""How often a construct stands in a function."""
CALLS = 60
"""How often the function is called."""
CONSTRUCTS: dict[str, tuple[int, str]] = {
    "name of an argument": (1, "a"),
    "number": (1, "5"),
    "let": (1, "{ let x = a\n x }"),
    "let, three names": (1, "{ let x = a\n let y = x\n x + y }"),
    "if": (1, "(if (b) then a else 5)"),
    "&& and ||": (1, "(if (b && !b || b) then a else 5)"),
    "field": (1, "last.height"),
    "match": (1, "match v { case x: Int => x case y: String => 5 case _ => a }"),
    "match by value": (1, "match a { case 1 | 2 => 5 case x => x }"),
    "string, comparison": (1, '(if ("abc" == s) then 1 else 2)'),
    "string, concatenation": (1, "(s + s).size()"),
    "bytes, literal": (1, "base64'" + "A" * 120 + "'.size()"),
    "bytes, concatenation": (1, "(d + d).size()"),
    "arithmetic": (1, "(a * 2 / 3 % 5 - a)"),
    "list, literal": (3, "[a, a, a, a, a, a, a, a].size()"),
    "list, element": (3, "l[0]"),
    "list, ::": (3, "(a :: l).size()"),
    "call of a function": (3, "one(a)"),
    "call, ten arguments": (3, "ten(a, a, a, a, a, a, a, a, a, a)"),
    "call, five levels": (3, "five(a)"),
    "function in a function": (3, "{ func inner(x: Int) = x + a\n inner(a) }"),
    "object": (3, 'DataEntry("k", a).key.size()'),
    "fold": (3, "FOLD<3>(l, a, sum)"),
    "tuple": (4, "(a, a)._1"),
    "tuple of 22": (4, "(" + ", ".join("a" * 22) + ")._22"),
    "tuple, unpacked": (4, "{ let (x, y) = (a, a)\n x }"),
    "strict": (5, "{ strict x = a\n x }"),
    "cast": (5, "(if (v.as[Int] == 1) then 1 else 2)"),
    "exact cast": (5, "v.exactAs[Int]"),
    "match of a tuple": (6, "match t { case (x, 5) => x case (_, y) => y case _ => a }"),
}
_VALUES = {
    1: 'let v = if (height > 0) then 1 else "s"\nlet last = lastBlock\nlet s = "ab"\n'
    "let d = base58'abc'\nlet b = height > 0\n",
    3: "let l = [1, 2, 3]\nfunc one(x: Int) = x\nfunc two(x: Int) = one(x)\n"
    "func three(x: Int) = two(x)\nfunc four(x: Int) = three(x)\nfunc five(x: Int) = four(x)\n"
    f"func ten({', '.join(f'x{number}: Int' for number in range(10))}) = x0 + x9\n"
    "func sum(x: Int, y: Int) = x + y\n",
    4: "let t = (1, 5)\n",
}


class Construct(NamedTuple):
    """µs for each unit of complexity, and ns for each expression."""

    name: str
    version: int
    for_unit: float
    nanos: float
    exact_nanos: float


def construct(name: str, version: int) -> Construct:
    """Measure a construct in a version."""
    since, text = CONSTRUCTS[name]
    if version < 4:
        text = text.replace('"k", a).key', '"k", a).key')
    elif "DataEntry" in text:
        text = text.replace("DataEntry", "IntegerEntry")
    if version < 3:
        text = text.replace("last.height", "height")
    source = f"{{-# STDLIB_VERSION {version} #-}}\n"
    source += "{-# CONTENT_TYPE EXPRESSION #-}\n" if version >= 3 else ""
    source += "".join(lines for first, lines in _VALUES.items() if first <= version)
    if version < 3:
        source = source.replace("let last = lastBlock\n", "")
    body = " + ".join([text] * PLACES)
    if version >= 3:
        source += f"func f(a: Int) = {body}\n" + " && ".join([f"(f(height) != {since})"] * CALLS)
    else:
        source += f"let a = height\n({body}) != 0"
    compiled = compile_source(source, check_complexity=False).script
    script = parse_script(compiled.source)
    assert not isinstance(script.content, DApp)
    library = load_library(version, ScriptKind.ACCOUNT, ord("T"))
    entry = Program(library, True, False).expression(script.content)
    content, limit = script.content, 10**9

    def fast() -> CallContext:
        context = CallContext(StaticEnvironment(), version, Switches(), limit)
        entry.run(context)
        return context

    def exact() -> Machine:
        machine = Machine(library, CallContext(StaticEnvironment(), version), limit)
        machine.run(content)
        return machine

    spent = limit - fast().left
    count = exact().entered
    micros, exact_micros = (
        min(seconds(run)[0] for _ in range(REPEATS if run is fast else 2)) * 1e6
        for run in (fast, exact)
    )
    return Construct(
        name, version, micros / spent, micros * 1e3 / count, exact_micros * 1e3 / count
    )


def constructs(only: int | None) -> list[Construct]:
    """Measure all constructs in the first and the last version that has them, or in one."""
    return [
        construct(name, version)
        for name, (since, _) in CONSTRUCTS.items()
        for version in ((only,) if only is not None else (since, LAST_VERSION))
        if version >= since
    ]


def full_units() -> Iterator[tuple[str, int, float, float]]:
    """The largest functions that cost one unit: name, expressions, µs for each call, compiled and
    exact.
    """
    shapes = {"choices": "if ({}) then b else a", "names": "{{ let x = {}\n x }}"}
    for name, shape in shapes.items():
        text = "a"
        for _ in range(DEEP):
            text = shape.format(text)
        source = (
            "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n{-# SCRIPT_TYPE CALL #-}\n"
            f"func f(a: Boolean, b: Boolean) = {' && '.join([f'({text})'] * WIDE_COPIES)}\n"
            f"if ({' && '.join(['f(true, true)'] * FULL_CALLS)}) then [] else []"
        )
        script = compile_source(source, check_complexity=False).script.content
        assert not isinstance(script, DApp)
        library = load_library(6, ScriptKind.ACCOUNT, ord("T"))
        entry = Program(library, True, False).expression(script)
        context = CallContext(StaticEnvironment(), 6, Switches(), 10**9)
        fast = min(seconds(partial(entry.run, context))[0] for _ in range(3))
        machine = Machine(library, CallContext(StaticEnvironment(), 6), 10**9)
        exact = seconds(partial(machine.run, script))[0]
        yield (
            name,
            machine.entered // FULL_CALLS,
            *(each * 1e6 / FULL_CALLS for each in (fast, exact)),
        )


DEEP = 30
WIDE_COPIES = 135
FULL_CALLS = 10


# --- tables ---------------------------------------------------------------------------------------


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--version", type=int)
    parser.add_argument("--function")
    options = parser.parse_args()
    sys.setrecursionlimit(10_000)
    gc.freeze()
    gc.disable()
    start = time.monotonic()
    found = functions(options.version, options.function)
    found.sort(key=lambda each: each.for_unit, reverse=True)
    print(f"{'function':<44}{'version':>8}{'µs':>10}{'cost':>7}{'µs/unit':>9}  arguments")
    for each in found if options.all else found[:40]:
        print(
            f"{each.name:<44}{each.versions:>8}{each.measured.micros:>10.1f}{each.cost:>7}"
            f"{each.for_unit:>9.1f}  {each.measured.shown}"
        )
    beyond = [each.name for each in found if each.for_unit > MAX_MICROS]
    found.sort(key=lambda each: each.measured.failed_micros, reverse=True)
    print(f"\n{'calls that fail':<44}{'version':>8}{'µs':>10}  arguments")
    for each in found if options.all else found[:15]:
        if each.measured.failed_shown:
            micros, text = each.measured.failed_micros, each.measured.failed_shown
            print(f"{each.name:<44}{each.versions:>8}{micros:>10.1f}  {text}")
    if options.function is None:
        beyond += print_constructs(options.version)
    print(f"\n{len(found)} rows in {time.monotonic() - start:.0f} s; beyond the bounds: {beyond}")
    return int(bool(beyond))


def print_constructs(only: int | None) -> list[str]:
    """Print both tables of constructs; return what is beyond the bounds."""
    found = sorted(constructs(only), key=lambda each: each.nanos, reverse=True)
    print(f"\n{'construct':<44}{'version':>8}{'µs/unit':>10}{'ns/expr.':>10}{'exact ns':>10}")
    for each in found:
        print(
            f"{each.name:<44}{each.version:>8}{each.for_unit:>10.2f}{each.nanos:>10.0f}"
            f"{each.exact_nanos:>10.0f}"
        )
    print(f"\n{'units full of':<44}{'expressions':>12}{'µs/unit':>10}{'exact µs':>10}")
    for name, count, micros, exact in full_units():
        print(f"{name:<44}{count:>12}{micros:>10.0f}{exact:>10.0f}")
    return [
        each.name for each in found if each.nanos > MAX_NANOS or each.exact_nanos > MAX_EXACT_NANOS
    ]


if __name__ == "__main__":
    sys.exit(main())
