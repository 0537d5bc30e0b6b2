"""A disk that is full for one store of this process: what writes its file meets ``/dev/full``.

What lives here: making it full and giving it room again. What does not: any check.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from soliton.storage.store import Store


def writers(directory: Path) -> list[int]:
    """The descriptors by which this process writes the database of a directory: one for pages, one
    for the head of the file.
    """
    return _open_as((directory / "data.mdb").resolve())


def _open_as(file: Path) -> list[int]:
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if link.readlink() == file:
                found.append(int(link.name))
    return found


@contextlib.contextmanager
def full(store: Store, *, only_head: bool = False) -> Iterator[None]:
    """No byte can be written meanwhile. With ``only_head`` pages can, but no commit ends."""
    chosen = writers(store.database.directory)
    assert len(chosen) == 2, chosen
    if only_head:
        # Pages are waited for together.
        chosen = [each for each in chosen if fcntl.fcntl(each, fcntl.F_GETFL) & os.O_DSYNC]
        assert len(chosen) == 1, chosen
    kept = {descriptor: os.dup(descriptor) for descriptor in chosen}
    device = os.open("/dev/full", os.O_RDWR)
    for descriptor in chosen:
        os.dup2(device, descriptor)
    os.close(device)
    try:
        yield
    finally:
        # One that was closed meanwhile, and perhaps taken by something else, stays as it is.
        left = _open_as(Path("/dev/full"))
        for descriptor, saved in kept.items():
            if descriptor in left:
                os.dup2(saved, descriptor)
            os.close(saved)
