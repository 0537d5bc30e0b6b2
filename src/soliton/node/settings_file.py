"""Reading a configuration file: HOCON text to a plain tree.

What lives here: the one place that knows the HOCON library, and its errors as ours. What does not:
what the keys mean (``settings``).

Source: lightbend/config ``HOCON.md``. ``${user.home}``, a system property in the ecosystem's
files, is offered here too; other substitutions are looked up in the file, then in the environment.
"""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Final

from soliton.errors import InputError

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Far more than any configuration needs; a path to something else is told at once."""


class SettingsError(InputError):
    """A configuration file that cannot be read, or a setting with a wrong value."""


def read_file(path: Path) -> dict[str, object]:
    """The tree of a configuration file, with includes and substitutions done.

    Raises ``SettingsError``, naming the file and where possible the line.
    """
    # Imported here: the parser takes a tenth of a second, and most commands need no file.
    from pyhocon import ConfigFactory
    from pyhocon.exceptions import ConfigException
    from pyparsing import ParseBaseException

    # A missing include is allowed (the packaged files end with one); not worth a line each start.
    logging.getLogger("pyhocon").setLevel(logging.ERROR)
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SettingsError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        with warnings.catch_warnings():
            # The library uses names that its own dependency calls outdated.
            warnings.simplefilter("ignore", DeprecationWarning)
            written = ConfigFactory.parse_file(str(path), resolve=False)
            known = {"user": {"home": str(Path.home())}}
            resolved = written.with_fallback(ConfigFactory.from_dict(known), resolve=True)
        tree: dict[str, object] = resolved.as_plain_ordered_dict()
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is not UTF-8 text") from None
    except ParseBaseException as error:
        # Its own message quotes the text around, which may be a password.
        place = f"line {error.lineno}, column {error.col}"
        raise SettingsError(f"{path}: {place}: cannot be understood here") from None
    except ConfigException as error:
        raise SettingsError(f"{path}: {error}") from None
    except RecursionError:
        raise SettingsError(f"{path}: too deeply nested") from None
    if "user" not in written:
        del tree["user"]
    return tree
