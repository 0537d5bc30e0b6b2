"""Networks: presets, and chains described in a configuration file.

What lives here: ``load`` for a preset by name, ``names`` of all presets, ``custom`` for the
``blockchain.custom`` section of a node's configuration. What does not: the rules that use the
parameters (ledger, consensus), the genesis block (``chain.genesis``).

The sources of the parameters are in the heads of the ``*.toml`` files.
"""

from __future__ import annotations

from soliton.chain.networks.custom import custom
from soliton.chain.networks.model import (
    Fees,
    Functionality,
    Genesis,
    GenesisTransfer,
    Network,
    Rewards,
)
from soliton.chain.networks.presets import NetworkError, fees_of, load, names

__all__ = [
    "Fees",
    "Functionality",
    "Genesis",
    "GenesisTransfer",
    "Network",
    "NetworkError",
    "Rewards",
    "custom",
    "fees_of",
    "load",
    "names",
]
