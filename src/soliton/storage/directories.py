"""Directories of stores: whose they are, and who may write.

What lives here: the lock of who writes, and asking a directory which chain it holds. What does not:
the chain (``store``).
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import lmdb

from soliton.storage import layout
from soliton.storage.errors import StorageProblem, StoreInUse


def lock_file(path: Path) -> int | None:
    """The descriptor of a file that this process has locked, ``None`` while another one has. The
    lock goes with the descriptor, however the process ends.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def take_ownership(directory: Path) -> int:
    """The descriptor of the lock of a chain's directory; raises ``StoreInUse``."""
    descriptor = lock_file(directory / "owner.lock")
    if descriptor is None:
        raise StoreInUse(f"another process writes to the chain in {directory}")
    return descriptor


def stored_network(directory: Path) -> str | None:
    """The network whose chain is in a directory, ``None`` where there is none."""
    if not (directory / "data.mdb").exists():
        return None
    try:
        with (
            lmdb.open(str(directory), readonly=True, lock=False) as environment,
            environment.begin() as transaction,
        ):
            name: bytes | None = transaction.get(layout.NETWORK)
    except lmdb.Error as error:
        raise StorageProblem(f"cannot read the store in {directory}: {error}") from error
    return None if name is None else name.decode()
