"""A transaction's effects as text: ``soliton ride trace``.

What lives here: formatting. What does not: requests (``remote``), stepping (``walking``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from soliton.ride.recording import Recording, Step

MAX_LINES: Final = 500
_INDENT: Final = "  "


def transaction_lines(info: Mapping[str, Any]) -> Iterator[str]:
    """A confirmed transaction with its call and state changes, from the node's JSON."""
    status = info.get("applicationStatus", "succeeded")
    yield (
        f"{info['id']}: type {info['type']} by {info.get('sender', 'nobody')} at height "
        f"{info.get('height')}, {status}, complexity {info.get('spentComplexity', 0)}"
    )
    changes = info.get("stateChanges")
    call = info.get("call")
    if call is not None and "dApp" in info:
        yield from _call_lines(info["dApp"], call, info.get("payment") or [], changes or {}, 1)
    elif changes:
        yield from changes_lines(changes)


def _call_lines(
    dapp: str, call: Mapping[str, Any], paid: list[Any], changes: Mapping[str, Any], level: int
) -> Iterator[str]:
    arguments = ", ".join(str(each.get("value")) for each in call.get("args", ()))
    payments = "".join(
        f" + {each.get('amount')} {each.get('assetId') or each.get('asset') or 'coin'}"
        for each in paid
    )
    yield f"{_INDENT * level}{dapp} {call.get('function')}({arguments}){payments}"
    yield from changes_lines(changes, level + 1)


def changes_lines(changes: Mapping[str, Any], level: int = 1) -> Iterator[str]:
    """State changes of a call: nested calls, then actions."""
    indent = _INDENT * level
    for each in changes.get("invokes") or ():
        paid = each.get("payment") or each.get("payments") or []
        inner = each.get("stateChanges") or {}
        yield from _call_lines(each["dApp"], each.get("call") or {}, paid, inner, level)
    for name, actions in changes.items():
        if name in ("invokes", "error") or not isinstance(actions, list):
            continue
        for action in actions:
            shown = ", ".join(f"{key} {value}" for key, value in action.items())
            yield f"{indent}{name}: {shown}"
    if changes.get("error"):
        yield f"{indent}error {changes['error'].get('code')}: {changes['error'].get('text')}"


def function_lines(record: Recording, names: Mapping[str, str]) -> list[str]:
    """The called functions with the positions of the calls and their results."""
    calls = _calls(record.steps)
    lines = [
        f"{_INDENT * (step.depth + 1)}{_where(record, step, names)}: {_excerpt(record, step)}"
        f"{_outcome(record, number)}"
        for number, step in calls
    ]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"  and {len(lines) - MAX_LINES} more calls"]
    if lines:
        lines.insert(0, "functions, where they are called:")
    if record.error:
        lines.append(f"ended with: {record.error}")
    return lines


def _calls(steps: tuple[Step, ...]) -> list[tuple[int, Step]]:
    """The steps that entered an expression which calls a function."""
    found: dict[int, Step] = {}
    for step in steps:
        if step.parent >= 0 and steps[step.parent].depth < step.depth:
            found.setdefault(step.parent, steps[step.parent])
    return sorted(found.items())


def _outcome(record: Recording, entered: int) -> str:
    step = record.steps[entered]
    for other in record.steps[entered + 1 :]:
        if other.value is not None and other.parent == step.parent:
            return f" = {other.value}"
    return ""


def _where(record: Recording, step: Step, names: Mapping[str, str]) -> str:
    script = record.scripts[step.script]
    file = step.file or script.name or names.get(script.script, script.script)
    return f"{file}:{step.line}:{step.column}"


def _excerpt(record: Recording, step: Step) -> str:
    lines = record.scripts[step.script].files.get(step.file, "").split("\n")
    line = lines[step.line - 1] if step.line <= len(lines) else ""
    if step.line == step.end_line:
        return line[step.column - 1 : step.end_column - 1]
    return f"{line[step.column - 1 :].strip()} ..."
