"""OpenAPI 3.1: building the documents of all services.

What lives here: operations, parameters, bodies and answers. What does not: the descriptions of a
service, which are next to its routes.

Source: https://spec.openapis.org/oas/v3.1.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

VERSION: Final = "3.1.0"
REFERENCE: Final = "#/components/schemas/{name}"
TEXT: Final[Mapping[str, Any]] = {"type": "string"}

Object = dict[str, Any]
NO_EXAMPLE: Final = object()


def document(
    title: str,
    version: str,
    description: str,
    paths: Mapping[str, object],
    components: Mapping[str, object],
) -> Object:
    """Return a document."""
    info = {"title": title, "version": version, "description": description}
    return {"openapi": VERSION, "info": info, "paths": paths, "components": components}


def ref(name: str) -> Object:
    """Return a reference to a schema of the components."""
    return {"$ref": REFERENCE.format(name=name)}


def operation(
    name: str,
    summary: str,
    responses: Mapping[str, object],
    *,
    tag: str = "",
    description: str = "",
    parameters: Iterable[Object] = (),
    body: Object | None = None,
    security: object = None,
) -> Object:
    """Return an operation, without members that are not given."""
    found: Object = {
        "operationId": name,
        "tags": [tag] if tag else None,
        "summary": summary,
        "description": description or None,
        "responses": responses,
        "parameters": list(parameters) or None,
        "requestBody": body,
        "security": security,
    }
    return {name: value for name, value in found.items() if value is not None}


def parameter(
    name: str,
    place: str,
    description: str,
    schema: Mapping[str, Any] = TEXT,
    *,
    required: bool = False,
    example: object = NO_EXAMPLE,
) -> Object:
    """Return a parameter; one of the path is always required."""
    found: Object = {
        "name": name,
        "in": place,
        "description": description,
        "required": required or place == "path",
        "schema": schema,
    }
    return found if example is NO_EXAMPLE else found | {"example": example}


def content(
    schema: Mapping[str, Any], example: object = NO_EXAMPLE, media_type: str = "application/json"
) -> Object:
    """Return the content of a body or an answer."""
    found: Object = {"schema": schema}
    return {media_type: found if example is NO_EXAMPLE else found | {"example": example}}


def api_key(name: str, description: str = "") -> Object:
    """Return the security scheme of an API key in a header."""
    found = {"type": "apiKey", "in": "header", "name": name}
    return found | {"description": description} if description else found
