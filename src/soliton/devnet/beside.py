"""A command of ours as the program of a process that ends with the one that started it.

``python -m soliton.devnet.beside COMMAND …``; standard input is a pipe that the other holds.

What lives here: noticing that end. What does not: the command (``soliton.cli``).
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from soliton.cli.entry import main


def _end_with_parent() -> None:
    """Wait until whoever started this process has gone, or wants it to end."""
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    main()
