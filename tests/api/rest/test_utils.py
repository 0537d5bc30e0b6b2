"""Routes under /utils."""

from __future__ import annotations

import pytest

from soliton.api.app import build_app
from soliton.crypto import base58
from tests.api.client import call, make_context

APP = build_app(make_context())
RANDOM = bytes(range(256))

CASES: list[tuple[str, bytes, int, object]] = [
    ("GET /utils/time", b"", 200, {"system": 1_700_000_000_000, "NTP": 1_700_000_000_001}),
    ("GET /utils/seed", b"", 200, {"seed": base58.encode(RANDOM[:32])}),
    ("GET /utils/seed/0", b"", 200, {"seed": ""}),
    ("GET /utils/seed/16", b"", 200, {"seed": base58.encode(RANDOM[:16])}),
    ("GET /utils/seed/1025", b"", 400, {"error": 10, "message": "Too big sequence requested"}),
    ("POST /utils/hash/secure", b"ridethewaves!", 200, {
        "message": "ridethewaves!", "hash": "H6nsiifwYKYEx6YzYD7woP1XCn72RVvx6tC1zjjLXqsu"}),
    ("POST /utils/hash/fast", b"ridethewaves!", 200, {
        "message": "ridethewaves!", "hash": "DJ35ymschUFDmqCnDJewjcnVExVkWgX7mJDXhFy9X8oQ"}),
    ("POST /utils/hash/fast", b"", 200, {
        "message": "", "hash": "xyw95Bsby3s4mt6f4FmFDnFVpQBAeJxBFNGzu2cX4dM"}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "body", "status", "expected"), CASES)
async def test_answers(line: str, body: bytes, status: int, expected: object) -> None:
    answer = await call(APP, line, body)
    assert (answer.status, answer.json()) == (status, expected)


@pytest.mark.parametrize("length", ["-1", "x", "99999999999", ""])
async def test_a_length_that_is_none_is_the_404(length: str) -> None:
    assert (await call(APP, f"GET /utils/seed/{length}")).status == 404


async def test_the_longest_seed() -> None:
    answer = await call(APP, "GET /utils/seed/1024")
    body = answer.json()
    assert isinstance(body, dict)
    assert len(base58.decode(body["seed"], 2000)) == 1024
