"""Scripts read and written: the vectors of other implementations, round trips, hostile bytes."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.crypto.hashes import secure_hash
from soliton.ride.errors import ScriptFormatError
from soliton.ride.expressions import (
    AnnotatedFunction,
    Block,
    BoolConst,
    BytesConst,
    Call,
    DApp,
    Expression,
    Func,
    GetField,
    If,
    Let,
    ListConst,
    LongConst,
    Ref,
    StringConst,
)
from soliton.ride.meta import ArgumentType, Meta, argument_types, read_meta, write_meta
from soliton.ride.script import (
    has_later_blocks,
    has_lists,
    make_script,
    nodes,
    parse_script,
    parse_script_text,
)
from soliton.ride.serialization import (
    read_dapp,
    read_expression,
    write_dapp,
    write_expression,
    write_script,
)
from tests.amounts import times
from tests.vectors import load_vectors, report

DEPTH = times(20_000, 100_000)
SOME_DEPTH = times(6_000, 20_000)
"""Far beyond what any recursion would bear, and quick."""
OTHER_HEADER = b"\0\2\6"
"""Made by hand for a test of another node, which reads its body in the older encoding."""


def test_vectors_parse() -> None:
    vectors = load_vectors("ride_parse")
    ran = skipped = 0
    for vector in vectors:
        source = base64.b64decode(vector["script"])
        if source.startswith(OTHER_HEADER):
            skipped += 1
            continue
        ran += 1
        if vector["error"] is not None:
            with pytest.raises(ScriptFormatError):
                parse_script(source)
            continue
        script = parse_script(source)
        assert script.version == vector["lib"]
        assert script.is_dapp == vector["dapp"]
        has_verifier = not isinstance(script.content, DApp) or script.content.verifier is not None
        assert has_verifier == vector["verifier"]
        assert write_script(script.version, script.content) == source
    report.ran("ride_parse", ran)
    report.skipped("ride_parse", skipped, "header 00 with version 6, which no compiler writes")


@pytest.mark.parametrize("name", ["ride_compile", "ride_estimate", "ride_eval"])
def test_scripts_of_other_vectors_are_written_as_they_were_read(name: str) -> None:
    count = 0
    for vector in load_vectors(name):
        text = vector.get("script")
        if not text:
            continue
        source = base64.b64decode(text)
        if source.startswith(OTHER_HEADER):
            continue
        script = parse_script(source)
        assert write_script(script.version, script.content) == source
        count += 1
    assert count > 100


# --- round trips ----------------------------------------------------------------------------------

names = st.text(max_size=8)
constants = st.recursive(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1).map(LongConst),
        st.binary(max_size=40).map(BytesConst),
        st.text(max_size=20).map(StringConst),
        st.booleans().map(BoolConst),
    ),
    lambda inner: st.lists(inner, max_size=4).map(lambda items: ListConst(tuple(items))),
    max_leaves=6,
)


def _declarations(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Let | Func]:
    functions = st.builds(Func, names, st.lists(names, max_size=3).map(tuple), inner)
    return st.builds(Let, names, inner) | functions


def _inner(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    function = st.integers(-(2**15), 2**15 - 1) | names
    return st.one_of(
        st.builds(GetField, inner, names),
        st.builds(If, inner, inner, inner),
        st.builds(Call, function, st.lists(inner, max_size=4).map(tuple)),
        st.builds(Block, _declarations(inner), inner),
        st.builds(Block, st.builds(Let, names, inner), inner, st.just(True)),
    )


trees = st.recursive(constants | names.map(Ref), _inner, max_leaves=25)
annotated = st.builds(AnnotatedFunction, names, st.builds(Func, names, st.just(("a", "b")), trees))
metas = st.builds(
    Meta,
    st.integers(-(2**31), 2**31 - 1),
    st.lists(st.binary(max_size=5), max_size=3).map(tuple),
    st.lists(st.tuples(names, names), max_size=3).map(tuple),
    st.lists(names, max_size=3).map(tuple),
)
dapps = st.builds(
    DApp,
    metas.map(write_meta),
    st.lists(_declarations(trees), max_size=3).map(tuple),
    st.lists(annotated, max_size=2).map(tuple),
    st.none() | annotated,
)


@given(trees, st.integers(1, 8))
def test_expressions_survive_the_way_there_and_back(tree: Expression, version: int) -> None:
    data = write_expression(tree, version)
    assert read_expression(data, version) == tree
    assert parse_script(write_script(version, tree)).content == tree


@given(dapps, st.integers(3, 8))
def test_dapps_survive_the_way_there_and_back(dapp: DApp, version: int) -> None:
    assert read_dapp(write_dapp(dapp, version), version) == dapp
    script = make_script(version, dapp)
    assert parse_script(script.source) == script


@given(metas)
def test_descriptions_survive_the_way_there_and_back(meta: Meta) -> None:
    assert read_meta(write_meta(meta)) == meta


def test_others_get_their_turn_at_every_node_of_what_is_read() -> None:
    tree: Expression = LongConst(1)
    for _ in range(1_000):
        tree = Call(100, (tree, LongConst(1)))
    written, turns = write_expression(tree, 6), 0

    def watch() -> None:
        nonlocal turns
        turns += 1
        if turns > 2_001:
            raise InterruptedError

    assert read_expression(written, 6, watch) == tree
    assert turns == 2_001
    with pytest.raises(InterruptedError):
        read_expression(written, 6, watch)


def test_the_bits_of_argument_types() -> None:
    meta = Meta(2, (bytes((1, 10, 24)), b""))
    assert argument_types(meta) == (
        (
            ArgumentType(("Int",)),
            ArgumentType(("ByteVector", "String")),
            ArgumentType(("String",), is_list=True),
        ),
        (),
    )
    assert argument_types(Meta(0, (b"\xff",))) is None
    for bad in (Meta(3), Meta(-1), Meta(1, (b"\0",)), Meta(1, (b"\x11",)), Meta(2, (b"\x20",))):
        with pytest.raises(ScriptFormatError):
            argument_types(bad)


def test_unknown_fields_of_a_description_are_passed_over() -> None:
    group = b"\x2b\x33\x08\x05\x34\x2c"
    fields = b"\x30\x05" + b"\x39" + bytes(8) + b"\x42\x01x" + b"\x4d" + bytes(4)
    assert read_meta(group + b"\x08\x02" + fields) == Meta(2)


def test_questions_about_a_whole_tree() -> None:
    one = LongConst(1)
    old = Block(Let("a", one), Ref("a"), old=True)
    new = Block(Func("f", (), ListConst((one,))), Call("f", ()))
    assert not has_later_blocks(old)
    assert has_later_blocks(If(old, new, old))
    assert has_lists(GetField(new, "x"))
    assert not has_lists(old)
    assert has_later_blocks(DApp(b"", (), ()))
    assert list(nodes(old)) == [old, one, Ref("a")]


# --- odd and hostile bytes ------------------------------------------------------------------------


def _sealed(body: bytes) -> bytes:
    return body + secure_hash(body)[:4]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty"),
        (b"\x0a\x06", "Invalid version"),
        (b"\xff\x06", "Invalid version of script: -1"),
        (b"\0\2", "Invalid version|Illegal length"),
        (b"\0\4\3\6", "Invalid content type"),
        (b"\6\0\6", "Invalid content type"),
        (b"\3", "breaks off"),
        (b"\3\6\6", "1 bytes left"),
        (b"\3\x0c", "unknown kind 12"),
        (b"\3\x0a\2\0\0\0\1a\6\6", "declaration of the unknown kind 2"),
        (b"\3\x09\2", "Unknown function header"),
        (b"\3\x09\0\0\1\x7f\xff\xff\xff", "too big"),
        (b"\3\x09\0\0\1\xff\xff\xff\xff", "too big"),
        (b"\3\1\x7f\xff\xff\xff", "Invalid array size"),
        (b"\3\1\xff\xff\xff\xff", "Invalid array size"),
        (b"\3\x0b\0\0\0\1\5\0\0\0\0", "Unsupported array element"),
        (b"\6\1\0" + b"\xff" * 10, "more than 10 bytes"),
        (b"\6\1\1\xff\xff\xff\xff\x0f", "Invalid array size"),
        (b"\6\1\1\xff\xff\xff\xff\x07", "Invalid array size"),
        (b"\6\2\0\xff\xff\xff\xff\x07", "too big"),
        (b"\6\2\0\0\0\2", "unknown option flag"),
        (b"\0\2\3" + bytes(4) + b"\xff\xff\xff\xff", "Invalid array size"),
        (b"\6\2\1\xff", "meta breaks off"),
        (b"\6\2\0\0\1\1i\0\1f\6\0", "is annotated, and no function"),
        (b"\3\1" + (32_768).to_bytes(4, "big") + bytes(32_768), "ByteStr size=32768"),
        (b"\3\2" + (32_768).to_bytes(4, "big") + b"a" * 32_768, "String size=32768"),
    ],
)
def test_bytes_that_are_no_script(body: bytes, reason: str) -> None:
    with pytest.raises(ScriptFormatError, match=reason):
        parse_script(_sealed(body) if body else b"")


def test_a_wrong_checksum() -> None:
    with pytest.raises(ScriptFormatError, match="checksum"):
        parse_script(b"\3\6" + bytes(4))


def test_text_that_is_no_base64() -> None:
    with pytest.raises(ScriptFormatError, match="base64"):
        parse_script_text("base64:@@@")
    assert parse_script_text("base64:AwZd0cYf").content == BoolConst(True)


def test_odd_forms_that_the_reference_reads() -> None:
    # A count of more than 127 in one signed byte means no arguments at all.
    assert read_expression(b"\x09\x01\1f\x80", 6) == Call("f", ())
    # The number of a function is cut to 16 bits.
    assert read_expression(b"\x09\x00\xe4\x80\x04\0", 6) == Call(100, ())
    # Text that is none is repaired; an encoded surrogate counts as one mistake.
    assert read_expression(b"\x05\5\xed\xa0\x80\xffa", 6) == Ref("\ufffd\ufffda")
    # What is a flag to everybody else is any positive number here.
    verifier = b"\0\0\0\1t\1\0\0\0\1v\0\0\0\0\6"
    assert read_dapp(bytes(16) + b"\0\0\0\5" + verifier, 3).verifier is not None


@pytest.mark.parametrize("version", [3, 6])
@pytest.mark.parametrize("wrap", ["if", "getter", "call", "let", "function", "list"])
def test_depth_is_bounded_by_the_bytes_alone(version: int, wrap: str) -> None:
    tree: Expression = BoolConst(True)
    for _ in range(SOME_DEPTH):
        match wrap:
            case "if":
                tree = If(tree, BoolConst(True), BoolConst(False))
            case "getter":
                tree = GetField(tree, "")
            case "call":
                tree = Call(0, (tree,))
            case "let":
                tree = Block(Let("", tree), BoolConst(True))
            case "function":
                tree = Block(Func("", (), tree), BoolConst(True))
            case _:
                tree = Block(Let("", BoolConst(True)), tree)
    data = write_expression(tree, version)
    again = read_expression(data, version)
    assert write_expression(again, version) == data
    assert sum(1 for _ in nodes(again)) > SOME_DEPTH


def test_deep_lists_are_too_heavy() -> None:
    with pytest.raises(ScriptFormatError, match="too heavy"):
        read_expression(b"\x0b\1" * DEPTH + b"\6", 6)


def test_a_deep_beginning_without_an_end() -> None:
    for tag in (b"\x03", b"\x08", b"\x09\x00\x00\x01", b"\x0a\0\0", b"\x04\0", b"\x0b\x01"):
        with pytest.raises(ScriptFormatError):
            read_expression(tag * DEPTH, 6)


@given(st.binary(max_size=200), st.integers(1, 8), st.booleans())
def test_any_bytes_are_read_or_refused(body: bytes, version: int, dapp: bool) -> None:
    try:
        content = read_dapp(body, version) if dapp else read_expression(body, version)
    except ScriptFormatError:
        return
    # What was read can be written, and reads as the same again.
    if isinstance(content, DApp):
        assert read_dapp(write_dapp(content, version), version) == content
    else:
        assert read_expression(write_expression(content, version), version) == content


@given(st.data())
def test_damaged_scripts_are_read_or_refused(data: st.DataObject) -> None:
    version = data.draw(st.integers(1, 8))
    good = bytearray(write_expression(data.draw(trees), version))
    place = data.draw(st.integers(0, len(good) - 1))
    good[place] = data.draw(st.integers(0, 255))
    try:
        read_expression(bytes(good), version)
    except ScriptFormatError:
        return
