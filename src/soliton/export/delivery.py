"""Delivering notices: to a web server (a webhook), or to a program.

Notices are delivered one at a time, in order, until the receiver confirms them; a failed one is
retried with growing pauses. The confirmation is recorded afterwards, so after a crash the last
notice may be delivered again, under the same name.

A request is signed according to ``Standard Webhooks``, for which there are libraries in many
languages: https://github.com/standard-webhooks/standard-webhooks.

What lives here: receivers, the signature, retries. What does not: the file (``outbox``).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import os
import signal
import threading
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from soliton.errors import EnvironmentProblem, InputError
from soliton.export.errors import DatabaseAway
from soliton.export.metrics import Progress
from soliton.export.outbox import Waiting, WaitingNotices
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble
from soliton.web.types import Headers

RETRY_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Pauses after successive failures."""
LOOK_SECONDS: Final = 0.05
"""Polling interval of the file."""
PREFIX: Final = "whsec_"
"""Prefix of a secret, according to the standard."""
_SECRET_BYTES: Final = 32
_ANSWER_BYTES: Final = 64 * 1024
_PAGE: Final = 100


class NotTaken(EnvironmentProblem):
    """The receiver has not confirmed a notice."""


class Receiver(Protocol):
    """A receiver of notices."""

    async def take(self, notice: Waiting) -> None:
        """Deliver a notice; raises ``NotTaken``."""

    def close(self) -> None:
        """Release its resources."""


class Webhook:
    """A web server that receives each notice in a request."""

    def __init__(
        self,
        url: str,
        secrets: Sequence[bytes],
        seconds: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Each of the secrets signs. Raises ``InputError`` for an invalid URL."""
        if not url.isascii() or not url.isprintable() or " " in url:
            raise InputError("a URL has visible ASCII characters only, %xx in place of others")
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise InputError(f"no URL of a receiver: {error}") from error
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        limits = ClientLimits(
            connections=1,
            connect_seconds=seconds,
            answer_seconds=seconds,
            answer_bytes=_ANSWER_BYTES,
            keep_alive_seconds=5.0,
        )
        self._client = HttpClient(f"{parts.scheme}://{parts.netloc}", limits)
        self._secrets = secrets
        self._now = now

    async def take(self, notice: Waiting) -> None:
        """Deliver a notice; a status from 200 to 299 confirms it."""
        headers = signed_headers(notice, self._secrets, int(self._now()))
        try:
            answer = await self._client.request("POST", self._path, notice.body, headers)
        except HttpTrouble as error:
            raise NotTaken(str(error)) from error
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise NotTaken(f"the receiver answers {answer.status}")

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class NotifyCommand:
    """A program that is run for each notice, which is its standard input."""

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command = command
        self._seconds = seconds

    async def take(self, notice: Waiting) -> None:
        """Deliver a notice; exit code 0 confirms it."""
        environment = {**os.environ, "SOLITON_NOTICE": notice.name}
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=DEVNULL, env=environment, start_new_session=True
            )
        except OSError as error:
            raise NotTaken(f"{self._command[0]}: {error.strerror}") from error
        try:
            async with asyncio.timeout(self._seconds):
                await process.communicate(notice.body + b"\n")
        except TimeoutError:
            raise NotTaken(f"{self._command[0]} did not finish in {self._seconds:g} s") from None
        finally:
            await _end(process)
        if process.returncode:
            raise NotTaken(f"{self._command[0]} ended with code {process.returncode}")

    def close(self) -> None:
        """Nothing to do."""


async def _end(process: Process) -> None:
    """Kill a program that is still running, with its child processes."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


class Courier:
    """A thread that delivers pending notices until it is stopped."""

    def __init__(
        self,
        path: Path,
        receiver: Receiver,
        stopped: threading.Event,
        report: Callable[[str], None],
        progress: Progress | None = None,
    ) -> None:
        """``path`` is the file of the notices; ``report`` is called when the receiver fails.
        ``progress`` is for other threads to read.

        Raises ``DatabaseAway`` or ``WrongChain``.
        """
        self._notices = WaitingNotices(path)
        self._receiver = receiver
        self._stopped = stopped
        self._report = report
        self._finishing = threading.Event()
        self._failures = 0
        self._progress = progress or Progress()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def finish(self) -> None:
        """Deliver everything that is pending, unless stopped, and end."""
        self._finishing.set()
        self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._deliver())

    async def _deliver(self) -> None:
        try:
            while not self._stopped.is_set():
                ends = self._finishing.is_set()
                try:
                    found = await self._hand_over_page()
                except DatabaseAway as error:
                    await self._wait_after(error)
                    continue
                if not found:
                    if ends:
                        return
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._receiver.close()
            self._notices.close()

    async def _hand_over_page(self) -> int:
        """Deliver the first pending notices; return their number. Raises ``DatabaseAway``."""
        page = self._notices.next(_PAGE)
        is_all = len(page) < _PAGE
        self._progress.notices_waiting = len(page) if is_all else self._notices.count()
        for each in page:
            if await self._hand_over(each):
                self._notices.done(each.number)
                self._progress.notices_waiting -= 1
        return len(page)

    async def _hand_over(self, notice: Waiting) -> bool:
        """Retry until a notice is confirmed; return whether it was, before the stop."""
        while not self._stopped.is_set():
            attempt = asyncio.ensure_future(self._receiver.take(notice))
            while not attempt.done() and not self._stopped.is_set():
                await asyncio.wait((attempt,), timeout=LOOK_SECONDS)
            if not attempt.done():
                attempt.cancel()
                await asyncio.wait((attempt,))
                return False
            try:
                attempt.result()
            except NotTaken as error:
                self._progress.receiver_trouble = str(error)
                self._progress.notices_failed += 1
                await self._wait_after(error)
                continue
            if self._failures:
                self._report("notices are handed over again")
            self._failures = 0
            self._progress.receiver_trouble = ""
            self._progress.notices_delivered += 1
            return True
        return False

    async def _wait_after(self, error: Exception) -> None:
        if self._failures == 0:
            self._report(f"a notice was not handed over, it is tried again: {error}")
        seconds = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
        self._failures += 1
        # Blocks the event loop of this thread, which has nothing else to do.
        self._stopped.wait(seconds)


def signed_headers(notice: Waiting, secrets: Sequence[bytes], timestamp: int) -> Headers:
    """Return the headers that authenticate a notice; ``timestamp`` is in seconds."""
    name = notice.name.encode()
    signed = b"%s.%d.%s" % (name, timestamp, notice.body)
    macs = (hmac.digest(secret, signed, "sha256") for secret in secrets)
    return (
        (b"webhook-id", name),
        (b"webhook-timestamp", b"%d" % timestamp),
        (b"webhook-signature", b" ".join(b"v1," + base64.b64encode(mac) for mac in macs)),
    )


def read_secrets(path: Path) -> list[bytes]:
    """Read the secrets in a file, one per line; a missing file is created with a new secret.

    Raises ``InputError`` for a file without secrets, or an unreadable one.
    """
    try:
        if not path.exists():
            new = PREFIX + base64.b64encode(os.urandom(_SECRET_BYTES)).decode()
            with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
                file.write(new + "\n")
        lines = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the secrets in {path} cannot be read: {error}") from error
    found = []
    for line in lines:
        try:
            found.append(base64.b64decode(line.removeprefix(PREFIX), validate=True))
        except ValueError:
            raise InputError(f"{path}: a secret is {PREFIX} and base64") from None
    if not found or not all(found):
        raise InputError(f"{path} has no secret: a line with {PREFIX} and base64")
    return found
