"""The section ``miner``: whether, when and with which keys this node makes blocks.

What lives here: reading it. What does not: mining (``mining``, ``miner``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/settings/MinerSettings.scala``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from soliton.chain.networks.custom import MAX_INT
from soliton.chain.networks.model import Network
from soliton.chain.networks.sections import Section
from soliton.crypto import base58, curve25519
from soliton.crypto.errors import Base58Error
from soliton.crypto.keys import KeyPair

MAX_PRIVATE_KEYS: Final = 1_000
KEY_LENGTH: Final = 32
MICROBLOCK_TIMES: Final = {"waves": (2_000, 500), "zbs": (5_000, 6_000), "tn": (5_000, 2_000)}
"""By family: the default interval of microblocks, and the age (ms) of a microblock at which the
next block may build on it. A miner with ``quorum = 0`` builds on all it has made.
"""
COMMITTING: Final = "com.wavesplatform.extension.CommitmentExtension"
"""The extension of the reference node that commits to generation."""

PUBLIC_QUORUM: Final = 3
"""The default number of peers without which a node does not mine on the public Waves networks: two
peers may be on a fork with it.
"""


class Miner(msgspec.Struct, frozen=True):
    """``miner``: times in ms. ``accounts`` mine in place of the wallet's, if there are any. With
    ``commit_to_generation`` they commit to each generation period by themselves.
    """

    enable: bool
    quorum: int
    interval_after_last_block_ms: int
    micro_block_interval_ms: int
    min_micro_block_age_ms: int
    max_transactions_in_micro_block: int
    no_quorum_delay_ms: int = 5_000
    least_offset_ms: int = 0
    commit_to_generation: bool = False
    accounts: tuple[KeyPair, ...] = ()


def read_miner(section: Section, network: Network, extensions: Collection[str] = ()) -> Miner:
    """Read the section for a network; ``extensions`` are those that the file enables."""
    interval, age = MICROBLOCK_TIMES.get(network.family, MICROBLOCK_TIMES["waves"])
    # As in the reference; a private chain may have two nodes.
    usual = PUBLIC_QUORUM if network.is_public_waves else 1
    quorum = section.integer("quorum", usual, 0, MAX_INT)
    if quorum == 0:
        # Without peers, blocks may come faster than this age: no microblock would ever be kept.
        age = 0
    return Miner(
        enable=section.boolean("enable", True),
        quorum=quorum,
        interval_after_last_block_ms=section.duration_ms(
            "interval-after-last-block-then-generation-is-allowed", 86_400_000
        ),
        micro_block_interval_ms=section.duration_ms("micro-block-interval", interval),
        min_micro_block_age_ms=section.duration_ms("min-micro-block-age", age),
        max_transactions_in_micro_block=section.integer(
            "max-transactions-in-micro-block", 255, 1, MAX_INT
        ),
        no_quorum_delay_ms=section.duration_ms("no-quorum-mining-delay", 5_000),
        least_offset_ms=section.duration_ms("minimal-block-generation-offset", 0),
        commit_to_generation=section.boolean("commit-to-generation", COMMITTING in extensions),
        accounts=_accounts(section),
    )


def _accounts(section: Section) -> tuple[KeyPair, ...]:
    texts = section.secret_items("private-keys")
    if len(texts) > MAX_PRIVATE_KEYS:
        section.refuse("private-keys", f"at most {MAX_PRIVATE_KEYS} keys", show=False)
    found = []
    for number, text in texts:
        try:
            private_key = base58.decode(text)
        except Base58Error:
            private_key = b""
        if len(private_key) != KEY_LENGTH:
            expected = f"a key of {KEY_LENGTH} bytes in base58"
            section.refuse_item("private-keys", number, expected, show=False)
        found.append(KeyPair(private_key, curve25519.public_key(private_key)))
    return tuple(found)
