"""Responses: what a handler returns, the envelopes of success, and error bodies.

There are two forms of errors. Most routes return ``{success, status, result, error, …}``; placing
and cancelling return the error with the members ``status`` and ``success`` added.

What lives here: both forms, the JSON encoder, and the plain-text responses. What does not: which
route uses which form.

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/entities/{MatcherResponse,HttpError}.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain.values import MAX_I64
from soliton.matching import errors
from soliton.matching.errors import ErrorKind, MatcherError, Param
from soliton.web.types import Headers

JSON: Final = b"application/json"
TEXT: Final = b"text/plain; charset=UTF-8"
OK: Final = 200
CREATED: Final = 201
ACCEPTED: Final = 202

STRING_MEMBERS: Final = frozenset(
    (
        *("amount", "available", "balance", "buyMatcherFee", "currentReward", "desiredReward"),
        *("effective", "fee", "feeAmount", "generating", "in", "matcherFee", "minIncrement"),
        *("minSponsoredAssetFee", "out", "price", "quantity", "regular", "reward"),
        *("sellMatcherFee", "sponsorBalance", "totalAmount", "totalFee", "totalWavesAmount"),
        "value",
    )
)
"""Members whose numbers become strings for clients that request it; source: ``CustomJson.scala``.
"""

encode_json: Final = msgspec.json.Encoder().encode


class Answer(msgspec.Struct, frozen=True):
    """A response. ``plain`` marks JSON in which clients may request numbers as strings."""

    body: bytes
    status: int = OK
    content_type: bytes = JSON
    headers: Headers = ()
    plain: bool = False


NOT_FOUND: Final = Answer(
    b"The requested resource could not be found but may be available again in the future.",
    404,
    TEXT,
)
METHOD_NOT_ALLOWED: Final = Answer(
    b"A request was made of a resource using a request method not supported by that resource; "
    b"for example, using GET on a form which requires data to be presented via POST, or using "
    b"PUT on a read-only resource.",
    405,
    TEXT,
)
TOO_LARGE: Final = Answer(b"The request entity is larger than this matcher takes.", 413, TEXT)
BODY_TOO_SLOW: Final = Answer(b"The body of the request did not arrive in time.", 408, TEXT)


class Refusal(Exception):
    """An error raised by a handler, with the ``status`` member that its route uses for it."""

    def __init__(self, error: MatcherError, word: str, *, flat: bool = False) -> None:
        super().__init__(error.message)
        self.error = error
        self.word = word
        self.flat = flat
        """Whether the route has the form of placing and cancelling."""

    def answer(self) -> Answer:
        """The response."""
        if self.flat:
            return flat_error(self.error, self.word)
        return error_envelope(self.error, self.word)


class Rejected(Exception):
    """The route does not accept this request. Another one may; if none does, it is a 404."""


def refuse(kind: ErrorKind, word: str, **params: Param) -> Refusal:
    """An error of a kind, to be raised."""
    return Refusal(MatcherError(kind, form=0, **params), word)


def plain(value: object) -> Answer:
    """JSON without an envelope."""
    return Answer(encode_json(value), plain=True)


def envelope(value: dict[str, Any], status: int = OK) -> Answer:
    """JSON in the envelope of success; members of the value win over those of the envelope."""
    return Answer(encode_json({"success": True, "status": "SimpleResponse", **value}), status)


def message(text: str, status: int = OK) -> Answer:
    """A message in the envelope of success."""
    return envelope({"message": text}, status)


_STATUSES: Final = {
    403: (
        *(errors.USER_PUBLIC_KEY_IS_NOT_VALID, errors.API_KEY_IS_NOT_VALID),
        *(errors.AUTH_IS_REQUIRED, errors.INVALID_JWT_PAYLOAD_SIGNATURE),
        *(errors.SUBSCRIPTION_TOKEN_EXPIRED, errors.TOKEN_NETWORK_UNEXPECTED),
    ),
    404: (errors.ORDER_NOT_FOUND, errors.ASSET_NOT_FOUND, errors.RATE_NOT_FOUND),
    500: (errors.REQUEST_TIMEOUT, errors.API_KEY_IS_NOT_PROVIDED),
    501: (errors.FEATURE_NOT_IMPLEMENTED, errors.FEATURE_DISABLED),
    503: (
        *(errors.UNEXPECTED_ERROR, errors.MATCHER_IS_STARTING, errors.MATCHER_IS_STOPPING),
        *(errors.CAN_NOT_PERSIST_EVENT, errors.COMMAND_OUTCOME_UNKNOWN, errors.ORDER_BOOK_BROKEN),
        *(errors.ORDER_BOOK_UNEXPECTED_STATE, errors.WAVES_NODE_CONNECTION_BROKEN),
        *(errors.BALANCING, errors.MATCHER_BALANCE_NOT_ENOUGH),
    ),
    599: (errors.WS_CONNECTION_MAX_LIFETIME_EXCEEDED, errors.WS_CONNECTION_PONG_TIMEOUT),
}
_STATUS_BY_CODE: Final = {kind.code: status for status, of in _STATUSES.items() for kind in of}
_BAD_REQUEST: Final = 400


def status_of(kind: ErrorKind) -> int:
    """The HTTP status of an error."""
    return _STATUS_BY_CODE.get(kind.code, _BAD_REQUEST)


RETRY_AFTER: Final[Headers] = ((b"retry-after", b"5"),)
_PASSING: Final = frozenset(
    (
        *(errors.MATCHER_IS_STARTING, errors.WAVES_NODE_CONNECTION_BROKEN),
        errors.MATCHER_BALANCE_NOT_ENOUGH,
    )
)
"""Temporary errors."""


def _headers(error: MatcherError) -> Headers:
    return RETRY_AFTER if error.kind in _PASSING else ()


def error_envelope(error: MatcherError, word: str) -> Answer:
    """An error in the form of most routes."""
    body = {"success": False, "status": word, "result": None, **error.to_json()}
    return Answer(encode_json(body), status_of(error.kind), headers=_headers(error))


FAULT: Final = error_envelope(MatcherError(errors.UNEXPECTED_ERROR), "WavesNodeUnavailable")
"""The response to an internal error."""


def flat_error(error: MatcherError, word: str) -> Answer:
    """An error in the form of placing and cancelling."""
    body = flat_error_body(error, word)
    return Answer(encode_json(body), status_of(error.kind), headers=_headers(error))


def flat_error_body(error: MatcherError, word: str) -> dict[str, Any]:
    """The JSON of ``flat_error``."""
    return {**error.to_json(), "status": word, "success": False}


def bounded(value: int) -> int:
    """A whole number for JSON, limited to the greatest signed 64-bit integer, which sums over many
    orders may exceed.
    """
    return min(value, MAX_I64)


def number(value: float) -> float | int:
    """A double as a JSON number; whole ones have no decimal point."""
    return int(value) if value.is_integer() else value
