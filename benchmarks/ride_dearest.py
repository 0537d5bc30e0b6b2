"""What a script can make a node do for one unit of complexity: every function of every version of
the language, at the dearest of many arguments, and every construct.

Run ``.venv/bin/python benchmarks/ride_dearest.py``, optionally with ``--all`` for a line for each
function and version, ``--version N`` and ``--function NAME``. Prints µs of CPU for each unit, the
dearest first, and exits with 1 if a function costs more than ``MAX_MICROS``; then the dearest calls
that fail, which end the script: they happen once in a run, and count as a whole.

Arguments are all combinations of values that are as large, as deep or as long as the limits of the
language allow, or that make an algorithm slow (texts that match almost everywhere, numbers that are
just too large). Each combination is called once, the dearest ones several times. The time is that
of the call of a function with values: what the evaluator adds is the same for all, and shows in the
constructs, which are whole scripts.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from soliton.crypto import base58
from soliton.crypto.groth16 import BLS12_381, BN254
from soliton.ride.environment import CallContext, Switches
from soliton.ride.errors import EvaluationError
from soliton.ride.expressions import LAST_VERSION
from soliton.ride.functions import catalogue
from soliton.ride.functions.library import implementations
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
"""The bound for each function, on the machine of docs/dependencies.md."""
KEPT = 12
"""So many of the dearest combinations are measured again."""
REPEATS = 5
MOST = 6_000
"""The limit of combinations for a function; others are chosen at random, always the same ones."""

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


class Dearest:
    """The dearest call of a function in a version."""

    def __init__(self, function: catalogue.Function, version: int, cost: int, new: bool) -> None:
        self.name, self.version, self.cost = f"{function.name} ({function.key})", version, cost
        self.new = new
        self.micros = self.failed_micros = 0.0
        self.shown = self.failed_shown = ""

    @property
    def for_unit(self) -> float:
        """µs for each unit of complexity."""
        return self.micros / max(self.cost, 1)


def dearest(function: catalogue.Function, version: int, cost: int, new: bool) -> Dearest | None:
    """Try a function; ``None`` if it is no numbered one."""
    assert isinstance(function.key, int)
    implementation = implementations(version)[function.key]
    switches = Switches() if new else Switches(code_points=False, new_pow_precision=False)
    context = CallContext(StaticEnvironment(), version, switches, 10**9)
    chance = random.Random(0)
    tried: dict[bool, list[tuple[float, int, Sequence[Value]]]] = {True: [], False: []}
    for number, arguments in enumerate(arguments_of(function, chance)):
        spent, ends = seconds(partial(implementation, arguments, context))
        tried[ends].append((spent, number, arguments))
    found = Dearest(function, version, cost, new)
    for ends, some in tried.items():
        some.sort(key=lambda each: each[:2], reverse=True)
        for _, _, arguments in some[:KEPT]:
            times = [seconds(partial(implementation, arguments, context)) for _ in range(REPEATS)]
            micros, text = min(times)[0] * 1e6, ", ".join(map(shown, arguments))
            if ends and micros > found.micros:
                found.micros, found.shown = micros, text
            elif not ends and micros > found.failed_micros:
                found.failed_micros, found.failed_shown = micros, text
    return found


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


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--version", type=int)
    parser.add_argument("--function")
    options = parser.parse_args()
    sys.setrecursionlimit(10_000)
    found = []
    for version in range(1, LAST_VERSION + 1):
        if options.version not in (None, version):
            continue
        costs = catalogue.costs(version)
        for function in catalogue.functions(version):
            if not isinstance(function.key, int) or function.key in catalogue.CALLS_OF_DAPPS:
                continue
            if options.function not in (None, function.name):
                continue
            for new in (True, False) if version <= 4 else (True,):
                one = dearest(function, version, costs[function.key], new)
                if one is not None:
                    found.append(one)
    found.sort(key=lambda each: each.for_unit, reverse=True)
    print(f"{'function':<34}{'version':>8}{'µs':>10}{'cost':>7}{'µs/unit':>9}  arguments")
    for each in found if options.all else found[:40]:
        old = "" if each.new else " old"
        print(
            f"{each.name:<34}{each.version}{old:<6}{each.micros:>10.1f}{each.cost:>7}"
            f"{each.for_unit:>9.1f}  {each.shown}"
        )
    found.sort(key=lambda each: each.failed_micros, reverse=True)
    print(f"\n{'calls that fail':<34}{'version':>8}{'µs':>10}  arguments")
    for each in found if options.all else found[:15]:
        old = "" if each.new else " old"
        micros, text = each.failed_micros, each.failed_shown
        print(f"{each.name:<34}{each.version}{old:<6}{micros:>10.1f}  {text}")
    return int(any(each.for_unit > MAX_MICROS for each in found))


if __name__ == "__main__":
    sys.exit(main())
