"""What is simulated: how many hosts, for how long, and what goes wrong.

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
"""What a lying host may do."""


class Plan(msgspec.Struct, frozen=True):
    """What is simulated.

    ``nodes`` are honest, the last ``light`` of them light nodes, and each of ``lies`` is one host
    more. The run takes ``seconds``, and honest hosts may take ``patience`` seconds to agree when
    all that went wrong has ended; other times are in ms. Clocks are wrong by up to ``skew``. Each
    ``partition`` lasts so long and comes again and again; 0: there is none. ``crashes`` happen in
    the run, ``transactions`` come in a minute, and a block in each ``block_time`` or so.
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
