"""A private chain that is kept in a file from one run to the next.

What lives here: the file. What does not: what is in it (``soliton.controls.dump``).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from soliton.controls.control import Controls
from soliton.controls.dump import MAX_BYTES, dump, load
from soliton.controls.errors import ControlRefused
from soliton.errors import EnvironmentProblem
from soliton.storage.files import replace_file

_log: Final = logging.getLogger(__name__)


def load_file(controls: Controls, path: Path) -> bool:
    """Be the chain of a file, if there is one. Raises ``ControlRefused`` and
    ``EnvironmentProblem``.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise EnvironmentProblem(f"cannot read {path}: {error.strerror or error}") from error
    try:
        head = load(controls, data)
    except ControlRefused as error:
        raise ControlRefused(f"{path}: {error}") from error
    _log.info("loaded %s: height %d", path, head.height)
    return True


def save_file(controls: Controls, path: Path) -> None:
    """Write the chain to a file, in one step. Raises ``EnvironmentProblem``."""
    try:
        replace_file(path, [dump(controls)])
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {path}: {error.strerror or error}") from error
    _log.info("wrote %s: height %d", path, controls.chain.height)
