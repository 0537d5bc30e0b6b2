"""Hostile JSON gives error 1, and all faults of an object are reported together."""

from __future__ import annotations

import contextlib
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.api.errors import ApiError
from soliton.api.json_reader import (
    MAX_JSON_DEPTH,
    MAX_JSON_PARTS,
    ObjectReader,
    parse_json,
    parse_object,
)
from tests.growth import MAX_GROWTH, growth

HOSTILE = [
    b"",
    b"{",
    b"{} x",
    b"NaN",
    b'{"a":Infinity}',
    b'{"a":-Infinity}',
    b'"\xff"',
    b'"\xed\xa0\x80"',
    b'"a\x00b"',
    b'"\\ud800"',
    b'"\\u12"',
    b"01",
    b"+1",
    b"{'a':1}",
    b'{"a":1,}',
    b"\xef\xbb\xbf{}",
    b"\x00",
    b"[" * (MAX_JSON_DEPTH + 2) + b"]" * (MAX_JSON_DEPTH + 2),
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"a":' + b"9" * 100_000 + b"}",
    b'{"a":1e99999999999999999999999}',
    b'{"a":1,"a":2}',
    b'{"a":1,"\\u0061" : 2}',
    b'[{"x":{"b":1,"b":1}}]',
]


@pytest.mark.parametrize("data", HOSTILE, ids=[repr(data[:24]) for data in HOSTILE])
def test_hostile_json_is_error_1(data: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        parse_json(data)
    body = caught.value.body()
    assert body["error"] == 1
    assert body["message"] == "failed to parse json message"
    assert isinstance(body["cause"], str) and body["cause"]
    assert body["validationErrors"] == {}


def test_what_looks_like_a_duplicate_is_none() -> None:
    assert parse_json(b'{"a":"\\":","b":{"a":1}}') == {"a": '":', "b": {"a": 1}}
    deep = b"[" * MAX_JSON_DEPTH + b"]" * MAX_JSON_DEPTH
    assert isinstance(parse_json(deep), list)


@given(
    st.recursive(
        st.text('a"\\\\: ', max_size=4),
        lambda inner: st.lists(inner) | st.dictionaries(st.text('a"\\\\:{', max_size=3), inner),
    )
)
def test_colons_in_texts_are_no_members(value: object) -> None:
    assert parse_json(json.dumps(value).encode()) == value


@given(st.lists(st.text('a"\\\\:', max_size=2), min_size=1), st.text('":\\\\'))
def test_a_member_that_is_there_twice_is_found_among_any(names: list[str], value: str) -> None:
    members = [f"{json.dumps(name)} : {json.dumps(value)}" for name in names]
    text = f"{{{','.join(members)}}}".encode()
    if len(set(names)) == len(names):
        assert parse_json(text) == dict.fromkeys(names, value)
    else:
        with pytest.raises(ApiError):
            parse_json(text)


MEGABYTE = {
    "colons": lambda n: '{"a":"' + ":" * n + '"}',
    "colons after quotation marks": lambda n: '{"a":"' + '\\":' * (n // 3) + '"}',
    "blanks after quotation marks": lambda n: '{"a":"' + '\\"' * 100 + " " * n + ':"}',
    "members with colons": lambda n: "{" + ",".join(f'"a{i}":"\\":"' for i in range(n // 16)) + "}",
    "members that are there twice": lambda n: "{" + '"a":"b",' * (n // 8) + '"a":0}',
    "digits": lambda n: '{"a":' + "9" * n + "}",
    "decimals": lambda n: '{"a":0.' + "9" * n + "}",
    "an exponent": lambda n: '{"a":1e' + "9" * n + "}",
    "objects": lambda n: "[" + "{}," * (n // 3) + "{}]",
    "brackets": lambda n: "[" * n,
}


def test_parts_are_counted_before_they_are_made() -> None:
    for text in (b"[%s]" % b",".join([b"{}"] * MAX_JSON_PARTS), b"[" * MAX_JSON_PARTS + b"{"):
        with pytest.raises(ApiError) as caught:
            parse_json(text)
        assert f"more than {MAX_JSON_PARTS}" in str(caught.value.body()["cause"])
    assert parse_json(b"[%s]" % b",".join([b"{}"] * (MAX_JSON_PARTS - 1)))
    # In texts they are no parts.
    source = "{[:" * MAX_JSON_PARTS
    assert parse_json(json.dumps({"script": source}).encode()) == {"script": source}


@pytest.mark.parametrize("name", MEGABYTE)
def test_a_megabyte_takes_as_long_as_it_is(name: str) -> None:
    def work(text: str) -> None:
        with contextlib.suppress(ApiError):
            ObjectReader(parse_object(text.encode())).int32("a")

    assert growth(work, MEGABYTE[name], 250_000) <= MAX_GROWTH


@given(st.binary(max_size=60))
def test_any_bytes_parse_or_give_error_1(data: bytes) -> None:
    with contextlib.suppress(ApiError):
        parse_json(data)


def test_an_array_is_no_object() -> None:
    with pytest.raises(ApiError) as caught:
        parse_object(b"[]")
    assert caught.value.body() == {
        "error": 1,
        "message": "failed to parse json message",
        "cause": None,
        "validationErrors": {"obj": [{"msg": ["error.expected.jsobject"], "args": []}]},
    }


def test_all_faults_are_reported_together() -> None:
    reader = ObjectReader(
        parse_object(
            b'{"fee":"1","amount":1.5,"big":2147483648,"flag":1,"sender":2,"null":null,"huge":1e400}'
        )
    )
    for name in ("missing", "fee", "amount", "big", "null", "huge"):
        reader.int32(name)
    reader.boolean("flag")
    reader.text("sender")
    reader.text("nowhere")
    with pytest.raises(ApiError) as caught:
        reader.finish()
    body = caught.value.body()
    assert body["message"] == "json data validation error, see validationErrors for details"
    faults = body["validationErrors"]
    assert isinstance(faults, dict)
    assert {path: fault[0]["msg"][0] for path, fault in faults.items()} == {
        "obj.missing": "error.path.missing",
        "obj.fee": "error.expected.jsnumber",
        "obj.amount": "error.expected.int",
        "obj.big": "error.expected.int",
        "obj.null": "error.expected.jsnumber",
        "obj.huge": "error.expected.int",
        "obj.flag": "error.expected.jsboolean",
        "obj.sender": "error.expected.jsstring",
        "obj.nowhere": "error.path.missing",
    }


def test_good_members() -> None:
    reader = ObjectReader(
        {"a": 2**31 - 1, "b": Decimal("1e3"), "c": "x", "d": False, "e": None, "f": -(2**31)}
    )
    assert (reader.int32("a"), reader.int32("b"), reader.int32("f")) == (2**31 - 1, 1000, -(2**31))
    assert (reader.text("c"), reader.boolean("d")) == ("x", False)
    assert "a" in reader and "e" not in reader and "zzz" not in reader
    reader.finish()
