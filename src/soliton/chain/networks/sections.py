"""Typed reading of a configuration tree that a person wrote.

What lives here: ``Section``, one level of the tree. It gives values of the asked kind, refuses
others naming the full key, the value and what is expected, and remembers which keys were asked
for, so that the rest can be told as unknown. What does not: which keys there are.

The forms accepted are those of HOCON as wavesplatform/Waves reads it (lightbend/config
``HOCON.md``): yes/no, on/off and true/false, numbers in quotes, durations with a unit.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Final, NoReturn

from soliton.errors import InputError

MAX_LIST_ITEMS: Final = 10_000
"""Longest list in a configuration: genesis transfers of a large private chain fit."""
MAX_SHOWN_CHARS: Final = 80
"""A wrong value is quoted in the refusal up to this length."""

_TRUTHS: Final = {
    "yes": True, "on": True, "true": True, "no": False, "off": False, "false": False,
}  # fmt: skip
_UNIT_MS: Final = {
    "": 1.0,
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1e-6),
    **dict.fromkeys(("us", "micro", "micros", "microsecond", "microseconds"), 1e-3),
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 1.0),
    **dict.fromkeys(("s", "second", "seconds"), 1_000.0),
    **dict.fromkeys(("m", "minute", "minutes"), 60_000.0),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000.0),
    **dict.fromkeys(("d", "day", "days"), 86_400_000.0),
}
_DURATION: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([a-z]*)")
_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,20}")
_ONE_MS: Final = dt.timedelta(milliseconds=1)


class Section:
    """One level of a configuration tree, and the full name (``path``) that it has."""

    def __init__(self, tree: Mapping[str, object], path: str, error: type[InputError]) -> None:
        self.path = path
        self._tree = tree
        self._error = error
        self._asked: set[str] = set()
        self._children: list[Section] = []

    def refuse(self, key: str, expected: str, *, show: bool = True) -> NoReturn:
        """Raise the error for the value at ``key``; ``show=False`` keeps the value out of it."""
        if key not in self._tree:
            raise self._error(f"{self.full(key)} is missing: expected {expected}")
        value = repr(self._tree[key])
        shown = value if len(value) <= MAX_SHOWN_CHARS else f"{value[:MAX_SHOWN_CHARS]}…"
        raise self._error(
            f"{self.full(key)} is {shown if show else '(not shown)'}: expected {expected}"
        )

    def full(self, key: str) -> str:
        """The full name of a key of this section."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Whether the key is there, even with the value null."""
        self._asked.add(key)
        return key in self._tree

    def keys(self) -> tuple[str, ...]:
        """The keys that were written."""
        return tuple(self._tree)

    def asked(self) -> Iterator[str]:
        """Full names of all keys that were asked for, here and below: what is understood."""
        with_children = {child.path for child in self._children}
        yield from sorted({self.full(key) for key in self._asked} - with_children)
        for child in self._children:
            yield from child.asked()

    def unknown(self) -> Iterator[str]:
        """Full names of the keys that were written and that nobody asked for."""
        yield from (self.full(key) for key in self._tree if key not in self._asked)
        for child in self._children:
            yield from child.unknown()

    def written(self, *keys: str) -> Iterator[str]:
        """Full names of those of ``keys`` that were written; they count as asked for."""
        for key in keys:
            if self.has(key):
                yield self.full(key)

    def section(self, key: str) -> Section:
        """The section at ``key``, an empty one where there is none."""
        value = self._value(key)
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            self.refuse(key, "a section, { … }")
        child = Section(value, self.full(key), self._error)
        self._children.append(child)
        return child

    def sections(self, key: str) -> list[Section]:
        """The list of sections at ``key``."""
        items = []
        for number, item in enumerate(self._list(key)):
            if not isinstance(item, Mapping):
                self.refuse(key, "a list of sections, [{ … }, …]")
            items.append(Section(item, f"{self.full(key)}[{number}]", self._error))
        self._children.extend(items)
        return items

    def whole(self, key: str, default: int | None, least: int, most: int) -> int:
        """A whole number within bounds; without a ``default`` it must be there."""
        value = self._value(key)
        if value is None and default is not None:
            return default
        number = _as_whole(value)
        if number is None or not least <= number <= most:
            self.refuse(key, f"a whole number from {least} to {most}")
        return number

    def wholes(self, key: str, least: int, most: int) -> tuple[int, ...]:
        """A list of whole numbers within bounds."""
        numbers = []
        for item in self._list(key):
            number = _as_whole(item)
            if number is None or not least <= number <= most:
                self.refuse(key, f"a list of whole numbers from {least} to {most}")
            numbers.append(number)
        return tuple(numbers)

    def truth(self, key: str, default: bool) -> bool:
        """Yes or no."""
        value = self._value(key)
        if value is None:
            return default
        truth = _TRUTHS.get(str(value).lower()) if isinstance(value, bool | str) else None
        if truth is None:
            self.refuse(key, "yes or no")
        return truth

    def text(self, key: str, default: str | None) -> str:
        """A text; a number or truth value that was not put in quotes is taken as written."""
        value = self._value(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool):
            return str(value).lower()
        if not isinstance(value, str | int | float):
            self.refuse(key, "a text")
        return str(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        items = self._list(key)
        if not all(isinstance(item, str) for item in items):
            self.refuse(key, "a list of texts")
        return tuple(str(item) for item in items)

    def secret(self, key: str) -> str | None:
        """A text that no message shows; it has to be quoted where it looks like something else."""
        value = self._value(key)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            self.refuse(key, "a text (put it in quotes)", show=False)
        return value

    def duration_ms(self, key: str, default: int | None) -> int:
        """A length of time in milliseconds: ``10s``, ``120m``, ``500ms``, or a number of ms."""
        value = self._value(key)
        if value is None and default is not None:
            return default
        length = _as_duration_ms(value)
        if length is None:
            self.refuse(key, "a duration such as 10s, 120m or 500ms")
        return length

    def _list(self, key: str) -> list[object]:
        value = self._value(key)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > MAX_LIST_ITEMS:
            self.refuse(key, f"a list of up to {MAX_LIST_ITEMS} items, [ … ]")
        return value

    def _value(self, key: str) -> object:
        self._asked.add(key)
        return self._tree.get(key)


def _as_whole(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    return None


def _as_duration_ms(value: object) -> int | None:
    if isinstance(value, dt.timedelta):
        return value // _ONE_MS if value >= dt.timedelta(0) else None
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    match = _DURATION.fullmatch(str(value).strip().lower())
    if match is None or match[2] not in _UNIT_MS:
        return None
    return round(float(match[1]) * _UNIT_MS[match[2]])
