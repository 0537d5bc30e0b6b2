"""Building blocks for JSON schemas.

What lives here: named schemas, and constructors of common ones. What does not: the schemas of
values (``json_kinds`` and the declarations of kinds), and the OpenAPI document
(``soliton.api.schemas``).

Source: JSON Schema, draft 2020-12, as OpenAPI 3.1 uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

Schema = Mapping[str, Any]
"""A JSON schema, which may contain ``Named`` schemas."""


class Named(msgspec.Struct, frozen=True):
    """A schema that others refer to by its name."""

    name: str
    schema: Schema


TEXT_SCHEMA: Final[Schema] = {"type": "string"}
BOOLEAN_SCHEMA: Final[Schema] = {"type": "boolean"}
INTEGER_SCHEMA: Final[Schema] = {"type": "integer"}
LONG_SCHEMA: Final[Schema] = {"type": "integer", "format": "int64"}
BYTE_SCHEMA: Final[Schema] = {"type": "integer", "minimum": -128, "maximum": 127}


def described(schema: Schema, description: str) -> Schema:
    """Return the schema with a description."""
    return {**schema, "description": description}


def or_null(schema: Schema | Named) -> Schema:
    """Return the schema that also accepts null."""
    kind = None if isinstance(schema, Named) else schema.get("type")
    if isinstance(schema, Named) or kind is None or "enum" in schema or "const" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = [kind] if isinstance(kind, str) else list(kind)
    return {**schema, "type": kinds if "null" in kinds else [*kinds, "null"]}


def list_of(items: Schema | Named) -> Schema:
    """Return the schema of an array."""
    return {"type": "array", "items": items}


def object_of(
    properties: Mapping[str, Schema | Named], optional: Mapping[str, Schema | Named] | None = None
) -> Schema:
    """Return the schema of an object with required and optional members."""
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
    }


_TYPES: Final[Mapping[str, Schema]] = {
    **{name: {"type": name} for name in ("string", "boolean", "integer", "object")},
    "long": LONG_SCHEMA,
    "any": {},
}


def shape(text: str, **types: Schema | Named) -> Schema:
    """Return the schema of an object. The text lists its members: ``height: integer, ids?:
    string[]``, with ``?`` for optional members and ``string|null`` for nullable ones. ``types`` are
    additional types, and those of members without a type in the text.
    """
    properties: dict[str, Schema | Named] = {}
    required = []
    for member in text.split(", "):
        name, _, kind = member.partition(": ")
        own = name.removesuffix("?")
        properties[own] = _resolve(kind or own, types)
        if own == name:
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | {"required": required} if required else schema


def _resolve(kind: str, types: Mapping[str, Schema | Named]) -> Schema | Named:
    if kind.endswith("|null"):
        return or_null(_resolve(kind.removesuffix("|null"), types))
    if kind.endswith("[]"):
        return list_of(_resolve(kind.removesuffix("[]"), types))
    return types[kind] if kind in types else _TYPES[kind]
