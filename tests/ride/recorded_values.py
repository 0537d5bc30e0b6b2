"""Values of scripts as the vectors have them."""

from __future__ import annotations

from typing import Any

from soliton.ride.values import UNIT, BigInt, CaseObject, RideList, Value


def is_recorded(expected: dict[str, Any], value: Value) -> bool:
    """Whether a value of a script is what a vector has."""
    kind, content = next(iter(expected.items()))
    match kind, value:
        case ("Boolean", bool()) | ("String", str()):
            return bool(content == value)
        case "Int", int():
            return int(content) == value
        case "BigInt", BigInt(number):
            return int(content) == number
        case "ByteVector", bytes():
            return bytes.fromhex(content) == value
        case "List", RideList(items):
            return all(map(is_recorded, content, items)) and len(content) == len(items)
        case "Tuple", CaseObject():
            # The parts are `_1`, `_2` and so on, in this order.
            return all(map(is_recorded, content, value.fields.values()))
        case "Address", CaseObject("Address"):
            return True
        case "Object", CaseObject(name, fields):
            wanted = expected.get("fields", {})
            return content == name and all(
                is_recorded(wanted[each], fields[each]) for each in wanted
            )
        case "Unit", _:
            return value is UNIT
    raise AssertionError(f"{kind} and {value!r}")
