"""The tables of ``docs/reference/metrics.md``, made from those of all services.

``python -m tests.cli.metrics_page`` writes them anew, after a table has changed. The text above
them is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from soliton.api import metrics as api
from soliton.data_service import metrics as data_service
from soliton.export import metrics as export
from soliton.matcher.rest import metrics as matcher
from soliton.signer import metrics as signer
from soliton.web.monitoring import HTTP_METRICS, PROCESS_METRICS, SERVICE_METRICS, Metric
from tests.vectors import REPOSITORY

PATH: Final = REPOSITORY / "docs" / "reference" / "metrics.md"

SECTIONS: Final[tuple[tuple[str, tuple[Metric[Any], ...]], ...]] = (
    ("Every service", (*HTTP_METRICS, *PROCESS_METRICS)),
    ("Every service except the node", SERVICE_METRICS),
    ("Node", api.METRICS),
    ("Matcher", matcher.METRICS),
    ("Signer with keys", signer.METRICS),
    ("Data service", data_service.METRICS),
    ("Export and notify", export.METRICS),
)


def page() -> str:
    """The text of the page, with the tables of today."""
    lines = [PATH.read_text(encoding="utf-8").partition("## ")[0].rstrip(), ""]
    for title, metrics in SECTIONS:
        lines += [f"## {title}", "", "| name | kind | labels | meaning |", "|---|---|---|---|"]
        lines += [*_rows(metrics), ""]
    return "\n".join(lines)


def _rows(metrics: Iterable[Metric[Any]]) -> Iterable[str]:
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |"


if __name__ == "__main__":
    PATH.write_text(page(), encoding="utf-8")
