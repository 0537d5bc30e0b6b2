"""A disk that is full for one store of this process, and a log that cannot be written.

What lives here: making it full and giving it room again. What does not: any check.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from soliton.storage.store import Store


@contextlib.contextmanager
def full(store: Store) -> Iterator[None]:
    """The system says meanwhile that the disk of the store has no room."""
    directory, real = os.fspath(store.database.directory), os.statvfs

    def statvfs(path: str | bytes | int) -> os.statvfs_result:
        fields = list(real(path))
        if not isinstance(path, int) and os.fsdecode(path).startswith(directory):
            # Free blocks, and those of them that others than the administrator may use.
            fields[3] = fields[4] = 0
        return os.statvfs_result(fields)

    with mock.patch("os.statvfs", statvfs):
        yield


@contextlib.contextmanager
def broken_log(store: Store) -> Iterator[None]:
    """The log that the store writes meets ``/dev/full`` meanwhile, although there is room."""
    chosen = _open_logs(store.database.directory.resolve())
    assert chosen
    kept = {descriptor: os.dup(descriptor) for descriptor in chosen}
    device = os.open("/dev/full", os.O_RDWR)
    for descriptor in chosen:
        os.dup2(device, descriptor)
    os.close(device)
    try:
        yield
    finally:
        for descriptor, saved in kept.items():
            os.dup2(saved, descriptor)
            os.close(saved)


def _open_logs(directory: Path) -> list[int]:
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            file = link.readlink()
            if file.parent == directory and file.suffix == ".log":
                found.append(int(link.name))
    return found
