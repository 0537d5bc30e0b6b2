"""Figures in the text form that is scraped."""

from __future__ import annotations

from soliton.web.prometheus import COUNTER, GAUGE, Figure, Sample, resident_bytes, text_form


def test_text() -> None:
    text = text_form([
        Figure("height", GAUGE, "How high\nit is", [Sample(3)]),
        Figure("asked_total", COUNTER, "By \\ route", [
            Sample(1, {"route": "/a"}), Sample(2, {"route": '"b"\\', "by": "me"})]),
        Figure("nothing", GAUGE, "Not told here", []),
    ])  # fmt: skip
    assert text.decode() == (
        "# HELP height How high\\nit is\n# TYPE height gauge\nheight 3\n"
        '# HELP asked_total By \\\\ route\n# TYPE asked_total counter\nasked_total{route="/a"} 1\n'
        'asked_total{route="\\"b\\"\\\\",by="me"} 2\n'
        "# HELP nothing Not told here\n# TYPE nothing gauge\n"
    )


def test_memory_is_counted_in_bytes() -> None:
    resident = resident_bytes()
    assert resident is None or 1 << 20 < resident < 1 << 40
