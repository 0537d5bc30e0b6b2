"""What routes answer against what they declare: every error by name, every answer by its schema.

What lives here: watching all requests of the tests of the API, and checking values against schemas
(as much of JSON Schema as the declarations use). What does not: the tests that make the requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Generator, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from soliton.api import application
from soliton.api.app import all_routes
from soliton.api.errors import ApiError, ErrorKind, RejectionError
from soliton.api.openapi import COMMON_ERRORS, ERROR_SCHEMA, Schemas
from soliton.api.routes import Route
from soliton.api.schemas import shapes
from soliton.web.answers import APPLICATION_JSON, Deferred, Stream, Whole

ANSWERS_OF_A_ROUTE = 40
"""So many are checked; the tests that compare recorded answers ask thousands of times."""

OURS = {(route.path, route.summary) for route in all_routes()}

SHAPES: dict[str, Mapping[str, Any]] = {"Error": ERROR_SCHEMA, **dict(shapes())}
"""What schemas refer to by name."""

TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": int,
}


def faults(
    value: object, schema: Mapping[str, Any], known: Mapping[str, Any], at: str = "$"
) -> Iterator[str]:
    """Where a value does not fit a schema; ``known`` are the schemas that others refer to."""
    if "$ref" in schema:
        yield from faults(value, known[schema["$ref"].rpartition("/")[2]], known, at)
        return
    for each in schema.get("allOf", ()):
        yield from faults(value, each, known, at)
    yield from _alternative_faults(value, schema, known, at)
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r:.60} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r:.60} is none of {schema['enum']}"
    if not _has_type(value, schema.get("type")):
        yield f"{at}: {value!r:.60} is no {schema['type']}"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{at}: {value} is out of range"
    elif isinstance(value, dict):
        yield from _object_faults(value, schema, known, at)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from faults(item, schema.get("items", {}), known, f"{at}[{number}]")


def _candidates(
    value: object, options: list[Mapping[str, Any]], known: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """The alternatives that take the value's ``type``, where all of them have a constant one."""
    if not isinstance(value, dict):
        return options
    types = []
    for option in options:
        target = known[option["$ref"].rpartition("/")[2]] if "$ref" in option else option
        types.append(target.get("properties", {}).get("type", {}).get("const"))
    if None in types:
        return options
    return [
        option for option, kind in zip(options, types, strict=True) if kind == value.get("type")
    ]


def _alternative_faults(
    value: object, schema: Mapping[str, Any], known: Mapping[str, Any], at: str
) -> Iterator[str]:
    options = schema.get("anyOf") or schema.get("oneOf")
    if not options:
        return
    found = [list(faults(value, each, known, at)) for each in _candidates(value, options, known)]
    fitting = found.count([])
    if not found:
        yield f"{at}: {value!r:.60} is of no known type"
    elif len(found) == 1:
        yield from found[0]
    elif not fitting:
        yield f"{at}: {value!r:.60} fits none of the alternatives: {min(found, key=len)[:2]}"
    elif fitting > 1 and "oneOf" in schema:
        yield f"{at}: {value!r:.60} fits {fitting} alternatives, not one"


def _has_type(value: object, names: str | list[str] | None) -> bool:
    if names is None:
        return True
    for name in [names] if isinstance(names, str) else names:
        if isinstance(value, TYPES[name]) and (name == "boolean") == isinstance(value, bool):
            return True
    return False


def _object_faults(
    value: dict[str, object], schema: Mapping[str, Any], known: Mapping[str, Any], at: str
) -> Iterator[str]:
    members = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{at}: {name} is missing"
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in members:
            yield from faults(item, members[name], known, f"{at}.{name}")
        elif others is False:
            yield f"{at}: {name} is not declared"
        elif isinstance(others, Mapping):
            yield from faults(item, others, known, f"{at}.{name}")


class Watch:
    """Finds answers that no route has declared; made part of the application by the tests."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}
        self._asked: Counter[str] = Counter()
        self._schemas: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}

    def error(self, route: Route, kind: ErrorKind) -> None:
        if _is_watched(route) and kind not in (*route.all_errors(), *COMMON_ERRORS):
            self.found[f"{route.methods[0]} {route.path} raises {kind.code}-{kind.name}"] = None

    def answer(self, route: Route, result: object) -> None:
        """Check what a handler gave back, unless it is a stream."""
        if not _is_watched(route):
            return
        status = result.status if isinstance(result, Whole) else 200
        if status != 200:
            told = {status for status, _ in route.statuses}
            if status not in told | {kind.status for kind in route.all_errors()}:
                self.found[f"{route.path} answers {status}"] = None
            return
        if isinstance(result, Whole) and result.content_type == APPLICATION_JSON:
            result = msgspec.json.decode(result.body)
        name = f"{route.methods[0]} {route.path}"
        is_value = isinstance(result, dict | list | str | int | msgspec.Struct)
        is_value = is_value and not isinstance(result, Whole | Stream | Deferred)
        if not is_value or self._asked[name] >= ANSWERS_OF_A_ROUTE:
            return
        self._asked[name] += 1
        value = msgspec.json.decode(msgspec.json.encode(result))
        schema, known = self._schema(name, route)
        for fault in faults(value, schema, known):
            self.found[f"{name}: {fault}"] = None

    def _schema(self, name: str, route: Route) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        if name not in self._schemas:
            schemas = Schemas()
            schema = schemas.of(route.response)
            self._schemas[name] = schema, SHAPES | dict(schemas.named())
        return self._schemas[name]


def _is_watched(route: Route) -> bool:
    """Routes that tests make up, and those that nobody is told of, declare nothing."""
    return route.documented and (route.path, route.summary) in OURS


class Followed(Coroutine[object, object, object]):
    """A coroutine with another one in it that is closed with it, even before it begins."""

    def __init__(self, outer: Coroutine[object, object, object], inner: Any) -> None:
        self._outer = outer
        self._inner = inner

    def __await__(self) -> Generator[object, object, object]:
        return self._outer.__await__()

    def send(self, value: object) -> object:
        return self._outer.send(value)

    def throw(self, *raised: Any) -> object:
        return self._outer.throw(*raised)

    def close(self) -> None:
        self._outer.close()
        self._inner.close()


def watched(watch: Watch) -> Any:
    """``Application._try`` with somebody who watches."""
    usual = application.Application._try

    def attempt(self: application.Application, request: Any, match: Any, rest: Any) -> object:
        route = match[0].route
        try:
            result = usual(self, request, match, rest)
        except ApiError as error:
            watch.error(route, error.kind)
            raise
        if not isinstance(result, application._Later):
            if result is not application.NOT_MODIFIED and getattr(result, "status", 200) != 405:
                watch.answer(route, result)
            return result
        if not _is_watched(route):
            return result
        inner = result.coroutine
        return replace(result, coroutine=Followed(waiting(route, inner), inner))

    async def waiting(route: Route, coroutine: Coroutine[object, object, object]) -> object:
        try:
            result = await coroutine
        except (RejectionError, TimeoutError):
            raise
        except ApiError as error:
            watch.error(route, error.kind)
            raise
        watch.answer(route, result)
        return result

    return attempt
