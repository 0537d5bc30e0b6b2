"""Memory that holds keys, phrases and passwords stays in the process, as that of ssh-agent does.

A core file has all of it, and stays on a disk for whoever finds it. On Linux, other processes of
the same user cannot read the memory either, nor attach a debugger.

What lives here: these protections of a process. What does not: files with keys
(``soliton.keystore``).
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from typing import Final

VARIABLE: Final = "SOLITON_CORE_DUMPS"
"""Environment variable: with the value ``allow``, core files and debuggers are allowed."""
_ALLOW: Final = "allow"
_PR_SET_DUMPABLE: Final = 4
"""Of ``<linux/prctl.h>``."""


def keep_secrets() -> None:
    """Let this process leave no core file, and no other one read its memory, unless the environment
    allows it. Programs that it starts leave no core file either; they call this themselves for the
    rest. Idempotent.
    """
    if os.environ.get(VARIABLE) == _ALLOW:
        return
    # The limit is inherited. It does not hold where the system pipes core files into a program,
    # which the next step prevents.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
