"""``deploy/``: rules and dashboards name metrics and labels that services expose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from soliton.web.prometheus import HISTOGRAM
from tests.cli.metrics_page import SECTIONS
from tests.vectors import REPOSITORY

DEPLOY: Final = REPOSITORY / "deploy"
RULES: Final = DEPLOY / "prometheus" / "rules"
DASHBOARDS: Final = DEPLOY / "grafana" / "dashboards"
_NAME: Final = re.compile(r"\b(?:soliton|process)_[a-z0-9_]+")
_SELECTED: Final = re.compile(r"(\w+)\{([^}]*)\}")


def exposed() -> dict[str, set[str]]:
    """The labels of all series, by name."""
    found: dict[str, set[str]] = {}
    for metric in (each for _, table in SECTIONS for each in table):
        suffixes = ("_bucket", "_sum", "_count") if metric.kind == HISTOGRAM else ("",)
        for suffix in suffixes:
            found.setdefault(metric.name + suffix, set()).update(metric.labels)
    return found


def rules() -> Iterator[dict[str, Any]]:
    for path in sorted(RULES.glob("*.yml")):
        for group in yaml.safe_load(path.read_text("utf-8"))["groups"]:
            yield from group["rules"]


def dashboards() -> list[dict[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in sorted(DASHBOARDS.glob("*.json"))]


def expressions() -> Iterator[str]:
    for rule in rules():
        yield rule["expr"]
    for dashboard in dashboards():
        for panel in dashboard["panels"]:
            yield from (target["expr"] for target in panel["targets"])


def test_metrics_and_labels_exist() -> None:
    known = exposed()
    asked = list(expressions())
    assert len(asked) > 20
    for expression in asked:
        names = set(_NAME.findall(expression))
        assert names <= known.keys(), expression
        for name, selected in _SELECTED.findall(expression):
            assert set(re.findall(r"(\w+)!?=", selected)) <= known[name], expression


def test_each_rule_tells_what_is_wrong() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names) > 10
    for rule in rules():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"]


def test_dashboards_use_the_provisioned_source() -> None:
    path = DEPLOY / "grafana" / "provisioning" / "datasources" / "prometheus.yaml"
    (source,) = yaml.safe_load(path.read_text("utf-8"))["datasources"]
    for dashboard in dashboards():
        numbers = [panel["id"] for panel in dashboard["panels"]]
        assert len(set(numbers)) == len(numbers)
        assert {panel["datasource"]["uid"] for panel in dashboard["panels"]} == {source["uid"]}
