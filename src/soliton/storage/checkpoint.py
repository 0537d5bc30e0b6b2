"""A copy of the files of a store that another process may be writing, as they are at one moment.

RocksDB never changes a table once it is written: a copy needs the tables, the list of them, and the
log of what is not in tables yet. While the list is unchanged nothing that it names is deleted, so a
copy is consistent if the list was the same before and after. No help of the writer is needed, and
it does not wait: hard links to the tables take milliseconds.

What lives here: that copy, and which files make a store. What does not: hashes of the files
(``parts``), reading the store (``reader``).
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Final

from soliton.storage.engine import (
    CURRENT_NAME,
    manifest_state,
    settle,
    translate_errors,
)
from soliton.storage.errors import StorageProblem, StoreBusy
from soliton.storage.files import sync_directory

COPYING_TRIES: Final = 20
"""How often a copy is begun anew because the writer has changed the list of tables meanwhile."""
PIECE_BYTES: Final = 1024 * 1024
"""The size of the pieces in which files are read and written."""
TABLE_NAME: Final = re.compile(r"[0-9]{6,20}\.sst")
LIST_NAME: Final = re.compile(r"MANIFEST-[0-9]{6,20}")
_LOG_NAME: Final = re.compile(r"[0-9]{6,20}\.log")
OPEN_TABLES: Final = 4_096
"""Limit on the tables that are open while they are copied to another disk: half a terabyte."""


def is_part(name: str) -> bool:
    """Whether a file is needed to open a store whose log is empty."""
    matches = TABLE_NAME.fullmatch(name) or LIST_NAME.fullmatch(name)
    return name == CURRENT_NAME or matches is not None


def copy_store(source: Path, target: Path, *, links: bool) -> list[str]:
    """Copy the files of a store to an empty directory, which exists, and return their names.

    With ``links`` the tables are hard links where both are on one file system. Raises
    ``StorageProblem``.
    """
    if not (source / CURRENT_NAME).exists():
        raise StorageProblem(f"{source} holds no store")
    with translate_errors(target, "copied"):
        for _ in range(COPYING_TRIES):
            if _copy(source, target, links=links):
                break
            for each in target.iterdir():
                each.unlink()
        else:
            raise StoreBusy(f"the files of {source} change too fast to be copied")
        settle(target)
        # Whatever else the engine has written, such as its own options, is made anew when the copy
        # is opened.
        current = (target / CURRENT_NAME).read_text().strip()
        for each in target.iterdir():
            if not is_part(each.name) or (LIST_NAME.fullmatch(each.name) and each.name != current):
                each.unlink()
        sync_directory(target)
        return sorted(each.name for each in target.iterdir())


def _copy(source: Path, target: Path, *, links: bool) -> bool:
    """Copy the files once; return whether they are of one moment."""
    before = list_name, list_bytes = manifest_state(source)
    if list_bytes < 0:
        return False
    names = sorted(each.name for each in source.iterdir())
    with contextlib.ExitStack() as opened:
        copies: dict[str, int] = {}
        for name in filter(TABLE_NAME.fullmatch, names):
            try:
                if not (links and _link(source / name, target / name)):
                    copies[name] = _open(source / name)
                    opened.callback(os.close, copies[name])
            except FileNotFoundError:
                # Not in the list any more, or the list has changed, which is noticed below.
                continue
            if len(copies) > OPEN_TABLES:
                raise StorageProblem(f"{source} has more than {OPEN_TABLES} tables on another disk")
        try:
            for name in filter(_LOG_NAME.fullmatch, names):
                _copy_file(source / name, target / name)
            _copy_file(source / os.fsdecode(list_name), target / os.fsdecode(list_name), list_bytes)
        except FileNotFoundError:
            return False
        if manifest_state(source) != before:
            return False
        # The writer may delete these now: they are open.
        for name, descriptor in copies.items():
            _write_from(descriptor, target / name, None)
    (target / CURRENT_NAME).write_bytes(list_name + b"\n")
    return True


def _link(source: Path, target: Path) -> bool:
    """Make a hard link; return false where that is impossible. Raises ``FileNotFoundError``."""
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return True


def _copy_file(source: Path, target: Path, size: int | None = None) -> None:
    descriptor = _open(source)
    try:
        _write_from(descriptor, target, size)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def _write_from(descriptor: int, target: Path, size: int | None) -> None:
    """Write the first ``size`` bytes of an open file, or all, to a new one, durably."""
    left = os.fstat(descriptor).st_size if size is None else size
    with target.open("xb") as file:
        while left and (data := os.read(descriptor, min(PIECE_BYTES, left))):
            file.write(data)
            left -= len(data)
        file.flush()
        os.fsync(file.fileno())
