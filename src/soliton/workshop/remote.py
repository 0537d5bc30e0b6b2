"""The HTTP client of the workshop's commands for a node.

What lives here: requests, responses and errors. What does not: the users (``sending``, ``repl``).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Self, TypeAlias

import msgspec

from soliton.errors import EnvironmentProblem, InputError
from soliton.ride.faults import FaultReport, read_members
from soliton.web.client import HttpClient

Json: TypeAlias = Any
"""A decoded response."""
OK: Final = 200
NOT_FOUND: Final = 404
MAX_SHOWN_CHARS: Final = 400


class RemoteRefusal(InputError):
    """An error of the node's API; ``fault`` is the position in a script, if the node reports it."""

    def __init__(self, message: str, code: int, fault: FaultReport | None) -> None:
        super().__init__(message)
        self.code = code
        self.fault = fault


class RemoteTrouble(EnvironmentProblem):
    """A response that is neither a result nor an error of the API."""


class Remote:
    """A client of one node, to be used in a ``with`` statement."""

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
        """Close the connections."""
        with self._runner:
            self._runner.run(_closed(self._client))

    def get(self, path: str) -> Json:
        """Send a GET request; raises ``RemoteRefusal``."""
        return self._request("GET", path, b"")

    def post(self, path: str, body: object) -> Json:
        """Send a POST request with a JSON body; raises ``RemoteRefusal``."""
        return self._request("POST", path, msgspec.json.encode(body))

    def find(self, path: str) -> Json:
        """As ``get``, but ``None`` if the node reports that there is no such object."""
        try:
            return self.get(path)
        except RemoteRefusal as refusal:
            if refusal.code in _MISSING:
                return None
            raise

    def _request(self, method: str, path: str, body: bytes) -> Json:
        # A POST must not be repeated, because the node may have processed it.
        request = self._client.request(method, path, body, may_repeat=method == "GET")
        response = self._runner.run(request)
        try:
            found = msgspec.json.decode(response.body)
        except msgspec.DecodeError as error:
            if response.status == NOT_FOUND:
                raise RemoteRefusal(f"the node has no {path.split('?')[0]}", 0, None) from error
            text = response.body.decode(errors="replace")[:MAX_SHOWN_CHARS]
            message = f"{self.url} answers {path} with {response.status}: {text}"
            raise RemoteTrouble(message) from error
        if response.status == OK:
            return found
        if not isinstance(found, dict) or "message" not in found:
            raise RemoteTrouble(f"{self.url} answers {path} with {response.status}")
        raise refusal_of(found)


_MISSING: Final = (0, 304, 311)
"""The error codes for no such route, data entry and transaction."""


def refusal_of(body: dict[str, Any]) -> RemoteRefusal:
    """An error of the REST API as an exception."""
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
