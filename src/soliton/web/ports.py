"""Ports: the URL of a server, and the process that listens on a port, for error messages.

What lives here: reading ``/proc`` on Linux. What does not: listening (``server``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_COMMAND_CHARS: Final = 80
MAX_SOCKETS: Final = 100_000
"""Lines of the kernel's table that are read."""
_PROC: Final = Path("/proc")
_LISTENS: Final = "0A"
_FIELDS: Final = 10


def url_of(host: str, port: int) -> str:
    """Return the URL of a server; an IPv6 address has brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def holder(port: int) -> str | None:
    """Return the process that listens on a port and its command, ``None`` if it is unknown."""
    sockets = {f"socket:[{number}]" for number in _sockets(port)}
    if not sockets:
        return None
    for process in _PROC.iterdir():
        if process.name.isdecimal() and not sockets.isdisjoint(_open_files(process)):
            command = _command(process)
            return f"process {process.name}" + (f" ({command})" if command else "")
    return None


def _sockets(port: int) -> Iterator[str]:
    """Yield the inodes of the sockets that listen on a port."""
    for table in ("tcp", "tcp6"):
        try:
            with (_PROC / "net" / table).open(encoding="ascii") as lines:
                for _, line in zip(range(MAX_SOCKETS), lines, strict=False):
                    fields = line.split()
                    if len(fields) < _FIELDS or fields[3] != _LISTENS:
                        continue
                    if int(fields[1].rpartition(":")[2], 16) == port:
                        yield fields[9]
        except (OSError, ValueError):
            continue


def _open_files(process: Path) -> Iterator[str]:
    """Yield the targets of a process's descriptors; nothing for processes of other users."""
    try:
        for each in (process / "fd").iterdir():
            yield str(each.readlink())
    except OSError:
        return


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    # The program, not its interpreter.
    if len(words) > 1 and Path(words[0]).name.startswith("python"):
        words = words[1:]
    text = " ".join([Path(words[0]).name, *words[1:]]).strip()
    return text if len(text) <= MAX_COMMAND_CHARS else f"{text[:MAX_COMMAND_CHARS]}…"
