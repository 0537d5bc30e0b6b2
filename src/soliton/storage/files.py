"""Durable files: replacing a file atomically, and syncing a directory. Files with secrets."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from soliton.errors import InputError


class OpenToOthers(InputError):
    """A file with a secret can be read by other users of the machine."""


def read_secret(path: Path, limit: int) -> bytes:
    """Return the first ``limit`` bytes of a file with a secret. Raises ``OpenToOthers`` for a
    regular file that others may read or write, ``OSError``.
    """
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISREG(mode) and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise OpenToOthers(f"{path} is open to others: chmod 600 {path}")
        return file.read(limit)


def replace_file(
    path: Path, pieces: Iterable[bytes], mode: int = 0o666, *, syncs: bool = True
) -> None:
    """Write a file atomically: after a crash it is the old or the new one. A symbolic link is
    followed, and what is no regular file, such as a pipe, is written to. Without ``syncs`` that
    holds for a crash of the process, not of the machine. Raises ``OSError``.
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
            if syncs:
                os.fsync(file.fileno())
        new.replace(path)
        if syncs:
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
