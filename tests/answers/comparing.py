"""What differs between two answers, and where two answers of the same program differ.

What lives here: answers taken apart into paths and values. What does not: asking.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]\d+)?")
WHOLE = "(shape)"
MEASURED = (".validationTime",)
"""What differs from run to run, though not in each."""

Leaves = dict[str, object]


def leaves_of(answer: Sequence[object]) -> Leaves:
    """Each value of an answer by its path: status, each header, each member of a JSON body, each
    line of another.
    """
    status, reason, headers, body = answer
    found: Leaves = {"status": f"{status} {reason}"}
    assert isinstance(headers, list)
    assert isinstance(body, str)
    # The order of headers of different names says nothing, in whatever order they are sent.
    for name, value in headers:
        before = found.get(f"header {name}")
        found[f"header {name}"] = value if before is None else f"{before}, {value}"
    try:
        parsed = json.loads(body)
    except ValueError:
        for number, line in enumerate(body.splitlines()):
            found[f"line {number}"] = line
    else:
        found.update(_leaves(parsed, "body"))
        found["spelling"] = NUMBER.sub("0", re.sub(r'"(?:[^"\\]|\\.)*"', '""', body))
    return found


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value:
        yield f"{path} {WHOLE}", list(value)
        for name, member in value.items():
            yield from _leaves(member, f"{path}.{name}")
    elif isinstance(value, list) and value:
        yield f"{path} {WHOLE}", len(value)
        for index, member in enumerate(value):
            yield from _leaves(member, f"{path}[{index}]")
    else:
        # Equal numbers are not the same answer: 1, 1.0 and true.
        yield path, json.dumps(value)


def varying(first: Sequence[object], second: Sequence[object]) -> list[str]:
    """The paths at which two answers of the same program differ."""
    one, two = leaves_of(first), leaves_of(second)
    return sorted(path for path in one.keys() | two.keys() if one.get(path) != two.get(path))


def difference(
    before: Sequence[object], after: Sequence[object], leave_out: Sequence[str]
) -> list[str]:
    """A line for each path that has changed, but for those that change by themselves; of these
    only a number may be another number, and a text another text.
    """
    one, two = leaves_of(before), leaves_of(after)
    free = {*leave_out, *(path for path in one if path.endswith(MEASURED))}
    if any(path.startswith(("body", "line")) for path in free):
        free.update(path for path in one if path.lower().endswith("content-length"))
    found = []
    for path in sorted(one.keys() | two.keys()):
        old, new = one.get(path), two.get(path)
        if old != new and not (path in free and _alike(old, new)):
            found.append(f"{path}: {_short(old)} -> {_short(new)}")
    return found


def _alike(old: object, new: object) -> bool:
    """Whether both are there, and both numbers or both texts."""
    if old is None or new is None or type(old) is not type(new):
        return False
    return not isinstance(old, str) or (old[:1] == '"') == (str(new)[:1] == '"')


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 300 else f"{text[:300]}..."
