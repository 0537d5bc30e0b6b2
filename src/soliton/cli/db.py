"""``soliton db``: what a store consists of, a copy of one in use, and its compaction.

What lives here: the commands. What does not: the key layout (``soliton.storage.layout``), the check
of a chain (``soliton.cli.verify``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from soliton.cli.helping import CONTEXT
from soliton.errors import InputError

_DIRECTORY = click.Path(path_type=Path, file_okay=False)
REPORT_EVERY: Final = 10_000
"""Progress is shown after so many records."""


class CopyExists(InputError):
    """The directory for a copy is not empty."""


@click.group(context_settings=CONTEXT)
def db() -> None:
    """The store of a chain, or the orders of a matcher."""


@db.command()
@click.argument("directory", type=_DIRECTORY)
def stats(directory: Path) -> None:
    """Count the records of a chain by kind, and say what its mode keeps.

    DIRECTORY is the folder data of a node, which may be running. Bytes are those of keys and values
    before compression.
    """
    from soliton.cli.progress import progress
    from soliton.storage.damage import kind_of
    from soliton.storage.database import Database
    from soliton.storage.keeping import decode_kept
    from soliton.storage.layout import KEPT

    database = Database(directory, durable=False, exclusive=False)
    counts: dict[bytes, list[int]] = {}
    try:
        with progress("count", database.estimated_rows(), "records") as report:
            for done, (key, value) in enumerate(database.scan(b"", b""), start=1):
                count = counts.setdefault(key[:1], [0, 0])
                count[0] += 1
                count[1] += len(key) + len(value)
                if done % REPORT_EVERY == 0:
                    report(done)
        used = database.used_bytes()
        raw = database.get(KEPT)
        if raw is not None:
            click.echo(decode_kept(raw).text)
    finally:
        database.close()
    for prefix, (number, size) in sorted(counts.items(), key=lambda item: -item[1][1]):
        click.echo(f"{number:>14,} {size:>16,} bytes  {kind_of(prefix)}")
    total = sum(size for _, size in counts.values())
    click.echo(f"{sum(number for number, _ in counts.values()):>14,} {total:>16,} bytes  all")
    click.echo(f"{'':>14} {used:>16,} bytes  on the disk")


@db.command()
@click.argument("source", type=_DIRECTORY)
@click.argument("target", type=_DIRECTORY)
def copy(source: Path, target: Path) -> None:
    """Copy a store that may be in use.

    The copy in TARGET is what SOURCE was at one moment.
    """
    from soliton.cli.progress import progress
    from soliton.storage.database import Database
    from soliton.storage.upgrade import write_rows

    if target.exists() and any(target.iterdir()):
        raise CopyExists(f"{target} is not empty")
    database = Database(source, durable=False, exclusive=False)
    try:
        new = Database(target, durable=True, exclusive=True)
        try:
            with progress("copy", database.estimated_rows(), "records") as report:
                write_rows(database.scan(b"", b""), new, report)
        finally:
            new.close()
    finally:
        database.close()


@db.command()
@click.argument("directory", type=_DIRECTORY)
def upgrade(directory: Path) -> None:
    """Upgrade the store of an earlier version in place.

    DIRECTORY is the folder data of a node, which must not run. An upgrade that was interrupted goes
    on where it was. It needs as much disk space again as the chain.
    """
    from soliton.cli.progress import phases
    from soliton.storage.upgrade import upgrade as upgrade_store

    with phases("upgrade") as report:
        count = upgrade_store(directory, lambda done, total: report("records", done, total))
    click.echo(f"{count:,} records are upgraded")


@db.command()
@click.argument("directory", type=_DIRECTORY)
def compact(directory: Path) -> None:
    """Compact a store that is not in use: its disk space becomes as small as it can be."""
    from soliton.storage.database import Database

    if not directory.is_dir():
        raise click.BadParameter(f"{directory} does not exist")
    database = Database(directory, durable=True, exclusive=True)
    try:
        before = database.used_bytes()
        database.compact()
        after = database.used_bytes()
    finally:
        database.close()
    click.echo(f"{before:,} bytes before, {after:,} bytes after")
