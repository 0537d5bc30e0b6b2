"""The chain of a simulated network: all coins are in equal parts with the miners.

What lives here: its genesis and block time. What does not: the hosts.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from soliton.chain import networks
from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.features import Feature
from soliton.chain.networks import GenesisTransfer, Network
from soliton.crypto.keys import KeyPair, key_pair

NAME: Final = "simulated"
START: Final = 1_700_000_000_000
"""The start time of each simulation, in ms since 1970."""
_C1: Final = 70_000.0
_C2: Final = 5e17
_USUAL_DRAW: Final = 0.8
"""Near the mean of the transformed random number in the delays of Fair PoS."""
_SHORTEST_SHARE: Final = 4
"""The shortest delay between two blocks is this part of the mean."""


def account_seed(number: int) -> bytes:
    """Return the seed of a host's miner."""
    return f"soliton simulation, miner {number}".encode()


def account(number: int) -> KeyPair:
    """Return the mining account of a host."""
    return key_pair(account_seed(number).decode())


def private_chain(miners: int, block_ms: int, generation_period: int) -> Network:
    """Return a chain with a mean block time of ``block_ms`` and all features activated, with
    deterministic finality if a ``generation_period`` (blocks) is not 0.
    """
    devnet = networks.load("devnet")
    part = devnet.genesis.initial_balance // miners
    transfers = tuple(
        GenesisTransfer(
            address_text(from_public_key(account(each).public_key, devnet.chain_id)), part
        )
        for each in range(miners)
    )
    shortest = block_ms // _SHORTEST_SHARE
    stretched = math.exp((block_ms - shortest) / _C1) - 1
    genesis = msgspec.structs.replace(
        devnet.genesis,
        block_timestamp=START,
        transaction_timestamp=START,
        transactions=transfers,
        initial_balance=part * miners,
        average_block_delay_ms=block_ms,
        initial_base_target=max(1, int(_C2 * _USUAL_DRAW / (part * miners) / stretched)),
    )
    finality = int(Feature.DETERMINISTIC_FINALITY)
    features = {
        feature: height
        for feature, height in devnet.functionality.pre_activated_features.items()
        if feature != finality
    }
    functionality = msgspec.structs.replace(
        devnet.functionality,
        min_block_time_ms=shortest,
        delay_delta=0,
        pre_activated_features=features | {finality: 1} if generation_period else features,
        generation_period_length=max(1, generation_period),
    )
    return msgspec.structs.replace(devnet, name=NAME, genesis=genesis, functionality=functionality)
