"""Verifying and making signatures outside of the event loop, on another core.

A verification costs more than the rest of a request, and threads share one interpreter lock, so a
worker process does it while the loop continues. All signatures of one turn of the loop are sent
together, or in groups if the caller wants the first verdicts early. Signatures that are submitted
alone are verified here, since the round trip would delay them; the worker is started once enough
were submitted together. Whatever the worker does not answer, because it was killed or hangs, is
done here.

A private key is sent through the worker's private pipe; it is in no command line and in no file.

What lives here: the worker's lifecycle and requests. What does not: the validity of a signature
(``soliton.crypto.signatures``).
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

from soliton.crypto.curve25519 import SIGNATURE_BYTES, SignedMessage, sign
from soliton.crypto.signatures import verify, weight
from soliton.parallel._checker import COMMAND, READY, request
from soliton.parallel.threads import cores

MAX_SENT: Final = 128
"""Signatures in flight, at most: further ones are verified here, so that both cores work."""
ANSWER_SECONDS: Final = 5.0
"""The timeout of the process's answers."""
RESTART_SECONDS: Final = 5.0
"""The pause before the process is restarted after it was lost."""
SIGN_SECONDS: Final = 0.005
"""How long messages to sign are collected, since each request to the process has a cost."""
STARTS_AFTER: Final = 256
"""Signatures submitted together before the process starts, which costs as much as a thousand."""
_LEAST: Final = 2
_STDIN: Final = 0

OnVerdict = Callable[[bool], None]
"""Called with a verdict; must not raise."""
OnSignature = Callable[[bytes], None]
"""Called with a signature; must not raise."""
_Unsigned = tuple[bytes, bytes, bytes]
_Waiting = tuple[SignedMessage, OnVerdict, None] | tuple[_Unsigned, None, OnSignature]

_log = logging.getLogger(__name__)


