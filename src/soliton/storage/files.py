"""Files that are whole after a crash, whatever it interrupted.

What lives here: replacing a file, and making names durable. What does not: what is in the files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def replace_file(path: Path, pieces: Iterable[bytes], mode: int = 0o666) -> None:
    """Write a file in one step: after a crash it is the old or the new one, never a part. Raises
    ``OSError``.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        sync_directory(path.parent)
    except OSError:
        # What there is of it takes room that is missing.
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def sync_directory(directory: Path) -> None:
    """Make the names of a directory durable. Raises ``OSError``."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
