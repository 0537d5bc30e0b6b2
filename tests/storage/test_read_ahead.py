"""The store does not let the disk read ahead: reads are of random keys.

A disk may read megabytes ahead of each page that a read needs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from soliton.storage.directories import stored_network
from soliton.storage.pages import DATA_NAME
from soliton.storage.store import Store

SMAPS = Path("/proc/self/smaps")
READ_AT_RANDOM = "rr"
"""The mark of mappings that are not read ahead; Linux, ``proc_pid_smaps(5)``."""


def flags_of_maps(directory: Path) -> list[set[str]]:
    """The flags of this process' mappings of a store's file."""
    found, inside = [], False
    for line in SMAPS.read_text().splitlines():
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            inside = line.endswith(str(directory.resolve() / DATA_NAME))
        elif inside and name == "VmFlags:":
            found.append(set(rest.split()))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux' list of mappings")
def test_pages_around_those_that_are_read_are_not_read_too(tmp_path: Path) -> None:
    """Of writers, also after the map has grown, and of readers."""
    store = Store(tmp_path, "net", durable=False)
    try:
        store.flush()
        store.database._grow()
        writing = flags_of_maps(tmp_path)
    finally:
        store.close()
    reader = Store(tmp_path, "net", exclusive=False, outgrows=False)
    try:
        reading = flags_of_maps(tmp_path)
    finally:
        reader.close()
    assert writing and reading
    assert all(READ_AT_RANDOM in each for each in writing + reading)
    assert stored_network(tmp_path) == "net"
