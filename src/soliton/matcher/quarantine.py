"""Commands that cannot be applied: they are set aside with evidence, and passed over ever after.

A command that the engine or what follows from it cannot take must not end every start. It is noted
in a file beside the journal, with its bytes and the reason, and all goes on as if it had not been
there. Whoever applies the same journal comes to the same commands: what is not understood, or what
raises, does so for everybody, because neither depends on anything but the commands before.

What lives here: the file. What does not: deciding that a command cannot be applied (``sequencer``),
and going back to the state before it (``replica``).
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


class SetAside(msgspec.Struct, frozen=True):
    """A command that was passed over: where it stands, its bytes, and why.

    ``timestamp`` in milliseconds is the command's own.
    """

    offset: int
    timestamp: int
    payload: bytes
    reason: str


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(SetAside).decode


class Quarantine:
    """The commands of one journal that were set aside. Use from one event loop."""

    def __init__(self, directory: Path) -> None:
        """Read the file in ``directory``, if there is one. Raises ``DatabaseProblem``."""
        self.path = directory / FILE_NAME
        self._found: dict[int, SetAside] = {}
        try:
            lines = self.path.read_bytes().splitlines() if self.path.exists() else []
        except OSError as error:
            raise DatabaseProblem(f"cannot read {self.path}: {error.strerror}") from error
        for line in filter(None, lines):
            try:
                found = _decode(line)
            except msgspec.MsgspecError:
                # A crash while it was written: the command will be found out again.
                _log.warning("%s: a line that is not whole is passed over", self.path)
            else:
                self._found[found.offset] = found

    def __len__(self) -> int:
        return len(self._found)

    def all(self) -> list[SetAside]:
        """What was set aside, in the order of the journal."""
        return [self._found[offset] for offset in sorted(self._found)]

    def holds(self, offset: int, payload: bytes) -> bool:
        """Whether this very command was set aside: another one may stand there by now."""
        found = self._found.get(offset)
        return found is not None and found.payload == payload

    def add(self, offset: int, timestamp: int, payload: bytes, reason: str) -> None:
        """Set a command aside; the file has it when this returns. Raises ``DatabaseProblem``."""
        found = SetAside(offset, timestamp, payload, reason[:MAX_REASON_CHARS])
        try:
            is_new = not self.path.exists()
            with self.path.open("ab") as file:
                # In front, so that what a crash left of the line before does no harm.
                file.write(b"\n" + _encode(found) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                sync_directory(self.path.parent)
        except OSError as error:
            raise DatabaseProblem(f"cannot write {self.path}: {error.strerror}") from error
        self._found[offset] = found
        _log.error(
            "the command at offset %d cannot be applied and is passed over: %s (its bytes are in "
            "%s)",
            *(offset, found.reason, self.path),
        )
