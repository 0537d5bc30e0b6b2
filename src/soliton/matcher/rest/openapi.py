"""The OpenAPI document, generated from the routes.

What lives here: paths, parameters, examples, errors, authentication. What does not: the page that
shows it (``pages``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from soliton import __version__
from soliton.matcher.rest.answers import status_of
from soliton.matcher.rest.routes import Auth, Route
from soliton.matcher.service import Matcher
from soliton.matching.errors import KINDS
from soliton.web import openapi
from soliton.web.parameters import Parameter, Place

_SECURITY: Final[dict[Auth, list[dict[str, list[str]]]]] = {
    Auth.PUBLIC: [],
    Auth.SIGNED_BODY: [],
    Auth.KEY: [{"key": []}],
    Auth.SIGNATURE: [{"timestamp": [], "signature": []}],
    Auth.SIGNATURE_OR_KEY: [{"timestamp": [], "signature": []}, {"key": []}],
}


def document(core: Matcher, routes: Iterable[Route]) -> dict[str, Any]:
    """The document, ready for JSON."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.documented:
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    hours = core.settings.rest_api.signature_window_ms / 3_600_000
    signed = f"Milliseconds since 1970, as they were signed; not more than {hours:g} h off."
    signature = (
        "base58 of the signature of public key (32 bytes) followed by the timestamp (8 bytes, big "
        "endian)."
    )
    components = {
        "securitySchemes": {
            "key": openapi.api_key("X-API-Key"),
            "timestamp": openapi.api_key("Timestamp", signed),
            "signature": openapi.api_key("Signature", signature),
        },
        "schemas": {"Error": _error_schema()},
    }
    title = f"Matcher on {core.settings.network.name}"
    return openapi.document(title, __version__, _DESCRIPTION, paths, components)


_DESCRIPTION: Final = (
    "Places and cancels orders, and tells what is in the order books. Amounts are in the smallest "
    "unit of the amount asset, prices in 10^(8 + price decimals - amount decimals)."
)
_MOVED: Final = 301
_BAD_REQUEST: Final = 400
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_ALWAYS: Final = {
    408: "The body did not arrive in time.",
    413: "The body is larger than this matcher accepts.",
    429: "The client exceeds its limits; see `Retry-After`.",
    500: "The request took too long, or the matcher has no key of an operator.",
    503: "The matcher starts, stops or fails, or its node does not answer.",
}
"""Errors of every operation."""


def _refusals(route: Route) -> dict[int, str]:
    """The errors of an operation by status."""
    found = {}
    has_values = bool(route.parameters) or route.body is not None
    if has_values or route.own or route.auth is not Auth.PUBLIC:
        found[_BAD_REQUEST] = "Refused; `error` and `message` have the reason."
    names = {each.name for each in route.parameters}
    if route.auth is not Auth.PUBLIC or "publicKey" in names:
        found[_FORBIDDEN] = "The key, or the public key of the account, is wrong or missing."
    if any(each.place is Place.PATH for each in route.parameters) or route.body is not None:
        found[_NOT_FOUND] = "There is no such asset, order or rate, or no route accepts it."
    return found | _ALWAYS


def _responses(route: Route) -> dict[str, Any]:
    done = openapi.content(schema_of(route.example), route.example, route.content_type)
    found: dict[int, Any] = {route.status: {"description": "Done.", "content": done}}
    if route.redirects:
        text = "The pair is traded in reverse order: `Location` has its path."
        content = openapi.content(openapi.TEXT, media_type="text/plain")
        found[_MOVED] = {"description": text, "content": content}
    for status, text in route.statuses.items():
        is_done = status < _BAD_REQUEST
        found[status] = {"description": text, "content": done if is_done else _ERROR}
    found |= {
        status: {"description": text, "content": _ERROR}
        for status, text in _refusals(route).items()
    }
    return {str(status): found[status] for status in sorted(found)}


# Requests that no route accepts, and bodies that are too long, get plain text.
_ERROR: Final = openapi.content(openapi.ref("Error")) | openapi.content(
    openapi.TEXT, media_type="text/plain"
)


def _operation(route: Route) -> dict[str, Any]:
    body = route.body
    return openapi.operation(
        route.name,
        route.summary,
        _responses(route),
        tag=route.tag,
        description=route.description,
        parameters=map(_parameter, route.parameters),
        body=None
        if body is None
        else {"required": True, "content": openapi.content(schema_of(body), body)},
        security=_SECURITY[route.auth],
    )


def _parameter(item: Parameter) -> dict[str, Any]:
    return openapi.parameter(
        item.name,
        item.place.value,
        item.description,
        item.kind.schema,
        example=openapi.NO_EXAMPLE if item.example is None else item.example,
    )


def schema_of(example: object) -> dict[str, Any]:
    """The schema that an example implies."""
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
        f"| {kind.code} | {status_of(kind)} | {kind.name} | {kind.templates[0]} |"
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
