"""Messages of the streams, in both directions.

What lives here: decoding clients' messages, and encoding those to clients. What does not: when they
are sent (``hub``, ``books``, ``addresses``).

Source: wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/api/ws/protocol``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.matching.errors import INVALID_JSON, REQUEST_ARGUMENT_INVALID, MatcherError

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The greatest update id; it is followed by 1."""
RATES_KEY: Final = "ru"

encode: Final = msgspec.json.Encoder().encode


class Pong(msgspec.Struct, frozen=True, tag="pp", tag_field="T"):
    """The answer to a ping."""

    timestamp: int = msgspec.field(name="_")


class SubscribeBook(msgspec.Struct, frozen=True, tag="obs", tag_field="T"):
    """Subscribe to an order book. ``resume`` is the offset ``N`` of the last message that the
    client has seen: then it receives only the changes since, if they are still buffered.
    """

    pair: str = msgspec.field(name="S")
    depth: int = msgspec.field(name="d", default=1)
    resume: int | None = msgspec.field(name="N", default=None)


class Flags(msgspec.Struct, frozen=True):
    """Options of an account's stream."""

    flags: tuple[str, ...] | None = msgspec.field(name="f", default=None)


class SubscribeAddress(msgspec.Struct, frozen=True, tag="aus", tag_field="T"):
    """Subscribe to an account's balances and orders.

    With ``auth_type`` ``jwt`` the token authenticates the account. With ``sig`` it is a signature
    of the public key and the timestamp (32 + 8 bytes), as in HTTP requests.
    """

    address: str = msgspec.field(name="S")
    auth_type: str = msgspec.field(name="t")
    token: str = msgspec.field(name="j")
    public_key: str = msgspec.field(name="k", default="")
    timestamp: int = msgspec.field(name="_", default=0)
    more: Flags | None = msgspec.field(name="b", default=None)

    @property
    def flags(self) -> tuple[str, ...]:
        """The options, none by default."""
        return (None if self.more is None else self.more.flags) or ()


class SubscribeRates(msgspec.Struct, frozen=True, tag="rus", tag_field="T"):
    """Subscribe to the rates of fee assets."""

    key: str = msgspec.field(name="S", default=RATES_KEY)


class Unsubscribe(msgspec.Struct, frozen=True, tag="u", tag_field="T"):
    """Unsubscribe from a pair, an address or the rates."""

    key: str = msgspec.field(name="S")


ClientMessage = Pong | SubscribeBook | SubscribeAddress | SubscribeRates | Unsubscribe

_decode: Final = msgspec.json.Decoder(ClientMessage).decode


def read_message(text: str) -> ClientMessage:
    """Decode a client's message; raises ``MatcherError`` if it is invalid."""
    try:
        message: ClientMessage = _decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _invalid(str(error)) from None
    if isinstance(message, SubscribeBook) and message.depth <= 0:
        raise MatcherError(REQUEST_ARGUMENT_INVALID, name="depth")
    if isinstance(message, SubscribeRates) and message.key != RATES_KEY:
        raise _invalid("/S")
    return message


def _invalid(reason: str) -> MatcherError:
    return MatcherError(INVALID_JSON, form=1, invalidFields=(reason[:200],))


def next_update_id(update_id: int) -> int:
    """The update id after another one."""
    return 1 if update_id >= MAX_SAFE_INTEGER else update_id + 1


def numbered(update_id: int, body: bytes) -> bytes:
    """Insert a subscriber's update id into an encoded object."""
    return b'{"U":%d,' % update_id + body[1:]


def greeting(now: int, connection_id: str) -> bytes:
    """The first message on a connection."""
    return encode({"T": "i", "_": now, "i": connection_id})


def ping(now: int) -> bytes:
    """A ping."""
    return encode({"T": "pp", "_": now})


def error_message(error: MatcherError, now: int) -> bytes:
    """An error."""
    body: dict[str, Any] = {"T": "e", "_": now, "c": error.code, "m": error.message}
    return encode(body)
