"""The minimum fee of a transaction, as far as it is known without a node.

What lives here: the networks' prices. What does not: the surcharges of scripts and sponsorship,
which only a node knows (``sending``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/FeeValidation.scala``.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from soliton.chain import networks
from soliton.chain.networks import Fees
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.mass_transfer import MassTransfer
from soliton.chain.values import entry_bytes, payload_size

_REISSUE: Final = 5
_SPONSOR: Final = 14
_BYTES_PER_UNIT: Final = 1_024
_FIRST_DATA_BYTES: Final = 52
"""The signed bytes of a version 1 data transaction without its entries."""


def least_fee(chain_id: int, type_id: int, version: int, payload: object) -> int:
    """Return the minimum fee in the chain's coin, if neither the sender nor an asset has a script.

    An unknown chain has the prices of Waves.
    """
    fees = _fees(chain_id)
    base = fees.base.get(type_id, fees.unit)
    match payload:
        case MassTransfer(transfers=transfers):
            return base + (len(transfers) + 1) // 2 * fees.unit
        case Data(entries=entries):
            size = payload_size(entries)
            if version == 1:
                size = _FIRST_DATA_BYTES + sum(len(entry_bytes(each)) for each in entries)
            return base + max(0, size - 1) // _BYTES_PER_UNIT * fees.unit
        case Issue(quantity=1, decimals=0, reissuable=False):
            return fees.nft_issue
    if type_id == _REISSUE:
        return fees.reissue_after_block_v5
    if type_id == _SPONSOR:
        return fees.sponsor_fee_after_block_v5
    return base


@cache
def _fees(chain_id: int) -> Fees:
    # Where two networks share a chain id, the larger one comes first.
    for name in networks.names():
        network = networks.load(name)
        if network.chain_id == chain_id:
            return network.fees
    return networks.fees_of("waves")
