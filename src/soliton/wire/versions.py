"""Protocol versions that peers announce: which are accepted, and which messages they understand.

What lives here: the rules of each network family. What does not: the handshake that carries the
version (``handshake``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/{HandshakeHandler,package}.scala``; 0bsnetwork/Zbs
and xucito/TurtleNetwork, the same file.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Version(NamedTuple):
    """A version of a node's program."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


BLOCK_IDS_FROM: Final = Version(1, 2, 0)
"""Since this version peers exchange block ids instead of signatures, and read protobuf messages."""
SNAPSHOTS_FROM: Final = Version(1, 5, 0)
"""Since this version peers serve snapshots to light nodes."""
ENDORSEMENTS_FROM: Final = Version(1, 5, 0)
"""The lowest version of peers that know the endorsements of deterministic finality: the Go node
announces it, the Scala node 1.6. Earlier ones are on no chain that has endorsements.
"""

ANNOUNCED: Final[dict[str, Version]] = {
    "waves": Version(1, 6, 6),
    "zbs": Version(0, 16, 3),
    "tn": Version(1, 2, 6),
}
"""The version that we announce in each family. Go nodes of Waves, which announce 1.5, refuse a
minor version that is more than one away from theirs; those of the other families accept their own
version and later ones.
"""
_APPLICATION_NAMES: Final[dict[str, str]] = {"waves": "waves", "zbs": "zbs", "tn": "TN"}


def application_name(family: str, chain_id: int) -> str:
    """Return the application name of a network's nodes: the family's and the chain's letter."""
    return _APPLICATION_NAMES[family] + chr(chain_id)


def is_accepted(family: str, version: Version) -> bool:
    """Whether nodes of a family accept this version."""
    major, minor, patch = version
    if family == "tn":
        return major == 1 and (minor >= 2 or (minor >= 1 and patch >= 10))
    return major == 1 or (major == 0 and minor >= 13)
