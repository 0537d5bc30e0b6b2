"""Where the parts of a snapshot come from: a directory, or an HTTP server that serves one.

A server may be anybody's: what it sends is bounded by the sizes in the manifest, it may be slow
only for so long, and a download that breaks off goes on where it was.

What lives here: reading parts from an offset on. What does not: hashes (``soliton.storage.parts``),
files that are written (``snapshot_files``).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, Protocol

from soliton.errors import EnvironmentProblem
from soliton.storage.checkpoint import PIECE_BYTES
from soliton.storage.parts import MANIFEST_NAME, MAX_MANIFEST_BYTES, Part, SnapshotProblem
from soliton.web.client import ClientLimits, HttpClient, HttpTooLarge, HttpTrouble, Response

DOWNLOADS: Final = 4
"""Parts that are downloaded at a time."""
IDLE_SECONDS: Final = 60.0
"""How long a server may send nothing."""
MIN_BYTES_PER_SECOND: Final = 1_024
"""A slower server is as one that sends nothing."""
TRIES: Final = 8
"""How often a download is tried again without progress."""
PROGRESS_BYTES: Final = 64 * 1024
"""So many bytes at once are progress."""
FIRST_PAUSE_SECONDS: Final = 0.5
LAST_PAUSE_SECONDS: Final = 30.0
_OK: Final = 200
_PARTIAL: Final = 206
_BUSY: Final = (429, 500, 502, 503, 504)
_NOT_SATISFIABLE: Final = 416
_RANGE: Final = re.compile(r"bytes ([0-9]{1,20})-[0-9]{1,20}/(?:[0-9]{1,20}|\*)")
_LIMITS: Final = ClientLimits(
    connections=DOWNLOADS,
    connect_seconds=15.0,
    answer_seconds=IDLE_SECONDS,
    answer_bytes=MAX_MANIFEST_BYTES,
    keep_alive_seconds=5.0,
)


class DownloadProblem(EnvironmentProblem):
    """A server does not send a part."""


class PartSource(Protocol):
    """A snapshot that is read."""

    at_once: int
    """The number of parts to read at a time."""

    async def manifest(self) -> bytes:
        """Return the manifest's bytes; raises ``SnapshotProblem``, ``DownloadProblem``."""

    def pieces(self, part: Part, offset: int) -> AsyncIterator[tuple[int, bytes]]:
        """Yield the part's bytes from an offset on, each piece with its own offset: it may be 0
        again, for a server that has no other. Raises ``SnapshotProblem``, ``DownloadProblem``.
        """

    def close(self) -> None:
        """End all reading."""


def source_of(place: str) -> PartSource:
    """Return the source in a directory, or behind a URL; raises ``InputError``."""
    if place.startswith(("http://", "https://")):
        return _Server(place)
    return _Directory(Path(place))


class _Directory:
    """A snapshot on this machine."""

    at_once = 1

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def manifest(self) -> bytes:
        return manifest_bytes(self._directory)

    async def pieces(self, part: Part, offset: int) -> AsyncIterator[tuple[int, bytes]]:
        path = self._directory / part.name
        if path.is_symlink() or not path.is_file():
            raise SnapshotProblem(f"the part {part.name} is missing")
        try:
            with path.open("rb") as file:
                file.seek(offset)
                while data := file.read(PIECE_BYTES):
                    yield offset, data
                    offset += len(data)
        except OSError as error:
            raise SnapshotProblem(f"{path} cannot be read: {error.strerror}") from error

    def close(self) -> None:
        """Nothing is open between reads."""


