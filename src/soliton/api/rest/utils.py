"""Routes under ``/utils`` that need no chain: time, seeds and hashes.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/UtilsApiRoute.scala``.
"""

from __future__ import annotations

import msgspec

from soliton.api.errors import TOO_BIG_SEQUENCE
from soliton.api.http import Request
from soliton.api.routes import GET, NATURAL, POST, Body, BodyKind, Parameter, Route
from soliton.crypto import base58
from soliton.crypto.hashes import blake2b256, secure_hash

MAX_SEED_BYTES = 1024
DEFAULT_SEED_BYTES = 32

_TAG = "utils"


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
    """Both clocks."""
    return Time(system=request.context.clock(), NTP=request.context.network_clock())


def seed(request: Request) -> Seed:
    """A seed of the usual length."""
    return Seed(base58.encode(request.context.random_bytes(DEFAULT_SEED_BYTES)))


def seed_of_length(request: Request) -> Seed:
    """A seed of the length asked for."""
    length = request.integer("length")
    if length > MAX_SEED_BYTES:
        raise TOO_BIG_SEQUENCE.error()
    return Seed(base58.encode(request.context.random_bytes(length)))


def hash_secure(request: Request) -> Hash:
    """Keccak-256 of BLAKE2b-256."""
    message = request.body_text()
    return Hash(message, base58.encode(secure_hash(message.encode())))


def hash_fast(request: Request) -> Hash:
    """BLAKE2b-256."""
    message = request.body_text()
    return Hash(message, base58.encode(blake2b256(message.encode())))


_MESSAGE = Body(
    BodyKind.TEXT, "The text to hash, taken as it is", "ridethewaves!", {"type": "string"}
)

ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/utils/time",
        handler=time,
        tag=_TAG,
        summary="Current time of the node",
        response=Time,
        example={"system": 1494345332133, "NTP": 1494345332133},
    ),
    Route(
        methods=GET,
        path="/utils/seed",
        handler=seed,
        tag=_TAG,
        summary="A random seed of 32 bytes",
        response=Seed,
        example={"seed": "5zGbsL5EWXGKNpwn1ZAGGDZKFFCsE5ePFdhGKEUBAEcX"},
    ),
    Route(
        methods=GET,
        path="/utils/seed/{length}",
        handler=seed_of_length,
        tag=_TAG,
        summary="A random seed of the length given",
        parameters=(Parameter("length", NATURAL, "Bytes, at most 1024", 16),),
        response=Seed,
        example={"seed": "RFNp3dpDcAhw3cSjNPcGsV"},
        errors=(TOO_BIG_SEQUENCE,),
    ),
    Route(
        methods=POST,
        path="/utils/hash/secure",
        handler=hash_secure,
        tag=_TAG,
        summary="Secure hash (Keccak-256 of BLAKE2b-256) of a text; what `api-key-hash` wants",
        body=_MESSAGE,
        response=Hash,
        example={
            "message": "ridethewaves!",
            "hash": "H6nsiifwYKYEx6YzYD7woP1XCn72RVvx6tC1zjjLXqsu",
        },
    ),
    Route(
        methods=POST,
        path="/utils/hash/fast",
        handler=hash_fast,
        tag=_TAG,
        summary="Fast hash (BLAKE2b-256) of a text",
        body=_MESSAGE,
        response=Hash,
        example={
            "message": "ridethewaves!",
            "hash": "DJ35ymschUFDmqCnDJewjcnVExVkWgX7mJDXhFy9X8oQ",
        },
    ),
)
