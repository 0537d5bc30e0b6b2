"""The slow arithmetic, against libsodium and the group laws."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from nacl import bindings as sodium

from soliton.crypto import edwards

BASE = edwards.decode(b"\x58" + b"\x66" * 31)
ORDER_EIGHT = edwards.decode(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
)
assert BASE is not None
assert ORDER_EIGHT is not None

scalars = st.integers(1, edwards.GROUP_ORDER - 1)


def times(scalar: int, point: edwards.Point) -> edwards.Point:
    return edwards.multiply_add(scalar, point, 0, edwards.NEUTRAL)


@given(scalars)
@settings(max_examples=30, deadline=None)
def test_agrees_with_libsodium(scalar: int) -> None:
    assert BASE is not None
    expected = sodium.crypto_scalarmult_ed25519_base_noclamp(scalar.to_bytes(32, "little"))
    point = times(scalar, BASE)
    assert edwards.encode(point) == expected
    decoded = edwards.decode(expected)
    assert decoded is not None
    assert edwards.encode(decoded) == expected
    assert edwards.is_neutral(edwards.add(decoded, edwards.negate(point)))


@given(scalars, scalars)
@settings(max_examples=20, deadline=None)
def test_two_products_at_once(first: int, second: int) -> None:
    assert BASE is not None
    assert ORDER_EIGHT is not None
    other = edwards.add(times(7, BASE), ORDER_EIGHT)
    together = edwards.multiply_add(first, BASE, second, other)
    apart = edwards.add(times(first, BASE), times(second, other))
    assert edwards.encode(together) == edwards.encode(apart)


def test_orders() -> None:
    assert BASE is not None
    assert ORDER_EIGHT is not None
    assert edwards.is_neutral(times(edwards.GROUP_ORDER, BASE))
    assert edwards.is_neutral(edwards.clear_cofactor(ORDER_EIGHT))
    assert not edwards.is_neutral(times(4, ORDER_EIGHT))
    assert not edwards.is_neutral(edwards.clear_cofactor(BASE))


@given(st.binary(min_size=32, max_size=32))
@settings(deadline=None)
def test_any_bytes_are_a_point_of_the_curve_or_refused(data: bytes) -> None:
    point = edwards.decode(data)
    if point is not None:
        x, y, z, t = point
        prime = edwards.FIELD_PRIME
        curve_d = -121665 * pow(121666, -1, prime)
        assert (-x * x + y * y - 1 - curve_d * x * x * y * y) % prime == 0
        assert (z, t) == (1, x * y % prime)
