"""The timeline of a simulation as an SVG picture: a line for each host, time to the right.

What lives here: the picture. What does not: collecting the events (``world``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from soliton.simulation.private_chain import START
from soliton.simulation.summary import Summary
from soliton.simulation.world import Mark

_WIDTH: Final = 1_600
_LEFT: Final = 90
_TOP: Final = 50
_LANE: Final = 34
_BOTTOM: Final = 60
_GRID: Final = 10
"""How many labels the time axis has."""
MAX_MARKS: Final = 50_000
"""How many marks are drawn; more would be indistinguishable."""
_STYLE: Final = """
text { font: 12px sans-serif; fill: #333 } .axis { stroke: #ccc } .lane { stroke: #ddd }
.block { fill: #8fb3d9 } .mined { fill: #1f5fa8 }
.fork { fill: none; stroke: #c62828; stroke-width: 2 }
.depth { fill: #c62828; font-size: 10px } .partition { fill: #f4d35e; opacity: .35 }
.crash { stroke: #c62828; stroke-width: 6; opacity: .6 }
.failed { fill: #c62828; font-weight: bold }
"""


def picture(summary: Summary, marks: Sequence[Mark], hosts: int) -> str:
    """Return the picture of a simulation of so many hosts."""
    return "\n".join(_parts(summary, marks, hosts)) + "\n"


def _parts(summary: Summary, marks: Sequence[Mark], hosts: int) -> Iterator[str]:
    bottom = _TOP + hosts * _LANE
    span = max(1.0, summary.seconds * 1_000)

    def x(at: int) -> float:
        return round(_LEFT + (at - START) * (_WIDTH - _LEFT - 20) / span, 1)

    def y(host: int) -> float:
        return _TOP + host * _LANE + _LANE / 2

    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{bottom + _BOTTOM}" '
        f'viewBox="0 0 {_WIDTH} {bottom + _BOTTOM}">'
    )
    yield f"<style>{_STYLE}</style>"
    yield '<rect width="100%" height="100%" fill="white"/>'
    yield (
        f'<text x="{_LEFT}" y="24">seed {summary.seed}: height {summary.height}, '
        f"{sum(summary.forks.values())} forks; dark: made here, light: a block came, "
        "ring: own blocks taken off (how many), red line: down, yellow: partition</text>"
    )
    for fault in summary.faults[:1]:
        yield f'<text class="failed" x="{_LEFT}" y="42">{escape(fault)}</text>'
    for mark in marks:
        if mark.kind == "partition":
            left, right = x(mark.at), x(mark.until)
            yield (
                f'<rect class="partition" x="{left}" y="{_TOP}" width="{round(right - left, 1)}" '
                f'height="{bottom - _TOP}"/>'
            )
    for host in range(hosts):
        yield f'<text x="10" y="{y(host) + 4}">host {host}</text>'
        yield f'<line class="lane" x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{y(host)}" y2="{y(host)}"/>'
    for mark in marks[:MAX_MARKS]:
        yield from _mark(mark, x(mark.at), y(mark.host), x(mark.until))
    for part in range(_GRID + 1):
        at = START + int(span * part / _GRID)
        yield f'<line class="axis" x1="{x(at)}" x2="{x(at)}" y1="{bottom}" y2="{bottom + 6}"/>'
        yield f'<text x="{x(at) - 12}" y="{bottom + 22}">{(at - START) // 1_000} s</text>'
    yield "</svg>"


def _mark(mark: Mark, x: float, y: float, until: float) -> Iterator[str]:
    match mark.kind:
        case "block":
            yield f'<circle class="block" cx="{x}" cy="{y}" r="2"/>'
        case "mined":
            yield f'<circle class="mined" cx="{x}" cy="{y}" r="4"/>'
        case "fork":
            yield f'<circle class="fork" cx="{x}" cy="{y}" r="7"/>'
            yield f'<text class="depth" x="{x + 7}" y="{y - 6}">{mark.value}</text>'
        case "crash":
            yield f'<line class="crash" x1="{x}" x2="{until}" y1="{y}" y2="{y}"/>'
        case _:
            pass
