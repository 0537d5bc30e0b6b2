"""Files that a node serves from a directory: ranges, a few at a time.

What lives here: slots, ranges, reading. What does not: which files (``rest/snapshot``).
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from soliton.api.errors import TOO_MANY_LONG_ANSWERS
from soliton.errors import EnvironmentProblem
from soliton.web.answers import Stream, Whole
from soliton.web.types import Headers

SLOTS: Final = 8
"""Files that are sent at a time: two clients of ours. Others have to ask again."""
PIECE_BYTES: Final = 256 * 1024
RETRY_SECONDS: Final = 5
_RANGE: Final = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})?")
_TYPE: Final = b"application/octet-stream"
_PARTIAL: Final = 206
_NOT_SATISFIABLE: Final = 416


class FileChanged(EnvironmentProblem):
    """A file became shorter while it was sent."""


class Downloads:
    """The files that are being sent."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def answer(self, path: Path, wanted: str | None) -> Stream | Whole | None:
        """Return a regular file, or the part of it that a header ``Range`` wants; ``None`` if there
        is none. Of a header that is no range of one part the whole file is the answer.
        """
        try:
            found = path.lstat()
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        size, start, end = found.st_size, 0, found.st_size
        common: Headers = ((b"content-type", _TYPE), (b"accept-ranges", b"bytes"))
        matched = None if wanted is None else _RANGE.fullmatch(wanted)
        if matched is None:
            headers = (*common, (b"content-length", b"%d" % size))
            return Stream(self._pieces(path, 0, size), headers)
        start = int(matched[1])
        if matched[2] is not None:
            end = min(size, int(matched[2]) + 1)
        if start >= end:
            outside = ((b"content-range", b"bytes */%d" % size),)
            return Whole(b"", _TYPE, _NOT_SATISFIABLE, outside)
        headers = (
            *common,
            (b"content-length", b"%d" % (end - start)),
            (b"content-range", b"bytes %d-%d/%d" % (start, end - 1, size)),
        )
        return Stream(self._pieces(path, start, end), headers, _PARTIAL)

    async def _pieces(self, path: Path, start: int, end: int) -> AsyncIterator[bytes]:
        """Yield the bytes between two offsets; raises ``ApiError`` if there is no slot."""
        if self._count >= SLOTS:
            raise TOO_MANY_LONG_ANSWERS.error().after(RETRY_SECONDS)
        self._count += 1
        descriptor = -1
        try:
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = await asyncio.to_thread(os.open, path, flags)
            while start < end:
                wanted = min(PIECE_BYTES, end - start)
                data = await asyncio.to_thread(os.pread, descriptor, wanted, start)
                if not data:
                    raise FileChanged(f"{path} ends at {start}, before {end}")
                yield data
                start += len(data)
        finally:
            self._count -= 1
            if descriptor >= 0:
                os.close(descriptor)
