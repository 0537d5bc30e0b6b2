"""HOCON: the examples of its specification, what is refused, and what must not grow."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from soliton.node.hocon import MAX_DEPTH, MAX_INCLUDES, Place
from soliton.node.settings_file import SettingsError, read_file
from tests.amounts import times


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.conf"


def tree(path: Path, text: str) -> object:
    path.write_text(text, encoding="utf-8")
    return read_file(path).tree


# Text and tree, by the sections of lightbend/config HOCON.md.
EXAMPLES: list[tuple[str, object]] = [
    # Comments; omit root braces; key-value separator; commas.
    ("a = 1 # one\nb : 2 // two\n# c = 3", {"a": 1, "b": 2}),
    ('{ "a": 1, "b": [1, 2,] }', {"a": 1, "b": [1, 2]}),
    ("a { b = 1 }\nc\n{ d = 2 }", {"a": {"b": 1}, "c": {"d": 2}}),
    ("a =\n  5\nb = [ 1\n 2\n\n 3 ]", {"a": 5, "b": [1, 2, 3]}),
    ("", {}),
    ("a = 1\r\nb = 2\r\n", {"a": 1, "b": 2}),
    ("\ufeffa = 1", {"a": 1}),
    # Duplicate keys and object merging.
    ("foo { a = 42 }, foo { b = 43 }", {"foo": {"a": 42, "b": 43}}),
    ("foo { a = 42 }, foo = null, foo { b = 43 }", {"foo": {"b": 43}}),
    ("foo = 1, foo = 2", {"foo": 2}),
    ("foo { a = 1 }, foo = 2", {"foo": 2}),
    # Unquoted strings; value concatenation.
    ("a = true, b = yes, c = null, d = -7, e = 1.5, f = 1e3",
     {"a": True, "b": "yes", "c": None, "d": -7, "e": 1.5, "f": 1000.0}),
    ("a =  foo  bar \nb = 10 min", {"a": "foo  bar", "b": "10 min"}),
    ('a = "x" "y"\nb = one"two"three', {"a": "x y", "b": "onetwothree"}),
    ("a = [1, 2] [3]\nb = { x = 1 } { y = 2 }", {"a": [1, 2, 3], "b": {"x": 1, "y": 2}}),
    ("a = http://host/p?q", {"a": "http://host/p?q"}),
    ("a = 1//2", {"a": 1}),
    # Strings.
    (r'a = "q\"\n\u0041\\"', {"a": 'q"\nA\\'}),
    ('a = """one\n"two" \\n"""\nb = """x""""', {"a": 'one\n"two" \\n', "b": 'x"'}),
    # Paths as keys.
    ("a.b.c = 1\na.b.d = 2", {"a": {"b": {"c": 1, "d": 2}}}),
    ('a."b.c".d = 1', {"a": {"b.c": {"d": 1}}}),
    ("a b c = 1", {"a b c": 1}),
    ("3.14 = 42", {"3": {"14": 42}}),
    # Substitutions.
    ("a = 1, b = ${a}, c = x${a}y", {"a": 1, "b": 1, "c": "x1y"}),
    ("b = ${a}, a = 1", {"b": 1, "a": 1}),
    ("a = ${?nothing-here}, b = [${?nothing-here}, 1]", {"b": [1]}),
    ("a = 1, a = ${?nothing-here}", {"a": 1}),
    ("a = -${b}, b = 5", {"a": "-5", "b": 5}),
    ("east { n = e }, dc = ${east} { n = x, m = 1 }",
     {"east": {"n": "e"}, "dc": {"n": "x", "m": 1}}),
    ("dc = ${east}, dc { m = 1 }, east { n = e }",
     {"dc": {"n": "e", "m": 1}, "east": {"n": "e"}}),
    ("a = { b = 1 }, a.c = ${a.b}", {"a": {"b": 1, "c": 1}}),
    # Self-referential substitutions, and +=.
    ('path = "/bin"\npath = ${path}":/usr"', {"path": "/bin:/usr"}),
    ("a = [1], a = ${a} [2]", {"a": [1, 2]}),
    ("a += 1, a += 2", {"a": [1, 2]}),
    ("x.a += 1\nx { a += 2 }", {"x": {"a": [1, 2]}}),
    ("foo : { a : { c : 1 } }\nfoo : ${foo.a}\nfoo : { a : 2 }", {"foo": {"a": 2, "c": 1}}),
    ("bar : { foo : 42, baz : ${bar.foo} }", {"bar": {"foo": 42, "baz": 42}}),
    ("bar : { foo : 42, baz : ${bar.foo} }\nbar : { foo : 43 }", {"bar": {"foo": 43, "baz": 43}}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), EXAMPLES)
def test_examples_of_the_specification(path: Path, text: str, expected: object) -> None:
    assert tree(path, text) == expected


def test_environment_and_properties(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_WORDS", "from outside")
    monkeypatch.setenv("HOME", "/home/op")
    text = 'a = ${SOME_WORDS}\nb = ${?SOME_WORDS}\nc = ${user.home}"/x"\nd = ${user.dir}'
    assert tree(path, text) == {
        "a": "from outside", "b": "from outside", "c": "/home/op/x", "d": str(Path.cwd())
    }  # fmt: skip


def test_includes(path: Path, tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "b.conf").write_text('x = 1\ny = ${x}\ninclude "c"')
    (tmp_path / "deeper" / "c.conf").write_text("z = 3")
    text = 'include "none.conf"\ntop { include "deeper/b.conf", x = 2 }\ninclude file("deeper/c")'
    assert tree(path, text) == {"top": {"x": 2, "y": 2, "z": 3}, "z": 3}
    with pytest.raises(SettingsError, match=r"a.conf:1: there is no file none"):
        tree(path, 'include required("none")')
    with pytest.raises(SettingsError, match="only files can be included"):
        tree(path, 'include url("http://127.0.0.1/x.conf")')
    with pytest.raises(SettingsError, match=f"more than {MAX_INCLUDES} files include each other"):
        tree(path, 'include "a.conf"')


def test_places_are_those_of_the_last_writing(path: Path, tmp_path: Path) -> None:
    (tmp_path / "b.conf").write_text("\nw = 1")
    path.write_text('a {\n b = 1\n c.d = [\n{ e = 1 }\n2 ]\n}\na.b = 2\nt = """\n\n"""\nu = 1\n'
                    'include "b.conf"')  # fmt: skip
    found = read_file(path)
    lines = {key: place.line for key, place in found.places.items() if place.file == str(path)}
    assert lines == {
        "a": 7, "a.b": 7, "a.c": 3, "a.c.d": 3, "a.c.d[0]": 4, "a.c.d[0].e": 4, "a.c.d[1]": 5,
        "t": 8, "u": 11,
    }  # fmt: skip
    assert found.place("w") == Place(str(tmp_path / "b.conf"), 2)
    assert found.place("a.c.missing") == Place(str(path), 3)
    assert found.place("missing") is None


DEEP = times(20_000, 100_000)
LINES = times(5_000, 50_000)

# What must end at once, and with which words.
GROWING = [
    ("a0 = [1, 1]\n" + "\n".join(f"a{n} = [${{a{n - 1}}}, ${{a{n - 1}}}]" for n in range(1, 60)),
     "too large"),
    ("a0 = xx\n" + "\n".join(f"a{n} = ${{a{n - 1}}}${{a{n - 1}}}" for n in range(1, 60)),
     "too large"),
    ("a { b = ${a} }", "without end"),
    ("a = ${b}, b = ${c}, c = ${a}", "neither in the file nor in the environment"),
    ("a {" * DEEP, f"more than {MAX_DEPTH}"),
    ("a = " + "[" * DEEP, f"more than {MAX_DEPTH}"),
    ("a." * DEEP + "a = 1", f"more than {MAX_DEPTH}"),
    ('a = "' + "x" * (30 * DEEP), "no closing"),
    ("a = " + "\\" * (10 * DEEP) + "$", "needs quotes"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), GROWING)
def test_no_text_takes_long(path: Path, text: str, words: str) -> None:
    started = time.process_time()
    with pytest.raises(SettingsError, match=words):
        tree(path, text)
    assert time.process_time() - started < 30


def test_large_files_are_read_in_time(path: Path) -> None:
    text = "\n".join(f"a.b{n} {{ c = [1, 2, {{ d = text }}] }} # {n}" for n in range(LINES))
    started = time.process_time()
    assert len(tree(path, text)["a"]) == LINES  # type: ignore[index]
    assert time.process_time() - started < 60
