"""The parser: from source text to syntax tree.

What lives here: expressions, declarations, patterns and dApps. What does not: types
(``type_syntax``), literals (``literals``), directives (``directives``), semantics (``checker``).

The reference has no tokenizer, and line ends are significant in a few places. The bracket of a call
or an index directly follows the name, a declaration ends at a line end or semicolon, and a signed
number at the beginning of a line is a new expression. The exact offsets matter, since compiled
scripts contain them in the names of hidden variables.

Nesting is limited. Long chains (``else if``, declarations, operators) are parsed in loops.

Source: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/parser/``
``{Parser,BinaryOperation,UnaryOperation,Macro}.scala``.
"""

from __future__ import annotations

import re
from typing import Final

from soliton.ride.compiler.cursor import HIDDEN, Cursor
from soliton.ride.compiler.errors import CompileError, Source
from soliton.ride.compiler.literals import (
    BLANK,
    GAP,
    MEMBER,
    NAME,
    NUMBER,
    bytes_start,
    read_bytes,
    read_number,
    read_text,
)
from soliton.ride.compiler.operators import (
    CONS_LEVEL,
    LEVEL_OF,
    SUM_LEVEL,
    reduce_operands,
    strict_block,
)
from soliton.ride.compiler.syntax import (
    AnnotatedNode,
    Annotation,
    Apply,
    Binding,
    Case,
    Cast,
    Choice,
    Constants,
    ContractNode,
    Declared,
    Field,
    Fold,
    FunctionNode,
    LetNode,
    ListLiteral,
    Literal,
    Match,
    Name,
    Node,
    ObjectPattern,
    PatternNode,
    Truth,
    TuplePattern,
    TypeNode,
)
from soliton.ride.compiler.type_syntax import parse_type_node
from soliton.ride.hash_order import hash_map_order

MAX_TUPLE_SIZE: Final = 22
MAX_FOLD_LIMIT: Final = 1000

_COMMENTS: Final = re.compile(r"#[^\n]*+(?:[ \t\r\n]*+#[^\n]*+)*+")
_OPERATOR: Final = re.compile(r"\|\||&&|>=|<=|==|!=|::|:\+|\+\+|[><+\-*/%]")
_NUMBER_ON_NEW_LINE: Final = re.compile(r"[\n\r]+[ \t]*[+-]?[0-9]")
_DECLARATION_END: Final = re.compile(r"[ \t\r\n]*;|[ \t\r]*\n")
_BORDER: Final = " \t\n\r({"
_FOLD: Final = re.compile(r"FOLD<([0-9]+)>\(")
_OBJECT_PATTERN: Final = re.compile(
    r"[ \t\r\n]*\([ \t\r\n]*(?:\)|_?[A-Za-z][A-Za-z0-9_]*[ \t\r\n]*=(?!=))"
)
_UNARY_MINUS: Final = re.compile(r"-[ \t\r\n]*(?![ \t\r\n0-9])")

_Pending = tuple[str, int, list[LetNode | FunctionNode]]


def parse_expression(source: Source, version: int) -> Node:
    """Parse a source that is one expression."""
    return Parser(source, version).whole_expression()


def parse_contract(source: Source, version: int) -> ContractNode:
    """Parse a source that is a dApp."""
    return Parser(source, version).contract()


