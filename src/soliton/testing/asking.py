"""Requests of the library as a service in this process gets them, and its answers on the way back.

What lives here: the two forms. What does not: the services (``local``, ``matching``).
"""

from __future__ import annotations

from typing import Final, TypeVar

from soliton.client.steps import Answer, Request
from soliton.web.answers import Whole
from soliton.web.request import Request as Asked

A = TypeVar("A", bound=Asked)

_LOCAL: Final = "127.0.0.1"


def asked(kind: type[A], request: Request) -> A:
    """A request as one of a service's own class."""
    path, _, query = request.path.partition("?")
    headers = {name.lower().encode(): text.encode() for name, text in request.headers}
    if request.body:
        headers[b"content-length"] = b"%d" % len(request.body)
    return kind(request.method, path, query.encode(), headers, request.body, _LOCAL)


def told(answer: Whole) -> Answer:
    """A service's answer."""
    head = dict(answer.headers)
    head[b"content-type"] = answer.content_type
    return Answer(answer.status, answer.body, head)
