"""The decompiler: from a compiled script to a source that compiles to the same script.

What lives here: writing the text. What does not: the types of parameters (``compiler.guessing``),
and reconstruction of ``match`` (``compiler.cases``).

Three things are reconstructed: the syntax that the compiler expands (``match``, ``FOLD``,
``strict``, casts, unpacking of tuples), the types of parameters, and the original names in the
script's metadata. Hidden names differ, since they contain offsets in the original source. Code that
no source compiles to is written in similar syntax. The text is compiled, and a comment at the top
says if it does not give the script.

The length of chains is not limited. Scripts nested more than ``MAX_NESTING`` levels deep, or longer
than ``MAX_TEXT_CHARS`` as text, are rejected.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from soliton.crypto import base58
from soliton.ride.compiler.cases import Bound, FoundCase, Parts, find_cases
from soliton.ride.compiler.compaction import with_original_names
from soliton.ride.compiler.compile import compile_source
from soliton.ride.compiler.guessing import Follow, Guesses, callable_type, type_text
from soliton.ride.compiler.library import ScriptKind, library
from soliton.ride.compiler.literals import KEYWORDS_SINCE_V8, MAX_ENCODED_CHARS, NAME
from soliton.ride.compiler.operators import LEVEL_OF, NOT_ITSELF
from soliton.ride.compiler.tasks import Task, run
from soliton.ride.errors import RideError
from soliton.ride.evaluator_machine import constant_value
from soliton.ride.expressions import (
    FALSE,
    TRUE,
    AnnotatedFunction,
    Block,
    BoolConst,
    BytesConst,
    Call,
    DApp,
    Declaration,
    Expression,
    Func,
    GetField,
    If,
    Let,
    LongConst,
    Ref,
    StringConst,
)
from soliton.ride.functions.catalogue import (
    CALLS_OF_DAPPS,
    EQUAL,
    GET_ELEMENT,
    IS_INSTANCE_OF,
    THROW,
    functions,
)
from soliton.ride.functions.printing import plain_text
from soliton.ride.meta import argument_types, read_meta
from soliton.ride.script import Script, make_script, nodes
from soliton.ride.types import ANY, BOOLEAN, UNIT, fields_of

NOT_A_SOURCE: Final = "no source compiles to this script, this is the nearest text"
NOT_COMPILED: Final = "our compiler refuses this text, which is the nearest one"
OTHER_SCRIPT: Final = (
    "this text compiles to another script, which may be as another compiler writes it"
)
MAX_TEXT_CHARS: Final = 2_000_000
MAX_NESTING: Final = 500
"""Far above the limit of the compiler."""
_MAX_REASON_CHARS: Final = 300
_CHECKSUM_BYTES: Final = 4
_OFFSET: Final = re.compile(r".\$t0[0-9]+", re.DOTALL)
_HIDDEN_NAME: Final = re.compile(r"\$t0[0-9]+")
_INDENT: Final = "  "
_MAX_BASE58_BYTES: Final = 128
_CONS: Final = 1100
_ESCAPES: Final = {
    "\\": "\\\\", '"': '\\"', "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
}  # fmt: skip
_SPECIAL: Final = re.compile(r'[\\"\b\f\n\r\t]')
_Text = Task[str, str]
_Parts = tuple[str, Expression, Expression] | None
"""Names, value and body."""


class DecompileError(RideError):
    """The script is too large as text."""


class _NoSource(RideError):
    """No source compiles to the script or to a part of it."""


def decompile(script: Script) -> str:
    """Return the source of a script, with directives; raise ``DecompileError`` if it is too large.

    The text is compiled: if that does not give the script, a comment at the top says what it gives.
    Names of hidden variables, which contain offsets in the original source, may differ without one.
    """
    try:
        mark, text = "", _decompiled(script)
    except _NoSource as error:
        mark = f"{NOT_A_SOURCE}: {error}"
        text = _decompiled(script, mark, loose=True)
    verdict = _verdict(script, text)
    if verdict is not None and not mark:
        for follow in (Follow.ITEMS, Follow.LISTS):
            other = _decompiled(script, follow=follow)
            if other != text and _verdict(script, other) is None:
                return other
    if verdict is None:
        return _decompiled(script, loose=bool(mark)) if mark else text
    # Why there is no source says more than what is wrong with the text.
    return text if mark else _decompiled(script, verdict)


def _verdict(script: Script, text: str) -> str | None:
    """Compile a text, and return what is wrong with it."""
    content = script.content
    compact = isinstance(content, DApp) and bool(read_meta(content.meta).original_names)
    try:
        compiled = compile_source(text, compact=compact, check_complexity=False).script
    except RideError as error:
        reason = " ".join(str(error).split())
        return f"{NOT_COMPILED}: {reason[:_MAX_REASON_CHARS]}"
    same = _without_offsets(compiled) == _without_offsets(script)
    return None if same else OTHER_SCRIPT


def _without_offsets(script: Script) -> tuple[str, object]:
    """Return a script without its checksum, the offsets in names of hidden variables, and the
    lengths of these names; and its metadata without the offsets.
    """
    content, source, meta = script.content, script.source, None
    if isinstance(content, DApp):
        meta = read_meta(content.meta)
        names = [_HIDDEN_NAME.sub("$t0", name) for name in meta.original_names]
        meta = msgspec.structs.replace(meta, original_names=tuple(names))
        source = make_script(script.version, msgspec.structs.replace(content, meta=b"")).source
    return _OFFSET.sub("$t0", source[:-_CHECKSUM_BYTES].decode("latin-1")), meta


def _decompiled(
    script: Script, mark: str = "", *, loose: bool = False, follow: Follow = Follow.NAMES
) -> str:
    """Return the text with a ``mark`` at the top; ``loose`` allows text that is no valid source,
    ``follow`` selects the guesses of types.
    """
    content = script.content
    if isinstance(content, DApp):
        content = with_original_names(content)
        guesses = Guesses(content, script.version, ScriptKind.DAPP, follow)
        writer = _Writer(script.version, guesses, loose)
        return f"{_head(script.version, 'DAPP', 'ACCOUNT', mark)}{writer.dapp(content)}"
    kind = _kind(script.version, content)
    guesses = Guesses(content, script.version, kind, follow)
    writer = _Writer(script.version, guesses, loose)
    if guesses.result.key not in (BOOLEAN.key, ANY.key):
        if guesses.result.key == UNIT.key:
            declarations = writer.declarations(content)
            if declarations is not None:
                return f"{_head(script.version, 'LIBRARY', 'ACCOUNT', mark)}{declarations}"
        kind = ScriptKind.CALL
    head = _head(script.version, "EXPRESSION", kind.name, mark)
    return f"{head}{run(writer.block(content, 0))}\n"


def _head(version: int, content: str, script: str, mark: str) -> str:
    return (
        f"{{-# STDLIB_VERSION {version} #-}}\n"
        f"{{-# CONTENT_TYPE {content} #-}}\n"
        f"{{-# SCRIPT_TYPE {script} #-}}\n" + (f"# {mark}\n\n" if mark else "\n")
    )


def _kind(version: int, expression: Expression) -> ScriptKind:
    """Guess the kind of an expression from the names it uses."""
    asset = library(version, ScriptKind.ASSET).variables.get("this")
    fields = {name for name, _ in fields_of(asset)} if asset is not None else set()
    for node in nodes(expression):
        if isinstance(node, Call) and node.function in CALLS_OF_DAPPS:
            return ScriptKind.CALL
        if (
            isinstance(node, GetField)
            and node.field in fields
            and isinstance(node.expression, Ref)
            and node.expression.name == "this"
        ):
            return ScriptKind.ASSET
    return ScriptKind.ACCOUNT


class _Writer:
    """Writes a script; ``loose`` allows text that is no valid source."""

    def __init__(self, version: int, guesses: Guesses, loose: bool) -> None:
        self._loose = loose
        self._names = {each.key: each.name for each in functions(version)}
        self._guesses = guesses
        self._depth = 0

    # --- dApps ---

    def dapp(self, dapp: DApp) -> str:
        """Write a dApp."""
        return self._document(self._top_level(dapp))

    def _document(self, texts: Iterable[str]) -> str:
        parts: list[str] = []
        size = 0
        for text in texts:
            size += len(text)
            if size > MAX_TEXT_CHARS:
                raise _too_long()
            parts.append(text)
        return "\n\n".join(parts) + "\n"

    def _top_level(self, dapp: DApp) -> Iterator[str]:
        start = 0
        while start < len(dapp.declarations):
            count, text = self._top_declaration(dapp.declarations, start)
            yield text
            start += count
        types = argument_types(read_meta(dapp.meta)) or ()
        for index, each in enumerate(dapp.callables):
            described = types[index] if index < len(types) else ()
            yield self._annotated("Callable", each, [callable_type(of) for of in described])
        if dapp.verifier is not None:
            yield self._annotated("Verifier", dapp.verifier, [])

    def _top_declaration(
        self, declarations: tuple[Declaration, ...], start: int
    ) -> tuple[int, str]:
        """Write the first declarations that are one in the source; return their number as well."""
        first = declarations[start]
        if isinstance(first, Let) and first.name.startswith("$t0") and not self._loose:
            names: list[str] = []
            for index in range(start + 1, len(declarations)):
                other = declarations[index]
                if not (isinstance(other, Let) and _is_part(other, first.name, len(names) + 1)):
                    break
                names.append(other.name)
            value = run(self.operand(first.value, 0))
            return len(names) + 1, f"let {_unpacked_names(first, names)} = {value}"
        return 1, run(self._declaration(first, 0))

    def _annotated(self, word: str, each: AnnotatedFunction, types: list[str]) -> str:
        function = run(self._function(each.function, 0, types))
        return f"@{word}({self._checked(each.invocation)})\n{function}"

    def declarations(self, node: Expression) -> str | None:
        """Write the declarations of a library; return ``None`` if the expression is none."""
        found: list[Declaration] = []
        while isinstance(node, Block) and not _is_hidden(node.declaration):
            found.append(node.declaration)
            node = node.body
        if node != Ref("unit"):
            return None
        return self._document(run(self._declaration(each, 0)) for each in found)

    # --- declarations ---

    def _declaration(self, declaration: Declaration, level: int) -> _Text:
        if isinstance(declaration, Func):
            return (yield from self._function(declaration, level, []))
        value = yield self.operand(declaration.value, level)
        return f"let {self._checked(declaration.name)} = {value}"

    def _function(self, function: Func, level: int, types: list[str]) -> _Text:
        if len(types) != len(function.parameters):
            guessed = self._guesses.parameter_types(function)
            types = [type_text(each, self._guesses.library) for each in guessed]
        pairs = zip(function.parameters, types, strict=True)
        parameters = ", ".join(f"{self._checked(name)}: {of}" for name, of in pairs)
        body = yield self.operand(function.body, level)
        return f"func {self._checked(function.name)} ({parameters}) = {body}"

    # --- blocks ---

    def block(self, node: Expression, level: int) -> _Text:
        """Write an expression that may begin with declarations."""
        lines: list[str] = []
        while isinstance(node, Block) and not _is_special(node):
            strict = self._parts_of(_strict_parts, node)
            if strict is not None:
                names, value, node = strict
                lines.append(f"strict {names} = {(yield self.operand(value, level))}")
                continue
            unpacked = self._parts_of(_unpacked_parts, node)
            if unpacked is not None:
                names, value, node = unpacked
                lines.append(f"let {names} = {(yield self.operand(value, level))}")
                continue
            lines.append((yield self._declaration(node.declaration, level)))
            node = node.body
        lines.append((yield self.expression(node, level)))
        return self._bounded(f"\n{_INDENT * level}".join(lines))

    def operand(self, node: Expression, level: int) -> _Text:
        """Write an expression, in braces if it begins with declarations."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise DecompileError(f"the source would be nested more than {MAX_NESTING} levels deep")
        text = yield from self._operand(node, level)
        self._depth -= 1
        return text

    def _operand(self, node: Expression, level: int) -> _Text:
        if isinstance(node, Block) and not _is_special(node):
            inner = yield self.block(node, level + 1)
            return f"{{\n{_INDENT * (level + 1)}{inner}\n{_INDENT * level}}}"
        return (yield self.expression(node, level))

    def atom(self, node: Expression, level: int) -> _Text:
        """Write an expression that may be followed by a dot."""
        text = yield self.operand(node, level)
        plain = isinstance(node, Ref | GetField | StringConst | BytesConst | Call) or (
            isinstance(node, Block) and not _is_special(node)
        )
        return text if plain else f"({text})"

    def _checked(self, name: str) -> str:
        return name if self._loose else _checked(name)

    def _parts_of(self, find: Callable[[Block], _Parts], node: Block) -> _Parts:
        """Return the parts of a ``strict`` or of an unpacked tuple."""
        try:
            return find(node)
        except _NoSource:
            if self._loose:
                return None
            raise

    def _bounded(self, text: str) -> str:
        if len(text) > MAX_TEXT_CHARS:
            raise _too_long()
        return text

    # --- expressions ---

    def expression(self, node: Expression, level: int) -> _Text:
        """Write an expression that is not a block of declarations."""
        match node:
            case LongConst(value):
                return str(value) if value >= 0 else f"({value})"
            case StringConst(value):
                return f'"{_SPECIAL.sub(lambda found: _ESCAPES[found.group()], value)}"'
            case BytesConst(value):
                return _bytes_text(value)
            case BoolConst(value):
                return "true" if value else "false"
            case Ref(name):
                return self._checked(name)
            case GetField(subject, field):
                return f"{(yield self.atom(subject, level))}.{field}"
            case If():
                return (yield from self._choice(node, level))
            case Call():
                return (yield from self._call(node, level))
            case Block():
                return (yield from self._special(node, level))
            case _ if self._loose:
                return plain_text(constant_value(node))
            case _:
                raise _NoSource("the script contains a list or object as a constant")

    def _choice(self, node: If, level: int) -> _Text:
        sign = _logic(node)
        if sign is not None:
            sides: list[Expression] = []
            left: Expression = node
            while isinstance(left, If) and _logic(left) == sign:
                sides.append(left.then if sign == "&&" else left.otherwise)
                left = left.condition
            sides.append(left)
            return (yield from self._joined(sides[::-1], [sign] * (len(sides) - 1), level))
        lines = []
        rest: Expression = node
        indent = f"\n{_INDENT * (level + 1)}"
        while isinstance(rest, If) and _logic(rest) is None:
            condition = yield self.operand(rest.condition, level + 1)
            then = yield self.operand(rest.then, level + 1)
            lines.append(f"if ({condition}){indent}then {then}{indent}else ")
            rest = rest.otherwise
        lines.append((yield self.operand(rest, level + 1)))
        return self._bounded("".join(lines))

    def _side(self, node: Expression, level: int) -> _Text:
        """Write an operand of an operator, where a choice needs brackets."""
        text = yield self.operand(node, level)
        return f"({text})" if text.startswith(("if ", "match ", "FOLD<")) else text

    def _call(self, node: Call, level: int) -> _Text:
        function, arguments = node.function, node.arguments
        if function == _CONS and len(arguments) == 2:
            return (yield from self._list(node, level))
        name = self._names.get(function, str(function))
        if isinstance(function, int) and function not in self._names:
            if not self._loose:
                raise _NoSource(f"this version has no function {function}")
            name = f"Native<{function}>"
        if name.startswith("_Tuple") and isinstance(function, int):
            texts = yield from self._arguments(arguments, level)
            return f"({', '.join(texts)})"
        hidden = isinstance(function, int) and name.startswith("_")
        if hidden and not self._loose:
            raise _NoSource(f"no source calls {name} here")
        if name in LEVEL_OF and len(arguments) == 2:
            return (yield from self._operators(node, LEVEL_OF[name], level))
        if name in ("-", "!") and len(arguments) == 1:
            return f"{name}({(yield self.operand(arguments[0], level))})"
        if function == GET_ELEMENT and len(arguments) == 2 and isinstance(arguments[0], Ref):
            index = yield self.operand(arguments[1], level)
            return f"{self._checked(arguments[0].name)}[{index}]"
        texts = yield from self._arguments(arguments, level)
        return self._bounded(f"{self._checked(name)}({', '.join(texts)})")

    def _operators(self, node: Call, precedence: int, level: int) -> _Text:
        """Write a chain of operators of one precedence, which are left-associative."""
        sides: list[Expression] = []
        signs: list[str] = []
        left: Expression = node
        while isinstance(left, Call) and len(left.arguments) == 2:
            name = self._names.get(left.function, "")
            if LEVEL_OF.get(name) != precedence:
                break
            signs.append(name)
            sides.append(left.arguments[1])
            left = left.arguments[0]
        sides.append(left)
        return (yield from self._joined(sides[::-1], signs[::-1], level))

    def _joined(self, sides: list[Expression], signs: list[str], level: int) -> _Text:
        text = yield self._side(sides[0], level)
        parts = [text]
        for sign, side in zip(signs, sides[1:], strict=True):
            parts.append(f"{sign} {(yield self._side(side, level))}")
        return self._bounded(f"({' '.join(parts)})")

    def _arguments(self, arguments: tuple[Expression, ...], level: int) -> Task[str, list[str]]:
        texts = []
        for argument in arguments:
            texts.append((yield self.operand(argument, level)))  # noqa: PERF401 - it yields
        return texts

    def _list(self, node: Call, level: int) -> _Text:
        items = []
        rest: Expression = node
        while isinstance(rest, Call) and rest.function == _CONS and len(rest.arguments) == 2:
            items.append((yield self._side(rest.arguments[0], level)))
            rest = rest.arguments[1]
        if rest == Ref("nil"):
            return self._bounded(f"[{', '.join(items)}]")
        tail = yield self._side(rest, level)
        return self._bounded(f"({' :: '.join([*items, tail])})")

    # --- expanded syntax ---

    def _special(self, node: Block, level: int) -> _Text:
        """Write a block that the compiler expanded from other syntax."""
        try:
            return (yield from self._form(node, level))
        except _NoSource:
            if not self._loose:
                raise
        inner = f"\n{_INDENT * (level + 1)}"
        declaration = yield self._declaration(node.declaration, level + 1)
        body = yield self.block(node.body, level + 1)
        return self._bounded(f"{{{inner}{declaration}{inner}{body}\n{_INDENT * level}}}")

    def _form(self, node: Block, level: int) -> _Text:
        assert isinstance(node.declaration, Let)
        if node.declaration.name.startswith("$match"):
            return self._match(node, level)
        if node.declaration.name == "@":
            return self._cast(node, level)
        return self._fold(node, level)

    def _cast(self, node: Block, level: int) -> _Text:
        match node:
            case Block(
                Let("@", value),
                If(Call(function, (Ref("@"), StringConst(type_))), Ref("@"), failure),
                False,
            ) if function == IS_INSTANCE_OF:
                method = "as" if failure == Ref("unit") else "exactAs"
                return f"{(yield self.atom(value, level))}.{method}[{type_}]"
            case _:
                raise _NoSource("a cast of a form that no source has")

    def _fold(self, node: Block, level: int) -> _Text:
        match node:
            case Block(
                Let("$l", items),
                Block(
                    Let("$s"),
                    Block(
                        Let("$acc0", first),
                        Block(
                            Func(_, _, If(_, _, Call(function, _))),
                            Block(Func(), Call(_, (_, LongConst(limit)))),
                        ),
                    ),
                ),
            ):
                name = self._checked(self._names.get(function, str(function)))
                items_text = yield self.operand(items, level)
                first_text = yield self.operand(first, level)
                return f"FOLD<{limit}>({items_text}, {first_text}, {name})"
            case _:
                raise _NoSource("a fold of a form that no source has")

    def _match(self, node: Block, level: int) -> _Text:
        assert isinstance(node.declaration, Let)
        subject = yield self._side(node.declaration.value, level)
        cases = find_cases(node.declaration.name, node.body, self._guesses.library)
        if cases is None:
            raise _NoSource("a match of a form that no source has")
        inner = f"\n{_INDENT * (level + 2)}"
        lines = []
        for case in cases:
            pattern = yield self._pattern(case, level)
            body = yield self.block(case.body, level + 2)
            lines.append(f"{_INDENT * (level + 1)}case {pattern} => {inner}{body}")
        whole = "\n".join(lines)
        return self._bounded(f"match {subject} {{\n{whole}\n{_INDENT * level}}}")

    def _pattern(self, case: FoundCase, level: int) -> _Text:
        match case.pattern:
            case Bound(name, types):
                text = "_" if name is None else self._checked(name)
                return f"{text}: {'|'.join(types)}" if types else text
            case Parts(type_, parts):
                texts = []
                for field, part in parts:
                    inner = yield self._pattern(FoundCase(part, case.body), level)
                    texts.append(inner if type_ is None else f"{field} = {inner}")
                return f"{type_ or ''}({', '.join(texts)})"
            case constants:
                texts = []
                for constant in constants:
                    text = yield self.operand(constant, level)
                    wrap = isinstance(constant, Ref | GetField | BoolConst)
                    texts.append(f"({text})" if wrap else text)
                return " | ".join(texts)