class Parser(Cursor):
    """A recursive descent parser of one source."""

    # --- wholes ---

    def whole_expression(self) -> Node:
        """Parse the whole source as an expression."""
        self._skip_directives()
        if self._offset >= self._size:
            raise self._error("the source is empty", "it needs an expression as its result")
        result = self._expression()
        self._gap()
        if self._offset < self._size:
            raise self._unexpected("the expression has ended here")
        return result

    def contract(self) -> ContractNode:
        """Parse the whole source as a dApp."""
        self._skip_directives()
        declarations = self._declarations(required=False)
        functions = []
        self._gap()
        while self._next_is("@"):
            functions.append(self._annotated())
            self._gap()
        if functions and self._declaration_word() is not None:
            raise self._error(
                "a declaration after a callable function", "declare it before the first @Callable"
            )
        if self._offset < self._size:
            raise self._unexpected("expected a declaration or a function with annotation")
        return ContractNode(tuple(declarations), tuple(functions), self._size)

    def _annotated(self) -> AnnotatedNode:
        annotations = []
        while self._next_is("@"):
            start = self._offset
            self._offset += 1
            name = self._name("the name of an annotation")
            self._expect("(")
            names = []
            if not self._ahead(")"):
                names = [self._positioned_name("a parameter")]
                while self._accept(",", comments=False):
                    names.append(self._positioned_name("a parameter"))
            self._expect(")")
            annotations.append(Annotation(start, self._offset, name, tuple(names)))
            self._blank()
        self._gap()
        if self._declaration_word() != "func":
            raise self._unexpected("expected func after the annotation")
        return AnnotatedNode(tuple(annotations), self._function())

    # --- expressions ---

    def _expression(self, *, blocks: bool = True) -> Node:
        """Parse an expression; with ``blocks`` it may begin with declarations.

        Callers skip comments where the reference allows them. Any others at the start hide unary
        operators and ``strict`` from the reference.
        """
        self._deeper("give a name to a part with let")
        pending: list[_Pending] = []
        commented = False
        while blocks:
            commented = self._commented_gap()
            start = self._offset
            if self._word_ahead("strict"):
                if commented:
                    raise self._error(*HIDDEN)
                pending.append(("strict", start, [*self._definition("strict")]))
            elif self._declaration_word() is not None:
                pending.append(("let", start, self._declarations(required=True)))
            else:
                break
            self._end_of_declaration()
        result = self._operators(blocks=blocks, commented=commented)
        end = self._offset
        for word, start, declarations in reversed(pending):
            if word == "strict":
                result = strict_block(start, end, declarations, result)
            else:
                for declaration in reversed(declarations):
                    result = Declared(start, end, declaration, result)
        self._depth -= 1
        return result

    def _end_of_declaration(self) -> None:
        found = _DECLARATION_END.match(self._text, self._offset)
        if found is None:
            self._gap()
            if self._offset >= self._size or self._text[self._offset] in "})]":
                raise self._error("the block has no result", "end it with an expression")
            raise self._unexpected("the declaration has ended here", "begin a new line, or use ;")
        self._offset = found.end()

    def _operators(self, *, blocks: bool, commented: bool) -> Node:
        operands = [self._operand(blocks=blocks, commented=commented)]
        signs: list[tuple[int, str]] = []
        text = self._text
        while True:
            blank = BLANK.match(text, self._offset)
            assert blank is not None
            found = _OPERATOR.match(text, blank.end())
            if found is None:
                break
            sign = found.group()
            level = LEVEL_OF[sign]
            if _NUMBER_ON_NEW_LINE.match(text, self._offset):
                nearest = next((known for known, _ in reversed(signs) if known <= level), None)
                if level == SUM_LEVEL and nearest != level:
                    break
            while signs and (
                signs[-1][0] > level or (signs[-1][0] == level and level != CONS_LEVEL)
            ):
                reduce_operands(operands, signs.pop()[1])
            signs.append((level, sign))
            self._offset = found.end()
            operands.append(self._operand(blocks=blocks))
        while signs:
            reduce_operands(operands, signs.pop()[1])
        return operands[0]

    def _operand(self, *, blocks: bool, commented: bool = False) -> Node:
        self._next_operand()
        prefixes: list[tuple[int, str]] = []
        while True:
            commented = self._commented_gap() or commented
            if self._next_is("!"):
                prefixes.append((self._offset, "!"))
            elif self._next_is("-") and _UNARY_MINUS.match(self._text, self._offset):
                prefixes.append((self._offset, "-"))
            else:
                break
            if commented:
                raise self._error(*HIDDEN)
            self._next_operand()
            self._offset += 1
        result = self._atom(blocks=blocks)
        self._offset = self._after_comments()
        for start, sign in reversed(prefixes):
            result = Apply(start, self._offset, sign, (result,))
        return result

    def _after_comments(self) -> int:
        """Return the end of an operand as the reference counts it: after the comments that follow,
        or at the end of the source if nothing else follows.
        """
        blank = BLANK.match(self._text, self._offset)
        assert blank is not None
        offset, end = blank.end(), self._offset
        if self._text.startswith("#", offset):
            comments = _COMMENTS.match(self._text, offset)
            assert comments is not None
            end = comments.end()
            blank = BLANK.match(self._text, end)
            assert blank is not None
            offset = blank.end()
        return offset if offset >= self._size else end

    def _atom(self, *, blocks: bool) -> Node:
        start = self._offset
        if start >= self._size:
            raise self._error("the source ends where an expression is expected")
        char = self._text[start]
        if char.isalpha() or char == "_":
            special = self._keyword_atom(start, blocks=blocks)
            if special is not None:
                return special
            return self._accessors(start, self._word_atom(start))
        return self._accessors(start, self._sign_atom(start, char))

    def _keyword_atom(self, start: int, *, blocks: bool) -> Node | None:
        """Parse an expression that begins with a keyword and takes no accessors."""
        if self._word_ahead("if", _BORDER):
            return self._choice()
        if self._word_ahead("match", _BORDER):
            return self._match(start)
        if blocks and self._declaration_word() is not None:
            return self._expression()
        fold = _FOLD.match(self._text, start)
        if fold is not None:
            return self._fold(start, fold)
        return None

    def _sign_atom(self, start: int, char: str) -> Node:
        if char == "{":
            self._offset += 1
            self._gap()
            inner = self._expression()
            self._expect("}")
            return inner
        if char == "(":
            self._offset += 1
            items = self._list_until(")")
            if len(items) == 1:
                return items[0]
            if len(items) > MAX_TUPLE_SIZE:
                raise self._source.error(
                    start, f"a tuple has at most {MAX_TUPLE_SIZE} elements", "use a list"
                )
            return Apply(start, self._offset, f"$Tuple{len(items)}", tuple(items))
        if char == "[":
            self._offset += 1
            items = self._list_until("]")
            if not items:
                return Name(start, self._offset, "nil")
            return ListLiteral(start, self._offset, tuple(items))
        if char == '"':
            return self._literal(read_text(self._source, start))
        if NUMBER.match(self._text, start):
            return self._literal(read_number(self._source, start))
        raise self._unexpected("expected an expression")

    def _word_atom(self, start: int) -> Node:
        if bytes_start(self._text, start):
            return self._literal(read_bytes(self._source, start))
        for word, value in (("true", True), ("false", False)):
            if self._text.startswith(word, start):
                after = self._text[start + len(word) : start + len(word) + 1]
                if not after.isalnum():
                    self._offset = start + len(word)
                    return Truth(start, self._offset, value)
        name = self._name("an expression")
        if not self._next_is("("):
            return Name(start, self._offset, name)
        self._offset += 1
        arguments = self._list_until(")")
        return Apply(start, self._offset, name, tuple(arguments))

    def _literal(self, literal: Literal) -> Literal:
        self._offset = literal.end
        return literal

    def _list_until(self, closing: str) -> list[Node]:
        items: list[Node] = []
        if not self._ahead(closing):
            items.append(self._expression())
            while self._accept_comma():
                items.append(self._expression())
        self._expect(closing)
        return items

    def _accessors(self, start: int, subject: Node) -> Node:
        """Parse the fields, indexes, casts and method calls that follow an expression."""
        while True:
            if self._next_is("["):
                self._offset += 1
                index = self._expression()
                self._expect("]")
                subject = Apply(start, self._offset, "getElement", (subject, index))
                continue
            gap = GAP.match(self._text, self._offset)
            assert gap is not None
            if not self._text.startswith(".", gap.end()):
                return subject
            self._next_operand()
            self._offset = gap.end() + 1
            subject = self._member(start, subject)

    def _member(self, start: int, subject: Node) -> Node:
        self._gap()
        found = MEMBER.match(self._text, self._offset)
        if found is None:
            raise self._unexpected("expected the name of a field or function")
        name = found.group()
        if name in self._keywords:
            raise self._error(f"{name!r} is a word of the language")
        self._offset = found.end()
        if name in ("as", "exactAs"):
            if not self._next_is("["):
                raise self._unexpected("expected a type", f"write .{name}[Type]")
            self._offset += 1
            type_ = self._type()
            self._expect("]", comments=False)
            return Cast(start, self._offset, subject, name == "exactAs", type_)
        if not self._next_is("("):
            return Field(start, self._offset, subject, name)
        self._offset += 1
        arguments = self._list_until(")")
        return Apply(start, self._offset, name, (subject, *arguments))

    def _choice(self) -> Node:
        """Parse ``if`` with all following ``else if``."""
        branches = []
        while True:
            begin = self._offset
            self._offset += len("if")
            condition = self._expression()
            self._expect_word("then")
            then = self._expression()
            self._expect_word("else")
            branches.append((begin, condition, then))
            after_else = self._offset
            self._gap()
            if not self._word_ahead("if", _BORDER):
                self._offset = after_else
                break
        result = self._expression()
        for begin, condition, then in reversed(branches):
            result = Choice(begin, self._offset, condition, then, result)
        return result

    def _fold(self, start: int, found: re.Match[str]) -> Node:
        digits = found.group(1)
        limit = int(digits) if len(digits) < 10 else MAX_FOLD_LIMIT + 1
        if not 1 <= limit <= MAX_FOLD_LIMIT:
            raise self._error(f"a FOLD takes 1 to {MAX_FOLD_LIMIT} steps, not {digits}")
        self._offset = found.end()
        items = self._expression()
        self._expect(",")
        first = self._expression()
        self._expect(",")
        function = self._name("the name of a function")
        self._expect(")", comments=False)
        return Fold(start, self._offset, limit, items, first, function)

    # --- match ---

    def _match(self, start: int) -> Node:
        self._offset += len("match")
        subject = self._expression()
        self._expect("{")
        cases = []
        self._gap()
        while self._word_ahead("case", _BORDER):
            cases.append(self._case())
            self._gap()
        self._expect("}")
        if not cases:
            raise self._source.error(start, "match without a case", "add `case _ => ...`")
        return Match(start, self._offset, subject, tuple(cases))

    def _case(self) -> Case:
        start = self._offset
        self._offset += len("case")
        self._gap()
        pattern = self._pattern()
        self._gap()
        if not self._text.startswith("=>", self._offset):
            raise self._unexpected("expected =>", "write `case name: Type => ...`")
        self._offset += 2
        body = self._expression()
        return Case(start, self._offset, pattern, body)

    def _pattern(self) -> PatternNode:
        """Parse a pattern; after a comment, the reference takes any pattern for a constant."""
        self._blank()
        start = self._offset
        found = NAME.match(self._text, start)
        if found is not None and self._text[found.end() : found.end() + 1] not in ("'", "("):
            name = self._name("a name")
            return Binding(start, self._offset, name, self._pattern_type())
        if found is None and self._next_is("_"):
            self._offset += 1
            return Binding(start, self._offset, None, self._pattern_type())
        if found is not None and self._is_object_pattern(found.end()):
            return self._object_pattern(start)
        if self._next_is("("):
            return self._tuple_pattern(start)
        return self._constants(start)

    def _pattern_type(self) -> TypeNode | None:
        if not self._accept(":"):
            return None
        self._gap()
        return self._type()

    def _is_object_pattern(self, offset: int) -> bool:
        found = _OBJECT_PATTERN.match(self._text, offset)
        return found is not None and (self._version < 8 or not found.group().endswith(")"))

    def _tuple_pattern(self, start: int) -> PatternNode:
        self._deeper("use a second match")
        self._offset += 1
        try:
            items = [self._pattern()]
            while self._accept(",", comments=False):
                items.append(self._pattern())
            self._expect(")", comments=False)
        except CompileError:
            items = []
        self._depth -= 1
        if len(items) > 1:
            return TuplePattern(start, self._offset, tuple(items))
        self._offset = start
        return self._constants(start)

    def _object_pattern(self, start: int) -> PatternNode:
        self._deeper("use a second match")
        name = self._name("a type")
        self._expect("(")
        fields: dict[str, PatternNode] = {}
        self._blank()
        if not self._next_is(")"):
            while True:
                field = self._name("a field")
                self._expect("=", comments=False)
                fields[field] = self._pattern()
                if not self._accept(",", comments=False):
                    break
        self._expect(")", comments=False)
        self._depth -= 1
        ordered = tuple((field, fields[field]) for field in hash_map_order(list(fields)))
        return ObjectPattern(start, self._offset, name, ordered)

    def _constants(self, start: int) -> PatternNode:
        values = [self._expression()]
        while True:
            end = self._offset
            self._gap()
            if not self._next_is("|"):
                self._offset = end
                return Constants(start, end, tuple(values))
            self._offset += 1
            values.append(self._expression())

    # --- declarations ---

    def _declarations(self, *, required: bool) -> list[LetNode | FunctionNode]:
        found: list[LetNode | FunctionNode] = []
        while True:
            end = self._offset
            self._gap()
            word = self._declaration_word()
            if word is None:
                if found or not required:
                    self._offset = end if found else self._offset
                return found
            if word == "func":
                found.append(self._function())
            else:
                found.extend(self._definition("let"))

    def _declaration_word(self) -> str | None:
        if self._word_ahead("let"):
            return "let"
        return "func" if self._word_ahead("func") else None

    def _definition(self, word: str) -> list[LetNode]:
        """Parse a ``let``; one that unpacks a tuple becomes several."""
        start = self._offset
        self._offset += len(word)
        self._gap()
        names = []
        if self._accept("("):
            names.append(self._declared_name("a name"))
            while self._accept_comma():
                names.append(self._declared_name("a name"))
            self._expect(")", comments=False)
            if not 2 <= len(names) <= MAX_TUPLE_SIZE:
                raise self._error(f"a tuple has 2 to {MAX_TUPLE_SIZE} elements, not {len(names)}")
        else:
            names.append(self._declared_name("a name"))
        self._expect("=")
        value = self._expression()
        end = self._offset
        if len(names) == 1:
            return [LetNode(start, end, names[0], value)]
        first, last = self._source.reference_span(start, end)
        whole = f"$t0{first}{last}"
        return [
            LetNode(start, end, whole, value),
            *(
                LetNode(start, end, name, Field(start, end, Name(start, end, whole), f"_{number}"))
                for number, name in enumerate(names, 1)
            ),
        ]

    def _function(self) -> FunctionNode:
        start = self._offset
        self._offset += len("func")
        name = self._declared_name("the name of the function")
        self._expect("(")
        parameters: list[tuple[str, int, TypeNode]] = []
        if not self._ahead(")"):
            while True:
                offset = self._offset
                parameter = self._declared_name("a parameter")
                if not self._accept(":", comments=False):
                    raise self._unexpected("expected :", f"write {parameter}: Type")
                parameters.append((parameter, offset, self._type()))
                if not self._accept_comma():
                    break
        self._expect(")")
        self._expect("=")
        body = self._expression(blocks=False)
        return FunctionNode(start, self._offset, name, tuple(parameters), body)

    def _type(self) -> TypeNode:
        type_, self._offset = parse_type_node(self._source, self._offset, self._keywords)
        return type_
