"""JSON answers of the signer: values, refusals, and failures of its own.

What lives here: turning them into ``web.answers.Whole``, and the check of a query. What does not:
the table of errors (``errors``).
"""

from __future__ import annotations

import logging
import traceback
from typing import Final

import msgspec

from soliton.signer.errors import (
    INTERNAL,
    NO_SUCH_METHOD,
    WRONG_SHAPE,
    ErrorAnswer,
    Fault,
    RequestRefused,
)
from soliton.web.answers import APPLICATION_JSON, Whole
from soliton.web.request import RejectionError, Request, TooManyFieldsError

_encode: Final = msgspec.json.Encoder().encode
logger = logging.getLogger("soliton.signer")


def json_answer(
    value: object, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> Whole:
    """Return a value as an answer."""
    return Whole(_encode(value), APPLICATION_JSON, status, headers)


def refusal(answer: ErrorAnswer) -> Whole:
    """Return an error as an answer, with ``Retry-After`` where it says when to retry."""
    after = answer.more.get("after")
    headers = ((b"retry-after", str(after).encode()),) if isinstance(after, int) else ()
    return json_answer(answer.json(), answer.status, headers)


def fault_answer(fault: Fault, *headers: tuple[bytes, bytes]) -> Whole:
    """Return a row of the table of errors as an answer."""
    body = {"error": fault.code, "message": fault.meaning}
    return json_answer(body, fault.status, headers)


def method_not_allowed(*methods: str) -> Whole:
    """Return the answer to a method that the path does not take."""
    return fault_answer(NO_SUCH_METHOD, (b"allow", ", ".join(methods).encode("ascii")))


def internal_error(error: Exception) -> Whole:
    """Log the kind and place of an unexpected exception, not its message, and return the answer."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    logger.error("%s at %s:%s", type(error).__name__, place.filename, place.lineno)
    return fault_answer(INTERNAL)


def check_query(request: Request, known: tuple[str, ...] = ()) -> None:
    """Raise ``RequestRefused`` for a query with a parameter that the path does not have. The
    message does not quote it, since it may be part of a secret.
    """
    try:
        names = set(request.query) if request.query_string else set()
    except (RejectionError, TooManyFieldsError):
        raise RequestRefused(WRONG_SHAPE, "the query cannot be read", "query") from None
    if not names.issubset(known):
        there = f"it has {' and '.join(known)}" if known else "it has none"
        message = f"a parameter of the query is not one of this path: {there}"
        raise RequestRefused(WRONG_SHAPE, message, "query")
