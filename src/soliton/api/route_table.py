"""Tables of routes: a row declares a route as a line of text next to its handler.

``soliton.web.parameters`` defines the syntax of a line::

    GET /assets/nft/{address}/limit/{limit}?after.nft&order.asc family=waves,tn reads=state

The options after the path override those of the table:

- ``reads``: what the answer depends on (``Reads``),
- ``key``: the scope of the API key that the route requires,
- ``family``: the families of networks that have the route, if not all of them do,
- ``tag``: the heading of the route in the documentation.

What lives here: rows, and the ``Route`` records made from them at import. What does not: the
records (``routes``), and the rows of the groups (``rest``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from soliton.api import errors, routes
from soliton.api.rest.examples import ADDRESS, BLOCK_ID, TRANSACTION_ID
from soliton.api.routes import Body, BodyKind, Handler, Reads, Route
from soliton.chain.json_schemas import shape
from soliton.errors import InvariantBroken
from soliton.web.parameters import Kind, Parameter, Schema, parameters, read_line

Parameters = Mapping[str, Parameter]

_OPTIONS: Final = ("reads", "key", "family", "tag")

_SHARED: Final = parameters(f"""
address         | text    | Address in base58                  | {ADDRESS}
height          | natural | Height, 1 for the genesis block    | 2
id.block        | text    | Id of a block in base58            | {BLOCK_ID}
id.transaction  | text    | Id of a transaction in base58      | {TRANSACTION_ID}
id.transactions | text*   | Ids of transactions in base58      | {TRANSACTION_ID}
order.asc       | order   | `asc` or `desc`, by default `asc`  | asc
order.desc      | order   | `asc` or `desc`, by default `desc` | desc
""")


class Row(msgspec.Struct, frozen=True):
    """A row before it becomes part of a table."""

    line: str
    fields: Mapping[str, Any] = {}
    by_ids: bool = False


def row(
    line: str,
    handler: Handler,
    summary: str,
    response: type | Schema,
    example: object,
    error_names: str = "",
    **more: Any,  # noqa: ANN401 - fields of a route
) -> Row:
    """A route. ``error_names`` are names in ``errors``, ``more`` further fields of the route."""
    try:
        kinds = tuple(vars(errors)[name] for name in error_names.split())
    except KeyError as error:
        raise InvariantBroken(f"{line}: no error is called {error}") from error
    fields = {"handler": handler, "summary": summary, "response": response, "example": example}
    return Row(line, fields | {"errors": kinds} | more)


def rows_by_ids(line: str, *fields: Any) -> Row:  # noqa: ANN401 - as for a row
    """A list of objects by their ids. The ids are in the query of a ``GET``, as the first parameter
    of the line, or in the body of a ``POST``. Either path may end in a slash.
    """
    return msgspec.structs.replace(row(f"GET {line}", *fields), by_ids=True)


def table(
    tag: str,
    text: str,
    *rows: Row,
    reads: str = "node",
    family: str = "",
    kinds: Iterable[Kind] = (),
    own: bool = False,
) -> tuple[Route, ...]:
    """The routes of a group. ``text`` declares the parameters that only this group has, ``kinds``
    their additional kinds. Those of our ``own`` are strict about parameters.
    """
    known = _SHARED | parameters(text, *kinds)
    rows = tuple(msgspec.structs.replace(each, fields={"own": own, **each.fields}) for each in rows)
    defaults = {"tag": tag, "reads": reads, "family": family}
    return tuple(route for each in rows for route in _routes(each, defaults, known))


def _routes(row: Row, defaults: dict[str, str], known: Parameters) -> list[Route]:
    line = read_line(row.line, known, _OPTIONS)
    options = defaults | line.words
    route = Route(
        methods=routes.ANY_METHOD if line.method == "ANY" else (line.method,),
        path=line.path,
        parameters=(*line.of_path, *line.of_query),
        tag=options["tag"],
        reads=Reads(options["reads"]),
        families=tuple(filter(None, options["family"].split(","))),
        scope=options.get("key", ""),
        **row.fields,
    )
    made = [route]
    if row.by_ids:
        ids, *others = line.of_query
        body = id_list(ids.example)
        remaining = (*line.of_path, *others)
        made.append(
            msgspec.structs.replace(route, methods=routes.POST, parameters=remaining, body=body)
        )
    elif not line.or_slash:
        return made
    return [twin for each in made for twin in (each, _with_slash(each))]


def _with_slash(route: Route) -> Route:
    return msgspec.structs.replace(route, path=f"{route.path}/", documented=False)


def json_body(description: str, example: object, schema: type | Schema, **more: Any) -> Body:  # noqa: ANN401
    """A body of JSON. Malformed JSON is error 1."""
    return Body(BodyKind.JSON, description, example, schema, **more)


def text_body(description: str, example: str) -> Body:
    """A body of plain text."""
    return Body(BodyKind.TEXT, description, example, {"type": "string"})


def id_list(example: object) -> Body:
    """A body that lists ids."""
    description = "Ids as `ids` of a JSON object, or as `id` of a form"
    return Body(BodyKind.FORM_OR_JSON, description, {"ids": example}, shape("ids: string[]"))
