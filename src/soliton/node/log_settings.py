"""The settings of the log: its format and levels.

What lives here: the section ``soliton.logging``. What does not: writing (``soliton.cli.logs``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    # The log is configured before anything else is imported.
    from soliton.chain.networks.sections import Section

TEXT: Final = "text"
FORMATS: Final = (TEXT, "json")
LEVELS: Final[Mapping[str, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
MAX_DEPTH: Final = 8
"""Nesting of module names; the deepest one has five parts."""


class LogSettings(msgspec.Struct, frozen=True):
    """``logging``: a default ``level``, ``levels`` of modules by name, and the interval of the
    status line of a running node or matcher.
    """

    format: str = TEXT
    level: str = "info"
    levels: Mapping[str, str] = {}
    heartbeat_ms: int = 60_000


def read(section: Section) -> LogSettings:
    """Read the section; refuses unknown formats and levels."""
    usual = LogSettings()
    form = section.text("format", usual.format)
    if form not in FORMATS:
        section.refuse("format", " or ".join(FORMATS))
    return LogSettings(
        format=form,
        level=_level(section, "level", usual.level),
        levels=dict(_levels(section.section("levels"), "", 0)),
        heartbeat_ms=section.duration_ms("heartbeat", usual.heartbeat_ms),
    )


def _level(section: Section, key: str, default: str | None) -> str:
    level = section.text(key, default).lower()
    if level not in LEVELS:
        section.refuse(key, " or ".join(LEVELS))
    return level


def _levels(section: Section, above: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield modules and their levels: ``soliton.api = debug``, with or without quotes."""
    written = section.keys()
    for key in written:
        name = f"{above}.{key}" if above else key
        if section.is_section(key) and depth < MAX_DEPTH:
            yield from _levels(section.section(key), name, depth + 1)
        else:
            yield name, _level(section, key, None)
