"""Directories that live as long as their process, however that ends.

A process that is killed leaves its directory behind: the next one to make one sweeps it away.
Whether the owner lives is told by a lock, which goes with it, and not by its number, which another
process may have by then.

What lives here: making, removing and sweeping. What does not: what is in them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import Final

YOUNG_SECONDS: Final = 60.0
"""A directory without a lock is left alone for so long: its owner may be about to take it."""
_LOCK: Final = "owner.lock"


class TemporaryPlace:
    """A directory that nobody else may enter; ``close`` removes it."""

    def __init__(self, prefix: str) -> None:
        sweep(prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def sweep(prefix: str) -> None:
    """Remove the directories of processes that live no more."""
    with contextlib.suppress(OSError):
        for each in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            with contextlib.suppress(OSError):
                _sweep_one(each)


def _sweep_one(directory: Path) -> None:
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return
    try:
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        if time.time() - found.st_mtime > YOUNG_SECONDS:
            # Only an empty one: what has no lock and is not empty is not of this making.
            directory.rmdir()
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(lock)
