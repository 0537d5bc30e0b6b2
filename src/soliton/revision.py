"""The commit of the source that this program was made of.

What lives here: the name of that commit, from the wheel or the checkout, without git. Modules of
ours are never imported: the build hook runs this file alone. What does not: the version, which
stands in ``soliton`` itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

FILE: Final = "REVISION"
"""Beside this module in a wheel, at the top of an archive of the source; a checkout has .git."""


def revision() -> str | None:
    """Return the commit as hexadecimal digits, or None for a copy of the source without any."""
    module = Path(__file__)
    root = module.parents[2]
    written = revision_in(module.with_name(FILE)) or revision_in(root / FILE)
    return written or revision_of_checkout(root)


def revision_in(file: Path) -> str | None:
    """Return the commit that a file holds. None if there is no file, or if it holds the place that
    git fills when it makes an archive.
    """
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return None if text.startswith("$") else text


def revision_of_checkout(root: Path) -> str | None:
    """Return the commit that is checked out in ``root``, or None where git keeps nothing there."""
    try:
        return _head(root / ".git")
    except (OSError, ValueError):
        return None


def _head(git: Path) -> str | None:
    # A further work tree has a file there, which names its directory.
    if git.is_file():
        git = git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir: ").strip()
    head = (git / "HEAD").read_text(encoding="utf-8").strip()
    name = head.removeprefix("ref: ")
    if name == head:
        return head
    shared = git / "commondir"
    common = git / shared.read_text(encoding="utf-8").strip() if shared.is_file() else git
    if (common / name).is_file():
        return (common / name).read_text(encoding="ascii").strip()
    for line in (common / "packed-refs").read_text(encoding="utf-8").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit
    return None
