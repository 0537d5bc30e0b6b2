"""Layouts of the legacy binary formats, declared as data and compiled to functions at import.

A layout is a sequence of ``Field(name, codec)``. Adjacent fields of fixed size are read with one
``struct.Struct``; other fields have their own reader and writer. ``compile_fields`` returns the
functions.

What lives here: the codecs of the legacy binary format and the compiler. What does not: the fields
of a transaction or an order (their own modules), messages and JSON (``protobuf`` and
``json_kinds``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/serialization/Deser.scala`` and
``transaction/serialization/impl``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from soliton.chain.addresses import (
    ADDRESS_LENGTH,
    ADDRESS_VERSION,
    ALIAS_VERSION,
    Address,
    Alias,
    Recipient,
    check_address,
    make_alias,
)
from soliton.chain.errors import FormatError

MAX_BYTES16: Final = 32_767
"""The reference node reads lengths of two bytes as signed numbers."""
DIGEST_LENGTH: Final = 32
SIGNATURE_LENGTH: Final = 64
MAX_STORED_PROOFS: Final = 32_767
_ONE_SIGNATURE: Final = b"\1\0\1" + SIGNATURE_LENGTH.to_bytes(2, "big")
"""The beginning of the proofs of most transactions and orders: one signature."""

_PRESENT: Final = b"\1"
_ENCODED_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = b"\xef\xbf\xbd"

Values = dict[str, Any]
"""Field values by name; only the declared codecs know their types."""


class Fixed(NamedTuple):
    """A codec of constant size: a ``struct`` format of one item, big-endian."""

    code: str


class Variable(NamedTuple):
    """A codec with its own functions: ``read(data, offset) -> (value, next offset)`` and
    ``write(value)``.
    """

    read: Callable[[bytes, int], tuple[Any, int]]
    write: Callable[[Any], bytes]


class Field(NamedTuple):
    """A named value in a layout."""

    name: str
    codec: Fixed | Variable


class Codec(NamedTuple):
    """The compiled functions: ``read(data, offset) -> (values, next offset)``, ``write(values) ->
    bytes``, and ``read_row`` and ``write_row``, which use a sequence of values in field order.
    """

    read: Callable[[bytes, int], tuple[Values, int]]
    write: Callable[[Mapping[str, Any]], bytes]
    read_row: Callable[[bytes, int], tuple[Sequence[Any], int]]
    write_row: Callable[[Sequence[Any]], bytes]


I64: Final = Fixed("q")
U8: Final = Fixed("B")
DIGEST: Final = Fixed("32s")
PUBLIC_KEY: Final = Fixed("32s")
SIGNATURE: Final = Fixed("64s")


def take(data: bytes, offset: int, length: int) -> bytes:
    """Return ``length`` bytes at ``offset``; raise ``FormatError`` if there are fewer."""
    piece = data[offset : offset + length]
    if length < 0 or len(piece) != length:
        raise FormatError(f"{length} bytes expected at offset {offset}, {len(piece)} left")
    return piece


def take_u16(data: bytes, offset: int) -> int:
    """Return a two-byte length; raise ``FormatError`` above ``MAX_BYTES16``."""
    value = int.from_bytes(take(data, offset, 2), "big")
    if value > MAX_BYTES16:
        raise FormatError(f"length {value} at offset {offset} is over {MAX_BYTES16}")
    return value


def _read_bool(data: bytes, offset: int) -> tuple[bool, int]:
    flag = take(data, offset, 1)[0]
    if flag > 1:
        raise FormatError(f"boolean 0 or 1 expected at offset {offset}, found {flag}")
    return flag == 1, offset + 1


def _read_bytes16(data: bytes, offset: int) -> tuple[bytes, int]:
    length = take_u16(data, offset)
    return take(data, offset + 2, length), offset + 2 + length


def write_bytes16(value: bytes) -> bytes:
    """``u16 length ‖ bytes``; raises ``FormatError`` over ``MAX_BYTES16``."""
    if len(value) > MAX_BYTES16:
        raise FormatError(f"{len(value)} bytes do not fit a field of at most {MAX_BYTES16}")
    return len(value).to_bytes(2, "big") + value


def _read_optional_digest(data: bytes, offset: int) -> tuple[bytes | None, int]:
    flag = take(data, offset, 1)
    if flag == b"\0":
        return None, offset + 1
    if flag != b"\1":
        raise FormatError(f"flag 0 or 1 expected at offset {offset}, found {flag[0]}")
    return take(data, offset + 1, DIGEST_LENGTH), offset + 1 + DIGEST_LENGTH


def _write_optional_digest(value: bytes | None) -> bytes:
    return b"\0" if value is None else b"\1" + value


def _read_address(data: bytes, offset: int) -> tuple[Address, int]:
    # Any chain id is accepted here; a rule checks it later.
    piece = take(data, offset, ADDRESS_LENGTH)
    return check_address(piece, piece[1]), offset + ADDRESS_LENGTH


def _read_recipient(data: bytes, offset: int) -> tuple[Recipient, int]:
    kind = take(data, offset, 1)[0]
    if kind == ADDRESS_VERSION:
        return _read_address(data, offset)
    if kind != ALIAS_VERSION:
        raise FormatError(f"no address or alias at offset {offset}: it begins with {kind}")
    chain_id = take(data, offset + 1, 1)[0]
    length = take_u16(data, offset + 2)
    return make_alias(text(take(data, offset + 4, length)), chain_id), offset + 4 + length


def _write_recipient(value: Recipient) -> bytes:
    return value.to_bytes() if isinstance(value, Alias) else value


def text(data: bytes) -> str:
    """Decode UTF-8; raise ``FormatError``."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"invalid UTF-8: {error.reason} at byte {error.start}") from error


