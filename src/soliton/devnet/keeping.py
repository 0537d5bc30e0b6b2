"""The directory of a private chain, and the file that keeps its state from one run to the next.

What lives here: directory and file. What does not: the content (``soliton.controls.dump``).
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from soliton.controls.control import Controls
from soliton.controls.dump import MAX_BYTES, dump, head_of, load
from soliton.controls.errors import ControlRefused
from soliton.devnet.features import DEFAULT_PERIOD, Chosen
from soliton.errors import EnvironmentProblem
from soliton.storage.files import replace_file
from soliton.web.temporary import TemporaryPlace

_log: Final = logging.getLogger(__name__)


@contextlib.contextmanager
def directory_of(data_dir: Path | None) -> Iterator[Path]:
    """Yield a data directory; without one, a temporary directory that is removed at the end."""
    if data_dir is not None:
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentProblem(f"cannot make {data_dir}: {error.strerror}") from error
        yield data_dir
        return
    place = TemporaryPlace("soliton-devnet-")
    try:
        yield place.path
    finally:
        place.close()


def check_place(path: Path) -> None:
    """Raise ``EnvironmentProblem`` if no file can be written here: at the end it would be too
    late.
    """
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {path}: {error.strerror or error}") from error


def load_file(controls: Controls, path: Path) -> bool:
    """Load the chain in a file; false if the file does not exist. Raises ``ControlRefused`` and
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


def features_in(path: Path) -> Chosen | None:
    """Return the features of the chain in a file; ``None`` if the file does not exist. Raises
    ``ControlRefused`` and ``EnvironmentProblem``.
    """
    try:
        with path.open("rb") as file:
            head = head_of(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EnvironmentProblem(f"cannot read {path}: {error.strerror or error}") from error
    except ControlRefused as error:
        raise ControlRefused(f"{path}: {error}") from error
    return Chosen(head.features, head.generation_period or DEFAULT_PERIOD)


def save_file(controls: Controls, path: Path) -> None:
    """Write the chain to a file, atomically. Raises ``EnvironmentProblem``."""
    try:
        replace_file(path, [dump(controls)])
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {path}: {error.strerror or error}") from error
    _log.info("wrote %s: height %d", path, controls.chain.height)
