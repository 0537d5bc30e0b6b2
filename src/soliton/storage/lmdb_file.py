"""Reading the file of an earlier store, which was one of LMDB.

What lives here: the few fields of LMDB's file format that reading all records in order needs. What
does not: writing them to a store of today (``upgrade``).

Source: LMDB ``libraries/liblmdb/mdb.c`` (``MDB_meta``, ``MDB_page``, ``MDB_node``), data version 1.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from soliton.storage.errors import DamagedStore
from soliton.storage.layout import Rows

_MAGIC: Final = 0xBEEFC0DE
_DATA_VERSION: Final = 1
_PAGE_HEAD: Final = struct.Struct("<QHHHH")
_META: Final = struct.Struct("<IIQQ")
_TREE: Final = struct.Struct("<IHHQQQQQ")
_LAST: Final = struct.Struct("<QQ")
_NODE: Final = struct.Struct("<HHHH")
_WORD: Final = struct.Struct("<Q")
_BRANCH, _LEAF, _IS_META = 1, 2, 8
_ON_OWN_PAGES: Final = 1
_NO_PAGE: Final = 2**64 - 1
_PAGE_SIZES: Final = range(256, 65_537)
_MAX_DEPTH: Final = 32


class LmdbFile:
    """The records of the last transaction of a file."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        """Raises ``DamagedStore``."""
        self._data, self._path = data, path
        with self._checked():
            first = self._head(0)
            size = first[1]
            if size not in _PAGE_SIZES:
                raise IndexError(f"pages of {size} bytes")
            newest = max(first, self._head(size))
            _, self._page_size, self._root, self.count = newest

    def rows(self, after: bytes = b"") -> Rows:
        """Yield keys and values in order, those behind a key; raises ``DamagedStore``."""
        if self._root == _NO_PAGE:
            return
        with self._checked():
            yield from self._below(self._root, after, 0)

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except (struct.error, IndexError, RecursionError) as error:
            raise DamagedStore(f"{self._path} cannot be read ({error})") from error

    def _head(self, offset: int) -> tuple[int, int, int, int]:
        """Return transaction, page size, root and count of records of one of the two heads."""
        kind = _PAGE_HEAD.unpack_from(self._data, offset)[2]
        at = offset + _PAGE_HEAD.size
        magic, version, _, _ = _META.unpack_from(self._data, at)
        if not kind & _IS_META or (magic, version) != (_MAGIC, _DATA_VERSION):
            raise IndexError("no head of LMDB")
        free = _TREE.unpack_from(self._data, at + _META.size)
        tree = _TREE.unpack_from(self._data, at + _META.size + _TREE.size)
        transaction = _LAST.unpack_from(self._data, at + _META.size + 2 * _TREE.size)[1]
        return transaction, free[0], tree[-1], tree[-2]

    def _below(self, number: int, after: bytes, depth: int) -> Rows:
        """Yield the records of the tree below a page that are behind a key."""
        if depth > _MAX_DEPTH:
            raise RecursionError("the tree is too deep")
        data, start = self._data, number * self._page_size
        own, _, kind, lower, _ = _PAGE_HEAD.unpack_from(data, start)
        if own != number or not kind & (_BRANCH | _LEAF):
            raise IndexError(f"page {number} is none of the tree")
        count = (lower - _PAGE_HEAD.size) // 2
        places = struct.unpack_from(f"<{count}H", data, start + _PAGE_HEAD.size)
        for index, place in enumerate(places):
            low, high, flags, key_size = _NODE.unpack_from(data, start + place)
            at = start + place + _NODE.size
            key = data[at : at + key_size]
            if kind & _BRANCH:
                if index + 1 < count and self._key(start, places[index + 1]) <= after:
                    continue
                yield from self._below(low | high << 16 | flags << 32, after, depth + 1)
            elif key > after:
                at += key_size
                size = low | high << 16
                if flags & _ON_OWN_PAGES:
                    at = _WORD.unpack_from(data, at)[0] * self._page_size + _PAGE_HEAD.size
                value = data[at : at + size]
                if len(value) != size:
                    raise IndexError("the file is cut")
                yield key, value

    def _key(self, start: int, place: int) -> bytes:
        key_size = _NODE.unpack_from(self._data, start + place)[3]
        at = start + place + _NODE.size
        return self._data[at : at + key_size]


@contextmanager
def lmdb_file(path: Path) -> Iterator[LmdbFile]:
    """Open a file for reading; raises ``DamagedStore`` and ``OSError``."""
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise DamagedStore(f"{path} is empty") from error
        with data:
            yield LmdbFile(data, path)
