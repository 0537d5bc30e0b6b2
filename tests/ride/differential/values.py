"""Expressions of a wanted type by chance, of everything that the language has.

What lives here: expressions and declarations. What does not: whole programs (``programs``).

An expression is made from its type downwards: a literal, a name in scope, a call of a function of
the library whose result fits, a branch, a block, a fold. The library of our own compiler says what
there is: where it is wrong, the other compiler refuses.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Final

from soliton.crypto import base58
from soliton.ride.compiler.library import ScriptKind, Signature, library
from soliton.ride.types import (
    ANY,
    BIG_INT,
    BOOLEAN,
    BYTES,
    INT,
    NOTHING,
    STRING,
    UNIT,
    GenericList,
    GenericTuple,
    GenericUnion,
    ListOf,
    Parameter,
    Pattern,
    Plain,
    Record,
    TupleOf,
    Type,
    UnionOf,
    covers,
    fields_of,
    list_of,
    tuple_of,
    union_of,
)

MAX_DEPTH: Final = 7
MAX_CHARS: Final = 120
"""A part that grew beyond this, per level that it may have, is left for a shallow one."""
SLOPPY: Final = 0.03
"""How often a type that only fits is taken where the same one is wanted: mostly an error."""
MAX_EXACT_MEMBERS: Final = 3
_FIRST_WITH: Final = {"list": 3, "func": 3, "tuple": 4, "strict": 5, "cast": 5, "BigInt": 5}
_TEXTS: Final = (
    '""', '"a"', '"key_1"', '"with \\"quotes\\" and \\\\"', '"line\\nfeed\\t"', '"é∆"', '"😀 x"',
    '"\\u0041b"', '"3PMj3yGPBEa1Sx9X4TSBFeJCMMaE3wvKR4N"',
)  # fmt: skip
_NUMBERS: Final = (
    "0", "1", "2", "-1", "10", "100_000_000", "9223372036854775807", "-9223372036854775808",
)  # fmt: skip
_INFIX: Final = {"==", "!=", "+", "-", "*", "/", "%", ">", ">=", ":+", "++"}
_MAX_CONSTRUCTED_FIELDS: Final = 8


_Calls = dict[str, list[tuple[Signature, dict[str, Type]]]]
_FITTING: Final[dict[tuple[int, ScriptKind, str], _Calls]] = {}
"""The calls of the library that give a type; finding them takes most of the time."""


class Values:
    """What one program has in scope, and how to make more of it."""

    def __init__(self, chance: Random, version: int, kind: ScriptKind) -> None:
        self.chance = chance
        self.version = version
        self.library = library(version, kind)
        self._kind = kind
        self._variables: list[tuple[str, Type]] = [
            (name, of)
            for name, of in self.library.variables.items()
            if name not in ("Buy", "Sell", "nil")
        ]
        self._functions: list[tuple[str, tuple[Type, ...], Type]] = []
        self._named = 0

    # --- names and scopes ---

    def name(self) -> str:
        """A name that nothing has."""
        self._named += 1
        return f"{self.chance.choice(('v', 'x_', 'long', '_z', 'A'))}{self._named}"

    @contextmanager
    def scope(self, variables: Sequence[tuple[str, Type]]) -> Iterator[None]:
        """Variables, and what is declared meanwhile, until the end."""
        known, functions = len(self._variables), len(self._functions)
        self._variables.extend(variables)
        yield
        del self._variables[known:]
        del self._functions[functions:]

    # --- types ---

    def simple(self) -> Type:
        """One of the types that data entries have, or a big number."""
        found = [INT, STRING, BYTES, BOOLEAN]
        if self.version >= _FIRST_WITH["BigInt"]:
            found.append(BIG_INT)
        return self.chance.choice(found)

    def some_type(self, depth: int = 2) -> Type:
        """Any type that a source can name."""
        choice = self.chance.random()
        if depth and choice < 0.15 and self.version >= _FIRST_WITH["list"]:
            return list_of(self.some_type(depth - 1))
        if depth and choice < 0.3 and self.version >= _FIRST_WITH["tuple"]:
            return tuple_of([self.some_type(0) for _ in range(self.chance.randint(2, 3))])
        if depth and choice < 0.5:
            others = (UNIT, *(self.simple() for _ in range(2)))
            union = union_of([self.simple(), self.chance.choice(others)])
            return union if isinstance(union, UnionOf) and len(union.members) > 1 else INT
        if choice < 0.6:
            return self.library.types[self.chance.choice(("Address", "Alias", "Transfer"))]
        return self.simple()

    # --- expressions ---

    def of(self, wanted: Type, depth: int) -> str:
        """An expression of a type."""
        if isinstance(wanted, UnionOf) and len(wanted.members) > MAX_EXACT_MEMBERS:
            possible = [each for each in wanted.members if self._can_be_made(each)]
            return self.of(self.chance.choice(possible or wanted.members), depth)
        ways: list[Callable[[Type, int], str | None]] = [self._leaf, self._variable]
        if depth > 0:
            ways = [
                *(self._call,) * 4, self._leaf, self._variable, self._variable, self._choice,
                self._block, self._match, self._operator, self._operator, self._part, self._fold,
                self._cast, self._own_call, self._wrapped,
            ]  # fmt: skip
        for _ in range(4):
            made = self.chance.choice(ways)(wanted, depth - 1)
            if made is not None:
                return made if len(made) <= MAX_CHARS * max(1, depth) else self._leaf(wanted, 0)
        return self._leaf(wanted, 0)

    def _leaf(self, wanted: Type, depth: int) -> str:
        chance = self.chance
        if wanted is ANY:
            return self._leaf(self.simple(), depth)
        if isinstance(wanted, UnionOf):
            return self._union(wanted, depth)
        if isinstance(wanted, ListOf):
            if wanted.inner is NOTHING or chance.random() < 2 * SLOPPY:
                return chance.choice(("nil", "[]"))
            items = [self.of(wanted.inner, depth - 1) for _ in range(chance.randint(1, 3))]
            return f"[{', '.join(items)}]"
        if isinstance(wanted, TupleOf):
            return f"({', '.join(self.of(item, depth - 1) for item in wanted.items)})"
        if isinstance(wanted, Record):
            return self._record(wanted, depth)
        return self._literal(wanted)

    def _union(self, wanted: UnionOf, depth: int) -> str:
        """All members, so that the type is the whole union."""
        if self.chance.random() < SLOPPY:
            return self.of(self.chance.choice(wanted.members), depth)
        members = self.chance.sample(wanted.members, len(wanted.members))
        text = self.of(members[0], depth - 1)
        for member in members[1:]:
            text = f"(if ({self.of(BOOLEAN, 0)}) then {self.of(member, depth - 1)} else {text})"
        return text

    def _can_be_made(self, of: Type) -> bool:
        if not isinstance(of, Record) or of.name == "Unit":
            return True
        signature = self.library.constructors.get(of.name)
        return signature is not None and len(signature.arguments) <= _MAX_CONSTRUCTED_FIELDS

    def _fits(self, wanted: Type, of: Type) -> bool:
        if isinstance(wanted, (UnionOf, TupleOf, ListOf)) and self.chance.random() > SLOPPY:
            return wanted.key == of.key
        if isinstance(wanted, (Plain, Record)):
            return wanted is ANY or wanted.key == of.key
        return covers(wanted, of)

    def _literal(self, wanted: Type) -> str:
        chance = self.chance
        if wanted is INT:
            return chance.choice((*_NUMBERS, str(chance.randint(-999, 10**6))))
        if wanted is STRING:
            return chance.choice(_TEXTS)
        if wanted is BOOLEAN:
            return chance.choice(("true", "false"))
        if wanted is BIG_INT:
            digits = chance.choice(("0", "-1", "123456789012345678901234567890"))
            return chance.choice((f'parseBigIntValue("{digits}")', "toBigInt(7)"))
        if wanted is BYTES:
            data = chance.randbytes(chance.choice((0, 1, 8, 26, 32)))
            hexes = chance.choice((data.hex(), data.hex().upper()))
            return chance.choice(
                (
                    f"base16'{hexes}'",
                    f"base58'{base58.encode(data)}'",
                    f"base64'{base64.b64encode(data).decode()}'",
                )
            )
        return f"throw({chance.choice(_TEXTS)})"

    def _record(self, wanted: Record, depth: int) -> str:
        if wanted is UNIT or wanted.name == "Unit":
            return "unit"
        if self._can_be_made(wanted):
            fields = [self.of(of, min(depth - 1, 2)) for _, of in wanted.fields]
            return f"{wanted.name}({', '.join(fields)})"
        return self._variable(wanted, 0) or f"throw({self.chance.choice(_TEXTS)})"

    def _variable(self, wanted: Type, depth: int) -> str | None:
        fitting = [name for name, of in self._variables if self._fits(wanted, of)]
        return self.chance.choice(fitting) if fitting else None

    def _part(self, wanted: Type, depth: int) -> str | None:
        """A field of a variable, or of what it is."""
        found = [
            f"{name}.{field}"
            for name, of in self._variables
            for field, inner in fields_of(of)
            if self._fits(wanted, inner)
        ]
        found += [
            f"{name}[{self.of(INT, 0)}]"
            for name, of in self._variables
            if isinstance(of, ListOf) and self._fits(wanted, of.inner)
        ]
        if found and (depth < 1 or self.chance.random() < 0.7):
            return self.chance.choice(found)
        if depth > 0 and self.version >= _FIRST_WITH["tuple"]:
            other = self.simple()
            return f"({self.of(other, depth)}, {self.of(wanted, depth)})._2"
        return None

    def _call(self, wanted: Type, depth: int) -> str | None:
        """A call of the library."""
        place = (self.version, self._kind, wanted.key)
        names = _FITTING.get(place)
        if names is None:
            names = _FITTING[place] = _fitting(self.version, self._kind, wanted)
        if not names:
            return None
        name = self.chance.choice(sorted(names))
        signature, known = self.chance.choice(names[name])
        bound = dict(known)
        texts = [self.of(self._filled(each, bound), depth) for each in signature.arguments]
        if name in _INFIX and len(texts) == 2:
            return f"({texts[0]} {name} {texts[1]})"
        if name in ("!", "-"):
            return f"{name}({texts[0]})"
        if texts and self.chance.random() < 0.3:
            return f"({texts[0]}).{name}({', '.join(texts[1:])})"
        return f"{name}({', '.join(texts)})"

    def _filled(self, pattern: Pattern, bound: dict[str, Type]) -> Type:
        if isinstance(pattern, Parameter):
            return bound.setdefault(pattern.name, self.some_type(1))
        if isinstance(pattern, GenericList):
            return list_of(self._filled(pattern.inner, bound))
        if isinstance(pattern, GenericTuple):
            return tuple_of([self._filled(item, bound) for item in pattern.items])
        if isinstance(pattern, GenericUnion):
            if len(pattern.members) > 3:
                return self._filled(pattern.members[self.chance.randint(0, 3)], bound)
            return union_of([self._filled(member, bound) for member in pattern.members])
        return pattern

    def _operator(self, wanted: Type, depth: int) -> str | None:
        """Signs without brackets between them, so that their order counts."""
        chance = self.chance
        signs: tuple[str, ...] = ("+", "-", "*", "/", "%")
        of = wanted
        if wanted is BOOLEAN:
            if chance.random() < 0.5:
                signs = ("&&", "||", "==", "!=")
            else:
                first, second = self.of(INT, depth), self.of(INT, depth)
                return f"{first} {chance.choice(('<', '<=', '>', '>=', '==', '!='))} {second}"
        elif wanted is STRING or wanted is BYTES:
            signs = ("+",)
        elif isinstance(wanted, ListOf):
            return self._list_operator(wanted, depth)
        elif wanted is not INT and wanted is not BIG_INT:
            return None
        text = self.of(of, depth)
        for _ in range(chance.randint(1, 3)):
            gap = chance.choice((" ", " ", "", "\n", "  # note\n"))
            text += f"{gap}{chance.choice(signs)} {self.of(of, depth - 1)}"
        return text

    def _list_operator(self, wanted: ListOf, depth: int) -> str:
        sign = self.chance.choice(("::", ":+", "++") if self.version >= 4 else ("::",))
        whole, item = self.of(wanted, depth), self.of(wanted.inner, depth)
        if sign == "::":
            return f"{item} :: {whole}"
        return f"{whole} :+ {item}" if sign == ":+" else f"{whole} ++ {self.of(wanted, depth)}"

    def _wrapped(self, wanted: Type, depth: int) -> str:
        inner = self.of(wanted, depth)
        form = self.chance.choice(("({})", "{{ {} }}", "(\n  {}\n)", "# note\n{}"))
        return form.format(inner)

    def _choice(self, wanted: Type, depth: int) -> str:
        condition = self.of(BOOLEAN, depth)
        yes, no = self.of(wanted, depth), self.of(wanted, depth)
        if self.chance.random() < 0.3:
            return f"if ({condition})\n  then {yes}\n  else {no}"
        return f"(if ({condition}) then {yes} else {no})"

    def _block(self, wanted: Type, depth: int) -> str:
        with self.scope([]):
            declared = self.declarations(self.chance.randint(1, 2), depth)
            body = self.of(wanted, depth)
        if self.chance.random() < 0.3 and not any("#" in each for each in declared):
            return f"{{ {'; '.join(declared)}; {body} }}"
        return "{\n" + "\n".join([*declared, body]) + "\n}"

    def _own_call(self, wanted: Type, depth: int) -> str | None:
        fitting = [each for each in self._functions if self._fits(wanted, each[2])]
        if not fitting:
            return None
        name, parameters, _ = self.chance.choice(fitting)
        return f"{name}({', '.join(self.of(each, depth) for each in parameters)})"

    def _fold(self, wanted: Type, depth: int) -> str | None:
        fitting = [
            (name, parameters[1])
            for name, parameters, result in self._functions
            if len(parameters) == 2 and parameters[0].key == result.key == wanted.key
        ]
        if not fitting:
            return None
        name, item = self.chance.choice(fitting)
        items, first = self.of(list_of(item), depth), self.of(wanted, depth)
        return f"FOLD<{self.chance.randint(1, 12)}>({items}, {first}, {name})"

    def _cast(self, wanted: Type, depth: int) -> str | None:
        if self.version < _FIRST_WITH["cast"] or wanted is ANY or wanted is NOTHING:
            return None
        if isinstance(wanted, (UnionOf, ListOf, TupleOf)) and self.chance.random() < 0.5:
            return None
        value = self.of(union_of([wanted, self.simple()]), depth)
        way = self.chance.choice(("exactAs", "exactAs", "as"))
        cast = f"({value}).{way}[{wanted.name}]"
        return cast if way == "exactAs" else f"value({cast})"

    # --- match ---

    def _match(self, wanted: Type, depth: int) -> str:
        chance = self.chance
        united: list[tuple[str, Type]] = [
            (name, of)
            for name, of in self._variables
            if isinstance(of, UnionOf) and of.name != "Buy|Sell"
        ]
        if united and chance.random() < 0.6:
            subject, of = chance.choice(united)
        else:
            of = self.some_type()
            subject = self.of(of, depth)
        cases = []
        members = of.members if isinstance(of, UnionOf) else (of,)
        for member in chance.sample(members, min(len(members), chance.randint(1, 3))):
            pattern, variables = self._pattern(member)
            with self.scope(variables):
                cases.append(f"case {pattern} => {self.of(wanted, depth)}")
        last = chance.choice(("_", self.name()))
        cases.append(f"case {last} => {self.of(wanted, depth)}")
        return f"match {subject} {{\n" + "\n".join(f"  {case}" for case in cases) + "\n}"

    def _pattern(self, of: Type) -> tuple[str, list[tuple[str, Type]]]:
        """A pattern that a value of a type may have, and what it names."""
        chance = self.chance
        name = self.name()
        choice = chance.random()
        if isinstance(of, TupleOf) and choice < 0.6 and self.version >= _FIRST_WITH["tuple"]:
            parts = [self._pattern(item) for item in of.items]
            named = [each for _, names in parts for each in names]
            return f"({', '.join(part for part, _ in parts)})", named
        if isinstance(of, Record) and of.fields and choice < 0.4 and self.version >= 4:
            field, inner = chance.choice(of.fields)
            part, named = self._field_pattern(inner)
            return f"{of.name}({field} = {part})", named
        if of in (INT, STRING, BOOLEAN, BYTES) and choice < 0.25 and self.version >= 4:
            return self._literal(of), []
        if choice < 0.4:
            return f"_: {of.name}", []
        return f"{name}: {of.name}", [(name, of)]

    def _field_pattern(self, inner: Type) -> tuple[str, list[tuple[str, Type]]]:
        name = self.name()
        if self.chance.random() < 0.5:
            return name, [(name, inner)]
        if inner in (INT, STRING, BOOLEAN, BYTES):
            return self._literal(inner), []
        return "_", []

    # --- declarations ---

    def declarations(self, count: int, depth: int = 4) -> list[str]:
        """Values and functions, each of which may use those before it."""
        return [self._declaration(min(depth, MAX_DEPTH)) for _ in range(count)]

    def _declaration(self, depth: int) -> str:
        choice = self.chance.random()
        if choice < 0.4 and self.version >= _FIRST_WITH["func"]:
            return self._function(depth)
        if choice < 0.55 and self.version >= _FIRST_WITH["tuple"]:
            types = [self.some_type(1) for _ in range(self.chance.randint(2, 3))]
            value = self.of(tuple_of(types), depth - 1)
            names = [self.name() for _ in types]
            self._variables.extend(zip(names, types, strict=True))
            return f"let ({', '.join(names)}) = {value}"
        name, of = self.name(), self.some_type()
        value = self.of(of, depth - 1)
        self._variables.append((name, of))
        return f"let {name} = {value}"

    def _function(self, depth: int) -> str:
        result = self.some_type()
        count = self.chance.choice((0, 1, 2, 2, 2, 3))
        parameters = [(self.name(), self.some_type()) for _ in range(count)]
        if parameters and self.chance.random() < 0.5:
            parameters[0] = (parameters[0][0], result)
        name = self.name()
        with self.scope(parameters):
            body = self.of(result, depth - 1)
        types = tuple(of for _, of in parameters)
        self._functions.append((name, types, result))
        told = ", ".join(f"{each}: {of.name}" for each, of in parameters)
        return f"func {name}({told}) = {body}"


def _bound(wanted: Type, result: Pattern) -> dict[str, Type] | None:
    """What the parameters of a function must be so that it gives the wanted type."""
    if isinstance(result, Parameter):
        return {result.name: wanted}
    if isinstance(result, GenericList):
        if not isinstance(wanted, ListOf):
            return None
        if isinstance(result.inner, Parameter):
            return {result.inner.name: wanted.inner}
        return {"A": wanted.inner, "B": wanted.inner}
    if isinstance(result, (GenericTuple, GenericUnion)) or result is NOTHING:
        return None
    if isinstance(wanted, (UnionOf, ListOf, TupleOf)):
        return {} if wanted.key == result.key else None
    return {} if covers(wanted, result) else None


def _fitting(version: int, kind: ScriptKind, wanted: Type) -> _Calls:
    """What a source can call by name, or with a sign, to get a type."""
    found: _Calls = {}
    for name, signatures in library(version, kind).functions.items():
        for signature in () if name.startswith("$") else signatures:
            if version < _FIRST_WITH["list"] and any(map(_is_list, signature.arguments)):
                continue
            bound = _bound(wanted, signature.result)
            if bound is not None:
                found.setdefault(name, []).append((signature, bound))
    return found


def _is_list(argument: Pattern) -> bool:
    return isinstance(argument, (ListOf, GenericList))
