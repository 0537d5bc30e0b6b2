"""Telling another service what waits for approval, and what became of it.

Each message is a ``POST`` of JSON, signed with a shared secret. It is sent again until it is taken
or too old; after a restart what still waits is told again, so that a receiver knows messages by
``pending`` and ``state``.

What lives here: the queue, the signature, patience. What does not: what is told (``approvals``),
and the settings' file (``node.signer_settings``).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from soliton.errors import InputError
from soliton.signer.settings import WebhookSettings
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble
from soliton.web.client_http1 import header_lines, request_bytes

MAX_QUEUE: Final = 1_000
"""Messages that wait to be sent; the oldest gives way."""
PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Seconds before each further attempt."""
ANSWER_SECONDS: Final = 10.0
MAX_ANSWER_BYTES: Final = 64 * 1024
MIN_SECRET_BYTES: Final = 16
MAX_SECRET_BYTES: Final = 4_096
SIGNATURE_HEADER: Final = "X-Soliton-Signature"
TIME_HEADER: Final = "X-Soliton-Timestamp"

_encode: Final = msgspec.json.Encoder().encode
logger = logging.getLogger("soliton.signer")


class WebhookProblem(InputError):
    """The webhook cannot be used as the settings say."""


def signature_of(secret: bytes, timestamp: str, body: bytes) -> str:
    """What a receiver compares: HMAC-SHA256 of the timestamp, a full stop and the body."""
    return hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


class Webhook:
    """Messages to one address, in their order. ``clock`` is the wall clock in milliseconds."""

    def __init__(self, settings: WebhookSettings, clock: Callable[[], int]) -> None:
        """Raises ``WebhookProblem``, and ``InputError`` for an address that is none."""
        self._secret = _secret(settings.secret_file)
        self._clock = clock
        parts = urlsplit(settings.url)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._host = parts.netloc.rpartition("@")[2]
        limits = ClientLimits(1, answer_seconds=ANSWER_SECONDS, keep_alive_seconds=10.0)
        self._client = HttpClient(f"{parts.scheme}://{self._host}", limits)
        self._queue: deque[bytes] = deque()
        self._sending: asyncio.Task[None] | None = None

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message as soon as that can be; from within the event loop."""
        if len(self._queue) >= MAX_QUEUE:
            self._queue.popleft()
            logger.warning("the webhook takes nothing: a message is given up")
        self._queue.append(_encode(message))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    async def _send_all(self) -> None:
        while self._queue:
            body = self._queue.popleft()
            if not await self._deliver(body):
                logger.warning("the webhook takes nothing: a message is given up")

    async def _deliver(self, body: bytes) -> bool:
        for pause in (*PAUSES, None):
            try:
                if 200 <= await self._attempt(body) < 300:
                    return True
            except (HttpTrouble, TimeoutError) as error:
                logger.info("the webhook cannot be reached: %s", type(error).__name__)
            if pause is not None:
                await asyncio.sleep(pause)
        return False

    async def _attempt(self, body: bytes) -> int:
        timestamp = str(self._clock())
        headers = {
            "Host": self._host,
            "Content-Type": "application/json",
            TIME_HEADER: timestamp,
            SIGNATURE_HEADER: f"sha256={signature_of(self._secret, timestamp, body)}",
        }
        lines = header_lines((name.encode(), text.encode()) for name, text in headers.items())
        async with asyncio.timeout(ANSWER_SECONDS):
            response = await self._client.send(request_bytes("POST", self._path, lines, body))
            await response.read(MAX_ANSWER_BYTES)
        return response.status

    def close(self) -> None:
        """Send nothing more."""
        if self._sending is not None and not self._sending.done():
            self._sending.cancel()
        self._client.close()


def _secret(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            secret = file.read(MAX_SECRET_BYTES + 1).strip()
    except OSError as error:
        raise WebhookProblem(f"{path} cannot be read: {error.strerror}") from error
    if not MIN_SECRET_BYTES <= len(secret) <= MAX_SECRET_BYTES:
        raise WebhookProblem(f"{path}: a secret has {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes")
    return secret
