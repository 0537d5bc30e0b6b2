"""The log: one line for each event on standard error, as text or as JSON, with UTC times.

Every program is set up here, and so are the processes beside it: first by the command line, then
by the settings that it names, of which the command line wins.

What lives here: the lines and who says how much. What does not: the settings' section
(``soliton.node.log_settings``).
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
import msgspec

from soliton.cli.helping import shown
from soliton.node.log_settings import FORMATS, LEVELS, LogSettings

# These libraries log every request and query at levels that only their authors need.
_TALKATIVE: Final = ("aiokafka", "asyncio", "websockets")
_MS: Final = 1_000

F = TypeVar("F", bound=Callable[..., Any])


class Chosen(msgspec.Struct):
    """What the command line says about the log."""

    format: str | None = None
    level: str | None = None
    levels: dict[str, str] = {}


class _State(msgspec.Struct):
    chosen: Chosen
    settings: LogSettings


_state: Final = _State(Chosen(), LogSettings())


def use(settings: LogSettings) -> None:
    """Log as the settings say, as far as the command line has not chosen otherwise."""
    chosen = _state.chosen
    _state.settings = msgspec.structs.replace(
        settings,
        format=chosen.format or settings.format,
        level=chosen.level or settings.level,
        levels={**settings.levels, **chosen.levels},
    )
    _set_up(_state.settings)


def in_force() -> LogSettings:
    """How this process logs: for the processes beside it."""
    return _state.settings


def _set_up(settings: LogSettings) -> None:
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(handler)
    handler = _Handler(sys.stderr)
    handler.setFormatter(_JsonLines() if settings.format != FORMATS[0] else _TextLines())
    root.addHandler(handler)
    root.setLevel(LEVELS[settings.level])
    for library in _TALKATIVE:
        logging.getLogger(library).setLevel(logging.WARNING)
    for name, level in settings.levels.items():
        logging.getLogger(name).setLevel(LEVELS[level])


class _Handler(logging.StreamHandler[Any]):
    """Ours, among those that others may have put beside it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write to what is standard error now: where several commands run in one process, each
        has its own.
        """
        self.stream = sys.stderr
        super().emit(record)


def _utc(record: logging.LogRecord) -> str:
    """The record's time: ``2026-11-22T18:55:31.123Z``."""
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.created * _MS) % _MS:03d}Z"


class _TextLines(logging.Formatter):
    """``TIME LEVEL MODULE: MESSAGE``, and a traceback below where there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(  # noqa: N802 - the library's name
        self, record: logging.LogRecord, datefmt: str | None = None
    ) -> str:
        """In UTC, whatever the machine's zone."""
        del datefmt
        return _utc(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """On one line: what peers and scripts have said is within."""
        record.message = shown(record.message)
        return super().formatMessage(record)


class _JsonLines(logging.Formatter):
    """One object a line; a traceback is its ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": _utc(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


# --- the command line -----------------------------------------------------------------------------


def log_options(command: F) -> F:
    """``--log-format`` and ``--log-level`` for a command."""
    level = click.option(
        "--log-level",
        multiple=True,
        metavar="[MODULE=]LEVEL",
        expose_value=False,
        callback=_choose_levels,
        help=f"How much is logged: {', '.join(LEVELS)}; soliton.api=debug for one part.",
    )
    form = click.option(
        "--log-format",
        type=click.Choice(FORMATS),
        expose_value=False,
        callback=_choose_format,
        help="How the log is written.",
    )
    return level(form(command))


def choose_level(level: str) -> None:
    """Log from this level on, whatever the settings say."""
    _state.chosen.level = level
    use(_state.settings)


def _choose_format(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        _state.chosen.format = value
        use(_state.settings)


def _choose_levels(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> None:
    for value in values:
        module, _, level = value.rpartition("=")
        if level.lower() not in LEVELS:
            raise click.BadParameter(f"{level} is none of {', '.join(LEVELS)}")
        if module:
            _state.chosen.levels[module] = level.lower()
        else:
            _state.chosen.level = level.lower()
    if values:
        use(_state.settings)
