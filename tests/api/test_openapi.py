"""The OpenAPI document and the interactive page: complete, self-contained, true to the routes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from soliton.api import errors
from soliton.api.app import all_routes, build_app
from soliton.api.application import Application
from soliton.api.openapi import documentation_routes, openapi_document
from soliton.api.routes import Route
from soliton.errors import InvariantBroken
from soliton.web.swagger import ASSETS, assets_folder
from tests.api.client import call, make_context

CONTEXT = make_context()
APP = build_app(CONTEXT)
ROUTES = all_routes()
DOCUMENT = openapi_document(CONTEXT, APP.routes)


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, member in value.items():
            if name == "$ref":
                yield str(member)
            else:
                yield from references(member)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


@pytest.mark.parametrize("route", ROUTES, ids=[f"{r.methods[0]} {r.path}" for r in ROUTES])
def test_every_route_says_what_it_does(route: Route) -> None:
    assert route.summary and route.tag
    assert route.example not in (None, {}, [])
    for parameter in route.parameters:
        assert parameter.description and parameter.example is not None
        shown = parameter.example if isinstance(parameter.example, list) else [parameter.example]
        assert all(parameter.kind.convert(str(item)) is not None for item in shown)
    if isinstance(route.response, type):
        assert msgspec.convert(route.example, route.response) is not None
    if route.body is not None:
        assert route.body.description and route.body.example is not None
    if any(parameter.kind.name == "natural" for parameter in route.parameters):
        has_refusal = bool(route.errors or route.statuses)
        assert has_refusal, "a number in a path has a limit, and the limit has an error"


def test_the_document_is_well_formed() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    assert DOCUMENT["info"] == {**DOCUMENT["info"], "title": "Test Node"}
    paths = DOCUMENT["paths"]
    assert isinstance(paths, dict)
    identifiers = [op["operationId"] for item in paths.values() for op in item.values()]
    assert (
        len(identifiers)
        == len(set(identifiers))
        == sum(len(route.methods) for route in APP.routes if route.documented)
    )
    for path, item in paths.items():
        for operation in item.values():
            named = [p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"]
            assert sorted(named) == sorted(re.findall(r"{(\w+)}", path))
    assert len({re.sub(r"{\w+}", "{}", path) for path in paths}) == len(paths)
    for reference in references(DOCUMENT):
        target: object = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            assert isinstance(target, dict)
            target = target[step]


def test_every_operation_is_described() -> None:
    """Its summary, who may ask, and when it is refused; the same whichever process answers."""
    whole: Any = openapi_document(CONTEXT, ROUTES)
    operations = {
        (method, path): operation
        for path, methods in whole["paths"].items()
        for method, operation in methods.items()
    }
    for operation in operations.values():
        assert operation["description"].startswith(operation["summary"])
    signing = operations["post", "/transactions/sign"]["description"]
    assert "the scope `sign`" in signing and "- 115: " in signing
    assert "65 seconds" in operations["get", "/blocks/wait/{height}"]["description"]


def test_no_route_is_missing() -> None:
    """What is left out is said again with a slash at the end, or is always an error."""
    shown = {
        (method.upper(), path)
        for family in ("waves", "tn", "zbs")
        for path, item in family_document(family).items()
        for method in item
    }
    for route in ROUTES:
        for method in route.methods:
            if route.documented:
                assert (method, route.path) in shown
            else:
                again = (method, route.path.removesuffix("/")) in shown
                assert again or route.errors or "{rest}" in route.path, route.path


def family_document(family: str) -> dict[str, dict[str, object]]:
    """The paths that the document of a network of a family has."""
    own = [route for route in ROUTES if route.is_of(family)]
    paths = openapi_document(CONTEXT, own)["paths"]
    assert isinstance(paths, dict)
    return paths


def test_every_operation_tells_what_else_may_come() -> None:
    paths = openapi_document(CONTEXT, ROUTES)["paths"]
    assert isinstance(paths, dict)
    for item in paths.values():
        for operation in item.values():
            assert {"200", "404", "429", "500", "503"} <= set(operation["responses"])
    of_chain = paths["/blocks/height"]["get"]["responses"]
    assert of_chain["304"] == {"$ref": "#/components/responses/304"}
    assert "304" not in paths["/node/status"]["get"]["responses"]
    assert "ETag" in paths["/blocks/height"]["get"]["responses"]["200"]["headers"]
    pages = paths["/transactions/address/{address}/limit/{limit}"]["get"]["responses"]["200"]
    assert "Link" in pages["headers"]
    body = paths["/transactions/broadcast"]["post"]
    assert "413" in body["responses"]
    form = paths["/transactions/status"]["post"]["requestBody"]["content"]
    assert set(form) == {"application/json", "application/x-www-form-urlencoded"}


async def test_it_is_served_in_all_its_forms() -> None:
    for path in ("openapi.json", "swagger.json"):
        answer = await call(APP, f"GET /api-docs/{path}")
        assert (answer.content_type, answer.json()) == ("application/json", DOCUMENT)
    answer = await call(APP, "GET /api-docs/openapi.yaml")
    assert answer.content_type == "application/yaml"
    assert '"/utils/hash/secure":' in answer.body.decode()


@pytest.mark.parametrize("form", ["openapi.json", "openapi.yaml"])
async def test_others_are_answered_while_it_is_made(form: str) -> None:
    """It is long: made in one go it would hold up all other clients of the node."""
    app = Application(CONTEXT, documentation_routes(CONTEXT, ROUTES), ())
    rounds = 0
    asking = asyncio.create_task(call(app, f"GET /api-docs/{form}"))
    while not asking.done():
        rounds += 1
        await asyncio.sleep(0)
    assert (await asking).status == 200
    assert rounds > 5
    # Once made it is kept.
    assert (await call(app, f"GET /api-docs/{form}")).body == (await asking).body


def test_documenting_an_operation_twice_is_a_bug() -> None:
    with pytest.raises(InvariantBroken, match="twice"):
        openapi_document(CONTEXT, (ROUTES[0], ROUTES[0]))


@pytest.mark.parametrize("path", ["/", "/swagger", "/api-docs", "/api-docs/"])
async def test_redirects_to_the_page(path: str) -> None:
    answer = await call(APP, f"GET {path}")
    assert (answer.status, answer.headers[b"location"]) == (308, b"/api-docs/index.html")


async def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = (await call(APP, "GET /api-docs/index.html", headers={"Accept": "text/html"})).body
    assert b"<title>Test Node</title>" in page
    links = re.findall(rb'(?:src|href)="([^"]+)"', page)
    assert links
    for link in links:
        assert b"//" not in link
        answer = await call(APP, f"GET /api-docs/{link.decode()}", headers={"Accept": "*/*"})
        assert answer.status == 200 and answer.body
    assert (await call(APP, "GET /api-docs/start.js")).body.startswith(b"window.ui")


@pytest.mark.parametrize("name", ["..%2F..%2Fpyproject.toml", "%2Fetc%2Fpasswd", "x.js", "LICENSE"])
async def test_no_other_file_is_served(name: str) -> None:
    assert (await call(APP, f"GET /api-docs/{name}")).status == 404


def test_the_installed_assets_are_version_5() -> None:
    for name in ASSETS:
        assert (assets_folder() / name).is_file()
    bundle = (assets_folder() / "swagger-ui-bundle.js").read_text(encoding="utf-8")
    version = re.search(r'PACKAGE_VERSION:"(\d+)\.', bundle)
    assert version is not None and int(version[1]) >= 5


async def test_the_title_cannot_inject() -> None:
    app = build_app(make_context(title="<script>alert(1)</script>"))
    assert b"<script>alert" not in (await call(app, "GET /api-docs/index.html")).body


def test_what_a_path_that_does_not_fit_is_answered_is_documented() -> None:
    """Below a guarded prefix it wants the key; our own routes name the value."""
    by_path = {route.path: route for route in all_routes()}
    guarded = by_path["/debug/stateHash/{height}"]
    assert errors.API_KEY_NOT_VALID in guarded.all_errors() and not guarded.key
    assert errors.CUSTOM_VALIDATION_ERROR in by_path["/blocks/wait/{height}"].all_errors()
