"""The OpenAPI document, made from the declarations of the routes.

What lives here: paths, parameters, examples, errors, the ways to authenticate. What does not: the
page that shows it (``pages``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from soliton import __version__
from soliton.matcher.core import MatcherCore
from soliton.matcher.rest.routes import Auth, Route
from soliton.matcher.rest.samples import ADDRESS, ASSET, ORDER_ID, PUBLIC_KEY
from soliton.matching.errors import KINDS

_SEGMENTS: Final[dict[str, tuple[str, str]]] = {
    "amount": ("The amount asset: WAVES, or an id in base58.", ASSET),
    "price": ("The price asset: WAVES, or an id in base58.", "WAVES"),
    "asset": ("WAVES, or an id in base58.", ASSET),
    "address": ("An account's address.", ADDRESS),
    "publicKey": ("An account's public key in base58.", PUBLIC_KEY),
    "orderId": ("An order's id in base58.", ORDER_ID),
}
_SECURITY: Final[dict[Auth, list[dict[str, list[str]]]]] = {
    Auth.PUBLIC: [],
    Auth.SIGNED_BODY: [],
    Auth.KEY: [{"key": []}],
    Auth.SIGNATURE: [{"timestamp": [], "signature": []}],
    Auth.SIGNATURE_OR_KEY: [{"timestamp": [], "signature": []}, {"key": []}],
}


def document(core: MatcherCore, routes: Iterable[Route]) -> dict[str, Any]:
    """The document, ready to be printed as JSON."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.documented:
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    hours = core.settings.rest_api.signature_window_ms / 3_600_000
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Matcher on {core.settings.network.name}",
            "version": __version__,
            "description": "Places and cancels orders, and tells what is in the order books. "
            "Amounts are in the smallest unit of the amount asset, prices in "
            "10^(8 + price decimals - amount decimals).",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "timestamp": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Timestamp",
                    "description": "Milliseconds since 1970, as they were signed; not more than "
                    f"{hours:g} h off.",
                },
                "signature": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Signature",
                    "description": "base58 of the signature of public key (32 bytes) followed by "
                    "the timestamp (8 bytes, big endian).",
                },
            },
            "schemas": {"Error": _error_schema()},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {
            "name": part[1:-1],
            "in": "path",
            "required": True,
            "description": _SEGMENTS[part[1:-1]][0],
            "schema": {"type": "string"},
            "example": _SEGMENTS[part[1:-1]][1],
        }
        for part in route.path.split("/")
        if part.startswith("{")
    ]
    parameters += [
        {
            "name": query.name,
            "in": "query",
            "description": query.description,
            "schema": query.schema,
        }
        for query in route.queries
    ]
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        "parameters": parameters,
        "security": _SECURITY[route.auth],
        "responses": {
            str(route.status): {
                "description": "Done.",
                "content": {
                    route.content_type: {
                        "schema": schema_of(route.example),
                        "example": route.example,
                    }
                },
            },
            "default": {
                "description": "Refused, with a code that says why.",
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/Error"}},
                    # What no route takes, and bodies that are too long.
                    "text/plain": {"schema": {"type": "string"}},
                },
            },
        },
    }
    if route.description:
        operation["description"] = route.description
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {
                "application/json": {"schema": schema_of(route.body), "example": route.body}
            },
        }
    return operation


def schema_of(example: object) -> dict[str, Any]:
    """The types that an example shows."""
    match example:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer", "format": "int64"}
        case float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
        case None:
            return {}
        case list() | tuple():
            return {"type": "array", "items": schema_of(example[0]) if example else {}}
        case dict():
            properties = {name: schema_of(member) for name, member in example.items()}
            return {"type": "object", "properties": properties}
        case _:
            raise TypeError(f"no JSON: {example!r}")


def _error_schema() -> dict[str, Any]:
    rows = "\n".join(
        f"| {kind.code} | {kind.status} | {kind.name} | {kind.templates[0]} |"
        for kind in KINDS.values()
    )
    return {
        "type": "object",
        "description": f"| error | HTTP | name | template |\n|---|---|---|---|\n{rows}",
        "required": ["error", "message", "success", "status"],
        "properties": {
            "error": {"type": "integer", "description": "The code."},
            "message": {"type": "string"},
            "template": {"type": "string"},
            "params": {"type": "object"},
            "success": {"const": False},
            "status": {"type": "string"},
        },
    }
