"""What named keys are good for."""

from __future__ import annotations

import pytest

from soliton.api.app import all_routes
from soliton.api.application import Application
from soliton.node.rest_settings import SCOPES
from tests.api.client import KEY, call, make_context
from tests.api.test_application import APP

NEEDED = """
POST /addresses                       accounts
DELETE /addresses/{address}           accounts
GET /addresses/seed/{address}         seeds
GET /wallet/seed                      seeds
POST /addresses/sign/{address}        sign
POST /addresses/data                  sign
POST /transactions/sign               sign
POST /assets/transfer                 sign
POST /alias/create                    sign
POST /leasing/lease                   sign
POST /zbs/payment                     sign
GET /debug/state                      debug
GET /debug/configInfo                 debug
POST /debug/rollback                  operate
DELETE /debug/rollback-to/{id}        operate
POST /debug/print                     operate
POST /peers/connect                   operate
POST /node/stop                       operate
"""


@pytest.mark.parametrize(
    ("method", "path", "scope"), [line.split() for line in NEEDED.strip().splitlines()]
)
def test_needed_scope(method: str, path: str, scope: str) -> None:
    declared = {(each.methods[0], each.path): each.scope for each in all_routes()}
    assert declared[method, path] == scope


def test_every_scope_is_a_setting_and_used() -> None:
    used = {route.scope for route in all_routes() if route.key}
    assert used == set(SCOPES)


@pytest.mark.parametrize(
    ("key", "line", "status"),
    [
        ("signing", "POST /secret", 403),
        ("operating", "POST /secret", 404),
        ("operating", "GET /secret", 405),
        (KEY, "GET /secret", 405),
        ("signing", "GET /debug/unknown", 403),
        ("debugging", "GET /debug/unknown", 404),
        ("operating", "GET /debug/unknown", 403),
        ("", "GET /debug/unknown", 403),
    ],
)
async def test_a_key_opens_what_its_scopes_say(key: str, line: str, status: int) -> None:
    scopes = {"signing": {"sign"}, "operating": {"operate"}, "debugging": {"debug", "sign"}}
    context = make_context(scopes_of_key=lambda text: frozenset(scopes.get(text, ())))
    app = Application(context, APP.routes, ("/debug",))
    answer = await call(app, line, headers={"X-API-Key": key})
    assert answer.status == status
    if status == 403:
        hint = answer.json()["hint"]  # type: ignore[index]
        assert ("scope" in hint) is bool(key)
