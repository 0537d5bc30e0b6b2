"""Handing notices over: to a web server that is told (a webhook), or to a program that is run.

One at a time, in their order, until the receiver says that it has them; one that fails is tried
again, later and later. What was handed over is noted afterwards, so after a crash the last one may
come once more, under the same name.

A request is signed as ``Standard Webhooks`` say, for which there are libraries in many languages:
https://github.com/standard-webhooks/standard-webhooks.

What lives here: receivers, the signature, trying again. What does not: the file (``outbox``).
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
from soliton.export.outbox import Waiting, WaitingNotices
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble
from soliton.web.types import Headers

RETRY_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""How long a receiver is left in peace after it has failed, again and again."""
LOOK_SECONDS: Final = 0.05
"""So often the file is looked at while nothing waits."""
PREFIX: Final = "whsec_"
"""What a secret begins with, as the standard has it."""
_SECRET_BYTES: Final = 32
_ANSWER_BYTES: Final = 64 * 1024
_PAGE: Final = 100


class NotTaken(EnvironmentProblem):
    """The receiver did not say that it has a notice."""


class Receiver(Protocol):
    """Whom notices are for."""

    async def take(self, notice: Waiting) -> None:
        """Hand one over; raises ``NotTaken``."""

    def close(self) -> None:
        """Nothing more comes."""


class Webhook:
    """A web server that gets each notice with a request."""

    def __init__(
        self,
        url: str,
        secrets: Sequence[bytes],
        seconds: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        """With several secrets each signs. Raises ``InputError`` for an address of no use."""
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
        """Hand one over; any answer of 200 to 299 says that it was taken."""
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
    """A program that is run for each notice, which it reads from its standard input."""

    def __init__(self, words: Sequence[str], seconds: float) -> None:
        self._words = words
        self._seconds = seconds

    async def take(self, notice: Waiting) -> None:
        """Hand one over; an exit code of 0 says that it was taken."""
        environment = {**os.environ, "SOLITON_NOTICE": notice.name}
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words, stdin=PIPE, stdout=DEVNULL, env=environment, start_new_session=True
            )
        except OSError as error:
            raise NotTaken(f"{self._words[0]}: {error.strerror}") from error
        try:
            async with asyncio.timeout(self._seconds):
                await process.communicate(notice.body + b"\n")
        except TimeoutError:
            raise NotTaken(f"{self._words[0]} was not done in {self._seconds:g} s") from None
        finally:
            await _end(process)
        if process.returncode:
            raise NotTaken(f"{self._words[0]} ended with code {process.returncode}")

    def close(self) -> None:
        """There is nothing to be closed."""


async def _end(process: Process) -> None:
    """End a program that is still there, and what it has started."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


class Courier:
    """A thread that hands over what waits, until it is stopped."""

    def __init__(
        self,
        path: Path,
        receiver: Receiver,
        stopped: threading.Event,
        report: Callable[[str], None],
    ) -> None:
        """``path`` is the file of the notices; ``report`` hears when the receiver fails.

        Raises ``DatabaseAway`` or ``WrongChain``.
        """
        self._notices = WaitingNotices(path)
        self._receiver = receiver
        self._stopped = stopped
        self._report = report
        self._empties = threading.Event()
        self._troubles = 0
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def finish(self) -> None:
        """Hand over all that waits by now, unless it is stopped; then end."""
        self._empties.set()
        self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._deliver())

    async def _deliver(self) -> None:
        try:
            while not self._stopped.is_set():
                ends = self._empties.is_set()
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
        """Hand over what waits first; how many that were. Raises ``DatabaseAway``."""
        page = self._notices.next(_PAGE)
        for each in page:
            if await self._hand_over(each):
                self._notices.done(each.number)
        return len(page)

    async def _hand_over(self, notice: Waiting) -> bool:
        """Try until it is taken; whether it was, before the end."""
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
                await self._wait_after(error)
                continue
            if self._troubles:
                self._report("notices are handed over again")
            self._troubles = 0
            return True
        return False

    async def _wait_after(self, error: Exception) -> None:
        if self._troubles == 0:
            self._report(f"a notice was not handed over, it is tried again: {error}")
        seconds = RETRY_SECONDS[min(self._troubles, len(RETRY_SECONDS) - 1)]
        self._troubles += 1
        # It has a thread of its own, and nothing else to do.
        self._stopped.wait(seconds)


def signed_headers(notice: Waiting, secrets: Sequence[bytes], timestamp: int) -> Headers:
    """The headers by which a receiver knows whom a notice is from; ``timestamp`` in seconds."""
    name = notice.name.encode()
    signed = b"%s.%d.%s" % (name, timestamp, notice.body)
    macs = (hmac.digest(secret, signed, "sha256") for secret in secrets)
    return (
        (b"webhook-id", name),
        (b"webhook-timestamp", b"%d" % timestamp),
        (b"webhook-signature", b" ".join(b"v1," + base64.b64encode(mac) for mac in macs)),
    )


def read_secrets(path: Path) -> list[bytes]:
    """The secrets in a file, one in each line; a file that is missing is made with a new one.

    Raises ``InputError`` for a file without secrets, or one that cannot be read.
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