def _too_long() -> DecompileError:
    return DecompileError(f"the source would have more than {MAX_TEXT_CHARS} characters")


def _logic(node: If) -> str | None:
    """Return the operator from which a choice was expanded."""
    if node.otherwise == FALSE and not isinstance(node.then, BoolConst):
        return "&&"
    return "||" if node.then == TRUE and not isinstance(node.otherwise, BoolConst) else None


def _is_special(node: Block) -> bool:
    """Whether the compiler expands other syntax to such a block."""
    declaration = node.declaration
    return isinstance(declaration, Let) and (
        declaration.name in ("@", "$l") or declaration.name.startswith("$match")
    )


def _is_hidden(declaration: Declaration) -> bool:
    return declaration.name.startswith("$") or declaration.name == "@"


def _strict_parts(node: Block) -> _Parts:
    """Return the names, value and body of a ``strict``."""
    match node:
        case Block(
            Let(name, value),
            If(
                Call(equal, (Ref(one), Ref(other))),
                body,
                Call(throw, (StringConst(message),)),
            ),
            True,
        ) if equal == EQUAL and throw == THROW and one == other == name and message == NOT_ITSELF:
            if not name.startswith("$t0"):
                return _checked(name), value, body
            names: list[str] = []
            while isinstance(body, Block) and isinstance(body.declaration, Let):
                part = body.declaration.value
                if not (isinstance(part, GetField) and part.expression == Ref(name)):
                    break
                names.insert(0, body.declaration.name)
                last = part.field == "_1"
                body = body.body
                if last:
                    break
            return _unpacked_names(Let(name, value), names), value, body
        case _:
            return None


