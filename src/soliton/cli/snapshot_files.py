"""Snapshots of a chain: writing one, checking one, and making a node's store of one.

A snapshot is a directory with a manifest and the files of a store, whose log is empty. It is
written beside its place and renamed at the end, and so is a store that is restored: whatever ends
the work, no node finds a half one. A restore that was interrupted goes on with the parts that are
there.

What lives here: the work. What does not: the commands (``snapshot``), where parts come from
(``part_sources``), what a manifest may be (``soliton.storage.parts``), the checks of the chain in
the files (``snapshot_checks``).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final, Self

import soliton
from soliton.chain.networks.model import Network
from soliton.cli.children import in_child
from soliton.cli.part_sources import PartSource
from soliton.cli.progress import BYTES, adding, progress
from soliton.cli.snapshot_checks import Trusted, check_chain
from soliton.crypto import base58
from soliton.node.blockchain import Blockchain
from soliton.storage import layout
from soliton.storage.checkpoint import PIECE_BYTES, copy_store, is_part
from soliton.storage.directories import lock_file, restoring_place
from soliton.storage.engine import MIN_FREE_BYTES, free_bytes
from soliton.storage.errors import StoreFull, StoreInUse
from soliton.storage.files import replace_file, sync_directory
from soliton.storage.parts import (
    FORMAT,
    MANIFEST_NAME,
    Part,
    SnapshotManifest,
    SnapshotProblem,
    check_file,
    decode_manifest,
    encode_manifest,
    part_of,
    wrong_hash,
)
from soliton.storage.store import Store

HASHING_THREADS: Final = 2
UNFINISHED: Final = ".unfinished"
PARTIAL: Final = ".partial"
"""Ends the names of parts that have not arrived completely."""
_LOCK: Final = "lock"
FILES: Final = "files"


class TargetInUse(SnapshotProblem):
    """The directory for a snapshot or a store is not empty."""


def check_empty(target: Path, work: Path | None = None) -> None:
    """Raise ``TargetInUse`` for a place that has content, and for one that is no directory.

    ``work`` is the workplace for it: what an earlier call has left there is deleted if it ended
    between moving the result into place and this.
    """
    try:
        if any(target.iterdir()):
            if work is not None and work.exists() and not (work / FILES).exists():
                shutil.rmtree(work)
            raise TargetInUse(f"{target} is not empty")
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise TargetInUse(f"{target} is no directory") from None


@contextlib.contextmanager
def workplace(directory: Path) -> Iterator[None]:
    """Make a directory for unfinished work and lock it; raises ``StoreInUse``."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = lock_file(directory / _LOCK)
    if descriptor is None:
        raise StoreInUse(f"another process works in {directory}")
    try:
        yield
    finally:
        os.close(descriptor)


