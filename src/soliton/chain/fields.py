"""Fields, each declared once for all formats.

A ``Kind`` describes a kind of value: its JSON, its bytes in the legacy layouts, its form in
protobuf messages and its type in the script language. A ``Field`` assigns a kind to an attribute.
Functions that read and write records are compiled from the fields at import time; they are as fast
as hand-written ones.

What lives here: the two records and the compilers. What does not: kinds that several types share
(``kinds``), and the fields of a transaction type (its own module).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from keyword import iskeyword
from typing import Any, Final

import msgspec

from soliton.chain import layouts, protobuf
from soliton.chain.addresses import Recipient
from soliton.chain.errors import FormatError
from soliton.chain.json_kinds import JsonKind, member, read_items, same
from soliton.chain.json_schemas import Named, list_of, object_of
from soliton.chain.layouts import Fixed, Variable, take_u16, write_bytes16

RECORD_NAME: Final = "<compiled from the fields of {}>"
"""The file name shown in tracebacks."""


class MessageKind(msgspec.Struct, frozen=True):
    """The form of a value in a protobuf message; by default the value itself.

    ``read(member, chain_id)`` converts a message's member to the value and raises a ``ChainError``
    if it is invalid. ``write`` converts a value to the member; ``fill(member, value)`` fills a
    member that is a message or repeated. An ``optional`` member may be missing (``None``).
    """

    read: Callable[[Any, int], Any] | None = None
    write: Callable[[Any], Any] | None = None
    fill: Callable[[Any, Any], None] | None = None
    optional: bool = False


PLAIN: Final = MessageKind()
NO_JSON: Final = JsonKind(lambda value, _chain_id: value, same, {})
"""For values that have no JSON form."""


class Kind(msgspec.Struct, frozen=True):
    """A kind of value in all formats.

    ``ride`` is its type in the script language, or a mapping from first versions to types; empty if
    scripts do not see it. ``accounts`` returns the accounts that a value names.
    """

    json: JsonKind = NO_JSON
    binary: Fixed | Variable | None = None
    message: MessageKind = PLAIN
    ride: str | Mapping[int, str] = ""
    accounts: Callable[[Any], Iterable[Recipient]] | None = None


class Field:
    """An attribute of a record and its kind.

    ``key`` is its name in JSON and scripts (default: the attribute in camel case), ``aliases`` are
    older names that are also read, ``path`` is its path in the message (default: the attribute).
    With a ``default`` clients may omit it. JSON has it for versions from ``since`` on, after the
    other members.
    """

    __slots__ = ("aliases", "attribute", "default", "key", "kind", "path", "read_json", "since")

    def __init__(
        self,
        attribute: str,
        kind: Kind,
        *,
        key: str = "",
        path: str = "",
        default: object = msgspec.UNSET,
        aliases: tuple[str, ...] = (),
        since: int = 1,
    ) -> None:
        self.attribute = attribute
        self.kind = kind
        self.read_json = kind.json.read
        self.key = key or camel_case(attribute)
        self.path = path or attribute
        self.default = default
        self.aliases = aliases
        self.since = since

    @property
    def is_optional(self) -> bool:
        """Whether clients may omit it."""
        return self.default is not msgspec.UNSET


def camel_case(attribute: str) -> str:
    """Convert ``asset_id`` to ``assetId``."""
    first, *others = attribute.split("_")
    return first + "".join(map(str.capitalize, others))


# --- compiling ------------------------------------------------------------------------------------


def _function(head: str, body: Iterable[str], names: dict[str, Any], of: str) -> Any:  # noqa: ANN401 - its type is the caller's to say
    """Compile a function; ``names`` is its namespace."""
    source = f"def function({head}):\n" + "".join(f"    {line}\n" for line in body)
    exec(compile(source, RECORD_NAME.format(of), "exec"), names)  # noqa: S102 - the text is ours
    return names["function"]


def _member(path: str) -> str:
    """Return the expression for a member of a message; some members are Python keywords. Nested
    messages are the variables of ``_nested``.
    """
    parent, _, name = path.rpartition(".")
    message = _variable(parent) if parent else "message"
    return f"getattr({message}, {name!r})" if iskeyword(name) else f"{message}.{name}"


def _nested(fields: Sequence[Field]) -> dict[str, str]:
    """Return the lines that read each nested message once into a variable, by its path."""
    paths = dict.fromkeys(field.path.rpartition(".")[0] for field in fields)
    return {path: f"{_variable(path)} = message.{path}" for path in paths if path}


def _variable(path: str) -> str:
    return "in_" + path.replace(".", "_")


def message_reader(
    record: type, fields: Sequence[Field], closed: Sequence[str] = ()
) -> Callable[[Any, int], Any]:
    """Return ``read(message, chain_id)``, which converts a message to a record.

    It refuses unknown fields in the nested messages ``closed``.
    """
    names: dict[str, Any] = {"record": record, "refuse": protobuf.refuse_unknown_fields}
    lines = [f"refuse(message.{path})" for path in closed]
    lines += _nested(fields).values()
    values = []
    for field in fields:
        kind = field.kind.message
        value = _member(field.path)
        if kind.read is not None:
            names[f"read_{field.attribute}"] = kind.read
            value = f"read_{field.attribute}({value}, chain_id)"
        if kind.optional:
            value += f" if message.HasField({field.path!r}) else None"
        values.append(f"{field.attribute}={value}")
    lines.append(f"return record({', '.join(values)})")
    function: Callable[[Any, int], Any] = _function(
        "message, chain_id", lines, names, record.__name__
    )
    return function


def message_writer(record: type, fields: Sequence[Field]) -> Callable[[Any, Any], None]:
    """Return ``write(message, value)``, which fills a message.

    Nested messages are written even if all their members are empty.
    """
    names: dict[str, Any] = {}
    lines = []
    for path, line in _nested(fields).items():
        lines += [line, f"{_variable(path)}.SetInParent()"]
    for field in fields:
        kind, value = field.kind.message, f"value.{field.attribute}"
        target = _member(field.path)
        if kind.fill is not None:
            names[f"fill_{field.attribute}"] = kind.fill
            line = f"fill_{field.attribute}({target}, {value})"
            if kind.optional:
                line = f"if {value} is not None: {target}.SetInParent(); {line}"
            lines.append(line)
            continue
        if kind.write is not None:
            names[f"write_{field.attribute}"] = kind.write
            value = f"write_{field.attribute}({value})"
        if iskeyword(field.path):
            lines.append(f"setattr(message, {field.path!r}, {value})")
        else:
            lines.append(f"{target} = {value}")
    function: Callable[[Any, Any], None] = _function(
        "message, value", lines, names, record.__name__
    )
    return function


def json_writer(record: type, fields: Sequence[Field]) -> Callable[[Any, int], dict[str, Any]]:
    """Return ``write(value, version)``, which returns the JSON members of a record."""
    names: dict[str, Any] = {}
    always, later = [], []
    for field in fields:
        value, write = f"value.{field.attribute}", field.kind.json.write
        if write is not same:
            names[f"write_{field.attribute}"] = write
            value = f"write_{field.attribute}({value})"
        if field.since > 1:
            later.append(f"if version >= {field.since}: members[{field.key!r}] = {value}")
        else:
            always.append(f"{field.key!r}: {value}")
    lines = [f"members = {{{', '.join(always)}}}", *later, "return members"]
    function: Callable[[Any, int], dict[str, Any]] = _function(
        "value, version", lines, names, record.__name__
    )
    return function


# --- records in lists -----------------------------------------------------------------------------


def records_of(
    record: type,
    fields: Sequence[Field],
    *,
    limit: int,
    sized: bool = False,
    name: str = "",
    ride: str = "",
) -> Kind:
    """Return the kind of a list of records, whose fields are in binary order.

    In layouts the list is preceded by its count, and each record by its size if they are ``sized``.
    At most ``limit`` records are read from JSON. ``name`` is the name of the record's schema.
    """
    return Kind(
        _json_list(record, fields, limit, name),
        _binary_list(record, fields, sized=sized),
        messages_of(record, fields),
        ride,
        _accounts_of_list(fields),
    )


def _json_list(record: type, fields: Sequence[Field], limit: int, name: str) -> JsonKind:
    write = json_writer(record, fields)
    whole = object_of({field.key: field.kind.json.schema for field in fields})
    sent = object_of(
        {field.key: field.kind.json.schema for field in fields if not field.is_optional},
        {field.key: field.kind.json.schema for field in fields if field.is_optional},
    )

    members = [(field.key, field.kind.json.read, field.default) for field in fields]

    def read_item(value: object, chain_id: int) -> object:
        return record(
            *[member(value, key, read, chain_id, default) for key, read, default in members]
        )

    return JsonKind(
        lambda value, chain_id: read_items(value, chain_id, limit, read_item),
        lambda items: [write(item, 1) for item in items],
        list_of(Named(name, whole) if name else whole),
        list_of(sent) if sent != whole else None,
    )


def _binary_list(record: type, fields: Sequence[Field], *, sized: bool) -> Variable:
    codec = layouts.compile_fields(binary_fields(fields))
    names = [field.attribute for field in fields]

    def read(data: bytes, offset: int) -> tuple[tuple[object, ...], int]:
        count = take_u16(data, offset)
        offset += 2
        items = []
        for _ in range(count):
            end = None
            if sized:
                end = offset + 2 + take_u16(data, offset)
                offset += 2
            row, offset = codec.read_row(data, offset)
            if end not in (None, offset):
                raise FormatError(f"a record that ends at {offset} instead of {end}")
            items.append(record(*row))
        return tuple(items), offset

    def write(items: Sequence[object]) -> bytes:
        if len(items) > layouts.MAX_BYTES16:
            raise FormatError(f"{len(items)} records do not fit a field of {layouts.MAX_BYTES16}")
        pieces = [codec.write_row([getattr(item, name) for name in names]) for item in items]
        content = b"".join(map(write_bytes16, pieces) if sized else pieces)
        return len(items).to_bytes(2, "big") + content

    return Variable(read, write)


def message_of(record: type, *fields: Field) -> MessageKind:
    """Return the kind of a record as an optional nested message."""
    return MessageKind(
        message_reader(record, fields), fill=message_writer(record, fields), optional=True
    )


def messages_of(record: type, fields: Sequence[Field]) -> MessageKind:
    """Return the kind of a list of records as repeated messages."""
    read, write = message_reader(record, fields), message_writer(record, fields)

    def fill(messages: Any, items: Iterable[object]) -> None:  # noqa: ANN401 - any container
        for item in items:
            write(messages.add(), item)

    return MessageKind(
        lambda messages, chain_id: tuple([read(each, chain_id) for each in messages]), fill=fill
    )


def _accounts_of_list(
    fields: Sequence[Field],
) -> Callable[[Iterable[object]], list[Recipient]] | None:
    of_item = accounts_of(fields)
    if of_item is None:
        return None
    return lambda items: [account for item in items for account in of_item(item)]


def binary_fields(fields: Iterable[Field]) -> tuple[layouts.Field, ...]:
    """Return the fields that have a binary form, as layout fields."""
    return tuple(
        layouts.Field(field.attribute, field.kind.binary)
        for field in fields
        if field.kind.binary is not None
    )


def accounts_of(fields: Sequence[Field]) -> Callable[[Any], list[Recipient]] | None:
    """Return a function for the accounts that a record names; ``None`` if its fields name none."""
    named = [
        (field.attribute, field.kind.accounts)
        for field in fields
        if field.kind.accounts is not None
    ]
    if not named:
        return None
    return lambda value: [
        account for attribute, find in named for account in find(getattr(value, attribute))
    ]
