"""Webhook: notifies another service of pending requests and decisions.

Each message is a ``POST`` of JSON, signed with a shared secret. Delivery is at least once: failed
attempts are retried, and after a restart all pending requests are sent again. A receiver tells
duplicates by ``pending`` and ``state``.

What lives here: the queue, the signature, retries. What does not: the messages (``approvals``), and
the settings' file (``node.signer_settings``).
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
"""Length of the queue; when it is full the oldest message is dropped."""
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
    """The settings of the webhook are invalid."""


def signature_of(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return the HMAC-SHA256 of the timestamp, a full stop and the body, in hexadecimal."""
    return hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


class Webhook:
    """Sends messages to one URL, in order. ``clock`` is the wall clock in milliseconds."""

    def __init__(self, settings: WebhookSettings, clock: Callable[[], int]) -> None:
        """Raises ``WebhookProblem``, and ``InputError`` for an invalid URL."""
        self._secret = _secret(settings.secret_file)
        self._clock = clock
        parts = urlsplit(settings.url)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._host = parts.netloc.rpartition("@")[2]
        limits = ClientLimits(1, answer_seconds=ANSWER_SECONDS, keep_alive_seconds=10.0)
        self._client = HttpClient(f"{parts.scheme}://{self._host}", limits)
        self._queue: deque[bytes] = deque()
        self._sending: asyncio.Task[None] | None = None

    def notify(self, message: dict[str, Any]) -> None:
        """Queue a message; called in the event loop."""
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
        """Stop sending, and close the connection."""
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
