"""The Edwards curve of Ed25519 in Python integers: exact for every point, but slow.

What lives here: decoding, encoding, adding and multiplying points of any order. What does not:
secrets (the running time depends on the values) and frequent operations. libsodium is a hundred
times faster, but rejects points outside the subgroup of prime order, which a hostile peer may send
and the reference accepts.

Rules: the Ed25519 paper (Bernstein et al., 2011) with the decoding of its reference implementation.
"""

from __future__ import annotations

from typing import TypeAlias

POINT_BYTES = 32
FIELD_PRIME = 2**255 - 19
GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493
"""The order of the base point. The whole curve has eight times as many points."""

_P = FIELD_PRIME
_D = -121665 * pow(121666, -1, _P) % _P
_D2 = 2 * _D % _P
_SQRT_MINUS_ONE = pow(2, (_P - 1) // 4, _P)
_SIGN_BIT = 1 << 255

Point: TypeAlias = tuple[int, int, int, int]
"""Extended coordinates X, Y, Z, T with x = X / Z, y = Y / Z and T = X * Y / Z."""

NEUTRAL: Point = (0, 1, 1, 0)


def decode(data: bytes) -> Point | None:
    """Decode 32 bytes; return ``None`` if they encode no point of the curve."""
    number = int.from_bytes(data, "little")
    y = number % _SIGN_BIT % _P
    numerator = (y * y - 1) % _P
    denominator = (_D * y * y + 1) % _P
    # x = sqrt(u / v) = u v^3 (u v^7)^((p - 5) / 8), perhaps times sqrt(-1)
    x = numerator * denominator**3 * pow(numerator * denominator**7, (_P - 5) // 8, _P) % _P
    square = denominator * x * x % _P
    if square != numerator:
        if square != -numerator % _P:
            return None
        x = x * _SQRT_MINUS_ONE % _P
    if x & 1 != number >> 255:
        x = -x % _P
    return x, y, 1, x * y % _P


def encode(point: Point) -> bytes:
    """Encode a point in 32 bytes: y, with the lowest bit of x as the top bit."""
    x, y, z, _ = point
    inverse = pow(z, -1, _P)
    return (y * inverse % _P | (x * inverse % _P & 1) << 255).to_bytes(POINT_BYTES, "little")


def add(first: Point, second: Point) -> Point:
    """Return the sum of two points, which may be equal."""
    x1, y1, z1, t1 = first
    x2, y2, z2, t2 = second
    a = (y1 - x1) * (y2 - x2) % _P
    b = (y1 + x1) * (y2 + x2) % _P
    c = t1 * t2 % _P * _D2 % _P
    d = 2 * z1 * z2 % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def double(point: Point) -> Point:
    """Return ``2 * point``."""
    x, y, z, _ = point
    a = x * x % _P
    b = y * y % _P
    h = a + b
    e = h - (x + y) ** 2 % _P
    g = a - b
    f = 2 * z * z % _P + g
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def negate(point: Point) -> Point:
    """Return the inverse of a point."""
    x, y, z, t = point
    return -x % _P, y, z, -t % _P


def multiply_add(first: int, point: Point, second: int, other: Point) -> Point:
    """Return ``first * point + second * other``, for non-negative scalars."""
    both = add(point, other)
    result = NEUTRAL
    for bit in range(max(first.bit_length(), second.bit_length()) - 1, -1, -1):
        result = double(result)
        match first >> bit & 1, second >> bit & 1:
            case 1, 1:
                result = add(result, both)
            case 1, 0:
                result = add(result, point)
            case 0, 1:
                result = add(result, other)
    return result


def clear_cofactor(point: Point) -> Point:
    """Return ``8 * point``, which is neutral for a point of small order."""
    return double(double(double(point)))


def is_neutral(point: Point) -> bool:
    """Whether this is the neutral element."""
    x, y, z, _ = point
    return x == 0 and y == z
