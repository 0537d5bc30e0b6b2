"""The node that a chain is forked from, asked over REST. It is only read.

What lives here: questions, limits on time and size, and what is no answer, as typed errors. What
does not: what is asked (``state``, ``history``, ``since``).
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
"""How long an answer may take."""
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""More than any account or block has."""
RETRIES: Final = 1

Amount = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Height = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class Remote(Runner):
    """A node. Any number of threads may ask it."""

    def __init__(self, url: str) -> None:
        """Raises ``InputError`` for a URL that is none; nothing is asked yet."""
        self.url = url
        self.name = f"{url}, which this chain is forked from"
        self.questions = 0
        """How many were asked."""
        self._transport = Transport(url, timeout=ANSWER_SECONDS, most_bytes=MAX_ANSWER_BYTES)
        self._exchange = self._transport.exchange
        self._pause = time.sleep
        self._core = Core(retries=RETRIES)

    def ask(self, path: str, kind: type[T]) -> T:
        """The answer to a question; raises ``RemoteTrouble``."""
        try:
            return self._asked(path, kind)
        except NodeRefused as error:
            raise self.trouble(path, f"refuses: {error}") from error

    def find(self, path: str, kind: type[T], *, absent: int = 0) -> T | None:
        """The same; ``None`` where the node says that there is no such thing, in the usual way or
        by the error ``absent``.
        """
        try:
            return self._asked(path, kind)
        except NodeRefused as error:
            if error.code and (isinstance(error, NotFound) or error.code == absent):
                return None
            raise self.trouble(path, f"refuses: {error}") from error

    def page(self, path: str, kind: type[T], most: int) -> list[T]:
        """The rows that answer a question for at most so many."""
        rows = self.ask(path, list[kind])  # type: ignore[valid-type]
        if len(rows) > most:
            raise self.trouble(path, f"answers with {len(rows)} rows where at most {most} are due")
        return rows

    def several(self, path: str, ids: Sequence[str], kind: type[T]) -> list[T]:
        """The answers to the same question about several ids, in their order."""
        self.questions += 1
        try:
            found = self._run(post(self._core, path, {"ids": ids}, list[kind]))  # type: ignore[valid-type]
        except ClientError as error:
            raise self.trouble(path, str(error)) from error
        if len(found) != len(ids):
            raise self.trouble(path, f"answers {len(found)} of {len(ids)} questions")
        return found

    def _asked(self, path: str, kind: type[T]) -> T:
        self.questions += 1
        try:
            return self._run(ask(self._core, Request("GET", path), kind))
        except NodeRefused:
            raise
        except ClientError as error:
            raise self.trouble(path, str(error)) from error

    def trouble(self, path: str, words: str) -> RemoteTrouble:
        """What is wrong with an answer."""
        return RemoteTrouble(f"{self.name}: {path}: {words}")

    def binary(self, path: str, text: str, *lengths: int) -> bytes:
        """What base58 stands for, of one of these lengths; raises ``RemoteTrouble``."""
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
    """The node cannot be reached, does not answer in time, or answers what cannot be."""
