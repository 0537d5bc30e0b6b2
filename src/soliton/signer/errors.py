"""The table of the signer's errors: code, HTTP status, and meaning.

What lives here: the table, from which the page, the OpenAPI document and the answers are made.
What does not: the codes of the node (0 to 5031), which are passed on unchanged. The codes here do
not overlap with them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.errors import EnvironmentProblem, InputError


class Fault(msgspec.Struct, frozen=True):
    """One row: the code in ``error``, the HTTP status, and the meaning."""

    code: int
    status: int
    meaning: str


NOT_JSON: Final = Fault(7001, 400, "The body is no JSON.")
WRONG_SHAPE: Final = Fault(
    7002, 400, "A member is missing, unknown, there twice, or of the wrong kind."
)
INTEGER_RANGE: Final = Fault(7003, 422, "An integer does not fit into 64 bits.")
NOT_INTEGER: Final = Fault(7004, 422, "A number is written with a point or an exponent.")
BYTE_RANGE: Final = Fault(7005, 422, "An item of a byte array is no integer from 0 to 255.")
NO_SUCH_TYPE: Final = Fault(7006, 422, "A value has no type in a data transaction: null, objects.")
RULE_BROKEN: Final = Fault(
    7007, 422, "The entries break a rule of data transactions: count, sizes, empty or double keys."
)
BODY_TOO_LARGE: Final = Fault(7008, 413, "The body is larger than the limit.")
BODY_TOO_SLOW: Final = Fault(7009, 408, "The body did not arrive in time.")
NO_SUCH_PATH: Final = Fault(7010, 404, "There is nothing at this path.")
NO_SUCH_METHOD: Final = Fault(7011, 405, "The path does not take this method.")
BUSY: Final = Fault(7012, 503, "Too many requests are in work; try again in a second.")
NODE_UNREACHABLE: Final = Fault(7013, 502, "The node cannot be reached, or hung up.")
NODE_SLOW: Final = Fault(7014, 504, "The node did not answer in time.")
NODE_SENSELESS: Final = Fault(7015, 502, "The node answered, but not as a node does.")
INTERNAL: Final = Fault(7016, 500, "The signer failed by a fault of its own.")

NO_CALLER: Final = Fault(7020, 403, "The API key is missing, wrong, or not good for this.")
NO_HOST: Final = Fault(7021, 403, "The Host header is none of those that the settings allow.")
TOO_FAST: Final = Fault(7022, 429, "The caller has sent more requests than its rate allows.")
NOT_SIGNABLE: Final = Fault(7023, 400, "What is to be signed breaks a rule of its own.")
NO_KEY: Final = Fault(7024, 404, "There is no key of this name, address or public key.")
LOCKED: Final = Fault(7025, 409, "The key is locked.")
WRONG_PASSWORD: Final = Fault(7026, 403, "The password opens no key.")
PASSWORD_PAUSE: Final = Fault(7027, 429, "A wrong password was given; it costs time.")
REFUSED: Final = Fault(7028, 403, "The policy refuses it; rule and line are named.")
ID_TAKEN: Final = Fault(7029, 409, "The id was used for another request, or is in work.")
NO_PENDING: Final = Fault(7030, 404, "Nothing with this id waits for approval, or did lately.")
NOT_WAITING: Final = Fault(7031, 409, "It is decided, or its time is over.")
JOURNAL_STOPPED: Final = Fault(
    7032, 503, "The audit log cannot be written, so nothing is signed; it is tried again."
)
SIMULATION_FAILED: Final = Fault(7033, 422, "The node says that it would fail.")
NOT_CONFIRMED: Final = Fault(7034, 504, "It was broadcast and is not confirmed in time.")
TOO_MANY_KEPT: Final = Fault(7035, 503, "Too many ids, pending requests or blocks are kept.")
WRONG_POLICY: Final = Fault(7036, 409, "The policy file is wrong, or has another hash.")
KEY_STORE_TROUBLE: Final = Fault(7037, 502, "The store that holds the key does not sign.")
AUDIT_TROUBLE: Final = Fault(7038, 503, "The audit log cannot be read.")
SIGNED_BEFORE: Final = Fault(
    7039, 409, "A block or microblock was signed in this place, and is another one."
)

KEY_FAULTS: Final = (
    *(NO_CALLER, NO_HOST, TOO_FAST, NOT_SIGNABLE, NO_KEY, LOCKED, WRONG_PASSWORD, PASSWORD_PAUSE),
    *(REFUSED, ID_TAKEN, NO_PENDING, NOT_WAITING, JOURNAL_STOPPED, SIMULATION_FAILED),
    *(NOT_CONFIRMED, TOO_MANY_KEPT, WRONG_POLICY, KEY_STORE_TROUBLE, AUDIT_TROUBLE),
    SIGNED_BEFORE,
)
"""Errors of the routes of stored keys; ``FAULTS`` are those of ``POST /data``."""

FAULTS: Final = (
    *(NOT_JSON, WRONG_SHAPE, INTEGER_RANGE, NOT_INTEGER, BYTE_RANGE, NO_SUCH_TYPE, RULE_BROKEN),
    *(BODY_TOO_LARGE, BODY_TOO_SLOW, NO_SUCH_PATH, NO_SUCH_METHOD, BUSY),
    *(NODE_UNREACHABLE, NODE_SLOW, NODE_SENSELESS, INTERNAL),
)


class ErrorAnswer(msgspec.Struct, frozen=True):
    """An error answer: the HTTP status, and the members of the JSON object."""

    status: int
    code: int
    message: str
    more: dict[str, object] = {}

    def json(self) -> dict[str, object]:
        """Return the body."""
        return {"error": self.code, "message": self.message, **self.more}


class RequestRefused(InputError):
    """The request is refused. Messages name members of a body, never their values."""

    def __init__(self, fault: Fault, message: str, path: str | None = None, **more: object) -> None:
        super().__init__(message)
        if path is not None:
            more["path"] = path
        self.answer = ErrorAnswer(fault.status, fault.code, message, more)


class NodeRefused(InputError):
    """The node has rejected the transaction; its code and message are kept.

    ``details`` are reasons by address, which are more precise than the message where an account
    lacks funds.
    """

    def __init__(self, status: int, code: int, message: str, details: object) -> None:
        super().__init__(message)
        more: dict[str, object] = {"source": "node"}
        if isinstance(details, dict):
            more["details"] = details
        self.answer = ErrorAnswer(status, code, message, more)


class NodeTrouble(EnvironmentProblem):
    """The node gave no usable answer.

    ``transaction_id`` is the id of the transaction sent, which may have arrived nevertheless.
    """

    def __init__(self, fault: Fault, message: str, transaction_id: str | None = None) -> None:
        super().__init__(message)
        more: dict[str, object] = {} if transaction_id is None else {"id": transaction_id}
        self.answer = ErrorAnswer(fault.status, fault.code, message, more)
