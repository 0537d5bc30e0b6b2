"""The comparison of answers sees what it is there for, and passes over what differs by itself."""

from __future__ import annotations

import pytest

from tests.answers.comparing import difference, varying

HEADERS = [["content-length", "20"], ["etag", "a"]]
ANSWER: list[object] = [200, "OK", HEADERS, '{"height": 1, "time": 12}']


def changed(**parts: object) -> list[object]:
    """The answer with another part."""
    status, reason, headers, body = ANSWER
    found = {"status": status, "reason": reason, "headers": headers, "body": body, **parts}
    return list(found.values())


@pytest.mark.parametrize(
    "parts",
    [
        {"status": 201},
        {"headers": [["etag", "a"]]},
        {"headers": [["Content-Length", "20"], ["etag", "a"]]},
        {"headers": [["content-length", "20"], ["etag", "b"]]},
        {"body": '{"height": 2, "time": 12}'},
        {"body": '{"height": true, "time": 12}'},
        {"body": '{"height": 1,"time": 12}'},
        {"body": '{"time": 12, "height": 1}'},
        {"body": '{"height": 1, "time": 12, "more": null}'},
        {"body": '{"height": 1, "time": "12"}'},
        {"body": "no JSON"},
    ],
)
def test_a_change_is_seen(parts: dict[str, object]) -> None:
    leave_out = varying(ANSWER, changed(body='{"height": 1, "time": 13}'))
    assert difference(ANSWER, changed(**parts), leave_out)


def test_the_order_of_headers_may_differ() -> None:
    assert difference(ANSWER, changed(headers=[*reversed(HEADERS)]), []) == []


def test_what_differs_by_itself_may_differ() -> None:
    again = changed(body='{"height": 1, "time": 13}')
    assert difference(ANSWER, again, []) == ["body.time: 12 -> 13"]
    longer = changed(
        body='{"height": 1, "time": 14}', headers=[["content-length", "21"], HEADERS[1]]
    )
    assert difference(ANSWER, longer, varying(ANSWER, again)) == []
