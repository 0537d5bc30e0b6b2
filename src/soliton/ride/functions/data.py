"""Functions on ByteVector and List, and ``size`` of tuples.

What does not live here: lists of numbers (``arithmetic``), lists of data entries (``chain_data``).

Source: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/
impl/PureContext.scala``.
"""

from __future__ import annotations

from soliton.ride.errors import EvaluationError
from soliton.ride.functions.calling import mismatch
from soliton.ride.functions.printing import plain_text
from soliton.ride.values import (
    ELEMENT_WEIGHT,
    EMPTY_LIST_WEIGHT,
    MAX_BYTES,
    MAX_COMPARED_WEIGHT,
    MAX_DATA_TRANSACTION_PROTOBUF_BYTES,
    MAX_LIST_LENGTH,
    TUPLE,
    UNIT,
    CaseObject,
    RideList,
    Value,
    equal,
    weighed_list,
    weight,
)

_INT32 = 2**32


def checked_bytes(data: bytes, limit: int = MAX_BYTES) -> bytes:
    """Return the data; raise ``EvaluationError`` if it exceeds the limit."""
    if len(data) > limit:
        raise EvaluationError(f"ByteStr size={len(data)} exceeds {limit} bytes")
    return data


def low_int32(number: int) -> int:
    """Return the lower 32 bits as a signed number, like Java's conversion to ``int``."""
    number &= _INT32 - 1
    return number - _INT32 if number >= _INT32 // 2 else number


def size_of_bytes(data: bytes) -> Value:
    """``size`` of ByteVector."""
    return len(data)


def add_bytes(left: bytes, right: bytes) -> Value:
    """``+`` of ByteVector."""
    size = len(left) + len(right)
    if size > MAX_BYTES:
        raise EvaluationError(f"ByteVector size = {size} bytes exceeds {MAX_BYTES}")
    return left + right


def take_bytes(data: bytes, count: int) -> Value:
    """``take`` until version 5; the count is clamped."""
    return checked_bytes(data[: max(low_int32(count), 0)])


def drop_bytes(data: bytes, count: int) -> Value:
    """``drop`` until version 5."""
    return checked_bytes(data[max(low_int32(count), 0) :])


def limited_take_bytes(data: bytes, count: int) -> Value:
    """``take`` since version 6."""
    _check_count(count, "take")
    return data[:count]


def limited_drop_bytes(data: bytes, count: int) -> Value:
    """``drop`` since version 6."""
    _check_count(count, "drop")
    return data[count:]


def limited_take_right_bytes(data: bytes, count: int) -> Value:
    """``takeRight`` since version 6."""
    _check_count(count, "takeRight")
    return data[max(len(data) - count, 0) :]


def limited_drop_right_bytes(data: bytes, count: int) -> Value:
    """``dropRight`` since version 6."""
    _check_count(count, "dropRight")
    return data[: max(len(data) - count, 0)]


def _check_count(count: int, name: str) -> None:
    limit = MAX_DATA_TRANSACTION_PROTOBUF_BYTES
    if count < 0:
        raise EvaluationError(f"Unexpected negative number = {count} passed to {name}()")
    if count > limit:
        raise EvaluationError(
            f"Number = {count} passed to {name}() exceeds ByteVector limit = {limit}"
        )


def size_of_list(items: RideList) -> Value:
    """``size`` of a list."""
    return len(items.items)


def element(items: RideList, index: int) -> Value:
    """``getElement``."""
    low_index = low_int32(index)
    if not 0 <= low_index < len(items.items):
        raise EvaluationError(f"Index {index} out of bounds for length {len(items.items)}")
    return items.items[low_index]


def prepend(head: Value, tail: RideList) -> Value:
    """``cons`` in version 3, which limits only the weight."""
    return weighed_list((head, *tail.items), weight(head) + tail.weight + ELEMENT_WEIGHT)


def limited_prepend(head: Value, tail: RideList) -> Value:
    """``cons`` since version 4."""
    _check_length(len(tail.items) + 1)
    return weighed_list((head, *tail.items), weight(head) + tail.weight + ELEMENT_WEIGHT)


def append(items: RideList, last: Value) -> Value:
    """``:+``."""
    _check_length(len(items.items) + 1)
    return weighed_list((*items.items, last), items.weight + weight(last) + ELEMENT_WEIGHT)


