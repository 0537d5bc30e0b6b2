"""Typed access to a configuration tree.

What lives here: ``Section``, one level of the tree. It returns values of the requested type,
refuses others with the full key, the value and what is expected, and records which keys were read,
so that others can be reported as unknown. What does not: which keys exist.

The forms accepted are those of HOCON as wavesplatform/Waves reads it (lightbend/config
``HOCON.md``): yes/no, on/off and true/false, numbers in quotes, durations with a unit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from enum import Enum
from typing import Final, NamedTuple, NoReturn, TypeVar

from soliton.errors import InputError

MAX_LIST_ITEMS: Final = 10_000
"""The longest list in a configuration; the genesis transfers of a large private chain fit."""
MAX_SHOWN_CHARS: Final = 80
"""An invalid value is quoted in the error message up to this length."""

_BOOLEANS: Final = {
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
"""The limit for a name that is compared with others; the longest existing one has 55."""
NOT_SHOWN: Final = "(not shown)"

T = TypeVar("T")


class InvalidSetting(InputError):
    """A configuration is invalid; ``key`` is the full name of the setting, if a single one is."""

    key = ""


class _Removed(Enum):
    """The value of a setting that was invalid or missing, where a tree is read on after it.

    Readers treat such a setting as sound: required values get a substitute, lists skip such items,
    and a rule about several settings does not apply where one of them is removed.
    """

    REMOVED = "removed"


REMOVED: Final = _Removed.REMOVED


def remove(tree: dict[str, object], key: str) -> bool:
    """Replace a setting by ``REMOVED``, an item of a list for a key such as ``a.b[3]``; add it if
    it is missing. Return false if that is impossible, or was done before.
    """
    below: object = tree
    *above, last = (part for part in key.replace("[", ".[").split(".") if part)
    for part in above:
        if part.startswith("["):
            below = _item(below, part)
        elif isinstance(below, dict):
            below = below.setdefault(part, {})
    if last.startswith("["):
        found = _item(below, last)
        if not isinstance(below, list) or found is None or found is REMOVED:
            return False
        below[int(last[1:-1])] = REMOVED
        return True
    if not isinstance(below, dict) or below.get(last) is REMOVED:
        return False
    below[last] = REMOVED
    return True


def _item(items: object, part: str) -> object:
    number = part[1:-1]
    if (
        not isinstance(items, list)
        or not (number.isascii() and number.isdecimal())
        or int(number) >= len(items)
    ):
        return None
    found: object = items[int(number)]
    return found


def _is_sound(value: object) -> bool:
    match value:
        case _Removed():
            return False
        case Mapping():
            return all(map(_is_sound, value.values()))
        case list():
            return all(map(_is_sound, value))
        case _:
            return True


class EffectiveSetting(NamedTuple):
    """The effective value of a setting, and whether the configuration contains it."""

    key: str
    value: object
    written: bool


class Section:
    """One level of a configuration tree; ``path`` is its full name. All settings of a section
    that ``is_removed`` are removed ones.
    """

    def __init__(
        self,
        tree: Mapping[str, object],
        path: str,
        error: type[InvalidSetting],
        *,
        is_removed: bool = False,
    ) -> None:
        self.path = path
        self._is_removed = is_removed
        self._tree = tree
        self._error = error
        self._known: set[str] = set()
        self._children: list[Section] = []
        self._effective: dict[str, object] = {}

    def refuse(self, key: str, expected: str, *, show: bool = True) -> NoReturn:
        """Raise the error for the value at ``key``; with ``show=False`` without the value."""
        if key not in self._tree:
            self._raise(key, f"is missing: expected {expected}")
        self._raise(key, f"is {_shown(self._tree[key], show)}: expected {expected}")

    def refuse_item(self, key: str, number: int, expected: str, *, show: bool = True) -> NoReturn:
        """Raise the error for one item, counted from 0, of the list at ``key``."""
        value = self._list(key)[number]
        self._raise(f"{key}[{number}]", f"is {_shown(value, show)}: expected {expected}")

    def _raise(self, key: str, text: str) -> NoReturn:
        error = self._error(f"{self.full(key)} {text}")
        error.key = self.full(key)
        raise error

    def is_sound(self, *keys: str) -> bool:
        """Whether none of these settings, nor anything in them, is a removed one (``remove``)."""
        return not self._is_removed and all(_is_sound(self._tree.get(key)) for key in keys)

    def full(self, key: str) -> str:
        """Return the full name of a key of this section."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Whether the key exists, even with the value null."""
        self._known.add(key)
        return key in self._tree

    def is_section(self, key: str) -> bool:
        """Whether the value of the key is a section."""
        return isinstance(self._tree.get(key), Mapping)

    def keys(self) -> tuple[str, ...]:
        """Return the keys in the configuration."""
        return tuple(key for key, value in self._tree.items() if value is not REMOVED)

    def known_keys(self) -> Iterator[str]:
        """Yield the full names of all keys that were read, here and in nested sections."""
        with_children = {child.path for child in self._children}
        yield from sorted({self.full(key) for key in self._known} - with_children)
        for child in self._children:
            yield from child.known_keys()

    def effective(self) -> Iterator[EffectiveSetting]:
        """Yield all settings that were read, here and in nested sections, without secrets."""
        for key, value in self._effective.items():
            yield EffectiveSetting(self.full(key), value, key in self._tree)
        for child in self._children:
            yield from child.effective()

    def unknown(self) -> Iterator[str]:
        """Yield the full names of the keys in the configuration that were not read."""
        yield from (self.full(key) for key in self._tree if key not in self._known)
        for child in self._children:
            yield from child.unknown()

    def written(self, *keys: str) -> Iterator[str]:
        """Yield the full names of those of ``keys`` that exist, and mark them as read."""
        for key in keys:
            if self.has(key):
                yield self.full(key)

    def section(self, key: str) -> Section:
        """Return the section at ``key``, or an empty one."""
        value = self._value(key)
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            self.refuse(key, "a section, { … }")
        child = Section(value, self.full(key), self._error, is_removed=self._lacks(key))
        self._children.append(child)
        return child

    def part(self, key: str, *keys: str) -> Section:
        """Return some keys of the section at ``key``; others are read elsewhere."""
        value = self._value(key)
        tree = value if isinstance(value, Mapping) else {}
        some = {name: tree[name] for name in keys if name in tree}
        child = Section(some, self.full(key), self._error)
        self._children.append(child)
        return child

    def sections(self, key: str) -> list[Section]:
        """Return the list of sections at ``key``."""
        items = []
        for number, item in self.items(key):
            if not isinstance(item, Mapping):
                self.refuse_item(key, number, "a section, { … }")
            items.append(Section(item, f"{self.full(key)}[{number}]", self._error))
        self._children.extend(items)
        return items

    def integer(self, key: str, default: int | None, minimum: int, maximum: int) -> int:
        """Return an integer within bounds; without a ``default`` it must exist."""
        value = self._value(key)
        if value is None and default is not None:
            return self._record(key, default)
        if self._lacks(key):
            return minimum
        number = _as_integer(value)
        if number is None or not minimum <= number <= maximum:
            self.refuse(key, f"a whole number from {minimum} to {maximum}")
        return self._record(key, number)

    def integers(self, key: str, minimum: int, maximum: int) -> tuple[int, ...]:
        """Return a list of integers within bounds."""
        numbers = []
        for place, item in self.items(key):
            number = _as_integer(item)
            if number is None or not minimum <= number <= maximum:
                self.refuse_item(key, place, f"a whole number from {minimum} to {maximum}")
            numbers.append(number)
        return self._record(key, tuple(numbers))

    def boolean(self, key: str, default: bool) -> bool:
        """Return a boolean."""
        value = self._value(key)
        if value is None:
            return self._record(key, default)
        flag = _BOOLEANS.get(str(value).lower()) if isinstance(value, bool | str) else None
        if flag is None:
            self.refuse(key, "yes or no")
        return self._record(key, flag)

    def text(self, key: str, default: str | None) -> str:
        """Return a string; a number or boolean without quotes is taken as written."""
        value = self._value(key)
        if value is None and default is not None:
            return self._record(key, default)
        if self._lacks(key):
            return ""
        if isinstance(value, bool):
            return self._record(key, str(value).lower())
        if not isinstance(value, str | int | float):
            self.refuse(key, "a text")
        return self._record(key, str(value))

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        return self._record(key, tuple(text for _, text in self.text_items(key)))

    def text_items(self, key: str) -> list[tuple[int, str]]:
        """Return the strings of a list with their numbers, for ``refuse_item``."""
        found = []
        for number, item in self.items(key):
            if not isinstance(item, str):
                self.refuse_item(key, number, "a text")
            found.append((number, item))
        self._record(key, tuple(text for _, text in found))
        return found

    def secret(self, key: str) -> str | None:
        """Return a string that no message shows; quote it if it looks like another type."""
        value = self._value(key)
        if value is None or value == "":
            return self._record(key, None)
        if not isinstance(value, str):
            self.refuse(key, "a text (put it in quotes)", show=False)
        self._record(key, NOT_SHOWN)
        return value

    def secrets(self, key: str) -> tuple[str, ...]:
        """Return a list of strings that no message shows."""
        return tuple(text for _, text in self.secret_items(key))

    def secret_items(self, key: str) -> list[tuple[int, str]]:
        """Return the strings of such a list with their numbers, for ``refuse_item``."""
        found = []
        for number, item in self.items(key):
            if not isinstance(item, str):
                self.refuse_item(key, number, "a text (put it in quotes)", show=False)
            found.append((number, item))
        self._record(key, (NOT_SHOWN,) * len(found))
        return found

    def duration_ms(self, key: str, default: int | None) -> int:
        """Return a duration in milliseconds: ``10s``, ``120m``, ``500ms``, or a number of ms."""
        value = self._value(key)
        if value is None and default is None and self._lacks(key):
            return 0
        length = default if value is None else _as_duration_ms(value)
        if length is None:
            self.refuse(key, "a duration such as 10s, 120m or 500ms")
        self._record(key, duration_text(length))
        return length

    def _record(self, key: str, value: T) -> T:
        """Record the effective value of a setting."""
        self._effective[key] = value
        return value

    def items(self, key: str) -> list[tuple[int, object]]:
        """Return the values of a list with their numbers, without those that are removed."""
        return [each for each in enumerate(self._list(key)) if each[1] is not REMOVED]

    def length(self, key: str) -> int:
        """Return the number of items of a list, with removed ones; -1 for a removed list."""
        return -1 if self._lacks(key) else len(self._list(key))

    def _list(self, key: str) -> list[object]:
        value = self._value(key)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > MAX_LIST_ITEMS:
            self.refuse(key, f"a list of up to {MAX_LIST_ITEMS} items, [ … ]")
        return value

    def _value(self, key: str) -> object:
        self._known.add(key)
        value = self._tree.get(key)
        return None if value is REMOVED else value

    def _lacks(self, key: str) -> bool:
        return self._is_removed or self._tree.get(key) is REMOVED


def _shown(value: object, show: bool) -> str:
    if not show:
        return NOT_SHOWN
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def did_you_mean(key: str, known: Collection[str]) -> str:
    """Return a suggestion for an unknown key, `` (did you mean …?)``, or an empty string.

    ``known`` are full names. A similar name in the same section comes first, then the same name in
    another section.
    """
    above, _, name = key.rpartition(".")
    name, prefix = name[:MAX_NAME_CHARS], f"{above}." if above else ""
    here = {each[len(prefix) :].split(".")[0] for each in known if each.startswith(prefix)}
    matches = [f"{prefix}{each}" for each in get_close_matches(name, here, 1)]
    matches = matches or sorted(each for each in known if each.rpartition(".")[2] == name)
    return f" (did you mean {' or '.join(matches[:3])}?)" if matches else ""


def duration_text(length_ms: int) -> str:
    """Format a duration: ``10s``."""
    unit, size = next(each for each in _UNITS if length_ms % each[1] == 0)
    return f"{length_ms // size}{unit}" if length_ms else "0s"


def _as_integer(value: object) -> int | None:
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
