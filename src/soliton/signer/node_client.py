"""The signer's HTTP client of the node.

What lives here: broadcasting one transaction, asking for the height, and what every kind of answer
or silence means. What does not: what is sent.

Source of the routes: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/TransactionsApiRoute.scala``.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import httpx

from soliton.errors import InputError
from soliton.signer.errors import (
    NODE_SENSELESS,
    NODE_SLOW,
    NODE_UNREACHABLE,
    Fault,
    NodeRefused,
    NodeTrouble,
)
from soliton.signer.settings import SignerSettings

_MAX_MESSAGE: Final = 4_000
_MAYBE: Final = "; the transaction may have arrived all the same, look for its id"


class NodeClient:
    """Connections to one node."""

    __slots__ = ("_client", "_limits", "_url")

    def __init__(self, settings: SignerSettings) -> None:
        parts = urlsplit(settings.node_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("the signer's node address should look like http://host:port")
        self._url = settings.node_url.rstrip("/")
        self._limits = settings.limits
        # Made here and not by the first request, which others would wait for.
        self._client = _client(settings, tls=parts.scheme == "https")

    async def broadcast(self, transaction: dict[str, object]) -> None:
        """Send a signed transaction; raises ``NodeRefused`` or ``NodeTrouble``."""
        transaction_id = str(transaction["id"])
        status, answer = await self._call(
            "POST", "/transactions/broadcast", transaction, transaction_id
        )
        code, message = answer.get("error"), answer.get("message")
        if status == HTTPStatus.OK and answer.get("id") == transaction_id:
            return
        if 400 <= status < 500 and type(code) is int and isinstance(message, str):
            raise NodeRefused(status, code, message[:_MAX_MESSAGE], answer.get("details"))
        raise _senseless(status, transaction_id)

    async def height(self) -> int:
        """The height of the node's chain; raises ``NodeTrouble``."""
        status, answer = await self._call("GET", "/blocks/height", None, None)
        height = answer.get("height")
        if status != HTTPStatus.OK or type(height) is not int:
            raise _senseless(status, None)
        return height

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _call(
        self, method: str, path: str, body: dict[str, object] | None, transaction_id: str | None
    ) -> tuple[int, dict[str, object]]:
        """Status and JSON object of an answer; an answer that is none counts as empty."""
        sent = transaction_id is not None
        trouble: tuple[Fault, str]
        try:
            async with asyncio.timeout(self._limits.node_seconds):
                async with self._client.stream(method, self._url + path, json=body) as response:
                    text = bytearray()
                    async for chunk in response.aiter_bytes():
                        text += chunk
                        if len(text) > self._limits.node_answer_bytes:
                            raise _senseless(response.status_code, transaction_id)
                return response.status_code, _object(bytes(text))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            trouble, transaction_id = (NODE_UNREACHABLE, "the node cannot be reached"), None
        except (TimeoutError, httpx.TimeoutException):
            trouble = NODE_SLOW, "the node did not answer in time" + _MAYBE * sent
        except (httpx.HTTPError, httpx.InvalidURL):
            trouble = NODE_UNREACHABLE, "the node hung up without an answer" + _MAYBE * sent
        raise NodeTrouble(*trouble, transaction_id)


def _client(settings: SignerSettings, *, tls: bool) -> httpx.AsyncClient:
    limits = settings.limits
    return httpx.AsyncClient(
        timeout=httpx.Timeout(limits.node_seconds, connect=limits.connect_seconds),
        limits=httpx.Limits(
            max_connections=limits.requests_at_once,
            keepalive_expiry=limits.keep_alive_seconds,
        ),
        headers={"accept": "application/json"},
        # The node's address is meant as it is written: no proxy of the environment.
        trust_env=False,
        # Reading the certificates of all authorities takes long: for plain HTTP nobody is trusted.
        verify=True if tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        transport=settings.transport,
    )


def _senseless(status: int, transaction_id: str | None) -> NodeTrouble:
    message = f"the node answered {status}, but not as a node does"
    if transaction_id is not None:
        message += _MAYBE
    return NodeTrouble(NODE_SENSELESS, message, transaction_id)


def _object(text: bytes) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
