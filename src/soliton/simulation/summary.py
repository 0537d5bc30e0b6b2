"""The result of a simulation.

What lives here: the record, and its text. What does not: the picture (``picture``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec


class Summary(msgspec.Struct, frozen=True):
    """``forks`` counts rollbacks of hosts by depth. ``agree_seconds`` is how long after the last
    fault all honest hosts agreed (``None``: never), ``spread_ms`` the median time until a block has
    reached all hosts. ``finalized`` is the height of the highest block that was voted to be final,
    ``punished`` the number of conflicting endorsements on the chain. ``split_at`` is the lowest
    height with two final blocks, if a third of the stake votes for both, and 0 otherwise.
    ``faults`` are failed checks.
    """

    seed: int
    seconds: float
    height: int
    state_hash: str
    blocks: int
    transactions: int
    forks: Mapping[int, int]
    agree_seconds: float | None
    spread_ms: int | None
    messages: int
    bytes: int
    segments: int
    lost: int
    broken: int
    blames: Mapping[str, int]
    events: int
    faults: tuple[str, ...]
    finalized: int = 0
    punished: int = 0
    split_at: int = 0


def lines_of(summary: Summary) -> Iterator[str]:
    """Yield the lines of the summary's text."""
    yield f"seed {summary.seed}: {summary.seconds:,.0f} s simulated, {summary.events:,} events"
    yield (
        f"  chain: height {summary.height}, {summary.blocks} blocks made, "
        f"{summary.transactions} transactions in it, state hash {summary.state_hash[:16]}…"
    )
    forks = ", ".join(f"{count} of depth {depth}" for depth, count in sorted(summary.forks.items()))
    yield f"  forks: {forks or 'none'}"
    if summary.finalized:
        yield f"  final: height {summary.finalized}, {summary.punished} deposits lost"
    if summary.split_at:
        yield f"  split: two blocks of height {summary.split_at} are final: a third lies"
    agree = summary.agree_seconds
    spread = "no block" if summary.spread_ms is None else f"{summary.spread_ms} ms"
    yield (
        f"  agreed {'never' if agree is None else f'{agree:.0f} s after the last fault'}; "
        f"a block is everywhere after (median) {spread}"
    )
    yield (
        f"  {summary.messages:,} messages, {summary.bytes:,} bytes; "
        f"of {summary.segments:,} segments {summary.lost:,} were lost, "
        f"{summary.broken} connections broke"
    )
    blames = ", ".join(f"{count} × {what}" for what, count in sorted(summary.blames.items()))
    yield f"  blamed by honest hosts: {blames or 'nobody'}"
    for fault in summary.faults:
        yield f"  FAILED: {fault}"
