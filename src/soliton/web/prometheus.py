"""Figures about a running program as Prometheus scrapes them.

What lives here: the text form, and the figures that every process has. What does not: what a
service counts (``soliton.api.metrics``, ``soliton.matcher``).

Source: https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4); the names of
the process's figures are those of https://prometheus.io/docs/instrumenting/writing_clientlibs/.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
COUNTER: Final = "counter"
GAUGE: Final = "gauge"

_STATM: Final = Path("/proc/self/statm")
_OPEN_FILES: Final = Path("/proc/self/fd")

Labels = Mapping[str, str]
_NO_LABELS: Final[Labels] = MappingProxyType({})


class Sample(NamedTuple):
    """One value, with the labels that tell it from others of the same figure."""

    value: int | float
    labels: Labels = _NO_LABELS


class Figure(NamedTuple):
    """A figure with its samples; ``kind`` is ``COUNTER`` (names end in ``_total``) or ``GAUGE``."""

    name: str
    kind: str
    help: str
    samples: Iterable[Sample]


def text_form(figures: Iterable[Figure]) -> bytes:
    """The text that is scraped."""
    lines: list[str] = []
    for figure in figures:
        lines.append(f"# HELP {figure.name} {_escaped(figure.help)}")
        lines.append(f"# TYPE {figure.name} {figure.kind}")
        lines += (f"{figure.name}{_label_text(labels)} {value}" for value, labels in figure.samples)
    return ("\n".join(lines) + "\n").encode()


def _label_text(labels: Labels) -> str:
    if not labels:
        return ""
    quoted = ((name, _escaped(value).replace('"', '\\"')) for name, value in labels.items())
    return "{" + ",".join(f'{name}="{value}"' for name, value in quoted) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def resident_bytes() -> int | None:
    """Memory that is in use now; only where the system tells."""
    if not _STATM.exists():
        return None
    return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int | None:
    """Open descriptors; only where the system tells."""
    return sum(1 for _ in _OPEN_FILES.iterdir()) if _OPEN_FILES.exists() else None


def file_limit() -> int:
    """How many descriptors may be open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def cpu_seconds() -> float:
    """Working time of the process since it began."""
    return time.process_time()
