"""The table of errors, its documentation, and the shape of bodies."""

from __future__ import annotations

from pathlib import Path

import pytest

from soliton.api.errors import (
    ACCOUNT_BALANCE_ERRORS,
    ALREADY_IN_STATE,
    ERRORS,
    INVALID_IDS,
    ErrorKind,
    errors_reference,
    invalid_request,
    state_check_failed,
)
from soliton.errors import InvariantBroken


def test_the_reference_page_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
    text = page.read_text(encoding="utf-8")
    assert text == errors_reference(), "run: python -m soliton.api.errors"


@pytest.mark.parametrize("kind", ERRORS, ids=[f"{kind.code}-{kind.name}" for kind in ERRORS])
def test_every_kind_has_an_example_that_works(kind: ErrorKind) -> None:
    body = kind.error(**kind.example).body()
    assert list(body) == ["error", "message", *kind.members]
    assert body["error"] == kind.code
    assert "{" not in str(body["message"])
    assert 400 <= kind.status < 600


def test_bodies() -> None:
    assert INVALID_IDS.error(ids=["a", "b"]).body() == {
        "error": 116,
        "message": "Request contains invalid IDs. a, b",
        "ids": ["a", "b"],
    }
    hinted = invalid_request("no {braces} filled").with_hint("try again").body()
    assert hinted == {"error": 199, "message": "no {braces} filled", "hint": "try again"}


def test_a_failed_state_check_keeps_the_members_of_its_reason() -> None:
    inner = ACCOUNT_BALANCE_ERRORS.error(details={"3P": "negative"})
    assert state_check_failed(inner, {"type": 4}).body() == {
        "error": 112,
        "message": "State check failed. Reason: Accounts balance errors",
        "details": {"3P": "negative"},
        "transaction": {"type": 4},
    }


def test_an_error_made_without_its_values_is_a_bug() -> None:
    with pytest.raises(InvariantBroken):
        ALREADY_IN_STATE.error(id="x")
    with pytest.raises(InvariantBroken):
        ACCOUNT_BALANCE_ERRORS.error()
