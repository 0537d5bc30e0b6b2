"""Base58: both ways, hostile text, and the reference's own words for a wrong character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.crypto import base58
from soliton.crypto.errors import Base58Error, CryptoError
from soliton.errors import InputError


def encode_by_the_book(data: bytes) -> str:
    number, digits = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, base58.BASE)
        digits = base58.ALPHABET[digit] + digits
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + digits


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"\0", "1"),
        (b"\0\0\0", "111"),
        (b"\x39", "z"),
        (b"\x3a", "21"),
        (b"\0\x3a", "121"),
        (b"Hello World!", "2NEpo7TZRRrLZSi2U"),
        (bytes(32), "1" * 32),
    ],
)
def test_known_texts(data: bytes, text: str) -> None:
    assert base58.encode(data) == text
    assert base58.decode(text) == data


@given(st.binary(max_size=200))
def test_round_trip_and_agreement_with_long_division(data: bytes) -> None:
    text = base58.encode(data)
    assert text == encode_by_the_book(data)
    assert base58.decode(text) == data


@given(st.text(alphabet=base58.ALPHABET, max_size=200))
def test_every_text_of_the_alphabet_means_something(text: str) -> None:
    assert base58.encode(base58.decode(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "0abc", "abcO", "aIb", "alb", " ", " a", "a ", "a b", "a\n", "\ta", "a\0", "\0", "a\0b",
        "+a", "-a", "a-", "_a", "a_b", "é", "aé", "1é", "\ud800", "١", "0x1", "*", "1 1",
    ],
)  # fmt: skip
def test_wrong_characters(text: str) -> None:
    wrong = next(character for character in text if character not in base58.ALPHABET)
    with pytest.raises(Base58Error) as caught:
        base58.decode(text)
    assert str(caught.value) == (
        f"requirement failed: Wrong char '{wrong}' in Base58 string '{text}'"
    )


def test_the_words_of_the_reference() -> None:
    with pytest.raises(Base58Error) as caught:
        base58.decode("0abc")
    assert str(caught.value) == "requirement failed: Wrong char '0' in Base58 string '0abc'"


@given(st.text(max_size=60))
def test_any_text_is_read_exactly_or_refused(text: str) -> None:
    if all(character in base58.ALPHABET for character in text):
        assert encode_by_the_book(base58.decode(text)) == text
    else:
        with pytest.raises(Base58Error):
            base58.decode(text)


def test_length_limits() -> None:
    assert base58.decode("1" * base58.MAX_TEXT_CHARS) == bytes(base58.MAX_TEXT_CHARS)
    with pytest.raises(Base58Error, match="longer than 16384"):
        base58.decode("z" * (base58.MAX_TEXT_CHARS + 1))
    with pytest.raises(Base58Error, match="of 6 characters is longer than 5"):
        base58.decode("zzzzzz", max_chars=5)
    assert base58.decode("zzzzz", max_chars=5)


def test_blame() -> None:
    assert issubclass(Base58Error, CryptoError)
    assert issubclass(CryptoError, InputError)
