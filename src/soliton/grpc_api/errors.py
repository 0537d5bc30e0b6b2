"""What a gRPC call is refused with: a status, words, and the number of the REST error.

What lives here: the refusals, and how other errors become one. What does not: sending them
(``server``), and the words of REST errors (``soliton.api.errors``).

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
"""What the reference's library says to a request that is no protobuf message."""

_ABSENT: Final = frozenset(
    each.code
    for each in (
        rest_errors.TRANSACTION_DOES_NOT_EXIST,
        rest_errors.BLOCK_DOES_NOT_EXIST,
        rest_errors.DATA_KEY_DOES_NOT_EXIST,
    )
)


class Code(Enum):
    """The statuses of gRPC that are given here, by their names there."""

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
    """A call is refused with a status; ``trailers`` go with it."""

    def __init__(self, code: Code, words: str, trailers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(words)
        self.code = code
        self.words = words
        self.trailers = trailers


class AddressRefused(InputError):
    """Bytes that are no address; each call has a status of its own for it."""


def invalid(words: str) -> Refused:
    """An argument that makes no sense, with the words of the reference's exception."""
    return Refused(Code.INVALID_ARGUMENT, words)


def of_rest(error: ApiError) -> Refused:
    """A REST error as a refusal."""
    return numbered(error.kind.code, error.message)


def numbered(code: int, words: str) -> Refused:
    """The refusal for a REST error with this number."""
    status = Code.NOT_FOUND if code in _ABSENT else Code.INVALID_ARGUMENT
    return Refused(status, words, ((ERROR_CODE, str(code)),))
