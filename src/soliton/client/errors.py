"""The exceptions of the library.

What lives here: the exception classes, and how a node's response becomes one. What does not: errors
of values that are made without a node (``soliton.chain.errors``, all subclasses of ``InputError``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from soliton.errors import EnvironmentProblem, InputError, SolitonError

MAX_MESSAGE: Final = 2_000
"""Limit on the characters of a response that are quoted in an error message."""


class ClientError(SolitonError):
    """A request to a node, matcher or signer failed; the subclasses say why."""


class AmountError(InputError):
    """An invalid amount: not a number, or more decimals than the asset has."""


class NodeUnreachable(ClientError, EnvironmentProblem):
    """No connection could be made; nothing was sent."""


class NodeTimeout(ClientError, EnvironmentProblem):
    """The response did not arrive in time; the request may have been received."""


class NodeBroken(ClientError, EnvironmentProblem):
    """The connection was lost before the response was complete, or the response is not that of a
    node; the request may have been received.
    """


class OutcomeUnknown(ClientError):
    """A transaction or order was sent, and it is not known whether it arrived. Query the status of
    ``id`` before sending another in its place.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} may have arrived or not: {reason}")
        self.id = name


class FeeTooHigh(ClientError):
    """The node requires a higher fee than the library may choose: ``fee`` in units of ``fee_asset``
    (``None``: the coin), ``limit`` is the library's, ``None`` for an asset of which it has none.
    Nothing with that fee was signed. Send with ``max_fee`` to allow it.
    """

    def __init__(self, fee: int, limit: int | None, fee_asset: str | None) -> None:
        unit = "of the coin" if fee_asset is None else f"of {fee_asset}"
        bound = "no limit is set" if limit is None else f"the limit is {limit}"
        super().__init__(
            f"the node wants a fee of {fee} units {unit}, and {bound}: send with max_fee if that "
            "is right"
        )
        self.fee = fee
        self.limit = limit
        self.fee_asset = fee_asset


class ClockTooFar(ClientError):
    """The node's clock is further from the local one than ``Node(max_clock_offset=...)`` allows:
    ``offset`` and ``limit`` are in milliseconds. Nothing with the node's time was signed.
    """

    def __init__(self, offset: int, limit: int) -> None:
        super().__init__(
            f"the node's clock differs by {offset} ms, and the limit is {limit} ms: correct the "
            "local clock, or set max_clock_offset if that is right"
        )
        self.offset = offset
        self.limit = limit


class OtherChain(ClientError):
    """The transaction, or the node, is of another chain than the client is for."""


class NodeRefused(ClientError):
    """The node (or matcher) refused the request. ``code`` and ``message`` are its own, ``hint`` is
    its advice for a person or ``None``, ``status`` the HTTP status, ``details`` the whole response.
    ``is_certain`` is false if an earlier attempt of the same request had no certain result; its
    status, queried afterwards, was not known to the server.
    """

    is_certain = True

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
    """The block, transaction, alias, asset, entry, order or route does not exist."""


class ScriptRefused(NodeRefused):
    """A script rejected the transaction or failed. ``function`` is the dApp's function that failed,
    ``line`` and ``column`` its place in the source, ``trace`` the evaluation, and ``fault`` what a
    Soliton node reports of the place: expression, values, the calls that led there. What a node
    does not report is ``None`` or empty.
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
    """A confirmed transaction has paid its fee, but the script it called has failed: nothing else
    has changed. ``id`` is the transaction's id.
    """

    id: str = ""


class ApprovalNeeded(ClientError):
    """The signing service has recorded the request, and others have to approve it. ``pending`` is
    its id in the service.
    """

    def __init__(self, pending: str, summary: str) -> None:
        super().__init__(f"{pending} waits for approval: {summary}")
        self.pending = pending


class TransactionLost(ClientError):
    """The transaction is neither unconfirmed nor in a block any more. ``id`` is its id, ``reason``
    the node's reason or ``None``.
    """

    def __init__(self, name: str, reason: str | None = None) -> None:
        super().__init__(f"{name} is neither in a block nor waiting for one: {reason or 'gone'}")
        self.id = name
        self.reason = reason


class StillWaiting(ClientError):
    """The timeout has passed; the awaited event may still happen."""


_SCRIPT_CODES: Final = frozenset((306, 307, 308))
_NOT_FOUND: Final = 404


def refusal(status: int, answer: object, text: str, hint: str | None = None) -> NodeRefused:
    """Return the exception for a response; ``answer`` is its JSON value, if it is JSON."""
    if not isinstance(answer, dict) or type(answer.get("error")) is not int:
        kind = NotFound if status == _NOT_FOUND else NodeRefused
        message = text.strip()[:MAX_MESSAGE] or f"status {status}"
        return kind(0, message, status=status, hint=hint)
    code, message = answer["error"], str(answer.get("message", ""))[:MAX_MESSAGE]
    given = answer.get("hint")
    hint = given if isinstance(given, str) else hint
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
    """Return the exception for a script's failure, with the place of the fault if it is known."""
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
    """The name of the innermost function that failed."""
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
