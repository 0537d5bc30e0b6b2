"""Logging: one line per record on standard error, as text or as JSON, with UTC times.

Every program and its worker processes configure it here: first from the command line, then from
the settings, which the command line overrides.

What lives here: formats and levels. What does not: the settings' section
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

from soliton.cli.helping import printable
from soliton.node.log_settings import FORMATS, LEVELS, LogSettings

# Libraries that log every request or query below the level of warnings.
_VERBOSE_LIBRARIES: Final = ("aiokafka", "asyncio", "websockets")
_MS: Final = 1_000

F = TypeVar("F", bound=Callable[..., Any])


class Chosen(msgspec.Struct):
    """The command line's options for the log."""

    format: str | None = None
    level: str | None = None
    levels: dict[str, str] = {}


class _State(msgspec.Struct):
    chosen: Chosen
    settings: LogSettings


_state: Final = _State(Chosen(), LogSettings())


def configure_log(settings: LogSettings) -> None:
    """Configure the log by the settings, which the command line overrides."""
    chosen = _state.chosen
    _state.settings = msgspec.structs.replace(
        settings,
        format=chosen.format or settings.format,
        level=chosen.level or settings.level,
        levels={**settings.levels, **chosen.levels},
    )
    _set_up(_state.settings)


def current_log() -> LogSettings:
    """Return this process's log settings, for its child processes."""
    return _state.settings


def _set_up(settings: LogSettings) -> None:
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(handler)
    handler = _Handler(sys.stderr)
    handler.setFormatter(_JsonLines() if settings.format != FORMATS[0] else _TextLines())
    root.addHandler(handler)
    root.setLevel(LEVELS[settings.level])
    for library in _VERBOSE_LIBRARIES:
        logging.getLogger(library).setLevel(logging.WARNING)
    for name, level in settings.levels.items():
        logging.getLogger(name).setLevel(LEVELS[level])


class _Handler(logging.StreamHandler[Any]):
    """Our handler, to tell it from those of others."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write to the current ``sys.stderr``, which changes if several commands run in one
        process.
        """
        self.stream = sys.stderr
        super().emit(record)


def _utc(record: logging.LogRecord) -> str:
    """Return the record's time: ``2026-11-22T18:55:31.123Z``."""
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.created * _MS) % _MS:03d}Z"


class _TextLines(logging.Formatter):
    """``TIME LEVEL MODULE: MESSAGE``, followed by a traceback if there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(  # noqa: N802 - the library's name
        self, record: logging.LogRecord, datefmt: str | None = None
    ) -> str:
        """Return the time in UTC."""
        del datefmt
        return _utc(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """Return one line without control characters: messages contain untrusted text."""
        record.message = printable(record.message)
        return super().formatMessage(record)


class _JsonLines(logging.Formatter):
    """One JSON object per line, with the traceback as ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
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
    """Add ``--log-format`` and ``--log-level`` to a command."""
    level = click.option(
        "--log-level",
        multiple=True,
        metavar="[MODULE=]LEVEL",
        expose_value=False,
        callback=_choose_levels,
        help=f"The log level: {', '.join(LEVELS)}; soliton.api=debug for one part.",
    )
    form = click.option(
        "--log-format",
        type=click.Choice(FORMATS),
        expose_value=False,
        callback=_choose_format,
        help="The log format.",
    )
    return level(form(command))


def choose_level(level: str) -> None:
    """Override the log level of the settings."""
    _state.chosen.level = level
    configure_log(_state.settings)


def _choose_format(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        _state.chosen.format = value
        configure_log(_state.settings)


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
        configure_log(_state.settings)
