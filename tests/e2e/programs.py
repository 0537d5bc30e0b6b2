"""The program as a user starts it: processes, their output, and HTTP against them.

What lives here: starting and ending, waiting with a limit. What does not: any check.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.amounts import LONG
from tests.e2e import fork_server
from tests.e2e.fork_server import Fork, is_read_at_start, run_forked

PROGRAM = fork_server.PROGRAM
ALWAYS_ANEW = LONG or sys.platform != "linux"
"""Forks are for the short run, and safe on Linux only."""
API_KEY = "waves-private-node"
WAIT_SECONDS = 60.0
"""Far more than anything here takes: it only ends a test that hangs."""

_WITH_PEERS = {"--peer-port", "--sync-from", "--offline"}

_NODE_URL = re.compile(r"(?:node +|REST API on )(http://[^ \n]+:\d+)")
_MATCHER_URL = re.compile(r"matcher (?: *|on )(http://[^ ,\n]+:\d+)")
_SIGNER_URL = re.compile(r"signer (?: *|on )(http://[^ ,\n]+:\d+)")


def command(arguments: Sequence[object]) -> list[str]:
    """The command line of a program; a node talks to others only in tests that say so."""
    words = [*map(str, arguments)]
    alone = words[:1] == ["run"] and not _WITH_PEERS & set(words)
    return [str(PROGRAM), *words, *(["--offline"] if alone else [])]


class Program:
    """A running ``soliton``; ``output`` has everything that it has printed, in order."""

    def __init__(
        self,
        arguments: Sequence[object],
        environment: Mapping[str, str],
        *,
        start_new_session: bool = False,
        anew: bool = ALWAYS_ANEW,
    ) -> None:
        """``anew`` starts an interpreter; else it is a fork, which has its imports."""
        env = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
        self.process: Fork | subprocess.Popen[str]
        if anew or is_read_at_start(environment):
            self.process = subprocess.Popen(
                command(arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=env,
                start_new_session=start_new_session,
            )
        else:
            self.process = Fork(command(arguments), env=env, start_new_session=start_new_session)
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line)

    @property
    def output(self) -> str:
        return "".join(self._lines)

    def wait_for(self, words: str) -> str:
        """The output, as soon as it has ``words``."""

        def seen() -> bool:
            return words in self.output or self.process.poll() is not None

        eventually(seen, f"{words!r} in the output")
        if words not in self.output:
            self._reader.join(WAIT_SECONDS)
        assert words in self.output, self.output
        return self.output

    @property
    def node_url(self) -> str:
        return self._url(_NODE_URL)

    @property
    def matcher_url(self) -> str:
        return self._url(_MATCHER_URL)

    @property
    def signer_url(self) -> str:
        return self._url(_SIGNER_URL)

    def _url(self, pattern: re.Pattern[str]) -> str:
        found = pattern.search(self.output)
        assert found, self.output
        return found[1]

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit code, once the program has ended by itself."""
        code = self.process.wait(WAIT_SECONDS)
        self._reader.join(WAIT_SECONDS)
        return code

    def kill(self) -> None:
        """End it without a chance to clean up."""
        self.process.kill()
        self.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(WAIT_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join(WAIT_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextlib.contextmanager
def started(
    *arguments: object,
    until: str,
    environment: Mapping[str, str] | None = None,
    anew: bool = ALWAYS_ANEW,
) -> Iterator[Program]:
    """A program that is up, and ended afterwards."""
    program = Program(arguments, environment or {}, anew=anew)
    try:
        program.wait_for(until)
        yield program
    finally:
        program.close()


@contextlib.contextmanager
def devnet(
    *options: object,
    heartbeat: float | None = 0,
    environment: Mapping[str, str] | None = None,
    anew: bool = ALWAYS_ANEW,
) -> Iterator[Program]:
    """A private chain on free ports; its height stays what a test has made it, but for a
    ``heartbeat`` (``None`` for the usual one).
    """
    beats = () if heartbeat is None else ("--heartbeat", heartbeat)
    arguments = ("devnet", "--port", 0, "--signer-port", 0, "--matcher-port", 0, *beats, *options)
    with started(*arguments, until="Ready.", environment=environment, anew=anew) as program:
        yield program


def run(
    *arguments: object, environment: Mapping[str, str] | None = None, anew: bool = ALWAYS_ANEW
) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself; output and errors apart."""
    env = {**os.environ, **(environment or {})}
    if not anew and not is_read_at_start(environment or {}):
        return run_forked(command(arguments), env, WAIT_SECONDS)
    return subprocess.run(
        command(arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
        env=env,
    )


def eventually(condition: Callable[[], bool], words: str = "the condition") -> None:
    """Wait until a condition holds."""
    limit = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < limit, f"in {WAIT_SECONDS} s there was no: {words}"
        time.sleep(0.01)


def is_free(port: int) -> bool:
    """Whether a program could listen on the port."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    def json(self) -> Any:
        return json.loads(self.body)


def call(url: str, body: object = None, *, key: str | None = None) -> Answer:
    """GET, or POST with a body: text as it is, everything else as JSON."""
    headers = {} if key is None else {"X-API-Key": key}
    data = None
    if body is not None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        headers["Content-Type"] = "text/plain" if isinstance(body, str) else "application/json"
    request = urllib.request.Request(url, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as response:
            return Answer(response.status, response.read(), dict(response.headers))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read(), dict(error.headers))


def height(url: str) -> int:
    """How high the node's chain is."""
    found: int = call(f"{url}/blocks/height").json()["height"]
    return found


def balance(url: str, address: str) -> int:
    """An account's coins in the smallest unit."""
    found: int = call(f"{url}/addresses/balance/{address}").json()["balance"]
    return found


def is_mined(url: str, transaction_id: str) -> bool:
    """Whether a transaction is in a block."""
    answer = call(f"{url}/transactions/status/{transaction_id}").json()
    return bool(answer["status"] == "confirmed")


def signed_transfer(url: str, sender: str, recipient: str, amount: int, **members: Any) -> Any:
    """A transfer signed by the node's wallet."""
    transfer = {
        "type": 4,
        "version": 2,
        "sender": sender,
        "recipient": recipient,
        "amount": amount,
        "fee": 100_000,
        "attachment": "",
        **members,
    }
    answer = call(f"{url}/transactions/sign", transfer, key=API_KEY)
    assert answer.status == 200, answer.body
    return answer.json()
