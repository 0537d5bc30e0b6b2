"""What clients may send, and in which words the rest is refused."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.chain.values import DataEntry
from soliton.crypto.keys import key_pair
from soliton.signer.errors import RequestRefused
from soliton.signer.request import SigningRequest, read_request
from tests.signer.fakes import SEED, body_of

MAX_SEED = 2_048


def read(body: bytes | str) -> SigningRequest:
    return read_request(body.encode() if isinstance(body, str) else body, MAX_SEED)


def refusal(body: bytes | str) -> tuple[int, int, str | None]:
    """Status, number and path of the refusal; its words never hold the seed."""
    with pytest.raises(RequestRefused) as caught:
        read(body)
    error = caught.value
    assert SEED not in f"{error}{error!r}{error.answer}"
    assert error.__context__ is None and error.__cause__ is None
    path = error.answer.more.get("path")
    return error.answer.status, error.answer.code, None if path is None else str(path)


def test_values_decide_about_types() -> None:
    request = read(body_of(1, True, "hello", [1, 2, 3, 4], -(2**63), 2**63 - 1, "", [], 0, False))
    values = [entry.value for entry in request.entries]
    assert values == [1, True, "hello", b"\1\2\3\4", -(2**63), 2**63 - 1, "", b"", 0, False]
    assert [type(value) for value in values[:2]] == [int, bool]
    assert request.account == key_pair(SEED)


def test_entries_may_say_their_type() -> None:
    typed = [
        {"type": "integer", "key": "a", "value": 7},
        {"key": "b", "type": "boolean", "value": False},
        {"type": "string", "key": "c", "value": "base64:AQI="},
        {"type": "binary", "key": "d", "value": "base64:AQI="},
        {"type": "binary", "key": "e", "value": "base64:"},
    ]
    request = read(json.dumps({"data": typed, "seed": SEED}))
    assert [entry.value for entry in request.entries] == [*(7, False, "base64:AQI=", b"\1\2", b"")]


BAD_VALUES = [
    # the value as JSON text, status, number, path below data[0].value
    ("9223372036854775808", 422, 7003, ""),
    ("-9223372036854775809", 422, 7003, ""),
    ("9" * 5000, 422, 7003, None),
    ("1.5", 422, 7004, ""),
    ("1.0", 422, 7004, ""),
    ("1e3", 422, 7004, ""),
    ("1e999", 422, 7004, ""),
    ("[1, 256]", 422, 7005, "[1]"),
    ("[-1]", 422, 7005, "[0]"),
    ("[1.0]", 422, 7005, "[0]"),
    ("[true]", 422, 7005, "[0]"),
    ('["1"]', 422, 7005, "[0]"),
    ("[null]", 422, 7005, "[0]"),
    ("[[1]]", 422, 7005, "[0]"),
    ("null", 422, 7006, ""),
    ("{}", 422, 7006, ""),
    ('{"type":"Buffer","data":[1]}', 422, 7006, ""),
    ('"\\ud800"', 400, 7002, ""),
    ("NaN", 400, 7001, None),
    ("Infinity", 400, 7001, None),
    ("01", 400, 7001, None),
]


@pytest.mark.parametrize(("value", "status", "code", "below"), BAD_VALUES)
def test_values_without_a_type(value: str, status: int, code: int, below: str | None) -> None:
    body = f'{{"seed": "{SEED}", "data": [{{"key": "k", "value": {value}}}]}}'
    path = None if below is None else f"data[0].value{below}"
    assert refusal(body) == (status, code, path)


BAD_TYPED = [
    ('"integer"', '"1"', 7002),
    ('"integer"', "true", 7002),
    ('"integer"', "1.0", 7004),
    ('"integer"', str(2**63), 7003),
    ('"boolean"', "1", 7002),
    ('"string"', "1", 7002),
    ('"binary"', "1", 7002),
    ('"binary"', "[1, 2]", 7002),
    ('"binary"', '"AQI="', 7002),
    ('"binary"', '"base64:AQI"', 7002),
    ('"binary"', '"base64:AQJ="', 7002),
    ('"binary"', '"base64:A\\u00e9I="', 7002),
    ('"list"', "1", 7002),
    ("null", "1", 7002),
    ("[]", "1", 7002),
    ('"string"', "null", 7006),
]


@pytest.mark.parametrize(("kind", "value", "code"), BAD_TYPED)
def test_typed_entries_must_fit(kind: str, value: str, code: int) -> None:
    entry = f'{{"type": {kind}, "key": "k", "value": {value}}}'
    assert refusal(f'{{"seed": "{SEED}", "data": [{entry}]}}')[1] == code


ENTRY = '{"key": "k", "value": 1}'
BAD_SHAPES = [
    ("", 7001, None),
    ("no JSON", 7001, None),
    (f'"{SEED}"', 7002, None),
    (f'["{SEED}"]', 7002, None),
    ("null", 7002, None),
    (f'{{"data": [{ENTRY}]}}', 7002, "seed"),
    (f'{{"seed": "{SEED}"}}', 7002, "data"),
    (f'{{"seed": null, "data": [{ENTRY}]}}', 7002, "seed"),
    (f'{{"seed": 5, "data": [{ENTRY}]}}', 7002, "seed"),
    (f'{{"seed": "", "data": [{ENTRY}]}}', 7002, "seed"),
    (f'{{"seed": "\\ud800", "data": [{ENTRY}]}}', 7002, "seed"),
    (f'{{"seed": "{"x" * 2049}", "data": [{ENTRY}]}}', 7002, "seed"),
    (f'{{"seed": "{SEED}", "data": []}}', 7007, "data"),
    (f'{{"seed": "{SEED}", "data": {{}}}}', 7002, "data"),
    (f'{{"seed": "{SEED}", "data": null}}', 7002, "data"),
    (f'{{"seed": "{SEED}", "data": [{",".join([ENTRY] * 101)}]}}', 7007, "data"),
    (f'{{"seed": "{SEED}", "data": ["{SEED}"]}}', 7002, "data[0]"),
    (f'{{"seed": "{SEED}", "data": [{ENTRY}, {{"key": "k"}}]}}', 7002, "data[1].value"),
    (f'{{"seed": "{SEED}", "data": [{{"value": 1}}]}}', 7002, "data[0].key"),
    (f'{{"seed": "{SEED}", "data": [{{"key": 1, "value": 1}}]}}', 7002, "data[0].key"),
    (f'{{"seed": "{SEED}", "data": [{{"key": "\\udfff", "value": 1}}]}}', 7002, "data[0].key"),
    (f'{{"seed": "{SEED}", "seed": "{SEED}", "data": [{ENTRY}]}}', 7002, None),
    (f'{{"seed": "{SEED}", "data": [{ENTRY}], "{SEED}": 1}}', 7002, None),
    (f'{{"seed": "{SEED}", "data": [{ENTRY}]}} {SEED}', 7001, None),
    ("[" * 3_000, 7001, None),
    ("[" * 100_000, 7002, None),
    (":" * 100_000, 7002, None),
    (f'{{"seed": "{SEED}", "data": [{",".join([ENTRY] * 40_000)}]}}', 7002, None),
]


def test_what_stands_in_texts_is_no_part_of_a_body() -> None:
    text = '{[:"' * 5_000
    body = json.dumps({"seed": SEED, "data": [{"key": "k", "value": text}]})
    assert read(body).entries[0].value == text


@pytest.mark.parametrize(("body", "code", "path"), BAD_SHAPES)
def test_shapes_are_refused(body: str, code: int, path: str | None) -> None:
    status, *rest = refusal(body)
    assert rest == [code, path]
    assert status == (422 if code == 7007 else 400)


def test_unknown_members_are_named() -> None:
    for body, name in (
        (f'{{"seed": "{SEED}", "data": [{ENTRY}], "fee": 1}}', "fee"),
        (f'{{"seed": "{SEED}", "data": [{{"key": "k", "value": 1, "x": 1}}]}}', "data[0].x"),
    ):
        with pytest.raises(RequestRefused, match=name.replace("[", r"\[")):
            read(body)


def test_bytes_that_are_no_text() -> None:
    assert refusal(b'{"seed": "\xff", "data": []}')[1] == 7001
    assert refusal(b"\xef\xbb\xbf{}")[1] == 7001


def test_a_request_does_not_show_its_secrets() -> None:
    request = read(body_of(1))
    assert SEED not in repr(request)
    assert request.account.private_key.hex() not in repr(request)
    assert repr(request.account.private_key) not in repr(request)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.booleans(), TEXT, st.binary(max_size=40).map(list)
)


@given(st.lists(st.tuples(TEXT, VALUES), min_size=1, max_size=20), TEXT.filter(bool))
def test_what_is_sent_is_what_is_read(pairs: list[tuple[str, object]], seed: str) -> None:
    data = [{"key": key, "value": value} for key, value in pairs]
    request = read(json.dumps({"seed": seed, "data": data}))
    wanted = [
        DataEntry(key, bytes(value) if isinstance(value, list) else value)  # type: ignore[arg-type]
        for key, value in pairs
    ]
    assert list(request.entries) == wanted
    kinds = [bytes if isinstance(value, list) else type(value) for _, value in pairs]
    assert [type(entry.value) for entry in request.entries] == kinds


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["seed", "data", "key", "value", "type", "x"]), inner)
    ),
    max_leaves=12,
)


@given(JSON | st.fixed_dictionaries({"seed": st.text(), "data": st.lists(JSON, max_size=3)}))
def test_any_json_is_read_or_refused(value: object) -> None:
    _read_or_refuse(json.dumps(value).encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    _read_or_refuse(body)


def _read_or_refuse(body: bytes) -> None:
    with contextlib.suppress(RequestRefused):
        assert read(body).entries
