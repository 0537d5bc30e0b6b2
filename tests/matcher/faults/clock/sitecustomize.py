"""A clock that a test turns, for a program that it starts: found by Python through ``PYTHONPATH``.

``SOLITON_TEST_CLOCK`` names a file with the milliseconds that the clock is ahead.
"""

# ruff: noqa: INP001 - found by its name alone
from __future__ import annotations

import os
import time
from pathlib import Path

_real_ns = time.time_ns
_path = os.environ.get("SOLITON_TEST_CLOCK", "")
_ahead = [0.0, 0]


def _ahead_ns() -> int:
    now = time.monotonic()
    if now >= _ahead[0]:
        try:
            _ahead[:] = now + 0.02, int(Path(_path).read_text() or 0) * 1_000_000
        except (OSError, ValueError):
            _ahead[0] = now + 0.02
    return int(_ahead[1])


if _path:
    time.time_ns = lambda: _real_ns() + _ahead_ns()
    time.time = lambda: time.time_ns() / 1e9
