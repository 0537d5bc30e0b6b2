"""Messages of the streams, both ways.

What lives here: reading what clients send, and encoding what they are sent. What does not: when
(``hub``, ``books``, ``addresses``).

Source: wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/api/ws/protocol``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.matching.errors import INVALID_JSON, MatcherError

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The greatest update id; 1 follows it."""
RATES_KEY: Final = "ru"

encode: Final = msgspec.json.Encoder().encode


class Pong(msgspec.Struct, frozen=True, tag="pp", tag_field="T"):
    """A ping, given back."""

    timestamp: int = msgspec.field(name="_")


class SubscribeBook(msgspec.Struct, frozen=True, tag="obs", tag_field="T"):
    """An order book, from its full state on. ``resume`` is the number ``N`` of the last message
    that a client has seen: then only what came since, if that is still known.
    """

    pair: str = msgspec.field(name="S")
    depth: int = msgspec.field(name="d", default=1)
    resume: int | None = msgspec.field(name="N", default=None)


class Flags(msgspec.Struct, frozen=True):
    """What an account's stream should leave out or have besides."""

    flags: tuple[str, ...] = msgspec.field(name="f", default=())


class SubscribeAddress(msgspec.Struct, frozen=True, tag="aus", tag_field="T"):
    """An account's balances and orders.

    With ``auth_type`` ``jwt`` the token says who asks. With ``sig`` it is a signature of the public
    key and the timestamp (32 + 8 bytes), as requests over HTTP have it.
    """

    address: str = msgspec.field(name="S")
    auth_type: str = msgspec.field(name="t")
    token: str = msgspec.field(name="j")
    public_key: str = msgspec.field(name="k", default="")
    timestamp: int = msgspec.field(name="_", default=0)
    more: Flags = msgspec.field(name="b", default=Flags())


class SubscribeRates(msgspec.Struct, frozen=True, tag="rus", tag_field="T"):
    """Rates of fee assets."""

    key: str = msgspec.field(name="S", default=RATES_KEY)


class Unsubscribe(msgspec.Struct, frozen=True, tag="u", tag_field="T"):
    """No more of a pair, an address or the rates."""

    key: str = msgspec.field(name="S")


ClientMessage = Pong | SubscribeBook | SubscribeAddress | SubscribeRates | Unsubscribe

_decode: Final = msgspec.json.Decoder(ClientMessage).decode


def read_message(text: str) -> ClientMessage:
    """What a client sent; raises ``MatcherError`` for anything else."""
    try:
        message: ClientMessage = _decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _invalid(str(error)) from None
    if isinstance(message, SubscribeBook) and message.depth <= 0:
        raise _invalid("/d")
    if isinstance(message, SubscribeRates) and message.key != RATES_KEY:
        raise _invalid("/S")
    return message


def _invalid(words: str) -> MatcherError:
    return MatcherError(INVALID_JSON, form=1, invalidFields=(words[:200],))


def next_update_id(update_id: int) -> int:
    """The id that follows another one."""
    return 1 if update_id >= MAX_SAFE_INTEGER else update_id + 1


def numbered(update_id: int, body: bytes) -> bytes:
    """An encoded object with the id of a subscriber's update in it."""
    return b'{"U":%d,' % update_id + body[1:]


def greeting(now: int, connection_id: str) -> bytes:
    """The first message."""
    return encode({"T": "i", "_": now, "i": connection_id})


def ping(now: int) -> bytes:
    """A ping."""
    return encode({"T": "pp", "_": now})


def error_message(error: MatcherError, now: int) -> bytes:
    """Something that is wrong."""
    body: dict[str, Any] = {"T": "e", "_": now, "c": error.code, "m": error.message}
    return encode(body)
