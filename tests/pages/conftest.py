"""What tests of the pages share: a devnet and a visitor's tab for all tests of a module, and what
strangers have written to that chain.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.browser import Page
from tests.e2e.conftest import chain
from tests.e2e.programs import Program
from tests.pages.pages import visitor
from tests.pages.scenario import Scenario, played

__all__ = ["chain", "page"]


@pytest.fixture(scope="module")
def page(devtools: str) -> Iterator[Page]:
    with visitor(devtools) as page:
        yield page


@pytest.fixture(scope="module")
def played_chain(chain: Program) -> Scenario:
    return played(chain.node_url)
