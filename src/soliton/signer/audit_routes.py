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
from soliton.web.request import Request

LINES: Final = 50
_DIGITS: Final = 18


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
        limit = _whole(request, "limit") or LINES
        if limit > MAX_LINES:
            raise RequestRefused(WRONG_SHAPE, f"limit should be at most {MAX_LINES}", "limit")
        try:
            lines = await asyncio.to_thread(self._log.recent, _whole(request, "before"), limit)
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


def _whole(request: Request, name: str) -> int | None:
    (text, *_) = request.query.get(name, [""])
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        raise RequestRefused(WRONG_SHAPE, f"{name} should be a whole number", name)
    return int(text)
