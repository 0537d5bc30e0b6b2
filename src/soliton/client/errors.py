"""What can go wrong for somebody who uses the library, as types.

What lives here: the tree, and how a refusal is made of a node's answer. What does not: errors of
values that are made without a node (``soliton.chain.errors``, all below ``InputError``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from soliton.errors import EnvironmentProblem, InputError, SolitonError

MAX_WORDS: Final = 2_000
"""Characters of an answer that are quoted where it is none."""


class ClientError(SolitonError):
    """A node or a matcher did not do what it was asked; the types below say why."""


class AmountError(InputError):
    """An amount that is no amount: no number, or more decimals than the asset has."""


class NodeUnreachable(ClientError, EnvironmentProblem):
    """There is no connection; nothing was sent."""


class NodeTimeout(ClientError, EnvironmentProblem):
    """The answer did not come in time; the request may have arrived."""


class NodeBroken(ClientError, EnvironmentProblem):
    """The connection was lost before the answer was whole, or what came is no answer of a node; the
    request may have arrived.
    """


class OutcomeUnknown(ClientError):
    """A transaction or order was sent, and nobody can say whether it arrived: ask for its status
    before you send another in its place. ``id`` is its own.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} may have arrived or not: {reason}")
        self.id = name


class NodeRefused(ClientError):
    """The node (or matcher) said no: ``code`` and ``message`` are its own, ``hint`` is advice for a
    person where it gave some, ``status`` that of HTTP, ``details`` the whole answer.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        status: int = 400,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{message} (error {code})" + (f"; {hint}" if hint else ""))
        self.code = code
        self.message = message
        self.status = status
        self.hint = hint
        self.details: Mapping[str, Any] = details or {}


class NotFound(NodeRefused):
    """There is no such block, transaction, alias, asset, entry, order, or route."""


class ScriptRefused(NodeRefused):
    """A script said no, or failed: ``function`` is the dApp's that did, ``line`` and ``column`` are
    where in its source, ``trace`` is what it did, and ``fault`` all that a node of ours tells of
    the place: expression, values, the calls that led there. What a node does not tell is ``None``,
    or empty.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        status: int = 400,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
        function: str | None = None,
        line: int | None = None,
        column: int | None = None,
        trace: list[dict[str, Any]] | None = None,
        fault: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(code, message, status=status, hint=hint, details=details)
        self.function = function
        self.line = line
        self.column = column
        self.trace = trace or []
        self.fault: Mapping[str, Any] = fault or {}

    def __str__(self) -> str:
        text = super().__str__()
        if self.function is not None:
            text += f" in {self.function}"
        if self.line is not None:
            text += f", line {self.line}, column {self.column}"
        return text


class ScriptFailed(ScriptRefused):
    """The transaction is in a block, its fee is paid, and the script it called has failed there:
    nothing else has changed. ``id`` is the transaction's.
    """

    id: str = ""


class ApprovalNeeded(ClientError):
    """A signing service has written down that this is asked for; others have to approve it.
    ``pending`` is its id there.
    """

    def __init__(self, pending: str, told: str) -> None:
        super().__init__(f"{pending} waits for approval: {told}")
        self.pending = pending


class TransactionLost(ClientError):
    """The transaction waits no more and is in no block. ``id`` is its own, ``reason`` why, if the
    node tells.
    """

    def __init__(self, name: str, reason: str | None = None) -> None:
        super().__init__(f"{name} is neither in a block nor waiting for one: {reason or 'gone'}")
        self.id = name
        self.reason = reason


class StillWaiting(ClientError):
    """The time to wait is up; what is waited for may still come."""


_SCRIPT_CODES: Final = frozenset((306, 307, 308))
_NOT_FOUND: Final = 404


def refusal(status: int, answer: object, text: str, hint: str | None = None) -> NodeRefused:
    """The error that an answer means; ``answer`` is its JSON value, if it is one."""
    if not isinstance(answer, dict) or type(answer.get("error")) is not int:
        kind = NotFound if status == _NOT_FOUND else NodeRefused
        words = text.strip()[:MAX_WORDS] or f"status {status}"
        return kind(0, words, status=status, hint=hint)
    code, message = answer["error"], str(answer.get("message", ""))[:MAX_WORDS]
    told = answer.get("hint")
    hint = told if isinstance(told, str) else hint
    if code in _SCRIPT_CODES:
        return script_refusal(code, message, status=status, hint=hint, details=answer)
    kind = NotFound if status == _NOT_FOUND else NodeRefused
    return kind(code, message, status=status, hint=hint, details=answer)


def script_refusal(
    code: int,
    message: str,
    *,
    status: int = 400,
    hint: str | None = None,
    details: Mapping[str, Any],
    kind: type[ScriptRefused] = ScriptRefused,
) -> ScriptRefused:
    """The error of a script, with what the answer tells about the place of the fault."""
    trace = details.get("trace")
    steps = [each for each in trace if isinstance(each, dict)] if isinstance(trace, list) else []
    fault = details.get("fault")
    place: Mapping[str, Any] = fault if isinstance(fault, dict) else {}
    function = place.get("function") or details.get("function") or _function_of(steps)
    return kind(
        code,
        message,
        status=status,
        hint=hint,
        details=details,
        function=function if isinstance(function, str) else None,
        line=_number(place.get("line", details.get("line"))),
        column=_number(place.get("column", details.get("column"))),
        trace=steps,
        fault=place,
    )


def _number(value: object) -> int | None:
    return value if type(value) is int else None


def _function_of(steps: list[dict[str, Any]]) -> str | None:
    """The innermost dApp's function that failed."""
    found = None
    while steps:
        failed = [each for each in steps if each.get("result") == "failure" or each.get("error")]
        if not failed:
            break
        last = failed[-1]
        if isinstance(last.get("function"), str):
            found = last["function"]
        inner = last.get("invocations")
        steps = (
            [each for each in inner if isinstance(each, dict)] if isinstance(inner, list) else []
        )
    return found
