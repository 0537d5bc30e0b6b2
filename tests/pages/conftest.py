"""What tests of the pages share: a devnet and a visitor's tab for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.browser import Page
from tests.e2e.conftest import chain
from tests.pages.pages import visitor

__all__ = ["chain", "page"]


@pytest.fixture(scope="module")
def page(devtools: str) -> Iterator[Page]:
    with visitor(devtools) as page:
        yield page
