"""Temporary directories that are removed even if their process is killed.

A process that is killed leaves its directory behind; the next process that makes one removes it.
Whether the owner is alive is detected by a file lock, not by its process id, which may be reused.

What lives here: making, removing and sweeping. What does not: the contents.
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
"""A directory without a lock is kept for so long: its owner may be about to lock it."""
_LOCK: Final = "owner.lock"


class TemporaryPlace:
    """A private temporary directory; ``close`` removes it."""

    def __init__(self, prefix: str) -> None:
        sweep(prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def sweep(prefix: str) -> None:
    """Remove the directories of dead processes."""
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
            # Only if it is empty: otherwise it was not made here.
            directory.rmdir()
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(lock)
