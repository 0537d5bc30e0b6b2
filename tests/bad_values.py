"""Requests with values that cannot be read, for every operation of an OpenAPI document.

What lives here: the values, and the requests. What does not: asking a service, which its own tests
do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

BAD_TEXTS = ("", " ", "abc!", "0OIl", "-1", "1.5", "9" * 30, "\U0001f4a5", "\0", "a" * 300, "null")
BAD_MEMBERS: tuple[Any, ...] = (None, True, -1, 2**63, 1.5, "", "0OIl", "abc!", [], [None], {})
BAD_BODIES = (b"", b"{", b"[]", b"null", b'"text"', b"\xff", b"[" * 2_000, b"{}")


class Asked(NamedTuple):
    """A request: ``wrong`` names the parameter or member with the bad value, if it is one."""

    operation: Mapping[str, Any]
    method: str
    target: str
    body: Any
    wrong: str


def bad_requests(document: Mapping[str, Any], examples: Mapping[str, str]) -> Iterator[Asked]:
    """Each operation with each bad value of each parameter and member; the others have the example
    of the document or, by name, of ``examples``.
    """
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield from _of_operation(path, method.upper(), operation, examples)


def _of_operation(
    path: str, method: str, operation: Mapping[str, Any], examples: Mapping[str, str]
) -> Iterator[Asked]:
    declared = operation.get("parameters", [])
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    body = content.get("example")
    places = [each for each in declared if each["in"] == "path"]
    values = {
        each["name"]: examples.get(each["name"], str(each.get("example", "1"))) for each in places
    }

    def target(query: str = "", **changed: str) -> str:
        found = path
        for name, value in (values | changed).items():
            found = found.replace(f"{{{name}}}", quote(value, safe=""))
        return f"{found}?{query}" if query else found

    for each in declared:
        for text in BAD_TEXTS:
            if each["in"] == "path" and text:
                yield Asked(operation, method, target(**{each["name"]: text}), body, each["name"])
            elif each["in"] == "query":
                query = f"{each['name']}={quote(text, safe='')}"
                yield Asked(operation, method, target(query), body, each["name"])
    yield Asked(operation, method, target("nosuchthing=1"), body, "nosuchthing")
    yield Asked(operation, method, target("%ff=%zz&&=&a"), body, "")
    if "requestBody" in operation:
        for whole in BAD_BODIES:
            yield Asked(operation, method, target(), whole, "")
    for name in body if isinstance(body, dict) else ():
        for value in BAD_MEMBERS:
            yield Asked(operation, method, target(), {**body, name: value}, name)


def undeclared(asked: Asked, status: int) -> str | None:
    """What is wrong with a status: the document does not declare it, or it is 500."""
    where = f"{asked.method} {asked.target[:120]} {str(asked.body)[:80]}"
    if status == 500:
        return f"{where}: 500"
    if str(status) not in asked.operation["responses"]:
        return f"{where}: {status} is not declared"
    return None
