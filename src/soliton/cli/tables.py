"""Tables on a terminal.

What lives here: their layout. What does not: their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from soliton.cli.helping import printable


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table; the columns are as wide as their widest cell. Control characters
    in cells are replaced.
    """
    lines = [[printable(str(cell)) for cell in line] for line in (head, *rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  ".join(cells).rstrip()


def facts(rows: Sequence[tuple[str, object]]) -> Iterator[str]:
    """Yield a line for each name and value, aligned."""
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        yield f"{name.ljust(width)}  {printable(str(value))}".rstrip()
