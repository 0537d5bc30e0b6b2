"""Groth16 proofs over the curves BN254 (also known as BN256) and BLS12-381.

What lives here: verification of a proof. Keys, proofs and inputs have the compressed form of the
bellman library. What does not: the sizes that a script may use, and proving.

The arithmetic is that of arkworks, through the package zksnake, of which only the algebra is used.
Points are passed as bytes, never as coordinates: invalid coordinates raise no catchable error.

Key: alpha (G1), beta, gamma, delta (G2), then one G1 point more than there are inputs. Proof: A
(G1), B (G2), C (G1). Numbers are big-endian, inputs 32 bytes each and below the order. The point at
infinity is rejected everywhere. One known difference to wavesplatform/zwaves: for BN254, it accepts
key points that are on the curve but outside the subgroup. Here, as in wavesplatform/gowaves, no
proof verifies with such a key.

Sources: wavesplatform/zwaves ``zwaves_jni/src/{bls12,bn256}`` and
``zwaves_primitives/src/verifier.rs``; Groth, "On the Size of Pairing-based Non-interactive
Arguments", section 3.2.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final, NamedTuple, Protocol

INPUT_LENGTH: Final = 32
_FIXED_LENGTH_UNITS: Final = 8
"""The size of a key without inputs, in G1 points; a G2 point counts as two."""


class _Point(Protocol):
    """The library's point, of either group."""

    def __add__(self, other: _Point, /) -> _Point: ...

    def __mul__(self, scalar: int, /) -> _Point: ...

    def __neg__(self) -> _Point: ...

    def is_zero(self) -> bool: ...


class Curve(NamedTuple):
    """The parameters of a curve."""

    name: str
    point_length: int
    order: int
    little_endian: bool
    """The library's encoding is that of bellman with the bytes reversed."""

    def key_length(self, inputs: int) -> int:
        """Return the size in bytes of a key for ``inputs`` inputs."""
        return self.point_length * (_FIXED_LENGTH_UNITS + inputs)

    @property
    def proof_length(self) -> int:
        """The size of a proof in bytes."""
        return self.point_length * 4


BLS12_381: Final = Curve(
    name="ec_bls12_381",
    point_length=48,
    order=0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001,
    little_endian=False,
)
BN254: Final = Curve(
    name="ec_bn254",
    point_length=32,
    order=0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001,
    little_endian=True,
)


def verify(curve: Curve, key: bytes, proof: bytes, inputs: bytes) -> bool:
    """Whether a proof is valid. False for malformed arguments."""
    count = len(inputs) // INPUT_LENGTH
    if (
        len(inputs) % INPUT_LENGTH
        or len(key) != curve.key_length(count)
        or len(proof) != curve.proof_length
    ):
        return False
    numbers = [
        int.from_bytes(inputs[start : start + INPUT_LENGTH], "big")
        for start in range(0, len(inputs), INPUT_LENGTH)
    ]
    if any(number >= curve.order for number in numbers):
        return False
    algebra = _algebra(curve)
    try:
        a, b, c = _points(curve, algebra, proof, (1, 2, 1))
        alpha, beta, gamma, delta, first, *others = _points(
            curve, algebra, key, (1, 2, 2, 2) + (1,) * (count + 1)
        )
    except ValueError:
        return False
    total = first
    for point, number in zip(others, numbers, strict=True):
        total += point * number
    paired = algebra.multi_pairing([-a, alpha, total, c], [b, beta, gamma, delta])
    return bool(paired == algebra.multi_pairing([algebra.PointG1.identity()], [algebra.g2()]))


def _algebra(curve: Curve) -> ModuleType:
    # Imported on first use: few programs need it, and it slows their start.
    from zksnake import _algebra

    module: ModuleType = getattr(_algebra, curve.name)
    return module


def _points(curve: Curve, algebra: ModuleType, data: bytes, sizes: tuple[int, ...]) -> list[_Point]:
    points: list[_Point] = []
    start = 0
    for size in sizes:
        end = start + size * curve.point_length
        encoded = data[start:end]
        if curve.little_endian:
            encoded = encoded[::-1]
        point = (algebra.PointG1 if size == 1 else algebra.PointG2).from_bytes(encoded)
        if point.is_zero():
            raise ValueError("the point at infinity")
        points.append(point)
        start = end
    return points
