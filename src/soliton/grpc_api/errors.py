"""The errors of gRPC calls: a status code, a message, and the number of the REST error.

What lives here: the exceptions, and how other errors become one. What does not: sending them
(``server``), and the messages of REST errors (``soliton.api.errors``).

Source: wavesplatform/Waves ``grpc-server/src/main/scala/com/wavesplatform/api/grpc/
GRPCErrors.scala``.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from soliton.api import errors as rest_errors
from soliton.api.errors import ApiError
from soliton.errors import InputError

ERROR_CODE: Final = "error-code"
"""The trailer with the number of a REST error."""
NOT_A_MESSAGE: Final = "Application error processing RPC"
"""The message of the reference's library for a request that is not a protobuf message."""

_ABSENT: Final = frozenset(
    each.code
    for each in (
        rest_errors.TRANSACTION_DOES_NOT_EXIST,
        rest_errors.BLOCK_DOES_NOT_EXIST,
        rest_errors.DATA_KEY_DOES_NOT_EXIST,
    )
)


class Code(Enum):
    """The gRPC status codes in use."""

    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"


class Refused(InputError):
    """A call fails with a status code, a message and ``trailers``."""

    def __init__(self, code: Code, text: str, trailers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.trailers = trailers


class AddressRefused(InputError):
    """Bytes that are not an address; each call maps it to a status of its own."""


def invalid(text: str) -> Refused:
    """Return the error for an invalid argument, with the message of the reference's exception."""
    return Refused(Code.INVALID_ARGUMENT, text)


def of_rest(error: ApiError) -> Refused:
    """Convert a REST error."""
    return numbered(error.kind.code, error.message)


def numbered(code: int, text: str) -> Refused:
    """Return the error for a REST error number."""
    status = Code.NOT_FOUND if code in _ABSENT else Code.INVALID_ARGUMENT
    return Refused(status, text, ((ERROR_CODE, str(code)),))
