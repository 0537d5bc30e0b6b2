"""The binary format of scripts: the envelope, expressions and dApps in both encodings.

What lives here: reading and writing. What does not: the nodes (``expressions``), the metadata of a
dApp (``meta``), and the cache (``script``).

The *fixed* encoding (language versions 1 to 5) writes numbers in 2, 4 or 8 bytes, the *varint*
encoding (from version 6 on) as protobuf does. Reading and writing do not recurse, since only the
number of bytes limits the depth. Like the reference, the reader accepts some malformed input: a
count above 127 in a signed byte means zero, and invalid UTF-8 is replaced. Both pause (``steps``),
since a dApp may have 160,000 nodes.

Sources: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang``:
``script/ScriptReader.scala``, ``v1/serialization/{SerdeV1,SerdeV2}.scala``,
``contract/serialization/{ContractSerDeV1,ContractSerDeV2}.scala``, ``utils/Serialize.scala``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import msgspec

from soliton.crypto.hashes import secure_hash
from soliton.ride.errors import ScriptFormatError
from soliton.ride.expressions import (
    CONSTANTS,
    FALSE,
    FIRST_VERSION,
    LAST_VERSION,
    TRUE,
    AnnotatedFunction,
    Block,
    BoolConst,
    BytesConst,
    Call,
    Constant,
    DApp,
    Declaration,
    Expression,
    Func,
    GetField,
    If,
    Let,
    ListConst,
    LongConst,
    Ref,
    StringConst,
    declared_expression,
)
from soliton.ride.meta import read_meta, varint
from soliton.ride.readers import FIRST_VARINT_VERSION, Reader, make_reader, signed_byte
from soliton.ride.values import (
    ELEMENT_WEIGHT,
    EMPTY_LIST_WEIGHT,
    MAX_BYTES,
    MAX_STRING_BYTES,
    MAX_WEIGHT,
    utf8,
)
from soliton.steps import pause

CHECKSUM_LENGTH: Final = 4
EXPRESSION, DAPP, LIBRARY = 1, 2, 3
MAX_NAME_BYTES: Final = 255
"""The limit for names of callable functions."""
MAX_SCRIPT_BYTES: Final = 163_840
"""The largest dApp that can be read. The limit for setting one depends on version and height."""
NODES_IN_STEP: Final = 256
"""Nodes that are read or written in one step; each declaration begins another."""

_LONG, _BYTES, _STRING, _IF, _LET_BLOCK, _REF, _TRUE, _FALSE = range(8)
_GETTER, _CALL, _BLOCK, _LIST = 8, 9, 10, 11
_NATIVE, _USER = 0, 1
_LET, _FUNC = 0, 1
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_I64: Final = struct.Struct(">q")
_CHILDREN: Final = {_IF: 3, _LET_BLOCK: 2, _GETTER: 1, _BLOCK: 2}


# --- envelope -------------------------------------------------------------------------------------


def read_script(data: bytes) -> tuple[int, Expression | DApp]:
    """Return the language version and the content; raise ``ScriptFormatError`` if malformed."""
    if not data:
        raise ScriptFormatError("Can't parse empty script bytes")
    version, kind, start = _read_header(data)
    body = data[:-CHECKSUM_LENGTH]
    if len(body) < start or secure_hash(body)[:CHECKSUM_LENGTH] != data[-CHECKSUM_LENGTH:]:
        raise ScriptFormatError("Invalid checksum")
    if kind == DAPP:
        if len(data) > MAX_SCRIPT_BYTES:
            raise ScriptFormatError(
                f"Script is too large: {len(data)} bytes > {MAX_SCRIPT_BYTES} bytes"
            )
        return version, read_dapp(body[start:], version)
    return version, read_expression(body[start:], version)


def _read_header(data: bytes) -> tuple[int, int, int]:
    """Return the version, the content type and the length of the header."""
    first = data[0]
    if FIRST_VERSION <= first < FIRST_VARINT_VERSION:
        return first, EXPRESSION, 1
    if first and not FIRST_VERSION <= first <= LAST_VERSION:
        raise ScriptFormatError(f"Invalid version of script: {signed_byte(first)}")
    length = 2 if first else 3
    if len(data) < length:
        raise ScriptFormatError(f"Illegal length of script: {len(data)}")
    kind = data[1]
    if kind not in (EXPRESSION, DAPP, LIBRARY):
        raise ScriptFormatError(f"Invalid content type of script: {signed_byte(kind)}")
    version = first or data[2]
    if not FIRST_VERSION <= version <= LAST_VERSION:
        raise ScriptFormatError(f"Invalid version of script: {signed_byte(version)}")
    return version, kind, length


def write_script(version: int, content: Expression | DApp) -> bytes:
    """Serialize a script. Reverses ``read_script`` except for non-canonical input."""
    if isinstance(content, DApp):
        body = write_dapp(content, version)
        head = bytes((0, DAPP, version) if version < FIRST_VARINT_VERSION else (version, DAPP))
    else:
        body = write_expression(content, version)
        head = bytes((version,) if version < FIRST_VARINT_VERSION else (version, EXPRESSION))
    data = head + body
    return data + secure_hash(data)[:CHECKSUM_LENGTH]


# --- reading --------------------------------------------------------------------------------------


def read_expression(
    data: bytes, version: int, watch: Callable[[], None] | None = None
) -> Expression:
    """Read an expression without envelope, in the encoding of a version; it must end the data.

    ``watch`` is called for each node, and may raise to cancel. Raises ``ScriptFormatError``.
    """
    reader = make_reader(data, version)
    expression = _read(reader, watch)
    if reader.left():
        raise ScriptFormatError(f"{reader.left()} bytes left")
    return expression


def read_dapp(data: bytes, version: int) -> DApp:
    """Read a dApp without envelope; raise ``ScriptFormatError`` if malformed."""
    reader = make_reader(data, version)
    reader.start_of_dapp()
    meta = reader.sized()
    read_meta(meta)
    declarations = tuple(
        _read_declaration(reader, reader.byte()) for _ in range(reader.dapp_count())
    )
    callables = tuple(_read_annotated(reader) for _ in range(reader.dapp_count()))
    for function in callables:
        size = len(utf8(function.function.name))
        if size > MAX_NAME_BYTES:
            raise ScriptFormatError(
                f"Callable function name ({function.function.name}) size = {size} bytes "
                f"exceeds {MAX_NAME_BYTES}"
            )
    verifier = _read_annotated(reader) if reader.has_verifier() else None
    return DApp(meta, declarations, callables, verifier)


def _read_annotated(reader: Reader) -> AnnotatedFunction:
    invocation = reader.text()
    declaration = _read_declaration(reader, reader.byte())
    if not isinstance(declaration, Func):
        raise ScriptFormatError(f"{declaration.name} is annotated, and no function")
    return AnnotatedFunction(invocation, declaration)


def _read_declaration(reader: Reader, kind: int) -> Declaration:
    name, parameters = _read_declaration_head(reader, kind)
    value = _read(reader)
    return Let(name, value) if parameters is None else Func(name, parameters, value)


def _read_declaration_head(reader: Reader, kind: int) -> tuple[str, tuple[str, ...] | None]:
    if kind not in (_LET, _FUNC):
        raise ScriptFormatError(f"a declaration of the unknown kind {kind}")
    name = reader.text()
    if kind == _LET:
        return name, None
    return name, tuple(reader.text() for _ in range(reader.parameter_count()))


class _Pending:
    """A node whose children are being read; it has ``count`` of them."""

    __slots__ = ("children", "count", "head", "tag", "weight")

    def __init__(
        self,
        tag: int,
        count: int,
        head: int | str | tuple[str, tuple[str, ...] | None] = 0,
    ) -> None:
        self.tag = tag
        self.count = count
        self.head = head
        self.children: list[Expression] = []
        self.weight = EMPTY_LIST_WEIGHT


def _read(reader: Reader, watch: Callable[[], None] | None = None) -> Expression:
    """Read an expression with its children, in steps."""
    pending: list[_Pending] = []
    count = 0
    while True:
        if count % NODES_IN_STEP == 0:
            pause()
        count += 1
        if watch is not None:
            watch()
        tag = reader.byte()
        node = _read_leaf(reader, tag)
        if node is None:
            opened = _open(reader, tag)
            if opened.count:
                pending.append(opened)
                continue
            node = _close(reader, opened)
        weight = _leaf_weight(node)
        while pending:
            parent = pending[-1]
            if parent.tag == _LIST:
                if not isinstance(node, CONSTANTS):
                    raise ScriptFormatError("Unsupported array element")
                parent.weight += ELEMENT_WEIGHT + weight
            parent.children.append(node)
            if len(parent.children) < parent.count:
                break
            pending.pop()
            weight = parent.weight
            node = _close(reader, parent)
        else:
            return node


def _read_leaf(reader: Reader, tag: int) -> Expression | None:
    if tag == _REF:
        return Ref(reader.text())
    if tag == _LONG:
        return LongConst(reader.long())
    if tag == _STRING:
        text = reader.text()
        size = len(utf8(text))
        if size > MAX_STRING_BYTES:
            raise ScriptFormatError(f"String size={size} exceeds {MAX_STRING_BYTES} bytes")
        return StringConst(text)
    if tag == _BYTES:
        data = reader.sized()
        if len(data) > MAX_BYTES:
            raise ScriptFormatError(f"ByteStr size={len(data)} exceeds {MAX_BYTES} bytes")
        return BytesConst(data)
    if tag == _TRUE:
        return TRUE
    if tag == _FALSE:
        return FALSE
    return None


def _leaf_weight(node: Expression) -> int:
    match node:
        case LongConst():
            return 8
        case StringConst(value):
            return len(utf8(value))
        case BytesConst(value):
            return len(value)
        case BoolConst():
            return 1
        case ListConst():
            return EMPTY_LIST_WEIGHT
    return 0


def _open(reader: Reader, tag: int) -> _Pending:
    """Read the beginning of a node with children."""
    if tag == _CALL:
        function = reader.function()
        return _Pending(tag, reader.argument_count(), function)
    if tag == _BLOCK:
        return _Pending(tag, 2, _read_declaration_head(reader, reader.byte()))
    if tag == _LET_BLOCK:
        return _Pending(tag, 2, (reader.text(), None))
    if tag == _LIST:
        return _Pending(tag, reader.list_count())
    if tag in _CHILDREN:
        return _Pending(tag, _CHILDREN[tag])
    raise ScriptFormatError(f"an expression of the unknown kind {tag}")


def _close(reader: Reader, pending: _Pending) -> Expression:
    """Return a node whose children have all been read."""
    tag, head, children = pending.tag, pending.head, pending.children
    if tag == _CALL:
        assert not isinstance(head, tuple)
        return Call(head, tuple(children))
    if tag == _IF:
        return If(*children)
    if tag == _GETTER:
        return GetField(children[0], reader.text())
    if tag == _LIST:
        if pending.weight > MAX_WEIGHT:
            raise ScriptFormatError(
                f"The list is too heavy. Actual weight: {pending.weight}, limit: {MAX_WEIGHT}"
            )
        return ListConst(tuple(node for node in children if isinstance(node, CONSTANTS)))
    assert isinstance(head, tuple)
    name, parameters = head
    value, body = children
    declaration = Let(name, value) if parameters is None else Func(name, parameters, value)
    return Block(declaration, body, tag == _LET_BLOCK)


# --- writing --------------------------------------------------------------------------------------


def write_expression(expression: Expression, version: int) -> bytes:
    """Serialize an expression without envelope, in the encoding of a version.

    Raises ``ScriptFormatError`` if that encoding cannot represent it.
    """
    out = bytearray()
    _write(out, expression, _form(version))
    return bytes(out)


def write_dapp(dapp: DApp, version: int) -> bytes:
    """Serialize a dApp without envelope."""
    form = _form(version)
    out = bytearray(form.dapp_start)
    out += form.sized(dapp.meta)
    out += form.number(len(dapp.declarations))
    for declaration in dapp.declarations:
        _write_declaration(out, declaration, form)
    out += form.number(len(dapp.callables))
    for function in dapp.callables:
        _write_annotated(out, function, form)
    out += form.flag(dapp.verifier is not None)
    if dapp.verifier is not None:
        _write_annotated(out, dapp.verifier, form)
    return bytes(out)


def _write_annotated(out: bytearray, function: AnnotatedFunction, form: _Form) -> None:
    out += form.sized(utf8(function.invocation))
    _write_declaration(out, function.function, form)


def _write_declaration(out: bytearray, declaration: Declaration, form: _Form) -> None:
    out += _declaration_head(declaration, form)
    _write(out, declared_expression(declaration), form)


def _declaration_head(declaration: Declaration, form: _Form) -> bytes:
    name = form.sized(utf8(declaration.name))
    if isinstance(declaration, Let):
        return bytes((_LET,)) + name
    count = form.count(len(declaration.parameters))
    parameters = b"".join(form.sized(utf8(each)) for each in declaration.parameters)
    return bytes((_FUNC,)) + name + count + parameters


def _write(out: bytearray, expression: Expression, form: _Form) -> None:
    """Append an expression, in steps. The stack has nodes and serialized bytes that follow."""
    stack: list[Expression | bytes] = [expression]
    count = 0
    while stack:
        if count % NODES_IN_STEP == 0:
            pause()
        count += 1
        node = stack.pop()
        if isinstance(node, bytes):
            out += node
            continue
        match node:
            case If(condition, then, otherwise):
                out.append(_IF)
                stack.extend((otherwise, then, condition))
            case GetField(inner, field):
                out.append(_GETTER)
                stack.extend((form.sized(utf8(field)), inner))
            case Call(function, arguments):
                out.append(_CALL)
                out += form.function(function) + form.count(len(arguments))
                stack.extend(reversed(arguments))
            case Block(Let(name, value), body, True):
                out.append(_LET_BLOCK)
                out += form.sized(utf8(name))
                stack.extend((body, value))
            case Block(declaration, body):
                out.append(_BLOCK)
                out += _declaration_head(declaration, form)
                stack.extend((body, declared_expression(declaration)))
            case ListConst(items):
                out.append(_LIST)
                out += form.number(len(items))
                stack.extend(reversed(items))
            case _:
                out += _leaf_bytes(node, form)


def _leaf_bytes(node: Constant | Ref | GetField | If | Call | Block, form: _Form) -> bytes:
    match node:
        case LongConst(value):
            return bytes((_LONG,)) + form.long(value)
        case BytesConst(data):
            return bytes((_BYTES,)) + form.sized(data)
        case StringConst(text):
            return bytes((_STRING,)) + form.sized(utf8(text))
        case BoolConst(truth):
            return bytes((_TRUE if truth else _FALSE,))
        case Ref(name):
            return bytes((_REF,)) + form.sized(utf8(name))
    raise ScriptFormatError(f"{type(node).__name__} has no serialised form")


class _Form(msgspec.Struct, frozen=True):
    """One of the two encodings of numbers."""

    varint: bool

    @property
    def dapp_start(self) -> bytes:
        return b"" if self.varint else _I32.pack(0)

    def number(self, number: int) -> bytes:
        return varint(number) if self.varint else _I32.pack(number)

    def count(self, count: int) -> bytes:
        if not self.varint:
            return _I32.pack(count)
        if count > 127:
            raise ScriptFormatError(f"{count} are too many for one byte")
        return bytes((count,))

    def flag(self, flag: bool) -> bytes:
        return bytes((flag,)) if self.varint else _I32.pack(flag)

    def long(self, number: int) -> bytes:
        return varint(number & 0xFFFF_FFFF_FFFF_FFFF) if self.varint else _I64.pack(number)

    def sized(self, data: bytes) -> bytes:
        return self.number(len(data)) + data

    def function(self, function: int | str) -> bytes:
        if isinstance(function, str):
            return bytes((_USER,)) + self.sized(utf8(function))
        if not self.varint:
            return bytes((_NATIVE,)) + _I16.pack(function)
        return bytes((_NATIVE,)) + varint(function & 0xFFFF_FFFF)


def _form(version: int) -> _Form:
    return _Form(version >= FIRST_VARINT_VERSION)