class SignatureChecker:
    """Use from one event loop, and ``close`` at the end."""

    def __init__(
        self,
        *,
        beside: bool = True,
        group: int = MAX_SENT,
        command: Sequence[str] = COMMAND,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """``beside`` allows the worker process; it is never used on a single core. A ``group`` is
        sent as soon as it is complete, and its verdicts are returned together.
        """
        self._command = tuple(command)
        self._answer_seconds = answer_seconds
        self._may_start = beside and bool(sys.executable) and cores() > 1
        self._group = group
        self._gathered: list[_Waiting] = []
        self._is_due = False
        self._signs_later = False
        self._sent: deque[_Waiting] = deque()
        self._buffer = b""
        self._awaited = 0
        self._process: _Process | None = None
        self._ending: set[_Process] = set()
        self._starting: asyncio.Task[None] | None = None
        self._together = 0
        self._not_before = 0.0
        self._answered = 0
        self._watch: asyncio.TimerHandle | None = None

    @property
    def process_id(self) -> int | None:
        """The id of the worker process, if it is ready."""
        return None if self._process is None else self._process.id

    async def check(self, public_key: bytes, message: bytes, signature: bytes) -> bool:
        """Verify a signature."""
        return await self.check_all(((public_key, message, signature),))

    async def check_all(self, items: Sequence[SignedMessage]) -> bool:
        """Verify one or more signatures; return whether all are valid."""
        verdict: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def on_verdict(are_valid: bool) -> None:
            if not verdict.done():
                verdict.set_result(are_valid)

        self.submit_all(items, on_verdict)
        return await verdict

    def submit(self, item: SignedMessage, on_verdict: OnVerdict) -> None:
        """Verify a signature without a task: ``on_verdict`` is called later, never during this
        call.
        """
        self._gathered.append((item, on_verdict, None))
        if not self._is_due:
            self._send_soon()
        elif len(self._gathered) >= self._group and self._takes_all():
            self._send()

    def submit_all(self, items: Sequence[SignedMessage], on_verdict: OnVerdict) -> None:
        """Verify one or more: ``on_verdict`` is called once with whether all are valid."""
        left = len(items)
        if left == 1:
            self.submit(items[0], on_verdict)
            return
        are_valid = True

        def count(is_valid: bool) -> None:
            nonlocal left, are_valid
            left -= 1
            are_valid = are_valid and is_valid
            if left == 0:
                on_verdict(are_valid)

        for item in items:
            self.submit(item, count)

    def sign(
        self, private_key: bytes, message: bytes, point: bytes, on_signature: OnSignature
    ) -> None:
        """Sign a message; ``on_signature`` is called later. It is sent with the next verifications,
        or after ``SIGN_SECONDS``; ``point`` is the key's ``curve25519.signing_point``.
        """
        self._gathered.append(((private_key, message, point), None, on_signature))
        if not self._signs_later:
            self._signs_later = True
            asyncio.get_running_loop().call_later(SIGN_SECONDS, self._send_signs)

    async def close(self) -> None:
        """End the process; unanswered requests are done here."""
        self._may_start = False
        if self._starting is not None:
            await self._starting
        if self._process is not None:
            self._drop(self._process)
        await asyncio.gather(*(process.ended.wait() for process in self._ending))

    def _takes_all(self) -> bool:
        process = self._process
        room = MAX_SENT - len(self._sent)
        return process is not None and process.is_ready and len(self._gathered) <= room

    def _send_soon(self) -> None:
        self._is_due = True
        asyncio.get_running_loop().call_soon(self._send_rest)

    def _send_rest(self) -> None:
        self._is_due = False
        if self._gathered:
            self._send()

    def _send_signs(self) -> None:
        self._signs_later = False
        if not self._is_due:
            self._send_rest()

    def _send(self) -> None:
        batch, self._gathered = self._gathered, []
        process, weight = self._process, _weight(batch)
        if process is None or not process.is_ready:
            if process is None and weight >= _LEAST:
                self._together += weight
                self._start()
            _do_locally(batch)
            return
        if weight + len(self._sent) < _LEAST:
            _do_locally(batch)
            return
        room = MAX_SENT - len(self._sent)
        there, here = batch[:room], batch[room:]
        if there:
            claims = [each for each in there if each[2] is None]
            unsigned = [each for each in there if each[2] is not None]
            self._sent.extend(claims)
            self._sent.extend(unsigned)
            self._awaited += len(claims) + SIGNATURE_BYTES * len(unsigned)
            process.write(request([each[0] for each in claims], [each[0] for each in unsigned]))
            if self._watch is None:
                self._watch_answers()
        _do_locally(here)

    # --- the process ------------------------------------------------------------------------------

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        is_needed = self._may_start and self._together >= STARTS_AFTER
        if is_needed and loop.time() >= self._not_before:
            self._process = _Process(self._received, self._lose)
            self._starting = loop.create_task(self._run(self._process))

    async def _run(self, process: _Process) -> None:
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: process,
                *self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None,
                # Ctrl-C goes to all processes of a terminal, maybe before this one ignores it.
                start_new_session=True,
            )
        except OSError as error:
            _log.warning("%s: %s", self._command[0], error)
            process.ended.set()
            self._lose(process)
        finally:
            self._starting = None

    def _received(self, process: _Process, data: bytes) -> None:
        """Handle verdicts and signatures of the process."""
        if process is not self._process:
            return
        data, place = self._buffer + data, 0
        if len(data) > self._awaited:
            self._lose(process)
            return
        while place < len(data) and process is self._process:
            _, on_verdict, on_signature = self._sent[0]
            if on_verdict is not None:
                self._sent.popleft()
                on_verdict(data[place] == 1)
                place += 1
            elif on_signature is not None:
                end = place + SIGNATURE_BYTES
                if end > len(data):
                    break
                self._sent.popleft()
                on_signature(data[place:end])
                place = end
            self._answered += 1
        if process is self._process:
            self._buffer = data[place:]
            self._awaited -= place

    def _watch_answers(self) -> None:
        answered = self._answered

        def look() -> None:
            self._watch = None
            if self._sent and self._process is not None:
                if self._answered == answered:
                    self._lose(self._process)
                else:
                    self._watch_answers()

        self._watch = asyncio.get_running_loop().call_later(self._answer_seconds, look)

    def _lose(self, process: _Process) -> None:
        if process.ended.is_set():
            self._ending.discard(process)
        if process is self._process:
            _log.warning("the process that checks signatures is lost: they are checked here")
            self._not_before = asyncio.get_running_loop().time() + RESTART_SECONDS
            self._drop(process)

    def _drop(self, process: _Process) -> None:
        self._process = None
        self._buffer, self._awaited = b"", 0
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if not process.ended.is_set():
            self._ending.add(process)
            process.end()
        left, self._sent = self._sent, deque()
        _do_locally(left)


class _Process(asyncio.SubprocessProtocol):
    """The worker process, which accepts requests once it has reported that it is ready."""

    def __init__(
        self, hear: Callable[[_Process, bytes], None], lose: Callable[[_Process], None]
    ) -> None:
        self._received = hear
        self._lose = lose
        self._transport: asyncio.SubprocessTransport | None = None
        self.is_ready = False
        self.ended = asyncio.Event()

    @property
    def id(self) -> int | None:
        """The process id, once it is ready."""
        return self._transport.get_pid() if self._transport is not None and self.is_ready else None

    def write(self, data: bytes) -> None:
        """Send a request to a process that is ready."""
        assert self._transport is not None
        pipe = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(_STDIN))
        pipe.write(data)

    def end(self) -> None:
        """Kill the process."""
        if self._transport is not None and self._transport.get_returncode() is None:
            self._transport.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        del fd  # there is one pipe from it
        if self.is_ready:
            self._received(self, data)
        elif data == bytes((READY,)):
            self.is_ready = True
        else:
            self._lose(self)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        del fd, exc
        self._lose(self)

    def process_exited(self) -> None:
        self.ended.set()
        if self._transport is not None:
            self._transport.close()
        self._lose(self)


def _weight(batch: Iterable[_Waiting]) -> int:
    """Return how many signatures of accounts take as long as a batch."""
    return sum(1 if each[1] is None else weight((each[0],)) for each in batch)


def _do_locally(batch: Iterable[_Waiting]) -> None:
    for (key, message, other), on_verdict, on_signature in batch:
        if on_verdict is not None:
            on_verdict(verify(key, message, other))
        elif on_signature is not None:
            on_signature(sign(key, message, point=other))
