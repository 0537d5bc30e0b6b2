"""A command of ``soliton`` in the process of its test: what it prints and how it ends.

What lives here: the call. What does not: programs of their own (``tests.e2e.programs``), for tests
that send signals, or that are about the process itself.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from click.testing import CliRunner

from soliton.cli.main import cli
from soliton.errors import SolitonError


@dataclass(frozen=True)
class Ended:
    """A command that has ended: its exit code, what it printed, and its errors apart."""

    returncode: int
    stdout: str
    stderr: str


def run_here(*arguments: object) -> Ended:
    """A command that ends by itself. An expected error is told as the program tells it; any other
    is raised.
    """
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        done = CliRunner().invoke(cli, [*map(str, arguments)])
    finally:
        # The log of the tests stays as it was.
        root.setLevel(level)
        root.handlers[:] = handlers
    if done.exception is None or isinstance(done.exception, SystemExit):
        return Ended(done.exit_code, done.stdout, done.stderr)
    if not isinstance(done.exception, SolitonError):
        raise done.exception
    return Ended(1, done.stdout, f"{done.stderr}soliton: {done.exception}\n")
