"""The server loop of a killable worker process.

Started by ``killable``; ends with its input. A request is its length, its time limit in
milliseconds, and bytes. A response is its length, a kind, whether the process exits after it, the
CPU time in microseconds, and bytes.

What lives here: this protocol, and the process's own resource limits. What does not: the handler,
which the worker's module passes in.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Final

QUESTION: Final = struct.Struct(">II")
ANSWER: Final = struct.Struct(">IB?Q")
MAX_MEMORY_BYTES: Final = 1024**3
"""The limit of the address space, including libraries, on systems that support one."""
MAX_KEPT_BYTES: Final = 384 * 1024**2
"""A process that has used more than this exits after its response, since fragmented memory is not
returned to the system."""
_GRACE_SECONDS: Final = 1.0
"""After the time limit, in which the parent kills the process first, if it is alive."""
_KIBIBYTE: Final = 1024 if sys.platform != "darwin" else 1


class Kind(IntEnum):
    """The kind of a response."""

    GIVEN = 0
    NO_MEMORY = 1
    FAULT = 2
    """The handler has raised an exception; the bytes are the traceback."""


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Serve requests until the end of input."""
    # Ctrl-C goes to all processes of a terminal; this one ends when its parent closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    # Output of a library must not be mistaken for a response.
    sys.stdout = sys.stderr
    _set_limits()
    while len(head := stdin.read(QUESTION.size)) == QUESTION.size:
        length, milliseconds = QUESTION.unpack(head)
        request = stdin.read(length)
        if len(request) < length:
            return
        # Without a signal handler this ends the process, whatever it is doing, even if the parent
        # is gone.
        signal.setitimer(signal.ITIMER_REAL, milliseconds / 1_000 + _GRACE_SECONDS)
        kind, response, spent = _answered(answer, request)
        signal.setitimer(signal.ITIMER_REAL, 0)
        ends = kind is Kind.NO_MEMORY or _peak_bytes() > MAX_KEPT_BYTES
        try:
            stdout.write(ANSWER.pack(len(response), kind, ends, int(spent * 1e6)) + response)
            stdout.flush()
        except OSError:
            # The parent is gone.
            return
        if ends:
            return


def _peak_bytes() -> int:
    """Return the peak memory of this process.

    On Linux ``ru_maxrss`` includes the parent's memory at the fork, so it is not used there.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIBIBYTE


def _answered(answer: Callable[[bytes], bytes], request: bytes) -> tuple[Kind, bytes, float]:
    started = time.process_time()
    try:
        kind, response = Kind.GIVEN, answer(request)
    except MemoryError:
        kind, response = Kind.NO_MEMORY, b""
    except Exception:  # noqa: BLE001 - it is raised again in the caller
        kind, response = Kind.FAULT, traceback.format_exc().encode(errors="replace")
    return kind, response, time.process_time() - started


def _set_limits() -> None:
    # Not every system supports it, and some have a lower limit already.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