def manifest_bytes(directory: Path) -> bytes:
    """Return the bytes of the manifest in a directory; raises ``SnapshotProblem``."""
    try:
        with (directory / MANIFEST_NAME).open("rb") as file:
            return file.read(MAX_MANIFEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise SnapshotProblem(f"{directory} holds no snapshot: it has no {MANIFEST_NAME}") from None
    except OSError as error:
        raise SnapshotProblem(f"{directory / MANIFEST_NAME}: {error.strerror}") from error


class _Server:
    """A snapshot behind an HTTP server: a static one, or a node."""

    at_once = DOWNLOADS

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._client = HttpClient(url, _LIMITS)

    async def manifest(self) -> bytes:
        pauses = _Pauses()
        while True:
            try:
                answer = await self._client.request("GET", f"/{MANIFEST_NAME}")
            except HttpTooLarge as error:
                raise SnapshotProblem(f"the manifest in {self._url} is too large") from error
            except HttpTrouble as error:
                await pauses.wait(f"{self._url} does not answer: {error}")
                continue
            if answer.status == _OK:
                return answer.body
            if answer.status not in _BUSY:
                raise DownloadProblem(self._refused(MANIFEST_NAME, answer.status))
            await pauses.wait(self._refused(MANIFEST_NAME, answer.status))

    async def pieces(self, part: Part, offset: int) -> AsyncIterator[tuple[int, bytes]]:
        pauses, furthest = _Pauses(), offset
        while True:
            try:
                headers = [(b"range", b"bytes=%d-" % offset)] if offset else []
                async with self._client.download(f"/{part.name}", headers) as response:
                    problem = self._problem(part.name, response.status)
                    if problem is None:
                        offset = self._start(part.name, response, offset)
                        async for data in _in_time(response.chunks()):
                            yield offset, data
                            offset += len(data)
                            # The same bytes again are no progress.
                            pauses.count(max(0, offset - furthest))
                            furthest = max(furthest, offset)
                        return
                    if response.status == _NOT_SATISFIABLE:
                        offset = 0
            except HttpTrouble as error:
                problem = f"{self._url} breaks off {part.name}: {error}"
            except TimeoutError:
                problem = f"{self._url} sends {part.name} too slowly"
            await pauses.wait(problem)

    def _problem(self, name: str, status: int) -> str | None:
        """Return why to try again, or ``None``; raises ``DownloadProblem`` if that is no use."""
        if status in (_OK, _PARTIAL):
            return None
        if status in (*_BUSY, _NOT_SATISFIABLE):
            return self._refused(name, status)
        raise DownloadProblem(self._refused(name, status))

    def _start(self, name: str, response: Response, asked: int) -> int:
        """Return the offset at which a response begins; raises ``SnapshotProblem``."""
        if response.status == _OK:
            return 0
        values = [value for key, value in response.headers if key.lower() == b"content-range"]
        found = _RANGE.fullmatch(values[0].decode("latin-1")) if len(values) == 1 else None
        if found is None or int(found[1]) != asked:
            raise SnapshotProblem(f"{self._url} sends another range of {name} than it should")
        return asked

    def _refused(self, name: str, status: int) -> str:
        return f"{self._url}/{name} is answered with status {status}"

    def close(self) -> None:
        self._client.close()


async def _in_time(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the bytes of a response; raises ``TimeoutError`` if it is too slow."""
    waited, received = 0.0, 0
    loop = asyncio.get_running_loop()
    while True:
        begun = loop.time()
        async with asyncio.timeout(IDLE_SECONDS):
            data = await anext(chunks, b"")
        if not data:
            return
        # Only the server's time counts, not that of our own disk.
        waited += loop.time() - begun
        received += len(data)
        if waited > IDLE_SECONDS and received < waited * MIN_BYTES_PER_SECOND:
            raise TimeoutError
        yield data


class _Pauses:
    """The times between tries, longer each time."""

    def __init__(self) -> None:
        self._count = self._bytes = 0

    def count(self, number: int) -> None:
        """Count bytes since the last try."""
        self._bytes += number
        if self._bytes >= PROGRESS_BYTES:
            self._count = 0

    async def wait(self, problem: str) -> None:
        """Wait before the next try; raises ``DownloadProblem`` after the last one."""
        self._count, self._bytes = self._count + 1, 0
        if self._count >= TRIES:
            raise DownloadProblem(f"{problem}; run the same command again: it goes on from there")
        await asyncio.sleep(min(LAST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (self._count - 1)))
