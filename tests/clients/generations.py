"""Private chains for the clients, one for each generation of the REST interface.

What lives here: starting them. The newest generation is that of the devnet; the others are a node
with settings of their own, on a chain with the same accounts and features. What does not: any
check.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from soliton.chain import networks
from soliton.crypto import base58
from soliton.devnet.accounts import RICH_SEED
from soliton.node.settings import api_key_hash_text
from tests.e2e.programs import API_KEY, Program, devnet, eventually, height, started

ROOTS: Final = {"tn": "TN", "zbs": "zbs"}
"""The root of the settings says which family of networks a private chain is of."""
OLDEST_FEATURES: Final = range(1, 12)
"""All that the oldest generation knows; blocks and scripts look otherwise with later ones."""
BASE_TARGET: Final = 2_000_000_000
"""With so much there is nothing to wait for but the least time between blocks."""


@contextlib.contextmanager
def chain_of(family: str, directory: Path) -> Iterator[Program]:
    """A running chain that mines what it is sent within a moment."""
    if family == "waves":
        with devnet() as program:
            yield program
        return
    config = directory / "node.json"
    config.write_text(json.dumps({ROOTS[family]: settings(family, directory)}))
    with started("run", "--config", config, until="REST API on") as program:
        eventually(lambda: height(program.node_url) > 1, "the first block")
        yield program


def settings(family: str, directory: Path) -> dict[str, Any]:
    """The settings of a mining node."""
    return {
        "directory": str(directory / "data"),
        "wallet": {"file": None, "seed": base58.encode(RICH_SEED.encode())},
        "rest-api": {"enable": True, "port": 0, "api-key-hash": api_key_hash_text(API_KEY)},
        "miner": {"enable": True, "quorum": 0, "micro-block-interval": "20ms"},
        "network": {"port": 0},
        "blockchain": {"type": "CUSTOM", "custom": custom(family)},
    }


def custom(family: str) -> dict[str, Any]:
    """The chain of the devnet with blocks every half second, or five seconds in old times; in
    between there are microblocks.
    """
    network = networks.load("devnet")
    genesis, rules = network.genesis, network.functionality
    features = rules.pre_activated_features
    if family == "zbs":
        features = {number: features[number] for number in OLDEST_FEATURES}
    return {
        "address-scheme-character": chr(network.chain_id),
        "fee-table": "zbs" if family == "zbs" else "waves",
        "functionality": {
            "feature-check-blocks-period": rules.feature_check_blocks_period,
            "blocks-for-feature-activation": rules.blocks_for_feature_activation,
            "reset-effective-balances-at-height": 1,
            "pre-activated-features": {str(number): at for number, at in features.items()},
            "min-asset-info-update-interval": 2,
            "min-block-time": "500ms",
            "light-node-block-fields-absence-interval": 0,
        },
        "genesis": {
            "average-block-delay": "1s",
            "initial-base-target": BASE_TARGET,
            "timestamp": genesis.transaction_timestamp,
            "block-timestamp": genesis.block_timestamp,
            "initial-balance": genesis.initial_balance,
            "transactions": [
                {"recipient": each.recipient, "amount": each.amount}
                for each in genesis.transactions
            ],
        },
        "rewards": {"term": 6, "term-after-capped-reward-feature": 3, "voting-interval": 3},
    }
