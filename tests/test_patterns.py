"""Regular expressions over what strangers send: each is known, and takes time in proportion.

Python's matcher tries again and again where a pattern leaves it a choice: one with a repetition
inside of another, or with two beside each other that take the same characters, can take quadratic
time and worse. A new pattern is refused here until somebody has put it into the table, with texts
made against it.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module

import pytest

from tests.growth import MAX_GROWTH, growth
from tests.source import nodes_of, sources
from tests.vectors import REPOSITORY

SOURCE = REPOSITORY / "src" / "soliton"
SIZE = 50_000
SHORT = 40

Text = Callable[[int], str]


def runs(*parts: str) -> tuple[Text, ...]:
    """Texts that repeat each of the parts, with and without something at the end that fits
    nothing.
    """
    return tuple(
        partial(_repeated, part, end) for part in parts for end in ("", "\x00", "\x00" + part)
    )


def _repeated(part: str, end: str, size: int) -> str:
    return part * (size // len(part)) + end


BLANKS = (" ", "\n", " \n", "\t ", "\r\n")
OWN = "what the operator has written"
# Where a pattern stands and what it is called, with the texts made against it; or why it sees none.
PATTERNS: dict[str, tuple[Text, ...] | str] = {
    "api/downloads.py:_RANGE": runs("bytes=", "bytes=1", "1", "-", "bytes=1-1"),
    "api/hints.py:_ETHEREUM": runs("0x", "0", "0xa"),
    "api/rest/signing.py:_BYTE_TEXT": runs("1", "+", "+1"),
    "chain/json_kinds.py:_NO_BASE64": runs("A", "=", "!"),
    "chain/layouts.py:_ENCODED_SURROGATE": runs("\xed", "\xed\xa0", "\xed\xa0\x80"),
    "chain/networks/sections.py:_DURATION": OWN,
    "chain/networks/sections.py:_WHOLE": OWN,
    "cli/data_service.py:_AMOUNT": OWN,
    "cli/part_sources.py:_RANGE": runs("bytes ", "bytes 1", "1", "bytes 1-1/"),
    "cli/quantities.py:_SHARE": OWN,
    "cli/quantities.py:_TIME": OWN,
    "cli/quantities.py:_WHOLE": OWN,
    "cli/snapshot_checks.py:_TRUST": OWN,
    "client/amounts.py:_NUMBER": runs("1", ".", "-", "1."),
    "client/records.py:_INTEGER": runs("1", "-", "-1"),
    "client/sending.py:_LEAST": runs("minimal value of ", "minimal value of 1", "1"),
    "client/sending.py:_OR": runs(" or ", " or 1", "1"),
    "data_service/parameters.py:_WHOLE": runs("1", "+", "+1", "-1"),
    "export/rows.py:_ESCAPES": runs("\\", "\\\\", "\\u", "\\u0000", "\\\\u0000"),
    "matcher/ccxt/steps.py:_PLAIN_CODE": OWN,
    "matcher/rest/pages.py:_BESIDE": OWN,
    "node/signer_settings.py:_ORIGIN": OWN,
    "signer/page.py:_LOCAL_NODE": OWN,
    "node/hocon.py:_NUMBER": OWN,
    "node/hocon.py:_TOKEN": OWN,
    "node/hocon.py:_WHOLE": OWN,
    "node/rest_settings.py:_HEADER_NAME": OWN,
    "node/rest_settings.py:_HOST_NAME": OWN,
    "node/rest_settings.py:KEY_NAME": OWN,
    "node/rest_settings.py:_ORIGIN": OWN,
    "pages/files.py:_IMPORT": runs("import ", 'import a from "./', ' from "./a'),
    "pages/files.py:_ORIGIN": (
        *runs("http://", "https://a", "a", ".", ":1", "http://a:1"),
        lambda n: "https://" + "a" * n,
        lambda n: "https://" + "a." * (n // 2) + ":",
    ),
    "ride/compiler/cursor.py:_DIRECTIVES": runs(*BLANKS, "#", "#\n", "{-#", "{-##-}", "{-# a #-}"),
    "ride/compiler/guessing.py:_CAST": (
        *runs("Couldn't cast ", " to "),
        lambda n: "Couldn't cast " + " to " * (n // 4),
        lambda n: "Couldn't cast " + "a" * n,
    ),
    "ride/compiler/literals.py:BLANK": runs(*BLANKS),
    "ride/compiler/literals.py:GAP": runs(*BLANKS, "#", "#\n", "# \n "),
    "ride/compiler/literals.py:MEMBER": runs("a", "_", "a_", "a__", "a1_"),
    "ride/compiler/literals.py:NAME": runs("a", "_", "a_", "a__", "a1_"),
    "ride/compiler/literals.py:NUMBER": runs("1", "_", "1_", "1__", "+1"),
    "ride/compiler/literals.py:_BASE64": runs("A", "=", "A=", "A=="),
    "ride/compiler/literals.py:_BYTES": (
        *runs("base58'", "base64'A'", "'"),
        lambda n: "base58'" + "a" * n,
    ),
    "ride/compiler/literals.py:_ESCAPE": runs("\\u", "\\", "\\\\", "\\uAAA", "\\uAAAAA"),
    "ride/compiler/literals.py:_HEX": runs("a", "aa", "g"),
    "ride/compiler/literals.py:_TEXT": (
        *runs('"', '\\"', "\\u", '"\\uAAAA'),
        lambda n: '"' + "\\uAAAA" * (n // 6),
        lambda n: '"' + "\\" * n,
    ),
    "ride/compiler/parser.py:_COMMENTS": runs("#", "#\n", "#\n ", "# \n\n"),
    "ride/compiler/parser.py:_DECLARATION_END": runs(*BLANKS, " ;"),
    "ride/compiler/parser.py:_FOLD": (*runs("FOLD<", "FOLD<1"), lambda n: "FOLD<" + "1" * n),
    "ride/compiler/parser.py:_NUMBER_ON_NEW_LINE": runs(*BLANKS, "\n\r", "\n+"),
    "ride/compiler/parser.py:_OBJECT_PATTERN": (
        *runs("(", "(a", " ("),
        lambda n: "(" + "a" * n,
        lambda n: "(" + " " * n + "a",
        lambda n: "(a" + " " * n,
        lambda n: "(a" + "_" * n + "==",
    ),
    "ride/compiler/parser.py:_OPERATOR": runs("|", "||", "=", ":"),
    "ride/compiler/parser.py:_UNARY_MINUS": (*runs("-", "- "), lambda n: "-" + " " * n + "1"),
    "ride/compiler/guessing.py:_TUPLE_FIELD": runs("_", "_1", "1", "_22"),
    "ride/decompiler.py:_HIDDEN_NAME": runs("a$t0", "$t0", "1", "$"),
    "ride/decompiler.py:_OFFSET": runs("a$t0", "$t0", "1", "$"),
    "ride/decompiler.py:_SPECIAL": runs("\\", '"', "\n"),
    "ride/formatter.py:_BLANK": runs(*BLANKS),
    "ride/formatter.py:_TOKEN": OWN,
    "ride/formatter.py:_TUPLE_NAME": runs("$t0", "$", "$t0111"),
    "ride/functions/encodings.py:_NO_DIGIT_OF_BASE16": runs("a", "aa", "g"),
    "ride/functions/encodings.py:_BASE64": runs("A", "=", "A=", "A=="),
    "keystore/imports.py:_INVALID_NAME_CHARACTERS": runs("a", " ", "a "),
    "keystore/keys.py:_NAME": runs("a", "-", "a-"),
    "node/signer_settings.py:_FINGERPRINT": runs("a"),
    "node/signer_settings.py:_HOST": runs("a", ".", "-"),
    "node/signer_settings.py:_POLICY_HASH": runs("a"),
    "signer/journal.py:_NAME": runs("audit-", "1"),
    "signer/policy_file.py:_DURATION": runs("1", "s"),
    "signer/policy_file.py:_HEADER": runs(" ", "[[", "rule"),
    "signer/policy_file.py:_KEY": runs(" ", "a", "-"),
    "signer/policy.py:_HOST": runs("a", ".", "-", "a."),
    "signer/policy_file.py:_PRICE": runs("1", ".", "1."),
    "signer/policy_file.py:_NAME": runs("a", ".", "-"),
    "signer/policy_file.py:_TABLE": runs(" ", "["),
    "signer/request.py:_QUOTABLE": runs("a", "_", "1"),
    "signer/sign_request.py:_ID": runs("a", "!"),
    "ride/compiler/all_faults.py:_DECLARED": runs("func ", "let a", "\n", "func\ta"),
    "ride/compiler/all_faults.py:_TOP": runs("func ", "@", "\n", "let("),
    "workshop/language.py:_MEMBER": runs(".", ". ", "a", ".a", "\t"),
    "workshop/language.py:_WORD": runs("a", "a ", "1", "_"),
    "workshop/repl.py:_DECLARATION": OWN,
    "workshop/repl.py:_DECLARED": OWN,
    "workshop/repl.py:_DIRECTIVE": OWN,
    "workshop/repl.py:_TEXTS": OWN,
    "workshop/debugger.py:_BREAK": OWN,
    "workshop/debugger.py:_NUMBER": OWN,
    "workshop/debugger.py:_WORD": runs("a", "a ", "1", "_"),
    "storage/checkpoint.py:LIST_NAME": runs("MANIFEST-", "MANIFEST-1", "1"),
    "storage/checkpoint.py:TABLE_NAME": runs("1", "1.", "1.sst", "."),
    "storage/checkpoint.py:_LOG_NAME": runs("1", "1.", "1.log", "."),
    "storage/parts.py:_SHA256": runs("0", "g"),
    "web/cors.py:_ORIGIN": runs("a", "a:", "://", "a://", "a://a"),
    "proxies.py:_ESCAPED": runs("\\", "a"),
    "proxies.py:_PAIR": (
        *runs(" ", "a", "a=", "a=b", 'a="', "\\", 'a="b";', "a=b;", ",", "\t ", "="),
        lambda n: " " * n + "!",
        lambda n: 'a="' + "\\" * n,
        lambda n: "a=b" + " " * n + "x",
    ),
    "web/header_rules.py:_AUTHORITY": runs("a", "%20", "%", ":", "1", "[::", "[::%25a", "a:1"),
}
# Those that programs of ours make while they run, from what an operator has written.
OF_SETTINGS = {"matcher/trading_settings.py"}
FUNCTIONS = {
    *("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"),
}


def patterns() -> Iterator[str]:
    """Each use of ``re`` in the sources: its module, and the name that what it gives has there."""
    for path in sources("src"):
        module = path.relative_to(SOURCE).as_posix()
        nodes = nodes_of(path)
        targets = {node.value: node.target for node in nodes if isinstance(node, ast.AnnAssign)}
        for node in nodes:
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr=used)) if (
                    used in FUNCTIONS and module not in OF_SETTINGS
                ):
                    target = targets.get(node)
                    yield f"{module}:{target and ast.unparse(target)}"


def test_every_pattern_is_known() -> None:
    found = set(patterns())
    assert found - PATTERNS.keys() == set(), "judge it, and put texts against it into the table"
    assert PATTERNS.keys() - found == set()


def compiled(name: str) -> re.Pattern[str]:
    module, _, variable = name.partition(":")
    imported = import_module("soliton." + module.removesuffix(".py").replace("/", "."))
    pattern = getattr(imported, variable)
    if isinstance(pattern.pattern, bytes):
        return re.compile(pattern.pattern.decode("latin-1"), pattern.flags | re.UNICODE)
    found: re.Pattern[str] = pattern
    return found


@pytest.mark.parametrize("name", [name for name, texts in PATTERNS.items() if texts != OWN])
def test_patterns_take_as_long_as_the_text_is(name: str) -> None:
    pattern, texts = compiled(name), PATTERNS[name]

    def work(text: str) -> None:
        pattern.match(text)
        pattern.fullmatch(text)

    assert not isinstance(texts, str)
    for make in texts:
        # Something exponential would never come to an end with longer ones.
        for size in range(4, SHORT, 2):
            started = time.thread_time()
            work(make(size))
            assert time.thread_time() - started < 1, (name, make(20))
        assert growth(work, make, SIZE) <= MAX_GROWTH, (name, make(20))
