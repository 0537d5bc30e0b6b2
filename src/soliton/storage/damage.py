"""Records that cannot be read: which kind, and what the operator should do.

What lives here: converting errors of decoders and of the database to ``DamagedStore``. What does
not: the decoders (``layout``, ``soliton.chain``).
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator
from typing import Final, ParamSpec, TypeVar

import msgspec

from soliton.errors import InputError
from soliton.storage import layout
from soliton.storage.engine import is_damage
from soliton.storage.errors import DamagedStore, NotBelow, StorageProblem

T = TypeVar("T")
P = ParamSpec("P")

UNREADABLE: Final = (
    struct.error,
    msgspec.MsgspecError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    InputError,
)
"""The errors that decoders raise on corrupt bytes."""


def unreadable(key: bytes, error: Exception) -> StorageProblem:
    """Return the error for a record that cannot be read."""
    # RocksDB's errors have no class of their own.
    if type(error) is Exception and not is_damage(error):
        return StorageProblem(f"the store cannot be read: {error}")
    return DamagedStore(
        f"{kind_of(key)} ({key[:80].hex()}) cannot be read: {type(error).__name__} {error}"
    )


def kind_of(key: bytes) -> str:
    """Return a description of the kind of a record."""
    return layout.KINDS.get(key[:1], "a record of no kind that is known")


def readable(
    prefix: bytes,
) -> Callable[[Callable[P, Iterator[T]]], Callable[P, Iterator[T]]]:
    """Decorate a generator that reads records of a prefix: report corrupt ones as damage."""

    def decorate(read: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
        @functools.wraps(read)
        def reading(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
            try:
                yield from read(*args, **kwargs)
            except NotBelow:
                raise
            except UNREADABLE as error:
                raise unreadable(prefix, error) from error

        return reading

    return decorate
