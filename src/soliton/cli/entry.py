"""The entry point of the installed program. Ctrl-C during its imports ends it without a traceback.

What lives here: what has to happen before the first slow import. What does not: the commands
(``main``).
"""

from __future__ import annotations

import signal

# Nothing has started yet that would need an orderly end.
signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """Run the program."""
    from soliton.cli.main import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
