"""All requests of these tests are watched: what routes answer has to be declared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from soliton.api import application
from tests.api.declared import Watch, watched


@pytest.fixture(scope="module", autouse=True)
def watch() -> Iterator[Watch]:
    """The watch of one module's tests; in the end it has found nothing."""
    made = Watch()
    usual = application.Application._try
    application.Application._try = watched(made)  # type: ignore[method-assign]
    yield made
    application.Application._try = usual  # type: ignore[method-assign]
    assert not made.found, "not declared:\n" + "\n".join(sorted(made.found))
