"""Checks that the database file contains all pages that its header refers to.

The file is mapped into memory. A process that reads a page beyond the end of the file is killed by
SIGBUS without a message, so the length is checked before the file is mapped. Free pages at the end
may be missing: the last transaction allocated and freed them, and never wrote them.

What lives here: the few fields of LMDB's file format that this needs. What does not: reading
records.

Source: LMDB ``libraries/liblmdb/mdb.c`` (``MDB_meta``, ``MDB_page``, ``MDB_node``), data version 1.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from soliton.storage.errors import DamagedStore

DATA_NAME: Final = "data.mdb"

_MAGIC: Final = 0xBEEFC0DE
_DATA_VERSION: Final = 1
_PAGE_HEAD: Final = struct.Struct("<QHHHH")
_META: Final = struct.Struct("<IIQQ")
_TREE: Final = struct.Struct("<IHHQQQQQ")
_LAST: Final = struct.Struct("<QQ")
_NODE: Final = struct.Struct("<HHHH")
_WORD: Final = struct.Struct("<Q")
_META_BYTES: Final = _PAGE_HEAD.size + _META.size + 2 * _TREE.size + _LAST.size
_BRANCH, _LEAF, _IS_META = 1, 2, 8
_ON_OWN_PAGES: Final = 1
_NO_PAGE: Final = 2**64 - 1
_PAGE_SIZES: Final = range(256, 65_537)
_MAX_DEPTH: Final = 32


class _Head(NamedTuple):
    """The contents of one of the two meta pages."""

    page_size: int
    free_root: int
    last_page: int
    transaction: int


def check_length(directory: Path, *, mend: bool) -> None:
    """Raise ``DamagedStore`` if the file in a directory has lost pages that are in use.

    ``mend`` appends missing free pages. Whether the file is a database at all is not checked here.
    Raises ``OSError``.
    """
    path = directory / DATA_NAME
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = _newest_head(file)
            if head is None:
                return
            needed = (head.last_page + 1) * head.page_size
            if size >= needed:
                return
            missing = range(size // head.page_size, head.last_page + 1)
            free = _free_pages(file, head)
    except FileNotFoundError:
        return
    except (struct.error, RecursionError) as error:
        raise DamagedStore(f"{path} is cut, or its list of free pages is broken") from error
    lost = sum(1 for page in missing if page not in free)
    if lost:
        raise DamagedStore(
            f"{path} is cut: it has {size} bytes of {needed}, and {lost} pages in use are missing"
        )
    if mend:
        os.truncate(path, needed)


def _newest_head(file: BinaryIO) -> _Head | None:
    first = _head(file, 0)
    if first is None or first.page_size not in _PAGE_SIZES:
        return None
    second = _head(file, first.page_size)
    if second is None:
        return None
    return max(first, second, key=lambda head: head.transaction)


def _head(file: BinaryIO, offset: int) -> _Head | None:
    file.seek(offset)
    data = file.read(_META_BYTES)
    if len(data) < _META_BYTES:
        return None
    at = _PAGE_HEAD.size
    magic, version, _, _ = _META.unpack_from(data, at)
    if not _PAGE_HEAD.unpack_from(data)[2] & _IS_META or (magic, version) != (
        _MAGIC,
        _DATA_VERSION,
    ):
        return None
    free_tree = _TREE.unpack_from(data, at + _META.size)
    last_page, transaction = _LAST.unpack_from(data, at + _META.size + 2 * _TREE.size)
    return _Head(free_tree[0], free_tree[-1], last_page, transaction)


def _free_pages(file: BinaryIO, head: _Head) -> set[int]:
    if head.free_root == _NO_PAGE:
        return set()
    free: set[int] = set()
    for entry in _entries(file, head, head.free_root, 0):
        (count,) = _WORD.unpack_from(entry)
        free.update(struct.unpack_from(f"<{count}Q", entry, _WORD.size))
    return free


def _entries(file: BinaryIO, head: _Head, number: int, depth: int) -> Iterator[bytes]:
    """Yield the values of the B+ tree below a page."""
    if depth > _MAX_DEPTH:
        raise RecursionError
    file.seek(number * head.page_size)
    page = file.read(head.page_size)
    _, _, kind, lower, _ = _PAGE_HEAD.unpack_from(page)
    count = (lower - _PAGE_HEAD.size) // 2
    for place in struct.unpack_from(f"<{max(0, count)}H", page, _PAGE_HEAD.size):
        low, high, flags, key_size = _NODE.unpack_from(page, place)
        value = place + _NODE.size + key_size
        if kind & _BRANCH:
            yield from _entries(file, head, low | high << 16 | flags << 32, depth + 1)
        elif flags & _ON_OWN_PAGES:
            (own,) = _WORD.unpack_from(page, value)
            file.seek(own * head.page_size + _PAGE_HEAD.size)
            yield file.read(low | high << 16)
        elif kind & _LEAF:
            yield page[value : value + (low | high << 16)]
        else:
            raise struct.error("neither branch nor leaf")