def move_into_place(source: Path, target: Path) -> None:
    """Rename a finished directory; the target may exist if it is empty. Raises ``TargetInUse``."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise TargetInUse(f"{target} is not empty any more") from error
        raise
    sync_directory(target.parent)


def hash_parts(directory: Path, names: Sequence[str], label: str) -> tuple[Part, ...]:
    """Return the parts for files, with progress."""
    total = sum((directory / name).stat().st_size for name in names)
    with progress(label, total, BYTES) as report, ThreadPoolExecutor(HASHING_THREADS) as pool:
        add = adding(report)
        found = pool.map(lambda name: part_of(directory / name, name, add), names)
        return tuple(found)


# --- creating -------------------------------------------------------------------------------------


def create_snapshot(
    source: Path, target: Path, network: Network, *, links: bool
) -> SnapshotManifest:
    """Write a snapshot of the chain in a directory, which a node may be writing.

    What an earlier call has left unfinished is replaced. Raises ``TargetInUse``, ``StoreInUse``,
    ``StorageProblem``.
    """
    work = target.with_name(target.name + UNFINISHED)
    check_empty(target, work)
    with workplace(work):
        files = work / FILES
        shutil.rmtree(files, ignore_errors=True)
        files.mkdir()
        names = copy_store(source, files, links=links)
        manifest = _described(files, network, hash_parts(files, names, "hash the parts"))
        replace_file(files / MANIFEST_NAME, [encode_manifest(manifest)])
        sync_directory(files)
        move_into_place(files, target)
        shutil.rmtree(work)
    return manifest


def _described(files: Path, network: Network, parts: tuple[Part, ...]) -> SnapshotManifest:
    """Return the manifest for the chain in a directory."""
    store = Store(files, network.name, exclusive=False)
    try:
        chain = Blockchain(network, store)
        meta = chain.meta(chain.height)
        return SnapshotManifest(
            format=FORMAT,
            network=network.name,
            chain_id=network.chain_id,
            genesis=base58.encode(chain.meta(1).id),
            layout=layout.LAYOUT_VERSION,
            mode=store.kept.mode,
            height=chain.height,
            block=base58.encode(meta.id),
            timestamp=meta.timestamp,
            state_hash=meta.state_hash.hex(),
            snapshot_hash=meta.snapshot_hash.hex(),
            created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            program=soliton.__version__,
            parts=parts,
        )
    finally:
        store.close()
        # The engine writes a file of its own when it opens a store.
        for each in files.iterdir():
            if not is_part(each.name):
                each.unlink()


# --- checking -------------------------------------------------------------------------------------


def check_directory(directory: Path, manifest: SnapshotManifest) -> None:
    """Compare the files of a snapshot with its manifest; raises ``SnapshotProblem``."""
    known = {part.name for part in manifest.parts} | {MANIFEST_NAME}
    for each in directory.iterdir():
        if each.name not in known:
            raise SnapshotProblem(f"{each} is no part of the snapshot")
    with (
        progress("verify the parts", manifest.size, BYTES) as report,
        ThreadPoolExecutor(HASHING_THREADS) as pool,
    ):
        add = adding(report)
        for _ in pool.map(
            lambda part: check_file(directory / part.name, part, add), manifest.parts
        ):
            pass


def check_files(
    directory: Path, manifest: SnapshotManifest, network: Network, trusted: Trusted | None
) -> None:
    """Check that the chain in the files is the manifest's, in a process of its own; raises
    ``SnapshotProblem``, ``StorageProblem``.
    """
    with progress("check the blocks", None, "blocks") as report:
        in_child(str(directory), check_chain, (directory, manifest, network, trusted), report)


def check_files_elsewhere(
    directory: Path, manifest: SnapshotManifest, network: Network, trusted: Trusted | None
) -> None:
    """The same for files that stay as they are: opening a store adds files to its directory."""
    with tempfile.TemporaryDirectory(prefix="soliton-snapshot-") as made:
        place = Path(made)
        for part in manifest.parts:
            (place / part.name).symlink_to((directory / part.name).absolute())
        check_files(place, manifest, network, trusted)


async def check_source(source: PartSource, manifest: SnapshotManifest) -> None:
    """Download all parts and compare their hashes, without keeping them."""
    with progress("verify the parts", manifest.size, BYTES) as report:
        add = adding(report)
        await _for_all(source, manifest, lambda part: _receive(source, part, None, add))


# --- restoring ------------------------------------------------------------------------------------


async def restore_snapshot(
    source: PartSource, target: Path, network: Network, trusted: Trusted | None
) -> SnapshotManifest:
    """Make the store of a node in ``target``, which has none, from a snapshot.

    Raises ``TargetInUse``, ``StoreInUse``, ``SnapshotProblem``, ``DownloadProblem``,
    ``StorageProblem``.
    """
    work = restoring_place(target)
    check_empty(target, work)
    data = await source.manifest()
    manifest = decode_manifest(data)
    check_network(manifest, network)
    with workplace(work):
        files = work / FILES
        _begin(work, files, data)
        missing = _missing(files, manifest)
        if free_bytes(work) < missing + MIN_FREE_BYTES:
            raise StoreFull(
                f"no space left in {target.parent}: the snapshot needs {missing:,} bytes more"
            )
        with progress("restore", manifest.size, BYTES) as report:
            add = adding(report)
            await _for_all(
                source, manifest, lambda part: _receive(source, part, files / part.name, add)
            )
        sync_directory(files)
        check_files(files, manifest, network, trusted)
        move_into_place(files, target)
        shutil.rmtree(work)
    return manifest


def check_network(manifest: SnapshotManifest, network: Network) -> None:
    """Raise ``SnapshotProblem`` for a snapshot of another chain or of another version."""
    found, expected = (manifest.network, manifest.chain_id), (network.name, network.chain_id)
    if found != expected:
        raise SnapshotProblem(
            f"the snapshot is of the network {manifest.network} with chain id {manifest.chain_id}, "
            f"not of {network.name} with chain id {network.chain_id}"
        )
    if manifest.layout != layout.LAYOUT_VERSION:
        raise SnapshotProblem(
            f"the snapshot has the layout {manifest.layout} of the store, and this version "
            f"{layout.LAYOUT_VERSION}: it was written by another version of the program"
        )


def _begin(work: Path, files: Path, manifest: bytes) -> None:
    """Keep the parts of an earlier try only if they are of the same snapshot."""
    kept = work / MANIFEST_NAME
    if not kept.exists() or kept.read_bytes() != manifest:
        shutil.rmtree(files, ignore_errors=True)
        replace_file(kept, [manifest])
    files.mkdir(exist_ok=True)


def _missing(files: Path, manifest: SnapshotManifest) -> int:
    """Return the bytes that are not on the disk yet, and delete what is no part."""
    known = {part.name: part.size for part in manifest.parts}
    there = 0
    for each in files.iterdir():
        name = each.name.removesuffix(PARTIAL)
        if name in known and each.stat().st_size <= known[name]:
            there += each.stat().st_size
        else:
            each.unlink()
    return manifest.size - there


async def _for_all(
    source: PartSource, manifest: SnapshotManifest, work: Callable[[Part], Awaitable[None]]
) -> None:
    """Do a work for all parts, several at a time; the first error ends it."""
    waiting = list(reversed(manifest.parts))

    async def serve() -> None:
        while waiting:
            await work(waiting.pop())

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(source.at_once):
                group.create_task(serve())
    except BaseExceptionGroup as errors:
        # The others were cancelled because of the first one.
        raise errors.exceptions[0] from None
    finally:
        source.close()


async def _receive(
    source: PartSource, part: Part, path: Path | None, add: Callable[[int], None]
) -> None:
    """Read a part and check its hash; write it to ``path``, unless that is ``None``, going on where
    an earlier try has ended. Raises ``SnapshotProblem``, ``DownloadProblem``, ``OSError``.
    """
    with _PartFile(part, path, add) as file:
        if file.is_complete:
            return
        async for offset, piece in source.pieces(part, file.size):
            file.write(offset, piece)
        file.finish()


class _PartFile:
    """A part that is read from its beginning on, and the file that it is written to, if any."""

    def __init__(self, part: Part, path: Path | None, add: Callable[[int], None]) -> None:
        """``add`` is called with the bytes of each piece, also of what an earlier try has left."""
        self._part = part
        self._path = path
        self._add = add
        self._digest = hashlib.sha256()
        self._file: BinaryIO | None = None
        self.size = 0
        self.is_complete = False

    def __enter__(self) -> Self:
        if self._path is None:
            return self
        if self._path.exists():
            check_file(self._path, self._part, self._add)
            self.is_complete = True
            return self
        self._file = file = self._partial(self._path).open("a+b")
        file.seek(0)
        while piece := file.read(PIECE_BYTES):
            self._count(piece)
        return self

    def _partial(self, path: Path) -> Path:
        return path.with_name(path.name + PARTIAL)

    def _count(self, piece: bytes) -> None:
        self._digest.update(piece)
        self.size += len(piece)
        self._add(len(piece))

    def write(self, offset: int, piece: bytes) -> None:
        """Write a piece, of which some may be known; raises ``SnapshotProblem``."""
        if offset < self.size:
            # The server has begun anew.
            piece = piece[self.size - offset :]
        if self.size + len(piece) > self._part.size:
            raise SnapshotProblem(
                f"the part {self._part.name} is longer than its manifest says: {self._part.size}"
            )
        self._count(piece)
        if self._file is not None:
            self._file.write(piece)

    def finish(self) -> None:
        """Check the hash and make the file durable; raises ``SnapshotProblem``."""
        if self.size != self._part.size:
            raise SnapshotProblem(
                f"the part {self._part.name} ends early, after {self.size} of {self._part.size} "
                "bytes"
            )
        is_right = self._digest.hexdigest() == self._part.sha256
        if self._path is not None and self._file is not None:
            partial = self._partial(self._path)
            if is_right:
                self._file.flush()
                os.fsync(self._file.fileno())
                partial.rename(self._path)
            else:
                partial.unlink()
        if not is_right:
            raise wrong_hash(self._part.name)

    def __exit__(self, *_error: object) -> None:
        if self._file is not None:
            self._file.close()
