"""Metrics in Prometheus's text format.

What lives here: the text format, and what the system knows about a process. What does not: the
metrics of services (``monitoring``, and a module ``metrics`` of each service).

Source: https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4); the names of
the process's metrics are those of https://prometheus.io/docs/instrumenting/writing_clientlibs/.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"

_STATM: Final = Path("/proc/self/statm")
_OPEN_FILES: Final = Path("/proc/self/fd")

Labels = Mapping[str, str]
_NO_LABELS: Final[Labels] = MappingProxyType({})


class Sample(NamedTuple):
    """One value, with its labels; ``suffix`` is appended to the name (of a histogram)."""

    value: int | float
    labels: Labels = _NO_LABELS
    suffix: str = ""


class Figure(NamedTuple):
    """A metric with its samples; ``kind`` is ``COUNTER`` (names end in ``_total``), ``GAUGE`` or
    ``HISTOGRAM`` (samples of ``histogram_samples``).
    """

    name: str
    kind: str
    help: str
    samples: Iterable[Sample]


def text_form(figures: Iterable[Figure]) -> bytes:
    """Return the text format of metrics."""
    lines: list[str] = []
    for figure in figures:
        lines.append(f"# HELP {figure.name} {_escaped(figure.help)}")
        lines.append(f"# TYPE {figure.name} {figure.kind}")
        lines += (
            f"{figure.name}{suffix}{_label_text(labels)} {value}"
            for value, labels, suffix in figure.samples
        )
    return ("\n".join(lines) + "\n").encode()


def histogram_samples(
    bounds: Sequence[float], counts: Sequence[int], total: float, labels: Labels
) -> Iterator[Sample]:
    """Yield the samples of one histogram: ``counts`` are those of each bucket alone, with one more
    for what is above all ``bounds``, and ``total`` is the sum of all values.
    """
    below = 0
    for bound, count in zip((*map(str, bounds), "+Inf"), counts, strict=True):
        below += count
        yield Sample(below, {**labels, "le": bound}, "_bucket")
    yield Sample(total, labels, "_sum")
    yield Sample(below, labels, "_count")


def _label_text(labels: Labels) -> str:
    if not labels:
        return ""
    quoted = ((name, _escaped(value).replace('"', '\\"')) for name, value in labels.items())
    return "{" + ",".join(f'{name}="{value}"' for name, value in quoted) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def resident_bytes() -> int | None:
    """Return the resident memory, ``None`` on systems without ``/proc``."""
    if not _STATM.exists():
        return None
    return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int | None:
    """Return the number of open descriptors, ``None`` on systems without ``/proc``."""
    return sum(1 for _ in _OPEN_FILES.iterdir()) if _OPEN_FILES.exists() else None


def file_limit() -> int:
    """Return the limit of open descriptors."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def cpu_seconds() -> float:
    """Return the CPU time of the process."""
    return time.process_time()
