"""The files of a snapshot or of a backup, with their sizes and hashes.

Whoever offers a snapshot may be anybody: names are of a few forms and name no folder, numbers and
sizes are bounded before anything is read or reserved, and no byte counts before its hash is right.

What lives here: the list of files, its limits, hashing. What does not: where files come from and go
to (``soliton.cli``), which files a store has (``checkpoint``).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from soliton.errors import InputError
from soliton.storage.checkpoint import LIST_NAME, PIECE_BYTES, is_part
from soliton.storage.engine import CURRENT_NAME

MANIFEST_NAME: Final = "manifest.json"
FORMAT: Final = 1
MAX_MANIFEST_BYTES: Final = 16 * 1024 * 1024
MAX_PARTS: Final = 65_536
"""Eight terabytes of tables."""
MAX_PART_BYTES: Final = 1024 * 1024 * 1024
"""A table has ``TABLE_BYTES``, and a little more where a block does not fit."""
MAX_BYTES: Final = MAX_PARTS * 128 * 1024 * 1024
MAX_CURRENT_BYTES: Final = 64
MAX_TEXT_CHARS: Final = 200
"""Limit on a name or an id in a manifest."""
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class SnapshotProblem(InputError):
    """A snapshot or a backup is not what its manifest says, or cannot be used here."""


class Part(msgspec.Struct, frozen=True):
    """A file: its name, its size in bytes, and the SHA-256 of its content in hex."""

    name: str
    size: int
    sha256: str


class SnapshotManifest(msgspec.Struct, frozen=True):
    """What a snapshot is: of which network (its name, its byte in addresses, the id of its genesis
    block), of which version of the store's ``layout`` and in which ``mode``; the last block's
    height, id, time in milliseconds, and hashes of the state; when it was created, by which version
    of the program; and its files.
    """

    format: int
    network: str
    chain_id: int
    genesis: str
    layout: int
    mode: str
    height: int
    block: str
    timestamp: int
    state_hash: str
    snapshot_hash: str
    created: str
    program: str
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """The bytes of all parts."""
        return sum(part.size for part in self.parts)


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(SnapshotManifest)


class _Format(msgspec.Struct):
    format: int = 0


_format_decoder: Final = msgspec.json.Decoder(_Format)


def encode_manifest(manifest: SnapshotManifest) -> bytes:
    """Return the content of a manifest's file."""
    return msgspec.json.format(_encoder.encode(manifest)) + b"\n"


def decode_manifest(data: bytes) -> SnapshotManifest:
    """Return the manifest of a snapshot; raises ``SnapshotProblem`` for what breaks its limits."""
    if len(data) > MAX_MANIFEST_BYTES:
        raise SnapshotProblem(f"the manifest has more than {MAX_MANIFEST_BYTES} bytes")
    try:
        found = _format_decoder.decode(data).format
        if found != FORMAT:
            raise SnapshotProblem(
                f"the snapshot has the format {found}, and this version reads {FORMAT}"
            )
        manifest = _decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise SnapshotProblem(f"the manifest cannot be read: {error}") from error
    texts = (
        *(manifest.network, manifest.genesis, manifest.mode, manifest.block, manifest.state_hash),
        *(manifest.snapshot_hash, manifest.created, manifest.program),
    )
    if any(len(text) > MAX_TEXT_CHARS or not text.isprintable() for text in texts):
        raise SnapshotProblem("the manifest has a text that is too long or not printable")
    if not (0 < manifest.height < 1 << 32 and 0 <= manifest.chain_id < 256):
        raise SnapshotProblem("the manifest has a height or a chain id that cannot be")
    check_parts(manifest.parts)
    _check_store_parts(manifest.parts)
    return manifest


class PartLimits(NamedTuple):
    """Limits on the number of files, and on the bytes of one."""

    number: int
    size: int


OF_SNAPSHOTS: Final = PartLimits(MAX_PARTS, MAX_PART_BYTES)


def check_parts(
    parts: Sequence[Part],
    allowed: Callable[[str], bool] = is_part,
    limits: PartLimits = OF_SNAPSHOTS,
) -> None:
    """Check names, numbers and sizes of files; raises ``SnapshotProblem``."""
    if len(parts) > limits.number:
        raise SnapshotProblem(f"the manifest lists more than {limits.number} parts")
    for part in parts:
        if not allowed(part.name):
            raise SnapshotProblem(f"the manifest lists {part.name[:80]!r}, which is no part")
        if not 0 <= part.size <= limits.size:
            raise SnapshotProblem(
                f"the part {part.name} has {part.size} bytes: the limit is {limits.size}"
            )
        if _SHA256.fullmatch(part.sha256) is None:
            raise SnapshotProblem(f"the hash of the part {part.name} is none")
    if len({part.name for part in parts}) != len(parts):
        raise SnapshotProblem("the manifest lists a part twice")
    if sum(part.size for part in parts) > MAX_BYTES:
        raise SnapshotProblem(f"the snapshot has more than {MAX_BYTES} bytes")


def _check_store_parts(parts: Sequence[Part]) -> None:
    current = [part for part in parts if part.name == CURRENT_NAME]
    lists = [part for part in parts if LIST_NAME.fullmatch(part.name)]
    if len(current) != 1 or len(lists) != 1:
        raise SnapshotProblem(f"the manifest has to list one {CURRENT_NAME} and one list of tables")
    if current[0].size > MAX_CURRENT_BYTES:
        raise SnapshotProblem(f"the part {CURRENT_NAME} is too large")


def read_pieces(path: Path) -> Iterator[bytes]:
    """Yield the content of a regular file in pieces; raises ``SnapshotProblem`` for another kind,
    ``OSError``.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SnapshotProblem(f"{path} is no regular file")
        while data := os.read(descriptor, PIECE_BYTES):
            yield data
    finally:
        os.close(descriptor)


def part_of(path: Path, name: str, report: Callable[[int], None]) -> Part:
    """Hash a file; ``report`` is called with the bytes of each piece. Raises ``OSError``."""
    digest, size = hashlib.sha256(), 0
    for piece in read_pieces(path):
        digest.update(piece)
        size += len(piece)
        report(len(piece))
    return Part(name, size, digest.hexdigest())


def check_file(path: Path, part: Part, report: Callable[[int], None]) -> None:
    """Compare a file with its part; raises ``SnapshotProblem``."""
    try:
        size = path.lstat().st_size
        if size != part.size:
            raise SnapshotProblem(
                f"the part {part.name} has {size} bytes, and its manifest says {part.size}"
            )
        found = part_of(path, part.name, report)
    except FileNotFoundError:
        raise SnapshotProblem(f"the part {part.name} is missing") from None
    except OSError as error:
        raise SnapshotProblem(f"{path} cannot be read: {error.strerror}") from error
    if found != part:
        raise wrong_hash(part.name)


def wrong_hash(name: str) -> SnapshotProblem:
    """Return the error for a part with another content."""
    return SnapshotProblem(f"the part {name} is not what its hash in the manifest says: damaged")
