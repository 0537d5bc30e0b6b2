"""The OpenAPI document of ``/v0``: valid, complete, and true of what is answered."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from soliton.data_service.app import DataService, DataServiceSettings
from soliton.data_service.kinds import KINDS
from soliton.data_service.openapi import document
from soliton.data_service.pool import Pool
from tests.data_service.documented import problems

DOCUMENT = document()


def test_it_is_valid() -> None:
    whole: Any = DOCUMENT
    validate(whole)


def test_it_has_all_routes() -> None:
    service = DataService(Pool("", 1), DataServiceSettings())
    kinds = ["all", *(kind.path for kind in KINDS)]
    expected = set()
    for path, route in service._routes():
        for kind in kinds if "{kind}" in path else [""]:
            methods = {"get", "post"} if route.posts else {"get"}
            expected |= {(path.replace("{kind}", kind), method) for method in methods}
    expected -= {("/", "get"), ("/openapi.json", "get")}
    found = {(path, method) for path, item in DOCUMENT["paths"].items() for method in item}
    assert found == expected


async def test_it_is_served(client: httpx.AsyncClient) -> None:
    answer = await client.get("/openapi.json")
    assert answer.status_code == 200
    assert answer.json() == DOCUMENT


async def test_a_shape_that_is_not_told_is_found(client: httpx.AsyncClient) -> None:
    """The check that all other tests of the service make of each answer can fail."""
    answer = await client.get("/assets/WAVES")
    assert not problems("GET", "/assets/WAVES", 200, answer.json())
    body: Any = answer.json()
    body["data"]["more"] = 1
    assert problems("GET", "/assets/WAVES", 200, body)
    del body["data"]["more"], body["data"]["name"]
    assert problems("GET", "/assets/WAVES", 200, body)
    assert problems("GET", "/assets/WAVES", 418, {})


@pytest.mark.parametrize("name", sorted(DOCUMENT["components"]["schemas"]))
def test_schemas_are_schemas(name: str) -> None:
    OAS31Validator.check_schema(DOCUMENT["components"]["schemas"][name])
