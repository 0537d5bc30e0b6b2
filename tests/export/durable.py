"""What a crash of the machine would leave: which files and names were made durable, in order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


class Disk:
    """What a process tells its disk to keep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[tuple[str, Path]] = []
        fsync, replace = os.fsync, Path.replace

        def kept(descriptor: int) -> None:
            fsync(descriptor)
            self.told.append(("kept", Path(f"/proc/self/fd/{descriptor}").readlink()))

        def replaced(self_: Path, target: Path) -> Path:
            found = replace(self_, target)
            self.told.append(("replaced", self_))
            return found

        monkeypatch.setattr(os, "fsync", kept)
        monkeypatch.setattr(Path, "replace", replaced)

    def check(self, path: Path, beside: Path) -> None:
        """A file that took the place of another was kept before, its name after."""
        at = self.told.index(("replaced", beside))
        assert ("kept", beside) in self.told[:at]
        assert ("kept", path.parent) in self.told[at:]
