"""Typed reading of a configuration tree that a person wrote.

What lives here: ``Section``, one level of the tree. It gives values of the asked kind, refuses
others naming the full key, the value and what is expected, and remembers which keys were asked
for, so that the rest can be told as unknown. What does not: which keys there are.

The forms accepted are those of HOCON as wavesplatform/Waves reads it (lightbend/config
``HOCON.md``): yes/no, on/off and true/false, numbers in quotes, durations with a unit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, NamedTuple, NoReturn, TypeVar

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
_UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
MAX_NAME_CHARS: Final = 64
"""Of a name that is compared with others; the longest that there is has 55."""
NOT_SHOWN: Final = "(not shown)"

T = TypeVar("T")


class SettingRefused(InputError):
    """A configuration, or one of its settings: then ``key`` is its full name."""

    key = ""


class Answer(NamedTuple):
    """What a setting comes to, and whether that was written down."""

    key: str
    value: object
    written: bool


class Section:
    """One level of a configuration tree, and the full name (``path``) that it has."""

    def __init__(self, tree: Mapping[str, object], path: str, error: type[SettingRefused]) -> None:
        self.path = path
        self._tree = tree
        self._error = error
        self._asked: set[str] = set()
        self._children: list[Section] = []
        self._answers: dict[str, object] = {}

    def refuse(self, key: str, expected: str, *, show: bool = True) -> NoReturn:
        """Raise the error for the value at ``key``; ``show=False`` keeps the value out of it."""
        if key not in self._tree:
            error = self._error(f"{self.full(key)} is missing: expected {expected}")
        else:
            value = repr(self._tree[key])
            shown = value if len(value) <= MAX_SHOWN_CHARS else f"{value[:MAX_SHOWN_CHARS]}…"
            error = self._error(
                f"{self.full(key)} is {shown if show else NOT_SHOWN}: expected {expected}"
            )
        error.key = self.full(key)
        raise error

    def full(self, key: str) -> str:
        """The full name of a key of this section."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Whether the key is there, even with the value null."""
        self._asked.add(key)
        return key in self._tree

    def is_section(self, key: str) -> bool:
        """Whether a section was written at the key."""
        return isinstance(self._tree.get(key), Mapping)

    def keys(self) -> tuple[str, ...]:
        """The keys that were written."""
        return tuple(self._tree)

    def asked(self) -> Iterator[str]:
        """Full names of all keys that were asked for, here and below: what is understood."""
        with_children = {child.path for child in self._children}
        yield from sorted({self.full(key) for key in self._asked} - with_children)
        for child in self._children:
            yield from child.asked()

    def answers(self) -> Iterator[Answer]:
        """What was asked for and what it came to, here and below; secrets are not shown."""
        for key, value in self._answers.items():
            yield Answer(self.full(key), value, key in self._tree)
        for child in self._children:
            yield from child.answers()

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

    def part(self, key: str, *keys: str) -> Section:
        """Some keys of the section at ``key``; the rest of it somebody else reads."""
        value = self._value(key)
        tree = value if isinstance(value, Mapping) else {}
        some = {name: tree[name] for name in keys if name in tree}
        child = Section(some, self.full(key), self._error)
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
            return self._answer(key, default)
        number = _as_whole(value)
        if number is None or not least <= number <= most:
            self.refuse(key, f"a whole number from {least} to {most}")
        return self._answer(key, number)

    def wholes(self, key: str, least: int, most: int) -> tuple[int, ...]:
        """A list of whole numbers within bounds."""
        numbers = []
        for item in self._list(key):
            number = _as_whole(item)
            if number is None or not least <= number <= most:
                self.refuse(key, f"a list of whole numbers from {least} to {most}")
            numbers.append(number)
        return self._answer(key, tuple(numbers))

    def truth(self, key: str, default: bool) -> bool:
        """Yes or no."""
        value = self._value(key)
        if value is None:
            return self._answer(key, default)
        truth = _TRUTHS.get(str(value).lower()) if isinstance(value, bool | str) else None
        if truth is None:
            self.refuse(key, "yes or no")
        return self._answer(key, truth)

    def text(self, key: str, default: str | None) -> str:
        """A text; a number or truth value that was not put in quotes is taken as written."""
        value = self._value(key)
        if value is None and default is not None:
            return self._answer(key, default)
        if isinstance(value, bool):
            return self._answer(key, str(value).lower())
        if not isinstance(value, str | int | float):
            self.refuse(key, "a text")
        return self._answer(key, str(value))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        items = self._list(key)
        if not all(isinstance(item, str) for item in items):
            self.refuse(key, "a list of texts")
        return self._answer(key, tuple(str(item) for item in items))

    def secret(self, key: str) -> str | None:
        """A text that no message shows; it has to be quoted where it looks like something else."""
        value = self._value(key)
        if value is None or value == "":
            return self._answer(key, None)
        if not isinstance(value, str):
            self.refuse(key, "a text (put it in quotes)", show=False)
        self._answer(key, NOT_SHOWN)
        return value

    def secrets(self, key: str) -> tuple[str, ...]:
        """A list of texts that no message shows."""
        items = self._list(key)
        if not all(isinstance(item, str) for item in items):
            self.refuse(key, "a list of texts", show=False)
        self._answer(key, (NOT_SHOWN,) * len(items))
        return tuple(str(item) for item in items)

    def duration_ms(self, key: str, default: int | None) -> int:
        """A length of time in milliseconds: ``10s``, ``120m``, ``500ms``, or a number of ms."""
        value = self._value(key)
        length = default if value is None else _as_duration_ms(value)
        if length is None:
            self.refuse(key, "a duration such as 10s, 120m or 500ms")
        self._answer(key, duration_text(length))
        return length

    def _answer(self, key: str, value: T) -> T:
        """Note what a setting comes to."""
        self._answers[key] = value
        return value

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


def near(key: str, known: Collection[str]) -> str:
    """What somebody may have meant by a key that nobody knows: `` (did you mean …?)``, or nothing.

    ``known`` are full names. A name of the same section that looks alike comes first, then the same
    name in another section.
    """
    above, _, name = key.rpartition(".")
    name, prefix = name[:MAX_NAME_CHARS], f"{above}." if above else ""
    here = {each[len(prefix) :].split(".")[0] for each in known if each.startswith(prefix)}
    found = [f"{prefix}{each}" for each in get_close_matches(name, here, 1)]
    found = found or sorted(each for each in known if each.rpartition(".")[2] == name)
    return f" (did you mean {' or '.join(found[:3])}?)" if found else ""


def duration_text(length_ms: int) -> str:
    """A length of time as one writes it: ``10s``."""
    unit, size = next(each for each in _UNITS if length_ms % each[1] == 0)
    return f"{length_ms // size}{unit}" if length_ms else "0s"


def _as_whole(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    return None


def _as_duration_ms(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    match = _DURATION.fullmatch(str(value).strip().lower())
    if match is None or match[2] not in _UNIT_MS:
        return None
    return round(float(match[1]) * _UNIT_MS[match[2]])
