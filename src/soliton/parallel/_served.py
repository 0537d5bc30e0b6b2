"""The side of a process that answers questions and may be killed at any of them.

Started by ``killable``; ends with its input. A question is its length, how many milliseconds it may
take, and bytes; an answer is its length, a kind, whether the process ends behind it, how many
microseconds of work it took, and bytes.

What lives here: reading and writing these, and the limits that a process puts on itself. What does
not: the answers (whoever is started hands in a function).
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
"""Addresses that a process may have, its libraries included, where the system can limit them."""
MAX_KEPT_BYTES: Final = 384 * 1024**2
"""A process that ever had more than this ends after its answer: memory that was in pieces once does
not come back."""
_GRACE_SECONDS: Final = 1.0
"""Whoever asked ends a process first, if it is still there."""
_KIBIBYTE: Final = 1024 if sys.platform != "darwin" else 1


class Kind(IntEnum):
    """What an answer is."""

    GIVEN = 0
    NO_MEMORY = 1
    FAULT = 2
    """Its bytes are a traceback: a fault of ours."""


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answer until there is no more input."""
    # Ctrl-C goes to all processes of a terminal; this one ends when its parent lets go of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given, taken = sys.stdin.buffer, sys.stdout.buffer
    # What a library prints would be taken for an answer.
    sys.stdout = sys.stderr
    _limit_itself()
    while len(head := given.read(QUESTION.size)) == QUESTION.size:
        length, milliseconds = QUESTION.unpack(head)
        question = given.read(length)
        if len(question) < length:
            return
        # Without a handler this ends the process, whatever it is doing: also when nobody is left
        # who could kill it.
        signal.setitimer(signal.ITIMER_REAL, milliseconds / 1_000 + _GRACE_SECONDS)
        kind, said, spent = _answered(answer, question)
        signal.setitimer(signal.ITIMER_REAL, 0)
        ends = kind is Kind.NO_MEMORY or _peak_bytes() > MAX_KEPT_BYTES
        try:
            taken.write(ANSWER.pack(len(said), kind, ends, int(spent * 1e6)) + said)
            taken.flush()
        except OSError:
            # Whoever asked has gone.
            return
        if ends:
            return


def _peak_bytes() -> int:
    """The most memory that this process ever had.

    Linux counts what the parent had before into ``ru_maxrss``, so it is asked in another way.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIBIBYTE


def _answered(answer: Callable[[bytes], bytes], question: bytes) -> tuple[Kind, bytes, float]:
    started = time.process_time()
    try:
        kind, said = Kind.GIVEN, answer(question)
    except MemoryError:
        kind, said = Kind.NO_MEMORY, b""
    except Exception:  # noqa: BLE001 - it is raised where somebody waits
        kind, said = Kind.FAULT, traceback.format_exc().encode(errors="replace")
    return kind, said, time.process_time() - started


def _limit_itself() -> None:
    # Not every system can, and some have a lower limit already.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
