"""Replacing a file: what is no regular file stays what it is."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from soliton.storage.files import replace_file


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    place, link = tmp_path / "there" / "file", tmp_path / "link"
    place.parent.mkdir()
    link.symlink_to(place)
    for content in (b"one", b"two"):
        replace_file(link, (content,))
        assert link.is_symlink() and place.read_bytes() == content
    assert list(place.parent.iterdir()) == [place]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """As a device is: a node may run as root, and replace it."""
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    replace_file(pipe, (b"one", b"two"))
    assert pipe.is_fifo()
    reader.join(60)
    assert read == [b"onetwo"]
