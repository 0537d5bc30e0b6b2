"""The OpenAPI 3.1 document, made from the declarations of the routes.

What lives here: the document, and the routes that serve it. What does not: the schemas of
transactions and blocks (``schemas``), encoding in steps (``documents``), the interactive page
(``swagger``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from soliton.api import errors
from soliton.api.context import ApiContext
from soliton.api.documents import MadeInSlices, Part, json_pieces, whole, yaml_pieces
from soliton.api.errors import ErrorKind
from soliton.api.http import Request
from soliton.api.routes import GET, Body, BodyKind, Handler, Reads, Route
from soliton.api.schemas import shapes
from soliton.api.swagger import swagger_routes
from soliton.errors import InvariantBroken
from soliton.web import openapi
from soliton.web.answers import APPLICATION_JSON, Whole
from soliton.web.parameters import Parameter

_TAG = "api-docs"
_ERROR: Final = "Error"

ERROR_SCHEMA: dict[str, object] = {
    "type": "object",
    "description": "Some errors have further members, shown in the examples.",
    "properties": {
        "error": {"type": "integer", "description": "The code; some are shared by two errors"},
        "message": {"type": "string"},
        "hint": {"type": "string", "description": "What to do about it, for a person"},
    },
    "required": ["error", "message"],
}

_DESCRIPTION = (
    "A request that no operation takes (unknown path, wrong method, malformed number, wrong "
    "content type, body over 1 MiB) is answered with status 404 and a sentence in plain text. "
    "`Accept: application/json;large-significand-format=string` turns 64-bit numbers into strings."
)


def openapi_document(context: ApiContext, routes: Iterable[Route]) -> dict[str, Any]:
    """The document as JSON values."""
    return whole(document_parts(context, routes))


def document_parts(context: ApiContext, routes: Iterable[Route]) -> Iterator[Part]:
    """The document in parts, each of which takes little time to make."""
    documented = [route for route in routes if route.documented]
    by_path: dict[str, list[Route]] = {}
    for route in documented:
        by_path.setdefault(route.path, []).append(route)
    yield ("openapi",), openapi.VERSION
    info = {"title": context.title, "version": context.version, "description": _DESCRIPTION}
    yield ("info",), info
    yield ("servers",), [{"url": "/"}]
    yield ("tags",), [{"name": tag} for tag in dict.fromkeys(route.tag for route in documented)]
    schemas = Schemas()
    for path, of_path in by_path.items():
        yield ("paths", path), _operations(of_path, schemas)
    place = ("components", "schemas")
    yield (*place, _ERROR), ERROR_SCHEMA
    for name, schema in schemas.named():
        yield (*place, name), schema
    yield ("components", "responses"), _common_responses()
    yield ("components", "securitySchemes"), {"ApiKey": openapi.api_key("X-API-Key")}


def _operations(routes: Iterable[Route], schemas: Schemas) -> dict[str, object]:
    operations: dict[str, object] = {}
    for route in routes:
        for method in route.methods:
            if method.lower() in operations:
                raise InvariantBroken(f"{method} {route.path} is documented twice")
            operations[method.lower()] = _operation(route, method, schemas)
    return operations


COMMON_ERRORS: Final = (
    errors.UNKNOWN,
    errors.TOO_MANY_REQUESTS,
    errors.TOO_MANY_OF_CLIENT,
    errors.SERVER_REQUEST_TIMEOUT,
    errors.TOO_MANY_LONG_ANSWERS,
    errors.NODE_NOT_REACHABLE,
)
"""Errors that any operation may answer with."""

_NOT_TAKEN: Final = (
    "No operation takes the request: a parameter is malformed, a header or the body is missing; "
    "the header `X-Hint` says which"
)
_SENTENCE: Final = {"schema": openapi.TEXT}


class Schemas:
    """JSON schemas of response and body types. Named ones become components."""

    def __init__(self) -> None:
        self._of: dict[type, Mapping[str, object]] = {}
        self._components: dict[str, Mapping[str, object]] = {}
        self._has_shapes = False

    def of(self, item: type | Mapping[str, object]) -> Mapping[str, object]:
        """The schema of a type; a mapping is a schema already."""
        if isinstance(item, Mapping):
            self._has_shapes |= any(name != _ERROR for name in _names_in(item))
            return item
        if item not in self._of:
            (found,), components = msgspec.json.schema_components(
                (item,), ref_template=openapi.REFERENCE
            )
            for name, schema in components.items():
                self._keep(name, schema)
            self._of[item] = found
        return self._of[item]

    def named(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        """The components: those of the types so far, and all shapes if any is referred to."""
        yield from self._components.items()
        if self._has_shapes:
            for name, shape in shapes():
                if name in self._components:
                    raise InvariantBroken(f"two schemas have the name {name}")
                yield name, shape

    def _keep(self, name: str, schema: Mapping[str, object]) -> None:
        if self._components.setdefault(name, schema) != schema:
            raise InvariantBroken(f"two schemas have the name {name}")


def _names_in(schema: object) -> Iterator[str]:
    """The names that a schema refers to."""
    if isinstance(schema, Mapping):
        if isinstance(target := schema.get("$ref"), str):
            yield target.rpartition("/")[2]
        for member in schema.values():
            yield from _names_in(member)
    elif isinstance(schema, list | tuple):
        for item in schema:
            yield from _names_in(item)


def _operation(route: Route, method: str, schemas: Schemas) -> dict[str, object]:
    return openapi.operation(
        _operation_id(method, route.path),
        route.summary,
        _responses(route, schemas),
        tag=route.tag,
        description=_describe(route),
        parameters=map(_parameter, route.parameters),
        body=None if route.body is None or method == "GET" else _request_body(route.body, schemas),
        security=[{"ApiKey": []}] if route.key else None,
    )


def _describe(route: Route) -> str:
    """The description of an operation: its summary, key, caching, timeout and errors."""
    paragraphs = [f"{route.summary}."]
    if route.key:
        paragraphs.append(f"Needs the API key, or a key with the scope `{route.scope}`.")
    if route.has_tag:
        paragraphs.append("The answer is the same until the next block: its `ETag` says so.")
    if route.seconds is not None:
        paragraphs.append(f"The answer may take up to {route.seconds:g} seconds.")
    kinds = [f"- {kind.code}: {kind.when}" for kind in route.all_errors()]
    if kinds:
        paragraphs.append("\n".join(("Errors:", "", *kinds)))
    return "\n\n".join(paragraphs)


def _operation_id(method: str, path: str) -> str:
    parts = path.replace("{", "").replace("}", "").replace("-", "/").replace(".", "/").split("/")
    return method.lower() + "".join(part[:1].upper() + part[1:] for part in parts)


def _parameter(item: Parameter) -> dict[str, object]:
    schema = item.kind.schema
    return openapi.parameter(
        item.name,
        item.place.value,
        item.description,
        {"type": "array", "items": schema} if item.repeated else schema,
        required=item.required,
        example=item.example,
    )


def _request_body(body: Body, schemas: Schemas) -> dict[str, object]:
    is_text = body.kind is BodyKind.TEXT
    media_type = "text/plain" if is_text else "application/json"
    media = openapi.content(schemas.of(body.schema), body.example, media_type)
    if body.kind is BodyKind.FORM_OR_JSON:
        media |= openapi.content(_FORM, media_type="application/x-www-form-urlencoded")
    return {"description": body.description, "required": not is_text, "content": media}


_FORM: Final = {
    "type": "object",
    "properties": {"id": {"type": "array", "items": {"type": "string"}}},
}


def _responses(route: Route, schemas: Schemas) -> dict[str, Any]:
    found = openapi.content(schemas.of(route.response), route.example, route.content_type)
    if route.text:
        found |= openapi.content(openapi.TEXT, route.text, "text/plain")
    responses: dict[str, Any] = {"200": {"description": "OK", "content": found}}
    for status, description in route.statuses:
        responses[str(status)] = {"description": description}
    responses |= _error_responses(route.all_errors())
    headers = _headers(route)
    if headers:
        responses["200"]["headers"] = headers
    common = ["404", "429", "500", "503"]
    if route.has_tag:
        common.append("304")
    if route.body is not None:
        common.append("413")
    for name in common:
        if name not in responses:
            responses[name] = {"$ref": f"#/components/responses/{name}"}
    if "content" in responses["404"]:
        responses["404"]["content"]["text/plain"] = _SENTENCE
    return responses


def _headers(route: Route) -> dict[str, object]:
    """The response headers ``ETag`` and ``Link``."""
    found = {}
    if route.has_tag:
        found["ETag"] = (
            "The last block: with it in `If-None-Match` the answer is 304 until the next"
        )
    if any(parameter.name == "after" for parameter in route.parameters):
        found["Link"] = 'Where the next page is, if there is one: `<...>; rel="next"`'
    return {
        name: {"description": description, "schema": {"type": "string"}}
        for name, description in found.items()
    }


def _common_responses() -> dict[str, object]:
    """The components for the responses that many operations share, by status."""
    return _error_responses(COMMON_ERRORS) | {
        "304": {"description": "The client has this answer: `If-None-Match` named its `ETag`"},
        "404": {"description": _NOT_TAKEN, "content": {"text/plain": _SENTENCE}},
        "413": {"description": "The body is too long", "content": {"text/plain": _SENTENCE}},
    }


def _error_responses(kinds: Iterable[ErrorKind]) -> dict[str, object]:
    """The responses for errors, by status."""
    examples: dict[int, dict[str, object]] = {}
    for kind in kinds:
        example = {"summary": kind.when, "value": kind.error(**kind.example).body()}
        examples.setdefault(kind.status, {})[f"{kind.code}-{kind.name}"] = example
    return {
        str(status): {
            "description": HTTPStatus(status).phrase,
            "content": {"application/json": {"schema": openapi.ref(_ERROR), "examples": found}},
        }
        for status, found in sorted(examples.items())
    }


def documentation_routes(context: ApiContext, routes: Sequence[Route]) -> tuple[Route, ...]:
    """The routes for the document and the page. The document is made at the first request."""

    def parts() -> Iterator[Part]:
        return document_parts(context, (*routes, *own))

    as_json = MadeInSlices(lambda: json_pieces(parts()))
    as_yaml = MadeInSlices(lambda: yaml_pieces(parts()))
    serve_json = _serving(as_json, APPLICATION_JSON)
    serve_yaml = _serving(as_yaml, b"application/yaml")
    own = (
        _document_route("/api-docs/openapi.json", serve_json, "The OpenAPI document as JSON"),
        _document_route("/api-docs/swagger.json", serve_json, "The same under an older name"),
        _document_route("/api-docs/openapi.yaml", serve_yaml, "The OpenAPI document as YAML"),
    )
    return (*own, *swagger_routes(context))


def _serving(document: MadeInSlices, content_type: bytes) -> Handler:
    async def make(request: Request) -> Whole:
        return Whole(await document.get(request.context.time_slices), content_type)

    def serve(request: Request) -> object:
        done = document.done
        return make(request) if done is None else Whole(done, content_type)

    return serve


def _document_route(path: str, handler: Handler, summary: str) -> Route:
    is_yaml = path.endswith(".yaml")
    return Route(
        methods=GET,
        path=path,
        handler=handler,
        tag=_TAG,
        summary=summary,
        response={"type": "object"},
        example='"openapi": "3.1.0"' if is_yaml else {"openapi": "3.1.0"},
        content_type="application/yaml" if is_yaml else "application/json",
        reads=Reads.CHAIN,
    )
