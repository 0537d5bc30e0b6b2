"""Tables of routes: a row is a line of text beside the handler, and says all about its route.

Lines are read as ``soliton.web.parameters`` says::

    GET /assets/nft/{address}/limit/{limit}?after.nft&order.asc family=waves,tn reads=state

The words, where they differ from the table's, are

- ``reads``: what the answer is made of (``Reads``),
- ``key``: the scope of the API key that it needs,
- ``family``: the families of networks that have the route, where not all of them do,
- ``tag``: the heading of the documentation that it stands under.

What lives here: rows, and the ``Route`` records made from them when a module is imported. What
does not: the records (``routes``), and the rows of the groups (``rest``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from soliton.api import errors, routes
from soliton.api.rest.examples import ADDRESS, BLOCK_ID, TRANSACTION_ID
from soliton.api.routes import Body, BodyKind, Handler, Reads, Route
from soliton.chain.json_schemas import shape
from soliton.errors import InvariantBroken
from soliton.web.parameters import Parameter, Schema, parameters, read_line

Parameters = Mapping[str, Parameter]

_WORDS: Final = ("reads", "key", "family", "tag")


_SHARED: Final = parameters(f"""
address         | text    | Address in base58                  | {ADDRESS}
height          | natural | Height, 1 for the genesis block    | 2
id.block        | text    | Id of a block in base58            | {BLOCK_ID}
id.transaction  | text    | Id of a transaction in base58      | {TRANSACTION_ID}
id.transactions | text*   | Ids of transactions in base58      | {TRANSACTION_ID}
order.asc       | order   | `asc` or `desc`, by default `asc`  | asc
order.desc      | order   | `asc` or `desc`, by default `desc` | desc
""")


@dataclass(frozen=True, slots=True)
class Row:
    """A row that does not know its table yet."""

    line: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    by_ids: bool = False


def row(
    line: str,
    handler: Handler,
    summary: str,
    response: type | Schema,
    example: object,
    refusals: str = "",
    **more: Any,  # noqa: ANN401 - fields of a route
) -> Row:
    """A route; ``refusals`` are names of ``errors``, ``more`` further fields of the route."""
    try:
        kinds = tuple(vars(errors)[name] for name in refusals.split())
    except KeyError as error:
        raise InvariantBroken(f"{line}: no error is called {error}") from error
    facts = {"handler": handler, "summary": summary, "response": response, "example": example}
    return Row(line, facts | {"errors": kinds} | more)


def rows_by_ids(line: str, *facts: Any) -> Row:  # noqa: ANN401 - as for a row
    """A list of things by their ids. They come in the query of a ``GET``, whose parameter ``id`` is
    the first in the line, or in the body of a ``POST``; either path may end in a slash.
    """
    return replace(row(f"GET {line}", *facts), by_ids=True)


def table(
    tag: str, text: str, *rows: Row, reads: str = "node", family: str = ""
) -> tuple[Route, ...]:
    """The routes of a group. ``text`` are parameters that no other group has."""
    known = _SHARED | parameters(text)
    usual = {"tag": tag, "reads": reads, "family": family}
    return tuple(route for each in rows for route in _routes(each, usual, known))


def _routes(row: Row, usual: dict[str, str], known: Parameters) -> list[Route]:
    line = read_line(row.line, known, _WORDS)
    said = usual | line.words
    route = Route(
        methods=routes.ANY_METHOD if line.method == "ANY" else (line.method,),
        path=line.path,
        parameters=(*line.of_path, *line.of_query),
        tag=said["tag"],
        reads=Reads(said["reads"]),
        families=tuple(filter(None, said["family"].split(","))),
        scope=said.get("key", ""),
        **row.facts,
    )
    made = [route]
    if row.by_ids:
        ids, *others = line.of_query
        body = id_list(ids.example)
        named = (*line.of_path, *others)
        made.append(replace(route, methods=routes.POST, parameters=named, body=body))
    elif not line.or_slash:
        return made
    return [twin for each in made for twin in (each, _with_slash(each))]


def _with_slash(route: Route) -> Route:
    return replace(route, path=f"{route.path}/", documented=False)


def json_body(description: str, example: object, schema: type | Schema, **more: Any) -> Body:  # noqa: ANN401
    """A body of JSON, malformed JSON in which is error 1."""
    return Body(BodyKind.JSON, description, example, schema, **more)


def text_body(description: str, example: str) -> Body:
    """A body that is taken as it is."""
    return Body(BodyKind.TEXT, description, example, {"type": "string"})


def id_list(example: object) -> Body:
    """The body that names ids."""
    words = "Ids as `ids` of a JSON object, or as `id` of a form"
    return Body(BodyKind.FORM_OR_JSON, words, {"ids": example}, shape("ids: string[]"))
