"""Proof of stake: who may make a block, and when.

What lives here: hits, delays and base targets of the three algorithms (Nxt, Fair PoS 1 and 2) as
plain functions on numbers. What does not: where the numbers come from (``header_check`` and the
chain), balances, blocks' bytes.

The delay of Fair PoS and the base target of Nxt are defined on IEEE doubles; only there floats are
used.

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
    """The family of formulas in force."""

    NXT = "nxt"
    FAIR = "fair"


class PoS(msgspec.Struct, frozen=True):
    """The formulas in force with their parameters: minimal delay in ms, narrowing of the delay
    corridor in seconds.
    """

    algorithm: Algorithm
    min_block_time_ms: int = 0
    delay_delta: int = 0


NXT: Final = PoS(Algorithm.NXT)
FAIR_1: Final = PoS(Algorithm.FAIR, 5_000, 0)


def generation_signature(previous: bytes, generator: bytes) -> bytes:
    """The generation signature that follows ``previous`` (its first 32 bytes) for a generator's
    public key.
    """
    return blake2b256(previous[:32] + generator)


def hit(signature: bytes) -> int:
    """A generator's number for a block: the first 8 bytes of its generation signature or VRF
    output, reversed.
    """
    return int.from_bytes(signature[:HIT_BYTES], "little")


def delay_ms(pos: PoS, hit_value: int, base_target: int, balance: int) -> int:
    """How long after its parent a generator may make the block, in ms.

    ``balance`` is the generating balance in wavelets, above zero; ``base_target`` the parent's.
    """
    if pos.algorithm is Algorithm.NXT:
        return math.ceil(hit_value / (base_target * balance)) * 1000
    share = hit_value / MAX_HIT
    if share == 0.0:
        # The formula's logarithm has no value; the limit is an endless delay.
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
    """The base target of a block with this timestamp (all times in ms)."""
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
        value = previous * min(mean_delay, _normalize(_NXT_MAX_DELAY_SECONDS, target)) / target
    else:
        gamma = _normalize(_NXT_GAMMA, target)
        shortfall = target - max(mean_delay, _normalize(_NXT_MIN_DELAY_SECONDS, target))
        value = previous - previous * gamma * shortfall / (target * 100)
    return max(_NXT_MIN_BASE_TARGET, min(int(value), MAX_I64 // target))


def _normalize(seconds: int, target_delay_seconds: int) -> float:
    return seconds * (target_delay_seconds / _NORMAL_DELAY_SECONDS)


def _div(value: int, divisor: int) -> int:
    """Division that truncates towards zero, as on the JVM."""
    return -(-value // divisor) if value < 0 else value // divisor


def block_score(base_target: int) -> int:
    """What a block adds to the score by which chains are compared."""
    return 2**64 // base_target
