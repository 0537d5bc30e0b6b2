"""JSON schemas of the values that transactions are made of: their small vocabulary.

What lives here: a name for a schema, the shapes that many share. What does not: which value has
which schema (``json_kinds`` and whoever declares a kind), and the document that they end in
(``soliton.api.schemas``).

Source: JSON Schema, draft 2020-12, as OpenAPI 3.1 takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

Schema = Mapping[str, Any]
"""A JSON schema; within it a ``Named`` may stand in the place of a schema."""


class Named(msgspec.Struct, frozen=True):
    """A schema that others refer to by its name, in place of repeating it."""

    name: str
    schema: Schema


TEXT_SCHEMA: Final[Schema] = {"type": "string"}
BOOLEAN_SCHEMA: Final[Schema] = {"type": "boolean"}
INTEGER_SCHEMA: Final[Schema] = {"type": "integer"}
LONG_SCHEMA: Final[Schema] = {"type": "integer", "format": "int64"}
BYTE_SCHEMA: Final[Schema] = {"type": "integer", "minimum": -128, "maximum": 127}


def described(schema: Schema, description: str) -> Schema:
    """The same schema with words for a person."""
    return {**schema, "description": description}


def or_null(schema: Schema | Named) -> Schema:
    """What the schema takes, or null."""
    kind = None if isinstance(schema, Named) else schema.get("type")
    if isinstance(schema, Named) or kind is None or "enum" in schema or "const" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = [kind] if isinstance(kind, str) else list(kind)
    return {**schema, "type": kinds if "null" in kinds else [*kinds, "null"]}


def list_of(items: Schema | Named) -> Schema:
    """An array of such items."""
    return {"type": "array", "items": items}


def object_of(
    properties: Mapping[str, Schema | Named], optional: Mapping[str, Schema | Named] | None = None
) -> Schema:
    """An object that has the first members always, the others sometimes."""
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
    }


_WORDS: Final[Mapping[str, Schema]] = {
    **{name: {"type": name} for name in ("string", "boolean", "integer", "object")},
    "long": LONG_SCHEMA,
    "any": {},
}


def shape(text: str, **words: Schema | Named) -> Schema:
    """The schema of an object. The text names its members: ``height: integer, ids?: string[]``,
    with ``?`` for what may be missing and ``string|null`` for what may be null. ``words`` are other
    types, and members that have none in the text.
    """
    properties: dict[str, Schema | Named] = {}
    required = []
    for member in text.split(", "):
        name, _, kind = member.partition(": ")
        own = name.removesuffix("?")
        properties[own] = _of_words(kind or own, words)
        if own == name:
            required.append(name)
    found: dict[str, Any] = {"type": "object", "properties": properties}
    return found | {"required": required} if required else found


def _of_words(kind: str, words: Mapping[str, Schema | Named]) -> Schema | Named:
    if kind.endswith("|null"):
        return or_null(_of_words(kind.removesuffix("|null"), words))
    if kind.endswith("[]"):
        return list_of(_of_words(kind.removesuffix("[]"), words))
    return words[kind] if kind in words else _WORDS[kind]
