"""Header blocks: the examples of RFC 7541, and round trips with the library ``hpack``."""

from __future__ import annotations

import hpack as library
import pytest
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hypothesis import given
from hypothesis import strategies as st

from soliton.web.http2 import huffman
from soliton.web.http2.hpack import STATIC, TABLE_BYTES, BadBlock, Decoder, encode

MANY = 1_000_000
FIRST = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/")]
FIRST += [(b":authority", b"www.example.com")]
SECOND = [*FIRST, (b"cache-control", b"no-cache")]
THIRD = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/index.html")]
THIRD += [(b":authority", b"www.example.com"), (b"custom-key", b"custom-value")]
# RFC 7541, appendix C.
ALONE = {
    "400a637573746f6d2d6b65790d637573746f6d2d686561646572": (b"custom-key", b"custom-header"),
    "040c2f73616d706c652f70617468": (b":path", b"/sample/path"),
    "100870617373776f726406736563726574": (b"password", b"secret"),
    "82": (b":method", b"GET"),
}
PLAIN = [
    "828684410f7777772e6578616d706c652e636f6d",
    "828684be58086e6f2d6361636865",
    "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
]
PACKED = [
    "828684418cf1e3c2e5f23a6ba0ab90f4ff",
    "828684be5886a8eb10649cbf",
    "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
]


def decoded(decoder: Decoder, block: bytes) -> list[tuple[bytes, bytes]]:
    return decoder.decode(block, MANY, MANY)[0]


@pytest.mark.parametrize(("block", "header"), ALONE.items())
def test_single_headers(block: str, header: tuple[bytes, bytes]) -> None:
    found, size = Decoder().decode(bytes.fromhex(block), MANY, MANY)
    assert found == [header]
    assert size == len(header[0]) + len(header[1]) + 32


@pytest.mark.parametrize("blocks", [PLAIN, PACKED])
def test_requests_of_one_connection(blocks: list[str]) -> None:
    decoder = Decoder()
    assert [decoded(decoder, bytes.fromhex(each)) for each in blocks] == [FIRST, SECOND, THIRD]
    assert decoder._size == 164


def test_the_static_table_and_the_code_are_those_of_the_library() -> None:
    assert STATIC == library.table.HeaderTable.STATIC_TABLE
    words = list(zip(REQUEST_CODES, REQUEST_CODES_LENGTH, strict=True))
    assert huffman.codes() == words


names = st.sampled_from([b":path", b"te", b"x", b"grpc-timeout"]) | st.binary(max_size=40)
headers = st.lists(st.tuples(names, st.binary(max_size=300)), max_size=8)


@given(st.lists(st.tuples(headers, st.booleans(), st.none() | st.integers(0, TABLE_BYTES))))
def test_what_the_library_writes(
    blocks: list[tuple[list[tuple[bytes, bytes]], bool, int | None]],
) -> None:
    encoder, decoder = library.Encoder(), Decoder()
    for block, is_packed, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        assert decoded(decoder, encoder.encode(block, huffman=is_packed)) == block
        assert decoder._size <= TABLE_BYTES


@given(headers)
def test_what_the_library_reads(block: list[tuple[bytes, bytes]]) -> None:
    reader = library.Decoder()
    found = reader.decode(encode(block), raw=True)
    assert [tuple(each) for each in found] == block
    assert not reader.header_table.dynamic_entries
    assert decoded(Decoder(), encode(block)) == block


@given(st.binary(max_size=200))
def test_any_bytes_are_a_block_or_none(data: bytes) -> None:
    for limit in (0, 100, MANY):
        try:
            found, size = Decoder().decode(data, limit, MANY)
        except BadBlock as error:
            if "twice" in str(error):
                continue
            with pytest.raises(library.HPACKError):
                library.Decoder().decode(data, raw=True)
        else:
            assert sum(len(name) + len(value) + 32 for name, value in found) <= min(size, limit)


@given(st.binary(max_size=60))
def test_any_bytes_are_packed_or_not(data: bytes) -> None:
    try:
        expected = library.huffman_table.decode_huffman(data)
    except library.HPACKDecodingError:
        with pytest.raises(huffman.NoHuffman):
            huffman.decode(data)
    else:
        assert huffman.decode(data) == expected


@pytest.mark.parametrize(
    "block",
    [
        "80",  # no index
        "be",  # an index of an empty table
        "ffffffffffff7f",  # a number without measure
        "7f",  # a number without an end
        "00",  # a header without a name
        "000a61",  # a name that ends early
        "0001618161ff",
        "3fe21f",  # a table of 4,097 bytes
        "8220",  # the size of the table, behind a header
        "202020",  # the size of the table, three times
        "000161847fffffff",  # the end inside of a string
        "00016181fe",  # eight bits of padding, or wrong ones
    ],
)
def test_what_is_no_block(block: str) -> None:
    with pytest.raises(BadBlock):
        Decoder().decode(bytes.fromhex(block), MANY, MANY)


def test_headers_beyond_the_limit_are_read_and_left_out() -> None:
    decoder = Decoder()
    block = encode([(b"a", b"b" * 100)] * 10)
    found, size = decoder.decode(block, 300, MANY)
    assert len(found) == 2 and size == 10 * 133
    # They are in the table all the same: the next block may mean them.
    kept = b"\x40\x01a\x64" + b"b" * 100
    assert decoder.decode(kept * 3 + b"\xbe", 0, MANY) == ([], 4 * 133)
    assert decoded(decoder, b"\xbe") == [(b"a", b"b" * 100)]


def test_decoding_stops_when_there_is_too_much() -> None:
    """A byte may mean a header: what nobody will use is not made."""
    found, size = Decoder().decode(b"\x8f" * 32_000, 100, 1_000)
    assert len(found) == 2 and 1_000 < size < 1_100
