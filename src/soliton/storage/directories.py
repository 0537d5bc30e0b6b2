"""Directories of stores: the writer's lock, which chain a directory holds, and readers' own files.

What does not live here: the chain (``store``).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from soliton.storage import layout
from soliton.storage.damage import unreadable
from soliton.storage.engine import CURRENT_NAME, open_unchanged, translate_errors
from soliton.storage.errors import StoreInUse, WrongStore

LMDB_NAME: Final = "data.mdb"
"""The file of stores up to layout 2."""
_RESTORING: Final = ".restoring"
_READER_PREFIX: Final = "soliton-reader-"


def lock_file(path: Path) -> int | None:
    """Lock a file and return its descriptor, or ``None`` if another process holds the lock. The
    lock ends with the descriptor, even if the process is killed.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def restoring_place(directory: Path) -> Path:
    """Return where a store that is being restored is until it is complete."""
    return directory.with_name(directory.name + _RESTORING)


def check_not_restoring(directory: Path) -> None:
    """Raise ``WrongStore`` where a new chain would be in the way of one that is being restored."""
    restoring = restoring_place(directory)
    if restoring.exists() and not (directory / CURRENT_NAME).exists():
        raise WrongStore(
            f"a snapshot is being restored to {directory}: run `soliton snapshot restore` again, "
            f"or delete {restoring}"
        )


def take_ownership(directory: Path) -> int:
    """Lock a chain's directory for writing and return the descriptor; raise ``StoreInUse``."""
    descriptor = lock_file(directory / "owner.lock")
    if descriptor is None:
        raise StoreInUse(f"another process writes to the chain in {directory}")
    return descriptor


class ReaderFiles:
    """A temporary directory for the files of one reader, locked as long as the process lives."""

    __slots__ = ("_lock", "path")

    def __init__(self) -> None:
        """Create it; raises ``OSError``."""
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_READER_PREFIX))
            lock = _lock_directory(self.path)
            # Another start may have taken it for one that a dead process has left.
            if lock is not None and self.path.exists():
                self._lock = lock
                return
            if lock is not None:
                os.close(lock)

    def remove(self) -> None:
        """Delete it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_readers_files() -> None:
    """Delete the temporary directories of readers whose processes were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_READER_PREFIX}*"):
        # Those of other users stay.
        with contextlib.suppress(OSError):
            lock = _lock_directory(path)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _lock_directory(path: Path) -> int | None:
    """Lock a directory and return its descriptor, or ``None`` if it is gone or another process
    holds the lock; raises ``OSError``.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def decode_network(name: bytes) -> str:
    """Decode the stored name of the network; raise ``DamagedStore``."""
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise unreadable(layout.NETWORK, error) from error


def stored_network(directory: Path) -> str | None:
    """Return the name of the network whose chain is in a directory, or ``None``."""
    name, _ = _stored_identity(directory)
    return None if name is None else decode_network(name)


def check_stored(directory: Path, network: str) -> None:
    """Check that the chain in a directory, if there is one, can go on, as ``check_identity``."""
    name, version = _stored_identity(directory)
    if name is not None:
        check_identity(directory, name, version, network)


def check_identity(directory: Path, name: bytes, version: bytes | None, network: str) -> None:
    """Raise ``WrongStore`` for a chain of another network or of another version of the program;
    ``DamagedStore``.
    """
    stored = decode_network(name)
    if stored != network:
        raise WrongStore(f"{directory} holds the chain {stored}, not {network}")
    if version != bytes((layout.LAYOUT_VERSION,)):
        raise WrongStore(f"{directory} was written by another version; import the chain anew")


def earlier_version(directory: Path) -> WrongStore:
    """Return the error for a store that has to be upgraded first."""
    return WrongStore(
        f"{directory} was written by an earlier version: `soliton db upgrade {directory}` makes it "
        "one of this version"
    )


def _stored_identity(directory: Path) -> tuple[bytes | None, bytes | None]:
    with translate_errors(directory, "read"):
        if (directory / LMDB_NAME).exists():
            raise earlier_version(directory)
        if not (directory / CURRENT_NAME).exists():
            return None, None
        database = open_unchanged(directory)
        try:
            return database.get(layout.NETWORK), database.get(layout.VERSION)
        finally:
            database.close()
