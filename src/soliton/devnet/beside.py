"""The program of a child process that runs one of our commands and ends with its parent.

``python -m soliton.devnet.beside COMMAND …``; standard input is a pipe that the parent holds open.

What lives here: the entry point. What does not: the command (``soliton.cli``).
"""

from __future__ import annotations

from soliton.cli.entry import main
from soliton.cli.process import end_with_parent

if __name__ == "__main__":
    end_with_parent()
    main()
