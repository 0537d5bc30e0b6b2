"""The program of the worker process: a light start of ``_checker``.

What lives here: omitting an import that takes a third of the start. What does not: the requests
(``_checker``).
"""

from __future__ import annotations

import sys
from types import ModuleType


def main() -> None:
    """Serve requests until the end of input."""
    # gmpy2 asks it for its own version only, which nothing here reads.
    metadata = ModuleType("importlib.metadata")
    metadata.version = lambda _name: ""  # type: ignore[attr-defined]
    sys.modules[metadata.__name__] = metadata
    from soliton.parallel._checker import serve

    serve()


if __name__ == "__main__":
    main()
