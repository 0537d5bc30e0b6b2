"""The rows of a store's database, read and changed beside the product."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocksdict import AccessType, Options, Rdict


def read_rows(directory: Path) -> dict[bytes, bytes]:
    """Return everything that is written, as another process sees it."""
    database = Rdict(str(directory), Options(raw_mode=True), access_type=AccessType.read_only())
    try:
        rows: Any = database.items()
        return dict(rows)
    finally:
        database.close()


def change_rows(directory: Path, items: dict[bytes, bytes | None]) -> None:
    """Write values and delete keys (``None``) of a closed database."""
    database = Rdict(str(directory), Options(raw_mode=True))
    for key, value in items.items():
        if value is None:
            database.delete(key)
        else:
            database.put(key, value)
    database.close()


def tables(directory: Path) -> list[Path]:
    """Return the files that hold the rows of a closed database."""
    return sorted(directory.glob("*.sst"))
