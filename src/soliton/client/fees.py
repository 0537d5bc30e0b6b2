"""The minimum fee of a transaction as far as it is known without a node, and the limit on more.

What lives here: the networks' prices. What does not: which surcharges of scripts and sponsorship
apply, which only a node knows (``sending``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/FeeValidation.scala``.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from soliton.chain import networks
from soliton.chain.networks import Fees
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.ethereum import Ethereum, EthereumCall
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.mass_transfer import MassTransfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import entry_bytes, payload_size

FEE_MULTIPLE: Final = 2
"""The limit on fees that a node names is this multiple of the dearest that its network's rules give
a transaction whatever it calls.
"""
_REISSUE: Final = 5
_INVOKE: Final = 16
_MOST_PAYMENTS: Final = 10
"""The rules' limit on the payments of a call."""
_ETHEREUM_TRANSFER: Final = 4
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


def most_fee(transaction: AnyTransaction) -> int:
    """Return the limit on the fee of a transaction in the chain's coin: a multiple of its minimum
    if its sender and all its assets have scripts.

    What a dApp issues is not in it: that decides the dApp.
    """
    payload = transaction.payload
    kind, assets = transaction.type_id, _ASSETS.get(transaction.type_id, 0)
    if isinstance(payload, InvokeScript):
        assets = len(payload.payments)
    elif isinstance(payload, Ethereum):
        is_call = isinstance(payload.action, EthereumCall)
        kind, assets = (_INVOKE, _MOST_PAYMENTS) if is_call else (_ETHEREUM_TRANSFER, 1)
    least = least_fee(transaction.chain_id, kind, transaction.version, payload)
    return FEE_MULTIPLE * (least + (1 + assets) * _fees(transaction.chain_id).script_extra)


def in_sponsored(fee: int, chain_id: int, min_sponsored_fee: int) -> int:
    """Convert a fee in the coin to a sponsored asset, of which ``min_sponsored_fee`` replaces one
    unit of fees.
    """
    return fee * min_sponsored_fee // _fees(chain_id).unit


_ASSETS: Final = {4: 1, 5: 1, 6: 1, 7: 2, 11: 1, 14: 1, 15: 1, 17: 1}
"""The number of assets whose scripts a transaction runs, by type."""


@cache
def _fees(chain_id: int) -> Fees:
    # Where two networks share a chain id, the larger one comes first.
    for name in networks.names():
        network = networks.load(name)
        if network.chain_id == chain_id:
            return network.fees
    return networks.fees_of("waves")