def concatenate(left: RideList, right: RideList) -> Value:
    """``++``."""
    _check_length(len(left.items) + len(right.items))
    return weighed_list(left.items + right.items, left.weight + right.weight - EMPTY_LIST_WEIGHT)


def fill(length: int, element: Value) -> Value:
    """``fill``. The reference takes the lower 32 bits of the length, and refuses one that is not
    positive with or without the others.
    """
    count = low_int32(length)
    if length <= 0 or count <= 0:
        raise EvaluationError("Invalid length")
    _check_length(count)
    return weighed_list(
        (element,) * count, EMPTY_LIST_WEIGHT + count * (ELEMENT_WEIGHT + weight(element))
    )


def remove(items: RideList, index: int) -> Value:
    """``removeByIndex``."""
    elements = items.items
    if not elements:
        raise EvaluationError("Can't remove an element from empty list")
    _check_index(index, len(elements), "removing")
    _check_length(len(elements) - 1)
    return weighed_list(
        elements[:index] + elements[index + 1 :],
        items.weight - weight(elements[index]) - ELEMENT_WEIGHT,
    )


def replace(items: RideList, index: int, new: Value) -> Value:
    """``replaceByIndex``."""
    elements = items.items
    if not elements:
        raise EvaluationError("Can't replace an element in empty list")
    _check_index(index, len(elements), "replacing")
    _check_length(len(elements))
    return weighed_list(
        (*elements[:index], new, *elements[index + 1 :]),
        items.weight - weight(elements[index]) + weight(new),
    )


def _check_length(length: int) -> None:
    if length > MAX_LIST_LENGTH:
        raise EvaluationError(f"List size should not exceed {MAX_LIST_LENGTH}")


def _check_index(index: int, length: int, doing: str) -> None:
    if index < 0:
        raise EvaluationError(
            f"Index of the {doing} element should be positive, but {index} was passed"
        )
    if index >= length:
        raise EvaluationError(
            f"Index of the {doing} element should be lower than list size = {length}, "
            f"but {index} was passed"
        )


def index_of_element(items: RideList, target: Value) -> Value:
    """``indexOf`` of a list."""
    return _search(items, target, range(len(items.items)))


def last_index_of_element(items: RideList, target: Value) -> Value:
    """``lastIndexOf`` of a list."""
    return _search(items, target, range(len(items.items) - 1, -1, -1))


def _search(items: RideList, target: Value, indexes: range) -> Value:
    elements = items.items
    if weight(target) > MAX_COMPARED_WEIGHT:
        return _heavy_search(items, target, indexes)
    # 1 == True in Python, so each match is checked again.
    kind = type(target)
    while indexes:
        found = _position(elements, target, indexes)
        if found is None:
            return UNIT
        if same(elements[found], target):
            return found
        if kind in (int, bool):
            elements = tuple([each if type(each) is kind else UNIT for each in elements])
        indexes = range(found + indexes.step, indexes.stop, indexes.step)
    return UNIT


def _position(elements: tuple[Value, ...], target: Value, indexes: range) -> int | None:
    try:
        if indexes.step > 0:
            return elements.index(target, indexes.start)
        return indexes.start - elements[indexes.start :: -1].index(target)
    except ValueError:
        return None
    except RecursionError:
        return next((index for index in indexes if equal(elements[index], target)), None)


def _heavy_search(items: RideList, target: Value, indexes: range) -> Value:
    for index in indexes:
        item = items.items[index]
        if weight(item) > MAX_COMPARED_WEIGHT:
            raise EvaluationError(
                f"Both element to search for `{plain_text(target)}` and list element "
                f"`{plain_text(item)}` are too heavy to compare"
            )
        if same(item, target):
            return index
    return UNIT


def same(left: Value, right: Value) -> bool:
    """Whether two values are equal. Most lists and objects that are not differ in weight."""
    if isinstance(left, RideList | CaseObject) and weight(left) != weight(right):
        return False
    return equal(left, right)


def size_of_tuple(value: CaseObject) -> Value:
    """``size`` of a tuple."""
    if value.type_name != TUPLE:
        raise mismatch("size(t: Tuple)", (value,))
    return len(value.fields)
