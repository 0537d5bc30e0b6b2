"""The entry point of the installed program. Ctrl-C during its imports ends it without a traceback.

What lives here: what has to happen before the first slow import. What does not: the commands
(``main``).
"""

from __future__ import annotations

import gc
import signal
from typing import Final

from soliton.cli.secrecy import keep_secrets

START_THRESHOLD: Final = 200_000
"""Containers allocated between two searches for garbage, of which there is none while modules are
imported: the usual 700 would take a tenth of a start.
"""

# At the top, since worker processes import this module too, and never call ``main``.
gc.set_threshold(START_THRESHOLD)
# Before anything secret is read, by any command or worker.
keep_secrets()
# Nothing has started yet that would need an orderly end.
signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """Run the program."""
    from soliton.cli.main import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    finally:
        # The interpreter would search what is about to go anyway.
        gc.freeze()
