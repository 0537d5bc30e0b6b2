"""The plan of a simulation: hosts, duration, and injected faults.

What lives here: the record and its limits. What does not: reading it from a command line.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.simulation.links import LinkSettings

LIES: Final = (
    "scores",
    "withheld-blocks",
    "invalid-blocks",
    "equivocation",
    "invalid-microblocks",
    "junk-transactions",
    "eclipse",
    "snapshots",
)
"""The misbehaviours of malicious hosts."""
FINALITY_LIES: Final = (
    "conflicting-endorsements",
    "two-faced-endorsements",
    "withheld-endorsements",
    "forged-endorsements",
    "false-votings",
)
"""Those that need generation periods."""


class Plan(msgspec.Struct, frozen=True):
    """The plan of a simulation.

    ``nodes`` are honest, the last ``light`` of them light nodes, and each of ``lies`` is an
    additional host. The run takes ``seconds``, and honest hosts have ``patience`` seconds to agree
    after the last fault; other times are in ms. Clocks are wrong by up to ``skew``. Partitions of
    the length ``partition`` recur; 0: there are none. ``crashes`` is their number in the run,
    ``transactions`` their number a minute, ``block_time`` the mean time between blocks. With a
    ``generation_period`` (blocks) finality is deterministic; 0: it is not.
    """

    nodes: int = 7
    light: int = 0
    seed: int = 1
    seconds: int = 3_600
    links: LinkSettings = LinkSettings()
    partition: int = 0
    crashes: int = 0
    skew: int = 0
    duplicates: bool = False
    transactions: int = 0
    block_time: int = 60_000
    lies: tuple[str, ...] = ()
    patience: int = 1_800
    generation_period: int = 0
