"""Small services for the tests of servers."""

from __future__ import annotations

from collections.abc import Callable

from soliton.web.answers import Answer, BodyLimits, Unread, Whole
from soliton.web.cors import CLOSED
from soliton.web.request import Request
from soliton.web.traffic import Traffic


class Simple:
    """A service that is one function."""

    request_class = Request
    cors = CLOSED
    body_limits = BodyLimits(1024 * 1024)

    def __init__(self, respond: Callable[[Request], Answer]) -> None:
        self.traffic = Traffic()
        self._respond = respond

    def respond(self, request: Request) -> Answer:
        return self._respond(request)

    def refuse(self, request: Request, reason: Unread) -> Whole:
        del request
        return Whole(b"", status=413 if reason is Unread.TOO_LONG else 408)
