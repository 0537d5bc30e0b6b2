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
from soliton.storage.damage import unreadable
from soliton.storage.environment import typed
from soliton.storage.errors import StoreInUse
from soliton.storage.pages import DATA_NAME, check_length


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


def decode_network(name: bytes) -> str:
    """The network's name that a store has of itself; raises ``DamagedStore``."""
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise unreadable(layout.NETWORK, error) from error


def stored_network(directory: Path) -> str | None:
    """The network whose chain is in a directory, ``None`` where there is none."""
    with typed(directory, "read"):
        if not (directory / DATA_NAME).exists():
            return None
        check_length(directory, mend=False)
        with (
            lmdb.open(str(directory), readonly=True, lock=False) as environment,
            environment.begin() as transaction,
        ):
            name: bytes | None = transaction.get(layout.NETWORK)
    return None if name is None else decode_network(name)
