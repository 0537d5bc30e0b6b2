"""Records that are damaged: whatever is asked, the answer names the damage (error 5037) or is like
one of a sound store, and is never an unknown error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from soliton.storage import layout
from soliton.storage.database import Database
from tests.api.client import KEY, call
from tests.api.test_route_examples import ASKED, Documented

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing is left": lambda _: b"",
    "half is left": lambda value: value[: len(value) // 2],
    "all bits are set": lambda value: b"\xff" * len(value),
    "all bits are clear": lambda value: bytes(len(value)),
    "one bit is another": lambda value: value[:1] + bytes(b ^ 8 for b in value[1:2]) + value[2:],
}
TRIES = ("/debug/validate", "/transactions/simulate", "/utils/script/evaluate/{address}")
"""Routes that apply a transaction, or run a script, in a block that might be next."""
ROUTES = [
    route
    for route in ASKED
    if route.is_of("waves") and (route.methods == ("GET",) or route.path in TRIES)
]


class Damaged:
    """Damages what the store reads of one kind of record."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kind = b""
        self.damage: Callable[[bytes], bytes] = bytes
        monkeypatch.setattr(Database, "get", self._one(Database.get))
        for name in ("scan", "scan_back"):
            monkeypatch.setattr(Database, name, self._several(getattr(Database, name)))

    def _value(self, key: bytes, value: Any) -> Any:
        return self.damage(bytes(value)) if value is not None and key[:1] == self.kind else value

    def _one(self, read: Any) -> Any:
        return lambda database, key: self._value(key, read(database, key))

    def _several(self, read: Any) -> Any:
        def damaged(database: Database, *place: bytes) -> Iterator[tuple[bytes, Any]]:
            return ((key, self._value(key, value)) for key, value in read(database, *place))

        return damaged


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Documented]:
    made = Documented(tmp_path_factory.mktemp("damaged"), "waves")
    yield made
    made.chain.node.close()


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
async def test_damage_is_named(
    documented: Documented, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    chain = documented.chain
    damaged = Damaged(monkeypatch)
    asked = [
        (
            f"{route.methods[0]} {documented.target(route)}",
            b"" if route.body is None else documented.body(route.body, {}),
        )
        for route in ROUTES
    ]
    headers = {"x-api-key": KEY, "content-type": "application/json"}
    damaged.damage = DAMAGES[damage]
    named = 0
    for kind in layout.KINDS:
        for line, body in asked:
            damaged.kind = b""
            chain.node.chain._forget()
            damaged.kind = kind
            answer = await call(chain.app, line, body, headers)
            assert answer.status != 500, (kind, line, answer.body)
            named += answer.status == 503 and b'"error":5037' in answer.body
    damaged.kind = b""
    chain.node.chain._forget()
    assert named
