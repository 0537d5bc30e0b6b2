"""Routes under ``/utils`` that need no chain: time, seeds and hashes.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/UtilsApiRoute.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.route_table import row, table, text_body
from soliton.crypto import base58
from soliton.crypto.hashes import blake2b256, secure_hash

MAX_SEED_BYTES = 1024
DEFAULT_SEED_BYTES = 32


class Time(msgspec.Struct, frozen=True, gc=False):
    """Milliseconds since 1970: the machine's own, and corrected by NTP."""

    system: int
    NTP: int


class Seed(msgspec.Struct, frozen=True, gc=False):
    """Random bytes in base58."""

    seed: str


class Hash(msgspec.Struct, frozen=True, gc=False):
    """A message and the base58 of its hash."""

    message: str
    hash: str


def time(request: Request) -> Time:
    """The system's clock and the corrected one."""
    return Time(system=request.context.clock(), NTP=request.context.network_clock())


def seed(request: Request) -> Seed:
    """A random seed of the default length."""
    return Seed(base58.encode(request.context.random_bytes(DEFAULT_SEED_BYTES)))


def seed_of_length(request: Request) -> Seed:
    """A random seed of a given length."""
    length = request.integer("length")
    if length > MAX_SEED_BYTES:
        raise errors.TOO_BIG_SEQUENCE.error()
    return Seed(base58.encode(request.context.random_bytes(length)))


def hash_secure(request: Request) -> Hash:
    """Keccak-256 of BLAKE2b-256."""
    message = request.body_text()
    return Hash(message, base58.encode(secure_hash(message.encode())))


def hash_fast(request: Request) -> Hash:
    """BLAKE2b-256."""
    message = request.body_text()
    return Hash(message, base58.encode(blake2b256(message.encode())))


_MESSAGE: Final = text_body("The text to hash", "ridethewaves!")

ROUTES: Final = table("utils", """
length | natural | Bytes, at most 1024 | 16
""",
    row("GET /utils/time", time, "Current time of the node", Time,
        {"system": 1494345332133, "NTP": 1494345332133}),
    row("GET /utils/seed", seed, "A random seed of 32 bytes", Seed,
        {"seed": "5zGbsL5EWXGKNpwn1ZAGGDZKFFCsE5ePFdhGKEUBAEcX"}),
    row("GET /utils/seed/{length}", seed_of_length, "A random seed of a given length", Seed,
        {"seed": "RFNp3dpDcAhw3cSjNPcGsV"}, "TOO_BIG_SEQUENCE"),
    row("POST /utils/hash/secure", hash_secure,
        "Secure hash (Keccak-256 of BLAKE2b-256) of a text, as in `api-key-hash`", Hash,
        {"message": "ridethewaves!", "hash": "H6nsiifwYKYEx6YzYD7woP1XCn72RVvx6tC1zjjLXqsu"},
        body=_MESSAGE),
    row("POST /utils/hash/fast", hash_fast, "Fast hash (BLAKE2b-256) of a text", Hash,
        {"message": "ridethewaves!", "hash": "DJ35ymschUFDmqCnDJewjcnVExVkWgX7mJDXhFy9X8oQ"},
        body=_MESSAGE),
    reads="chain",
)  # fmt: skip
