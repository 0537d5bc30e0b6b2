"""Snapshot files: the state of the engine after the command at an offset, with a checksum.

A file is written under a temporary name, synced and then renamed, so that it is complete or absent.
The newest readable one is used; older ones are kept in case it is damaged.

    magic 8 | offset 8 | identity 32 | length 8 | blake2b-256 32 | body

What lives here: writing, finding and deleting the files. What does not: their content
(``soliton.matching.snapshots``).
"""

from __future__ import annotations

import hashlib
import logging
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from soliton.matcher.journal.errors import JournalProblem
from soliton.storage.files import replace_file

SNAPSHOT_MAGIC: Final = b"SLTNSNP1"
KEPT: Final = 2
"""The number of snapshots kept, including a new one."""
MAX_SNAPSHOT_BYTES: Final = 1 << 34
_HEADER: Final = struct.Struct(">8sQ32sQ32s")
_SUFFIX: Final = ".snapshot"
_AHEAD: Final = ".ahead"

_log = logging.getLogger(__name__)


class Snapshot(msgspec.Struct, frozen=True):
    """``body`` is the state after the command at ``offset``."""

    offset: int
    body: bytes


class SnapshotStore:
    """The snapshots of one matcher in a directory. All methods block on the disk."""

    def __init__(self, directory: Path, identity: bytes) -> None:
        """Create the directory if necessary; ``identity`` is that of the journal.

        Raises ``JournalProblem``.
        """
        self._directory = directory
        self._identity = identity
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for leftover in directory.glob(f"*{_SUFFIX}.new"):
                leftover.unlink()
        except OSError as error:
            raise JournalProblem(f"cannot use {directory}: {error.strerror}") from error

    def save(self, offset: int, pieces: Sequence[bytes]) -> None:
        """Write a snapshot whose body is the concatenation of ``pieces``, then delete all but the
        last ``KEPT`` readable ones. Raises ``JournalProblem``.
        """
        path = self._path_of(offset)
        digest = _digest(offset, self._identity, pieces)
        length = sum(map(len, pieces))
        head = _HEADER.pack(SNAPSHOT_MAGIC, offset, self._identity, length, digest)
        try:
            replace_file(path, (head, *pieces))
            self._remove_older(offset)
        except OSError as error:
            raise JournalProblem(f"cannot write a snapshot: {error.strerror}") from error

    def _remove_older(self, newest: int) -> None:
        """Keep ``KEPT`` readable snapshots; unreadable ones do not count."""
        kept = 0
        for path in self._paths():
            if kept == KEPT:
                path.unlink(missing_ok=True)
            else:
                try:
                    kept += self._read(path).offset <= newest
                except (OSError, ValueError) as error:
                    _log.debug("%s is unreadable: %s", path, error)

    def set_aside_after(self, offset: int) -> None:
        """Rename snapshots beyond the last command of the journal: they belong to another journal,
        and must not be used when this one has grown as long. Raises ``JournalProblem``.
        """
        for path in self._paths():
            if path.name > self._path_of(offset).name:
                _log.error(
                    "%s belongs to a journal that continues after offset %d, the end of this one: "
                    "it is renamed",
                    *(path, offset),
                )
                try:
                    path.replace(path.with_name(path.name + _AHEAD))
                except OSError as error:
                    raise JournalProblem(f"cannot rename {path}: {error.strerror}") from error

    def _path_of(self, offset: int) -> Path:
        return self._directory / f"{offset:020}{_SUFFIX}"

    def all(self) -> Iterator[Snapshot]:
        """All readable snapshots, newest first; unreadable ones are logged."""
        for path in self._paths():
            try:
                yield self._read(path)
            except (OSError, ValueError) as error:
                _log.warning("%s is skipped: %s", path, error)

    def _paths(self) -> list[Path]:
        return sorted(self._directory.glob(f"*{_SUFFIX}"), reverse=True)

    def _read(self, path: Path) -> Snapshot:
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
            if len(head) < _HEADER.size:
                raise ValueError("it ends inside its header")
            magic, offset, identity, length, digest = _HEADER.unpack(head)
            if magic != SNAPSHOT_MAGIC or length > MAX_SNAPSHOT_BYTES:
                raise ValueError("it is no snapshot of this version")
            if identity != self._identity:
                raise ValueError("it belongs to another matcher or network")
            body = file.read(length + 1)
        if len(body) != length or _digest(offset, identity, [body]) != digest:
            raise ValueError("its checksum is wrong")
        return Snapshot(offset, body)


def _digest(offset: int, identity: bytes, pieces: Sequence[bytes]) -> bytes:
    state = hashlib.blake2b(offset.to_bytes(8, "big") + identity, digest_size=32)
    for piece in pieces:
        state.update(piece)
    return state.digest()
