"""The source formatter: spaces, indentation, blank lines.

What lives here: ``format_source``. What does not: parsing (``soliton.ride.compiler``), and files
(``soliton.cli``).

Line breaks and comments stay where the author put them. The formatter decides the space between two
tokens of a line, and the indentation: one step more than the line in which the innermost construct
began that the line continues (a bracket, a declaration, a branch, a case, an expression over
several lines). The formatted source has the same tokens and the same syntax tree, which is checked
each time. It compiles to the same script except for the names of hidden variables: the reference's
compiler names those after the offset of the declaration that unpacks a tuple.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from soliton.errors import InvariantBroken
from soliton.ride.compiler.directives import DAPP, LIBRARY, Directives, read_directives
from soliton.ride.compiler.errors import CompileError, Source, bounded
from soliton.ride.compiler.parser import parse_contract, parse_expression
from soliton.ride.compiler.syntax import (
    Case,
    Choice,
    ContractNode,
    Declared,
    FunctionNode,
    LetNode,
    Node,
)

MAX_SOURCE_CHARS: Final = 1_000_000
STEP: Final = "  "

_TOKEN: Final = re.compile(
    r"""(?P<directive>\{-\#[^\n]*?\#-\})
    |(?P<comment>\#[^\n]*)
    |(?P<text>"(?:\\.|[^"\\])*")
    |(?P<bytes>base(?:58|64|16)'[^']*')
    |(?P<name>FOLD<[0-9]+>|[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>[0-9][0-9_]*)
    |(?P<sign>=>|\|\||&&|>=|<=|==|!=|::|:\+|\+\+|[-><+*/%=!|:.,;@()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_TUPLE_NAME: Final = re.compile(r"\$t0[0-9]+")
_OPENING: Final = {"(": ")", "[": "]", "{": "}"}
_CLOSING: Final = frozenset(_OPENING.values())
_STATEMENTS: Final = frozenset(("let", "func", "strict", "case"))
_WORDS: Final = frozenset(("if", "then", "else", "match", "case", "let", "func", "strict"))
_TIGHT_BEFORE: Final = frozenset((",", ";", ")", "]", ".", ":"))
_TIGHT_AFTER: Final = frozenset(("(", "[", ".", "@", "!"))


def format_source(text: str) -> str:
    """Format a source; raise ``CompileError`` if it has a syntax error."""
    if len(text) > MAX_SOURCE_CHARS:
        raise CompileError(f"the source has more than {MAX_SOURCE_CHARS} characters")
    directives = read_directives(text)
    tree = _parsed(text, directives)
    tokens = _tokens(text)
    formatted = _written(tokens, _Layout(tokens, tree))
    if _shape(_parsed(formatted, directives)) != _shape(tree):
        raise InvariantBroken("the formatted source would mean something else")
    return formatted


def _parsed(text: str, directives: Directives) -> Node | ContractNode:
    with bounded():
        if directives.content == DAPP:
            return parse_contract(Source(text), directives.version)
        # The declarations of a library have no result.
        whole = f"{text}\nunit" if directives.content == LIBRARY else text
        return parse_expression(Source(whole), directives.version)


def _shape(tree: object) -> list[object]:
    """Return a syntax tree without offsets as a flat list."""
    found: list[object] = []
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, tuple):
            found.append(len(node))
            pending.extend(node)
        elif isinstance(node, msgspec.Struct):
            found.append(type(node))
            pending.extend(
                getattr(node, name) for name in node.__struct_fields__ if name not in _OFFSETS
            )
        elif isinstance(node, int) and not isinstance(node, bool):
            # The parameters of functions contain offsets.
            found.append(int)
        else:
            found.append(_TUPLE_NAME.sub("$t0", node) if isinstance(node, str) else node)
    return found


_OFFSETS: Final = ("start", "end")


# --- tokens ---------------------------------------------------------------------------------------


class _Token(msgspec.Struct, frozen=True):
    """A token or comment. ``lines`` is the number of line breaks before it, ``gap`` whether there
    is space before it, ``line`` its line number. ``sign`` marks a unary minus or plus.
    """

    kind: str
    text: str
    start: int
    line: int
    lines: int
    gap: bool
    sign: bool = False


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    before: _Token | None = None
    offset = line = 0
    while True:
        blank = _BLANK.match(text, offset)
        assert blank is not None
        offset = blank.end()
        if offset >= len(text):
            return found
        matched = _TOKEN.match(text, offset)
        if matched is None or matched.lastgroup is None:
            raise InvariantBroken(f"no word at offset {offset} of a source that was read")
        lines = blank.group().count("\n") if found else 0
        line += lines
        kind, word = matched.lastgroup, matched.group()
        gap = bool(blank.group())
        alone = word in ("+", "-") and _is_unary(text, offset, before, lines)
        found.append(_Token(kind, word, offset, line, lines, gap, alone))
        if kind != "comment":
            before = found[-1]
        offset = matched.end()


def _ends_operand(token: _Token) -> bool:
    if token.kind == "name":
        return token.text not in _WORDS
    return token.kind in ("text", "bytes", "number") or token.text in _CLOSING


def _is_unary(text: str, offset: int, before: _Token | None, lines: int) -> bool:
    """Whether a sign is unary. One before a number at the start of a line may be."""
    if before is None or not _ends_operand(before):
        return True
    return lines > 0 and text[offset + 1 : offset + 2].isdigit()


# --- indentation ----------------------------------------------------------------------------------


class _Region(msgspec.Struct, frozen=True):
    """A range of offsets that continues a construct that began in line ``anchor``."""

    start: int
    end: int
    anchor: int


class _Layout:
    """The indentation of all lines."""

    def __init__(self, tokens: list[_Token], tree: Node | ContractNode) -> None:
        self._words = [token for token in tokens if token.kind != "comment"]
        self._line_at = {token.start: token.line for token in self._words}
        self._first: dict[int, _Token] = {}
        for token in tokens:
            self._first.setdefault(token.line, token)
        self._opener: dict[int, _Token] = {}
        self._else: dict[int, tuple[_Token, int]] = {}
        regions = list(self._of_tree(tree))
        ends = {node.start: node.end for node in _nodes(tree) if isinstance(node, Choice)}
        regions += self._of_brackets()
        regions += self._of_choices(ends)
        self._inside = _innermost(regions, tokens)
        self._around = _words_around(tokens)
        self._known: dict[int, int] = {}

    def indent(self, line: int) -> int:
        """Return the indentation of a line in steps; call this from top to bottom."""
        known = self._known.get(line)
        if known is None:
            known = self._known[line] = self._found(self._first[line])
        return known

    def _found(self, token: _Token) -> int:
        if token.kind == "comment":
            before, following = self._around[token.start]
            if following is not None and following.text not in _CLOSING | {"else", "then"}:
                token = following
            elif before is not None:
                return self.indent(before.line) + (before.text in _OPENING)
        if token.kind == "directive":
            return 0
        opener = self._opener.get(token.start)
        if opener is not None:
            return self.indent(opener.line)
        branches = self._else.get(token.start)
        if branches is not None:
            then, head = branches
            return self.indent(then.line if self._first[then.line] is then else head)
        region = self._inside.get(token.start)
        return 0 if region is None else self.indent(region.anchor) + 1

    def _of_brackets(self) -> Iterator[_Region]:
        """Yield the content of brackets, and its parts that span several lines."""
        stack: list[_Bracket] = []
        for token in self._words:
            if token.text in _CLOSING and token.kind == "sign" and stack:
                closed = stack.pop()
                self._opener[token.start] = closed.opener
                yield _Region(closed.opener.start + 1, token.start, closed.opener.line)
                yield from closed.part_until(token)
                continue
            if stack:
                yield from stack[-1].take(token)
            if token.text in _OPENING and token.kind == "sign":
                stack.append(_Bracket(token))

    def _of_choices(self, ends: dict[int, int]) -> Iterator[_Region]:
        """Yield choices and their branches; an ``else if`` continues the choice before it."""
        pending: list[tuple[_Token, int]] = []
        opened: list[tuple[_Token, int, _Token]] = []
        chained: dict[int, int] = {}
        for token, following in zip(self._words, [*self._words[1:], None], strict=True):
            if token.kind != "name":
                continue
            if token.text == "if":
                head = chained.get(token.start)
                if head is None:
                    yield _Region(token.start + 1, ends.get(token.start, 0), token.line)
                    head = token.line
                pending.append((token, head))
            elif token.text == "then" and pending:
                opened.append((*pending.pop(), token))
            elif token.text == "else" and opened:
                choice, head, then = opened.pop()
                self._else[token.start] = then, head
                yield _Region(then.start + 1, token.start, then.line)
                assert following is not None, "a choice has two branches"
                if following.text == "if" and following.line == token.line:
                    chained[following.start] = head
                else:
                    yield _Region(token.start + 1, ends.get(choice.start, 0), token.line)

    def _of_tree(self, tree: Node | ContractNode) -> Iterator[_Region]:
        if not isinstance(tree, ContractNode | Declared):
            yield self._region(tree.start, tree.end)
        for node in _nodes(tree):
            match node:
                case LetNode(start, end) | FunctionNode(start, end) | Case(start, end):
                    yield self._region(start, end)
                case Declared(_, end):
                    rest = _rest(node)
                    if not isinstance(rest, Declared):
                        yield self._region(rest.start, end)
                case _:
                    pass

    def _region(self, start: int, end: int) -> _Region:
        return _Region(start + 1, end, self._line_at.get(start, 0))


class _Bracket:
    """An open bracket, and the current part of its content."""

    __slots__ = ("_begun", "_part", "opener")

    def __init__(self, opener: _Token) -> None:
        self.opener = opener
        self._part: _Token | None = None
        self._begun = False

    def take(self, token: _Token) -> Iterator[_Region]:
        """Process a token of the content; declarations and cases are not parts."""
        if token.text == "," and token.kind == "sign":
            yield from self.part_until(token)
            self._begun = False
        elif not self._begun:
            self._begun = True
            self._part = None if token.text in _STATEMENTS else token

    def part_until(self, token: _Token) -> Iterator[_Region]:
        """Yield the part that ends before a token."""
        if self._part is not None:
            yield _Region(self._part.start + 1, token.start, self._part.line)
        self._part = None


def _rest(node: Declared) -> Node:
    """Return what follows a declaration in the source, without the expansion of ``strict``."""
    rest = node.body
    if isinstance(rest, Choice) and rest.start == node.start:
        rest = rest.then
        while isinstance(rest, Declared) and rest.start == node.start:
            rest = rest.body
    return rest


def _nodes(tree: object) -> Iterator[object]:
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, tuple):
            pending.extend(node)
        elif isinstance(node, msgspec.Struct):
            yield node
            pending.extend(getattr(node, name) for name in node.__struct_fields__)


def _innermost(regions: list[_Region], tokens: list[_Token]) -> dict[int, _Region]:
    """Return, for the first token of each line, the smallest region around it that began before."""
    found: dict[int, _Region] = {}
    pending = sorted(regions, key=lambda region: (region.start, -region.end), reverse=True)
    stack: list[_Region] = []
    for token in tokens:
        while pending and pending[-1].start <= token.start:
            stack.append(pending.pop())
        while stack and stack[-1].end <= token.start:
            stack.pop()
        if token.lines or not found:
            for region in reversed(stack):
                if region.anchor < token.line and region.end > token.start:
                    found[token.start] = region
                    break
    return found


def _words_around(tokens: list[_Token]) -> dict[int, tuple[_Token | None, _Token | None]]:
    """Return, for each comment, the tokens before and after it."""
    following: dict[int, _Token | None] = {}
    word: _Token | None = None
    for token in reversed(tokens):
        following[token.start] = word
        word = word if token.kind == "comment" else token
    found: dict[int, tuple[_Token | None, _Token | None]] = {}
    word = None
    for token in tokens:
        found[token.start] = word, following[token.start]
        word = word if token.kind == "comment" else token
    return found


# --- writing --------------------------------------------------------------------------------------


def _written(tokens: list[_Token], layout: _Layout) -> str:
    parts: list[str] = []
    before: _Token | None = None
    earlier: _Token | None = None
    for token in tokens:
        if token.lines or before is None:
            parts.append("\n" * min(token.lines, 2))
            parts.append(STEP * layout.indent(token.line))
        else:
            parts.append(_between(earlier, before, token))
        parts.append(_token_text(token))
        earlier, before = before, token
    return "".join(parts) + "\n" if parts else ""


def _token_text(token: _Token) -> str:
    if token.kind == "comment":
        return token.text.rstrip()
    if token.kind == "directive":
        key_and_value = token.text[len("{-#") : -len("#-}")].split(maxsplit=1)
        return f"{{-# {' '.join(key_and_value).rstrip()} #-}}"
    return token.text


def _between(earlier: _Token | None, before: _Token, token: _Token) -> str:
    """Return the space between two tokens of a line."""
    kept = " " if token.gap else ""
    if "comment" in (before.kind, token.kind) or "directive" in (before.kind, token.kind):
        return " "
    if before.kind == "sign":
        tight = _after_sign(before, token)
        if tight is not None:
            return tight if token.text not in _TIGHT_BEFORE or token.kind != "sign" else ""
    if token.kind != "sign":
        return kept if before.text == "|" else " "
    return _before_sign(earlier, before, token, kept)


def _after_sign(before: _Token, token: _Token) -> str | None:
    """Return the space after a sign, or ``None`` if the next token decides it."""
    if before.sign:
        # Two signs, or a sign and a number, might be parsed as one token.
        digit = token.kind == "number" or token.sign
        return (" " if token.gap else "") if digit else ""
    if before.text in _TIGHT_AFTER:
        return ""
    if before.text == "{":
        return "" if token.text == "}" else " "
    if before.text == "|":
        return " " if token.gap else ""
    return None if before.text in _CLOSING else " "


def _before_sign(earlier: _Token | None, before: _Token, token: _Token, kept: str) -> str:
    if token.text in _TIGHT_BEFORE:
        return ""
    if token.text in ("(", "["):
        if before.kind == "name" and before.text in _WORDS:
            return " "
        if earlier is not None and earlier.text in ("func", "@") and token.text == "(":
            return ""
        return kept
    if token.text == "|":
        return kept
    return " "
