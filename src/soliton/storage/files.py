"""Durable files: replacing a file atomically, and syncing a directory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def replace_file(path: Path, pieces: Iterable[bytes], mode: int = 0o666) -> None:
    """Write a file atomically: after a crash it is the old or the new one. A symbolic link is
    followed, and what is no regular file, such as a pipe, is written to. Raises ``OSError``.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as other:
            other.writelines(pieces)
        return
    if path.is_symlink():
        path = path.resolve()
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
        # The incomplete file would occupy space on a full disk.
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def sync_directory(directory: Path) -> None:
    """Make the entries of a directory durable. Raises ``OSError``."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
