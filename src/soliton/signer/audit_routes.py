"""The routes about the signer itself: the caller, and the audit log.

What lives here: parameters and answers. What does not: reading the log (``audit``), signing and
approving (``key_routes``).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from soliton.signer.audit import MAX_LINES, AuditLog
from soliton.signer.callers import Callers
from soliton.signer.errors import AUDIT_TROUBLE, BUSY, WRONG_SHAPE, RequestRefused
from soliton.signer.journal import AuditUnavailable
from soliton.signer.pipeline import SigningPipeline
from soliton.web.parameters import Parameter, parameters, whole, wrong_value
from soliton.web.request import Request

LINES: Final = 50
PARAMETERS: Final = tuple(
    parameters(
        f"""
before | natural_long | Lines with smaller numbers.      | 100
limit  | lines        | How many lines; {LINES} by default. | {LINES}
""",
        whole("lines", MAX_LINES, least=1),
    ).values()
)
"""The parameters of the last lines."""


class AuditRoutes:
    """The handlers; each returns the value of a JSON answer."""

    def __init__(self, pipeline: SigningPipeline, callers: Callers) -> None:
        self._pipeline = pipeline
        self._callers = callers
        self._log = AuditLog(pipeline.journal, pipeline.clock)
        self._is_checking = False

    def caller(self, request: Request) -> dict[str, Any]:
        """Return the caller and its scopes; raises ``RequestRefused``."""
        caller = self._callers.caller_of(request, None)
        return {"name": caller.name, "may": sorted(caller.may), "rate": caller.rate}

    async def recent(self, request: Request) -> dict[str, Any]:
        """Return the last lines; raises ``RequestRefused``."""
        before, limit = (_number(request, each) for each in PARAMETERS)
        try:
            lines = await asyncio.to_thread(self._log.recent, before, limit or LINES)
        except AuditUnavailable as error:
            raise RequestRefused(AUDIT_TROUBLE, str(error)) from None
        number, head = self._pipeline.journal.head
        return {
            "lines": lines,
            "head": {"number": number, "hash": head},
            "rulesSince": self._pipeline.rules_since,
            "verified": self._log.verified,
        }

    async def verify(self) -> dict[str, Any]:
        """Check the whole log, one request at a time; raises ``RequestRefused``."""
        if self._is_checking:
            raise RequestRefused(BUSY, "the log is being checked", after=1)
        self._is_checking = True
        try:
            return await asyncio.to_thread(self._log.verify, self._pipeline.journal.written)
        finally:
            self._is_checking = False


def _number(request: Request, parameter: Parameter) -> int | None:
    (text, *_) = request.query.get(parameter.name, [None])
    if text is None:
        return None
    value = parameter.kind.convert(text)
    if not isinstance(value, int):
        raise RequestRefused(WRONG_SHAPE, wrong_value(parameter, text), parameter.name)
    return value
