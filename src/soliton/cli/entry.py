"""Where the installed program begins: Ctrl-C while it is still being imported just ends it.

What lives here: what has to be done before the first import that takes time. What does not: the
commands (``main``).
"""

from __future__ import annotations

import signal

# There is nothing to end in order yet; Python's own way would be a traceback.
signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """Run the program."""
    from soliton.cli.main import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