def _unpacked_parts(node: Block) -> _Parts:
    """Return the names, value and body of a ``let`` that unpacks a tuple."""
    first = node.declaration
    if not (isinstance(first, Let) and first.name.startswith("$t0")):
        return None
    names: list[str] = []
    body = node.body
    while (
        isinstance(body, Block)
        and isinstance(body.declaration, Let)
        and _is_part(body.declaration, first.name, len(names) + 1)
    ):
        names.append(body.declaration.name)
        body = body.body
    return _unpacked_names(first, names), first.value, body


def _is_part(let: Let, whole: str, number: int) -> bool:
    return let.value == GetField(Ref(whole), f"_{number}")


def _unpacked_names(whole: Let, names: list[str]) -> str:
    if len(names) < 2:
        raise _NoSource(f"not all parts of the tuple {whole.name} have names")
    return f"({', '.join(_checked(name) for name in names)})"


def _checked(name: str) -> str:
    """Return a name if it is valid in a source; raise ``_NoSource`` if not."""
    found = NAME.fullmatch(name)
    if found is None or name in KEYWORDS_SINCE_V8:
        raise _NoSource(f"no source can name {name!r}")
    return name


def _bytes_text(value: bytes) -> str:
    if len(value) <= _MAX_BASE58_BYTES:
        return f"base58'{base58.encode(value)}'"
    text = base64.b64encode(value).decode()
    return f"base64'{text}'" if len(text) <= MAX_ENCODED_CHARS else f"base16'{value.hex()}'"
