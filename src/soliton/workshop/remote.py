"""A node of the family, asked over HTTP by the commands of the workshop.

What lives here: requests, answers and refusals. What does not: what is asked (``sending``,
``repl``).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Self, TypeAlias

import msgspec

from soliton.errors import EnvironmentProblem, InputError
from soliton.ride.faults import FaultReport, read_members
from soliton.web.client import HttpClient

Json: TypeAlias = Any
"""What a node answers, decoded."""
OK: Final = 200
NOT_FOUND: Final = 404
MAX_SHOWN_CHARS: Final = 400


class RemoteRefusal(InputError):
    """The node refuses what was sent; ``fault`` is the place in a script, where it tells one."""

    def __init__(self, message: str, code: int, fault: FaultReport | None) -> None:
        super().__init__(message)
        self.code = code
        self.fault = fault


class RemoteTrouble(EnvironmentProblem):
    """The node answers something that is neither an answer nor a refusal."""


class Remote:
    """One node; use it with ``with``."""

    def __init__(self, url: str, api_key: str | None = None) -> None:
        self.url = url
        headers = {} if api_key is None else {"X-API-Key": api_key}
        self._runner = asyncio.Runner()
        self._client = self._runner.run(_made(url, headers))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what is open to the node."""
        with self._runner:
            self._runner.run(_closed(self._client))

    def get(self, path: str) -> Json:
        """The answer to a question; raises ``RemoteRefusal``."""
        return self._ask("GET", path, b"")

    def post(self, path: str, body: object) -> Json:
        """The answer to a request with a JSON body."""
        return self._ask("POST", path, msgspec.json.encode(body))

    def find(self, path: str) -> Json:
        """The same as ``get``, ``None`` where the node says that there is no such thing."""
        try:
            return self.get(path)
        except RemoteRefusal as refusal:
            if refusal.code in _MISSING:
                return None
            raise

    def _ask(self, method: str, path: str, body: bytes) -> Json:
        # What is sent may not be repeated: nobody could tell whether it was taken.
        asked = self._client.request(method, path, body, may_repeat=method == "GET")
        answer = self._runner.run(asked)
        try:
            found = msgspec.json.decode(answer.body)
        except msgspec.DecodeError as error:
            if answer.status == NOT_FOUND:
                raise RemoteRefusal(f"the node has no {path.split('?')[0]}", 0, None) from error
            text = answer.body.decode(errors="replace")[:MAX_SHOWN_CHARS]
            words = f"{self.url} answers {path} with {answer.status}: {text}"
            raise RemoteTrouble(words) from error
        if answer.status == OK:
            return found
        if not isinstance(found, dict) or "message" not in found:
            raise RemoteTrouble(f"{self.url} answers {path} with {answer.status}")
        raise refusal_of(found)


_MISSING: Final = (0, 304, 311)
"""No route, no data under a key, no transaction."""


def refusal_of(body: dict[str, Any]) -> RemoteRefusal:
    """What an error of the REST API says."""
    code = body.get("error")
    fault = None
    if isinstance(body.get("fault"), dict):
        try:
            fault = read_members(body["fault"])
        except ValueError:
            fault = None
    return RemoteRefusal(str(body["message"]), code if isinstance(code, int) else 0, fault)


async def _made(url: str, headers: dict[str, str]) -> HttpClient:
    return HttpClient(url, headers=headers)


async def _closed(client: HttpClient) -> None:
    client.close()
