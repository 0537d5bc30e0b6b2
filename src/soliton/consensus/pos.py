"""Proof of stake: who may generate a block, and when.

What lives here: hits, delays and base targets of the three algorithms (Nxt, Fair PoS 1 and 2) as
pure functions on numbers. What does not: the source of the numbers (``header_check`` and the
ledger), balances, the serialized block.

The Fair PoS delay and the Nxt base target are defined on IEEE doubles. Floats are used only there.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/consensus/PoSCalculator.scala``; the paper "Fair Proof of
Stake" (Begicheva, Kofman, 2018).
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Final

import msgspec

from soliton.crypto.hashes import blake2b256

HIT_BYTES: Final = 8
MAX_HIT: Final = 2**64 - 1
MAX_I64: Final = 2**63 - 1

_FAIR_C1: Final = 70_000.0
_FAIR_C2: Final = 5e17
_FAIR_MIN_DELAY_SECONDS: Final = 30
_FAIR_MAX_DELAY_SECONDS: Final = 90

_NXT_MIN_BASE_TARGET: Final = 9
_NXT_MIN_DELAY_SECONDS: Final = 53
_NXT_MAX_DELAY_SECONDS: Final = 67
_NXT_GAMMA: Final = 64
_NORMAL_DELAY_SECONDS: Final = 60.0


class Algorithm(Enum):
    """The two families of formulas."""

    NXT = "nxt"
    FAIR = "fair"


class PoS(msgspec.Struct, frozen=True):
    """An algorithm and its parameters. ``delay_delta`` narrows the delay corridor, in seconds."""

    algorithm: Algorithm
    min_block_time_ms: int = 0
    delay_delta: int = 0


NXT: Final = PoS(Algorithm.NXT)
FAIR_1: Final = PoS(Algorithm.FAIR, 5_000, 0)


def generation_signature(previous: bytes, generator: bytes) -> bytes:
    """Return a generator's signature after ``previous``, of which the first 32 bytes count."""
    return blake2b256(previous[:32] + generator)


def hit(signature: bytes) -> int:
    """Return the first 8 bytes of a generation signature or VRF output as a little-endian int."""
    return int.from_bytes(signature[:HIT_BYTES], "little")


def delay_ms(pos: PoS, hit_value: int, base_target: int, balance: int) -> int:
    """Return the minimum time in ms between the parent and a block of this generator.

    ``balance`` is the generating balance in wavelets, above zero. ``base_target`` is the parent's.
    """
    if pos.algorithm is Algorithm.NXT:
        return math.ceil(hit_value / (base_target * balance)) * 1000
    share = hit_value / MAX_HIT
    if share == 0.0:
        # log(0) is undefined; its limit is an infinite delay.
        return MAX_I64
    stretched = math.log(1 - _FAIR_C2 * math.log(share) / base_target / balance)
    return int(pos.min_block_time_ms + _FAIR_C1 * stretched)


def next_base_target(
    pos: PoS,
    target_delay_seconds: int,
    parent_height: int,
    parent_base_target: int,
    parent_timestamp: int,
    great_grandparent_timestamp: int | None,
    timestamp: int,
) -> int:
    """Return the base target of a block with this timestamp (timestamps in ms)."""
    if pos.algorithm is Algorithm.NXT:
        return _nxt_base_target(
            target_delay_seconds,
            parent_height,
            parent_base_target,
            parent_timestamp,
            great_grandparent_timestamp,
            timestamp,
        )
    if great_grandparent_timestamp is None:
        return parent_base_target
    mean_delay = _div(_div(timestamp - great_grandparent_timestamp, 3), 1000)
    slowest = _normalize(_FAIR_MAX_DELAY_SECONDS - pos.delay_delta, target_delay_seconds)
    fastest = _normalize(_FAIR_MIN_DELAY_SECONDS + pos.delay_delta, target_delay_seconds)
    step = max(1, parent_base_target // 100)
    if mean_delay > slowest:
        return min(MAX_I64, parent_base_target + step)
    if mean_delay < fastest:
        return max(1, parent_base_target - step)
    return parent_base_target


def _nxt_base_target(
    target: int,
    parent_height: int,
    previous: int,
    parent_timestamp: int,
    great_grandparent_timestamp: int | None,
    timestamp: int,
) -> int:
    if parent_height % 2 != 0:
        return previous
    if great_grandparent_timestamp is None:
        mean_delay = _div(timestamp - parent_timestamp, 1000)
    else:
        mean_delay = _div(_div(timestamp - great_grandparent_timestamp, 3), 1000)
    if mean_delay > target:
        value = (
            previous * min(float(mean_delay), _normalize(_NXT_MAX_DELAY_SECONDS, target)) / target
        )
    else:
        gamma = _normalize(_NXT_GAMMA, target)
        shortfall = target - max(mean_delay, _normalize(_NXT_MIN_DELAY_SECONDS, target))
        value = previous - previous * gamma * shortfall / (target * 100)
    return max(_NXT_MIN_BASE_TARGET, min(int(value), MAX_I64 // target))


def _normalize(seconds: int, target_delay_seconds: int) -> float:
    # Divided last, as the reference node does: rounding decides at exact limits.
    return seconds * target_delay_seconds / _NORMAL_DELAY_SECONDS


def _div(value: int, divisor: int) -> int:
    """Divide, truncating towards zero as the JVM does."""
    return -(-value // divisor) if value < 0 else value // divisor


def block_score(base_target: int) -> int:
    """Return what a block adds to the chain score. The chain with the highest score wins."""
    return 2**64 // base_target
