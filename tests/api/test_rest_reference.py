"""The page of all routes."""

from __future__ import annotations

from soliton.api.app import GROUPS, all_routes
from soliton.api.rest_reference import rest_reference
from tests.vectors import REPOSITORY


def test_the_reference_page_is_up_to_date() -> None:
    page = REPOSITORY / "docs" / "reference" / "rest.md"
    text = page.read_text(encoding="utf-8")
    assert text == rest_reference(), "run: python -m soliton.api.rest_reference"


def test_paths_of_some_families_are_paths_that_there_are() -> None:
    paths = {route.path for route in all_routes()}
    assert all(set(getattr(group, "FAMILIES", {})) <= paths for group in GROUPS)
