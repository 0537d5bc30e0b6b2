"""Lines and tables of parameters: what they say, and that a slip in one stops the import."""

from __future__ import annotations

import pytest

from soliton.api.route_table import row, rows_by_ids, table
from soliton.api.routes import Reads
from soliton.errors import InvariantBroken
from soliton.web.parameters import Kind, Place, parameters, read_line

EVEN = Kind("even", {"type": "integer"}, lambda text: int(text) if int(text) % 2 == 0 else None)
KNOWN = parameters(
    """
height    | natural | Height          | 2
id.block  | text    | Id of a block   | abc
id.many   | text*   | Ids             | abc
limit     | natural! | How many        | 10
size      | even    | Any even number | -
""",
    EVEN,
)


def test_a_line_says_where_parameters_are() -> None:
    line = read_line("GET /a/{height}/{id.block}[/]?id.many&limit key=x", KNOWN, ("key",))
    assert (line.method, line.path, line.or_slash) == ("GET", "/a/{height}/{id}", True)
    assert [(each.name, each.place, each.required) for each in line.of_path] == [
        ("height", Place.PATH, True),
        ("id", Place.PATH, True),
    ]
    assert [(each.name, each.repeated, each.required, each.example) for each in line.of_query] == [
        ("id", True, False, ["abc"]),
        ("limit", False, True, 10),
    ]
    assert line.words == {"key": "x"}
    assert KNOWN["size"].example is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("GET /{hight}", "hight"),
        ("GET /a?limt", "limt"),
        ("GET /a raeds=state", "raeds"),
    ],
)
def test_what_nobody_knows_is_a_bug(line: str, words: str) -> None:
    with pytest.raises(InvariantBroken, match=words):
        read_line(line, KNOWN, ("reads",))


def test_an_example_has_to_be_one() -> None:
    with pytest.raises(InvariantBroken, match="no example of size"):
        parameters("size | even | Any even number | 3", EVEN)


def test_a_row_makes_a_route() -> None:
    made = row("POST /x key=debug", lambda _request: None, "What it does", int, 1, "UNKNOWN")
    (route,) = table("group", "", made, reads="chain", family="tn")
    assert (route.methods, route.path, route.tag) == (("POST",), "/x", "group")
    assert (route.scope, route.reads, route.families) == ("debug", Reads.CHAIN, ("tn",))
    assert [kind.name for kind in route.errors] == ["Unknown"]
    assert not route.is_of("waves") and route.is_of("tn") and not route.has_tag


def test_a_list_by_ids_is_asked_in_two_ways() -> None:
    listed = rows_by_ids("/x?id.transactions", lambda _request: None, "Many", list[str], ["a"])
    routes = table("group", "", listed, reads="state")
    shown = [(route.methods[0], route.path, route.documented) for route in routes]
    assert shown == [
        ("GET", "/x", True), ("GET", "/x/", False), ("POST", "/x", True), ("POST", "/x/", False)
    ]  # fmt: skip
    asked, posted = routes[0], routes[2]
    assert asked.parameters and asked.body is None and asked.has_tag
    assert not posted.parameters and posted.body is not None and not posted.has_tag


@pytest.mark.parametrize("faulty", ["GET /x reads=everything", "GET /{nothing}"])
def test_a_slip_in_a_row_stops_the_import(faulty: str) -> None:
    with pytest.raises((InvariantBroken, ValueError)):
        table("group", "", row(faulty, lambda _request: None, "", int, 1))
    with pytest.raises(InvariantBroken, match="NO_SUCH_ERROR"):
        row("GET /x", lambda _request: None, "", int, 1, "NO_SUCH_ERROR")
