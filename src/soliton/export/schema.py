"""The schema of the database: numbered SQL files, and a table of those that were applied.

A new version is a new file in ``migrations``; a released file never changes.

What lives here: checking and migrating. What does not: the content of tables (``rows``).
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final, NamedTuple

import psycopg

from soliton.export.errors import WrongSchema

_VERSIONS: Final = (
    "CREATE TABLE IF NOT EXISTS soliton_schema ("
    "version integer PRIMARY KEY, name varchar NOT NULL, "
    "applied_at timestamptz NOT NULL DEFAULT now())"
)


class Migration(NamedTuple):
    """One migration."""

    version: int
    name: str
    text: str


def migrations() -> list[Migration]:
    """Return all migrations in order."""
    found = []
    for entry in files("soliton.export").joinpath("migrations").iterdir():
        number, _, rest = entry.name.partition("_")
        if rest.endswith(".sql"):
            found.append(Migration(int(number), entry.name, entry.read_text(encoding="utf-8")))
    return sorted(found)


def found_version(connection: psycopg.Connection) -> int | None:
    """Return the version of the schema, ``None`` for a database without one."""
    with connection.transaction():
        row = connection.execute("SELECT to_regclass('soliton_schema')").fetchone()
        if row is None or row[0] is None:
            return None
        row = connection.execute("SELECT coalesce(max(version), 0) FROM soliton_schema").fetchone()
    return 0 if row is None else int(row[0])


def migrate(connection: psycopg.Connection, to_version: int | None = None) -> list[str]:
    """Migrate the schema to a version, by default the newest, in one transaction; return the names
    of the applied migrations.
    """
    made = []
    with connection.transaction():
        connection.execute(_VERSIONS)
        connection.execute("LOCK TABLE soliton_schema IN EXCLUSIVE MODE")
        row = connection.execute("SELECT coalesce(max(version), 0) FROM soliton_schema").fetchone()
        version = 0 if row is None else int(row[0])
        for step in migrations():
            if step.version > version and (to_version is None or step.version <= to_version):
                connection.execute(step.text.encode())
                connection.execute(
                    "INSERT INTO soliton_schema (version, name) VALUES (%s, %s)",
                    (step.version, step.name),
                )
                made.append(step.name)
    return made


def check_version(connection: psycopg.Connection) -> None:
    """Raise ``WrongSchema`` if the schema is not that of this program."""
    version, newest = found_version(connection), migrations()[-1].version
    if version is None:
        raise WrongSchema(
            "the database holds no export; soliton export postgres --dsn … makes the tables"
        )
    if version > newest:
        raise WrongSchema(
            f"the database has version {version} of the schema, made by a newer program; this one "
            f"writes version {newest}: use the newer one"
        )
    if version < newest:
        raise WrongSchema(
            f"the database has version {version} of the schema, this program writes version "
            f"{newest}: run soliton export postgres --dsn … --migrate"
        )
