"""Verifies the signatures of blocks on all cores, with threads of this process.

What lives here: the threads. What does not: the validity of a signature (``crypto.curve25519``),
and the process for single transactions (``signatures``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

from soliton.crypto.curve25519 import SignedMessage
from soliton.crypto.signatures import verify

MIN_ITEMS_PER_THREAD = 32
"""Waking a thread costs more than one signature: shorter lists are verified by the caller."""


def verify_many(items: Sequence[SignedMessage]) -> list[bool]:
    """Verify each item, on all cores, and return the verdicts in order."""
    threads = min(cores(), len(items) // MIN_ITEMS_PER_THREAD)
    if threads < 2:
        return _verify_each(items)
    bounds = [len(items) * part // threads for part in range(threads + 1)]
    others = [_pool().submit(_verify_each, items[start:end]) for start, end in pairwise(bounds[1:])]
    answers = _verify_each(items[: bounds[1]])
    for other in others:
        answers += other.result()
    return answers


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _verify_each(items: Sequence[SignedMessage]) -> list[bool]:
    return [verify(key, message, signature) for key, message, signature in items]


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads in addition to the caller's. They hold the interpreter lock only between calls of
    libsodium.
    """
    return ThreadPoolExecutor(max(1, cores() - 1), thread_name_prefix="verify")


if sys.platform != "win32":
    # A forked process has the pool but not its threads, and would wait for them forever.
    os.register_at_fork(after_in_child=_pool.cache_clear)
