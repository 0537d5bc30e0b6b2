"""Disks that tests mount, away from pytest's own directories: what a killed run leaves mounted
there would make every later run end with an error.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_PREFIX = "soliton-mounted-"


@contextlib.contextmanager
def mounted(source: str | Path, *options: str) -> Iterator[Path]:
    """A place where this is mounted. The test is skipped for those who may not mount."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    _sweep()
    place = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    try:
        if subprocess.run(["mount", *options, source, place], check=False).returncode != 0:
            pytest.skip("nothing can be mounted here")
        try:
            yield place
        finally:
            _unmount(place)
    finally:
        place.rmdir()


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "--lazy", place], check=True)


def _sweep() -> None:
    """Take away what runs that were killed have left."""
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = place.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdecimal() and not Path("/proc", owner).exists():
            # Another run may be sweeping, too.
            with contextlib.suppress(OSError, subprocess.CalledProcessError):
                if place.is_mount():
                    _unmount(place)
                place.rmdir()