def lenient_text(data: bytes) -> str:
    """Decode bytes that should be UTF-8, with replacement characters for what is not.

    As on the JVM, an encoded surrogate, also a truncated one, has one of them; Python has one for
    each byte.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _ENCODED_SURROGATE.sub(_REPLACEMENT, data).decode(errors="replace")


def _read_optional_script(data: bytes, offset: int) -> tuple[bytes | None, int]:
    flag = take(data, offset, 1)
    if flag == b"\0":
        return None, offset + 1
    script, end = _read_bytes16(data, offset + 1)
    if flag != b"\1" or not script:
        raise FormatError(f"no script and no sign of its absence at offset {offset}")
    return script, end


def _write_optional_script(value: bytes | None) -> bytes:
    return b"\0" if value is None else b"\1" + write_bytes16(value)


ADDRESS: Final = Variable(_read_address, bytes)
BOOL: Final = Variable(_read_bool, lambda value: b"\1" if value else b"\0")
BYTES16: Final = Variable(_read_bytes16, write_bytes16)
OPTIONAL_ASSET: Final = Variable(_read_optional_digest, _write_optional_digest)
OPTIONAL_SCRIPT: Final = Variable(_read_optional_script, _write_optional_script)
RECIPIENT: Final = Variable(_read_recipient, _write_recipient)


def read_proofs(data: bytes, offset: int) -> tuple[tuple[bytes, ...], int]:
    """Read ``01 ‖ u16 count ‖ count × (u16 length ‖ bytes)``; a rule limits their number later."""
    if data[offset : offset + len(_ONE_SIGNATURE)] == _ONE_SIGNATURE:
        start = offset + len(_ONE_SIGNATURE)
        return (take(data, start, SIGNATURE_LENGTH),), start + SIGNATURE_LENGTH
    if take(data, offset, 1) != b"\1":
        raise FormatError(f"unsupported proofs version {data[offset]}")
    count = take_u16(data, offset + 1)
    offset += 3
    proofs = []
    for _ in range(count):
        proof, offset = _read_bytes16(data, offset)
        proofs.append(proof)
    return tuple(proofs), offset


def write_proofs(proofs: Sequence[bytes]) -> bytes:
    """The inverse of ``read_proofs``; raises ``FormatError`` if there are too many."""
    if len(proofs) > MAX_STORED_PROOFS:
        raise FormatError(f"{len(proofs)} proofs do not fit a field of {MAX_STORED_PROOFS}")
    return b"\1" + len(proofs).to_bytes(2, "big") + b"".join(map(write_bytes16, proofs))


class _FixedRun(NamedTuple):
    layout: struct.Struct
    names: tuple[str, ...]


class _Single(NamedTuple):
    name: str
    codec: Variable


def compile_fields(fields: Sequence[Field]) -> Codec:
    """Return functions that read and write these fields in sequence.

    ``read`` raises ``FormatError`` if the data ends early, ``write`` if a value does not fit its
    field.
    """
    steps = _steps(fields)
    names = tuple(field.name for field in fields)
    shapes = _Shapes(fields) if all(map(_has_shape, fields)) else None

    def read_steps(data: bytes, offset: int) -> tuple[list[Any], int]:
        row: list[Any] = []
        for step in steps:
            if isinstance(step, _Single):
                value, offset = step.codec.read(data, offset)
                row.append(value)
                continue
            try:
                row += step.layout.unpack_from(data, offset)
            except struct.error as error:
                left = len(data) - offset
                raise FormatError(
                    f"{step.layout.size} bytes expected at offset {offset}, {left} left"
                ) from error
            offset += step.layout.size
        return row, offset

    def read(data: bytes, offset: int) -> tuple[Values, int]:
        row, end = read_steps(data, offset)
        return dict(zip(names, row, strict=True)), end

    writers: list[tuple[Callable[..., bytes], int, int]] = []
    for step in steps:
        start = writers[-1][2] if writers else 0
        if isinstance(step, _Single):
            writers.append((step.codec.write, start, start + 1))
        else:
            writers.append((step.layout.pack, start, start + len(step.names)))

    def write_steps(row: Sequence[Any]) -> bytes:
        parts = []
        for writer, start, end in writers:
            try:
                parts.append(writer(*row[start:end]))
            except struct.error as error:
                raise FormatError(f"one of {', '.join(names[start:end])}: {error}") from error
        return b"".join(parts)

    def write(values: Mapping[str, Any]) -> bytes:
        return write_steps([values[name] for name in names])

    def read_row(data: bytes, offset: int) -> tuple[Sequence[Any], int]:
        row = None if shapes is None else shapes.read_row(data, offset)
        return read_steps(data, offset) if row is None else row

    def write_row(row: Sequence[Any]) -> bytes:
        data = None if shapes is None else shapes.write_row(row)
        return write_steps(row) if data is None else data

    return Codec(read, write, read_row, write_row)


def _has_shape(field: Field) -> bool:
    return isinstance(field.codec, Fixed) or field.codec is OPTIONAL_ASSET


class _Shapes:
    """Fast path for fields of fixed size and optional assets, as in orders. Each combination of
    present assets is a shape, which is read and written by one ``struct.Struct``; journals contain
    millions of orders.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self._gaps: list[int] = []
        self._places = [
            place for place, field in enumerate(fields) if not isinstance(field.codec, Fixed)
        ]
        gap = 0
        for field in fields:
            if isinstance(field.codec, Fixed):
                gap += struct.calcsize(">" + field.codec.code)
            else:
                self._gaps.append(gap)
                gap = 0
        combinations = list(product((False, True), repeat=len(self._gaps)))
        self._shapes = [self._shape(fields, flags) for flags in combinations]
        self._writers = [self._shape(fields, flags, writes=True)[0] for flags in combinations]

    @staticmethod
    def _shape(
        fields: Sequence[Field], flags: Sequence[bool], *, writes: bool = False
    ) -> tuple[struct.Struct, tuple[int, ...]]:
        """Return the struct of a shape, and the indexes of its missing assets."""
        codes, absent = ">", []
        present = iter(flags)
        for place, (_, codec) in enumerate(fields):
            if isinstance(codec, Fixed):
                codes += codec.code
            elif next(present):
                # The reader has already checked the flag; the writer packs it as a value.
                codes += f"c{DIGEST_LENGTH}s" if writes else f"x{DIGEST_LENGTH}s"
            else:
                codes += "x"
                absent.append(place)
        return struct.Struct(codes), tuple(absent)

    def read_row(self, data: bytes, offset: int) -> tuple[Sequence[Any], int] | None:
        """Read a row; ``None`` on any error, which the general reader then reports."""
        place, number = offset, 0
        try:
            for gap in self._gaps:
                place += gap
                flag = data[place]
                if flag > 1:
                    return None
                place += 1 + DIGEST_LENGTH * flag
                number += number + flag
            layout, absent = self._shapes[number]
            row = list(layout.unpack_from(data, offset))
        except (IndexError, struct.error):
            return None
        for missing in absent:
            row.insert(missing, None)
        return row, offset + layout.size

    def write_row(self, row: Sequence[Any]) -> bytes | None:
        """Write a row; ``None`` on any error, which the general writer then reports."""
        number, items = 0, list(row)
        # From the end, so that earlier indexes stay valid.
        for bit, place in enumerate(reversed(self._places)):
            asset = items[place]
            if asset is None:
                del items[place]
            elif len(asset) == DIGEST_LENGTH:
                items.insert(place, _PRESENT)
                number |= 1 << bit
            else:
                return None
        try:
            return self._writers[number].pack(*items)
        except struct.error:
            return None


def _steps(fields: Sequence[Field]) -> tuple[_FixedRun | _Single, ...]:
    steps: list[_FixedRun | _Single] = []
    run: list[Field] = []

    def close_run() -> None:
        if run:
            codes = "".join(field.codec.code for field in run if isinstance(field.codec, Fixed))
            steps.append(_FixedRun(struct.Struct(">" + codes), tuple(field.name for field in run)))
            run.clear()

    for field in fields:
        if isinstance(field.codec, Fixed):
            run.append(field)
        else:
            close_run()
            steps.append(_Single(field.name, field.codec))
    close_run()
    return tuple(steps)
