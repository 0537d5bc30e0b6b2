"""The original node of a fork, read over REST.

What lives here: requests, limits on time and size, and invalid responses as typed errors. What does
not: the routes (``state``, ``history``, ``since``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Final, TypeVar

import msgspec

from soliton.client.binding import Runner
from soliton.client.errors import ClientError, NodeRefused, NotFound
from soliton.client.steps import Core, Request, ask, post
from soliton.client.transport import Transport
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.storage.errors import BelowProblem

T = TypeVar("T")

ANSWER_SECONDS: Final = 20.0
"""Time limit of a response."""
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Limit on a response, more than any account or block has."""
RETRIES: Final = 1
PATIENCE_SECONDS: Final = ANSWER_SECONDS * (1 + RETRIES)
"""How long a silent node is waited for."""

Amount = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Height = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class Remote(Runner):
    """A node. Any number of threads may use it."""

    def __init__(self, url: str) -> None:
        """Raises ``InputError`` for an invalid URL. Nothing is sent yet."""
        self.url = url
        self.name = f"{url}, which this chain is forked from"
        self.questions = 0
        """The number of requests sent."""
        self._transport = Transport(url, timeout=ANSWER_SECONDS, most_bytes=MAX_ANSWER_BYTES)
        self._exchange = self._transport.exchange
        self._pause = time.sleep
        self._core = Core(retries=RETRIES)

    def ask(self, path: str, kind: type[T]) -> T:
        """Return the response to a request; raises ``RemoteTrouble``."""
        try:
            return self._get(path, kind)
        except NodeRefused as error:
            raise self.trouble(path, f"refuses: {error}") from error

    def find(self, path: str, kind: type[T], *, absent: int = 0) -> T | None:
        """Return the response, or ``None`` if the node reports that the object does not exist, by a
        404 or by the error code ``absent``.
        """
        try:
            return self._get(path, kind)
        except NodeRefused as error:
            if error.code and (isinstance(error, NotFound) or error.code == absent):
                return None
            raise self.trouble(path, f"refuses: {error}") from error

    def page(self, path: str, kind: type[T], most: int) -> list[T]:
        """Return the rows of a response with at most ``most`` of them."""
        rows = self.ask(path, list[kind])  # type: ignore[valid-type]
        if len(rows) > most:
            raise self.trouble(path, f"answers with {len(rows)} rows where at most {most} are due")
        return rows

    def several(self, path: str, ids: Sequence[str], kind: type[T]) -> list[T]:
        """Return the responses of a route for several ids, in their order."""
        self.questions += 1
        try:
            found = self._run(post(self._core, path, {"ids": ids}, list[kind]))  # type: ignore[valid-type]
        except ClientError as error:
            raise self.trouble(path, str(error)) from error
        if len(found) != len(ids):
            raise self.trouble(path, f"answers {len(found)} of {len(ids)} questions")
        return found

    def _get(self, path: str, kind: type[T]) -> T:
        self.questions += 1
        try:
            return self._run(ask(self._core, Request("GET", path), kind))
        except NodeRefused:
            raise
        except ClientError as error:
            raise self.trouble(path, str(error)) from error

    def trouble(self, path: str, text: str) -> RemoteTrouble:
        """Return the error for an invalid response."""
        return RemoteTrouble(f"{self.name}: {path}: {text}")

    def binary(self, path: str, text: str, *lengths: int) -> bytes:
        """Decode base58 of one of these lengths; raises ``RemoteTrouble``."""
        try:
            data = base58.decode(text, 200)
        except Base58Error as error:
            raise self.trouble(path, f"answers {text[:80]!r} for base58") from error
        if len(data) not in lengths:
            raise self.trouble(path, f"answers {len(data)} bytes where {lengths} are due")
        return data

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


class RemoteTrouble(BelowProblem):
    """The node cannot be reached, does not answer in time, or its response is invalid."""
