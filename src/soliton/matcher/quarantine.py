"""Quarantined commands: those that cannot be applied are recorded in a file, and skipped.

A command that makes the engine or its effects fail must not fail every start. It is written to a
file next to the journal, with its bytes and the reason, and skipped as if it did not exist. All
matchers that replay a journal quarantine the same commands, because decoding and applying a command
depend only on the commands before it.

What lives here: the file. What does not: deciding that a command cannot be applied (``sequencer``),
and returning to the state before it (``replica``).
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

import msgspec

from soliton.matcher.errors import DatabaseProblem
from soliton.storage.files import sync_directory

FILE_NAME: Final = "quarantine.jsonl"
MAX_REASON_CHARS: Final = 2_000

_log = logging.getLogger(__name__)


class QuarantinedCommand(msgspec.Struct, frozen=True):
    """A command that is skipped: its offset, its timestamp (milliseconds), its bytes, and why."""

    offset: int
    timestamp: int
    payload: bytes
    reason: str


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(QuarantinedCommand).decode


class Quarantine:
    """The quarantined commands of one journal. Use from one event loop."""

    def __init__(self, directory: Path) -> None:
        """Read the file in ``directory``, if it exists. Raises ``DatabaseProblem``."""
        self.path = directory / FILE_NAME
        self._commands: dict[int, QuarantinedCommand] = {}
        try:
            lines = self.path.read_bytes().splitlines() if self.path.exists() else []
        except OSError as error:
            raise DatabaseProblem(f"cannot read {self.path}: {error.strerror}") from error
        for line in filter(None, lines):
            try:
                found = _decode(line)
            except msgspec.MsgspecError:
                # A crash while it was written: the command will fail and be added again.
                _log.warning("%s: an incomplete line is skipped", self.path)
            else:
                self._commands[found.offset] = found

    def __len__(self) -> int:
        return len(self._commands)

    def all(self) -> list[QuarantinedCommand]:
        """All quarantined commands, in the order of the journal."""
        return [self._commands[offset] for offset in sorted(self._commands)]

    def holds(self, offset: int, payload: bytes) -> bool:
        """Whether this command is quarantined. Another journal may have another one there."""
        found = self._commands.get(offset)
        return found is not None and found.payload == payload

    def add(self, offset: int, timestamp: int, payload: bytes, reason: str) -> None:
        """Quarantine a command; it is on the disk when this returns. Raises ``DatabaseProblem``."""
        found = QuarantinedCommand(offset, timestamp, payload, reason[:MAX_REASON_CHARS])
        try:
            is_new = not self.path.exists()
            with self.path.open("ab") as file:
                # The leading newline ends a line that a crash left incomplete.
                file.write(b"\n" + _encode(found) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                sync_directory(self.path.parent)
        except OSError as error:
            raise DatabaseProblem(f"cannot write {self.path}: {error.strerror}") from error
        self._commands[offset] = found
        _log.error(
            "the command at offset %d cannot be applied and is skipped: %s (its bytes are in %s)",
            *(offset, found.reason, self.path),
        )
