"""Layouts: the quick way of reading fields finds what the plain way finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.chain.errors import FormatError
from soliton.chain.layouts import (
    BYTES16,
    DIGEST,
    I64,
    OPTIONAL_ASSET,
    U8,
    Codec,
    Field,
    compile_fields,
    read_proofs,
    write_proofs,
)

ASSETS = compile_fields(
    (
        Field("key", DIGEST),
        Field("first", OPTIONAL_ASSET),
        Field("second", OPTIONAL_ASSET),
        Field("side", U8),
        Field("amount", I64),
        Field("third", OPTIONAL_ASSET),
    )
)
OTHERS = compile_fields((Field("amount", I64), Field("name", BYTES16)))
ASSET = st.none() | st.binary(min_size=32, max_size=32)


def both(codec: Codec, data: bytes, offset: int) -> tuple[object, object]:
    """What both ways of reading come to, values or an error in words."""
    answers: list[object] = []
    try:
        values, end = codec.read(data, offset)
        answers.append((list(values.values()), end))
    except FormatError as error:
        answers.append(str(error))
    try:
        row, end = codec.read_row(data, offset)
        answers.append((list(row), end))
    except FormatError as error:
        answers.append(str(error))
    return answers[0], answers[1]


@given(ASSET, ASSET, ASSET, st.integers(0, 3))
def test_every_shape(
    first: bytes | None, second: bytes | None, third: bytes | None, offset: int
) -> None:
    values = {
        "key": bytes(range(32)),
        "first": first,
        "second": second,
        "side": 1,
        "amount": -5,
        "third": third,
    }
    data = bytes(offset) + ASSETS.write(values)
    row, end = ASSETS.read_row(data + b"more", offset)
    assert list(row) == list(values.values())
    assert end == len(data)
    assert ASSETS.write_row(list(values.values())) == data[offset:]


@given(
    st.none() | st.binary(min_size=30, max_size=34),
    st.sampled_from((-1, 0, 255, 256)),
    st.sampled_from((-(1 << 63) - 1, -(1 << 63), (1 << 63) - 1, 1 << 63)),
)
def test_rows_that_do_not_fit(asset: bytes | None, side: int, amount: int) -> None:
    row = (bytes(32), None, asset, side, amount, asset)
    names = ("key", "first", "second", "side", "amount", "third")
    try:
        expected: bytes | str = ASSETS.write(dict(zip(names, row, strict=True)))
    except FormatError as error:
        expected = str(error)
    try:
        written: bytes | str = ASSETS.write_row(row)
    except FormatError as error:
        written = str(error)
    assert written == expected


@given(st.data())
def test_bytes_that_are_cut_or_changed(data: st.DataObject) -> None:
    values = {
        "key": bytes(32),
        **{name: data.draw(ASSET) for name in ("first", "second", "third")},
        "side": 1,
        "amount": 7,
    }
    changed = bytearray(ASSETS.write(values))
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    plain, quick = both(ASSETS, bytes(changed[: data.draw(st.integers(0, len(changed)))]), 0)
    assert plain == quick


def test_a_flag_that_is_none() -> None:
    data = bytes(32) + b"\2" + bytes(80)
    plain, quick = both(ASSETS, data, 0)
    assert plain == quick == "flag 0 or 1 expected at offset 32, found 2"


def test_fields_of_any_length() -> None:
    data = OTHERS.write({"amount": 3, "name": b"abc"})
    assert OTHERS.read_row(data, 0) == ([3, b"abc"], len(data))


@pytest.mark.parametrize("proofs", [(bytes(64),), (bytes(63),), (bytes(64), bytes(64)), (b"",), ()])
def test_proofs(proofs: tuple[bytes, ...]) -> None:
    data = write_proofs(proofs)
    assert read_proofs(b"x" + data + b"y", 1) == (proofs, len(data) + 1)
    for end in range(len(data)):
        with pytest.raises(FormatError):
            read_proofs(data[:end], 0)
