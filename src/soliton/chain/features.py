"""The blockchain features: numbered switches that the network's generators vote for.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/features/BlockchainFeature.scala``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Feature(IntEnum):
    """A feature by its number on the chain."""

    SMALLER_MINIMAL_GENERATING_BALANCE = 1
    NG = 2
    MASS_TRANSFER = 3
    SMART_ACCOUNTS = 4
    DATA_TRANSACTION = 5
    BURN_ANY_TOKENS = 6
    FEE_SPONSORSHIP = 7
    FAIR_POS = 8
    SMART_ASSETS = 9
    SMART_ACCOUNT_TRADING = 10
    RIDE_4_DAPPS = 11
    ORDER_V3 = 12
    REDUCED_NFT_FEE = 13
    BLOCK_REWARD = 14
    BLOCK_V5 = 15
    SYNCHRONOUS_CALLS = 16
    RIDE_V6 = 17
    CONSENSUS_IMPROVEMENTS = 18
    BLOCK_REWARD_DISTRIBUTION = 19
    CAPPED_REWARDS = 20
    CEASE_XTN_BUYBACK = 21
    LIGHT_NODE = 22
    BOOST_BLOCK_REWARD = 23
    ECRECOVER_FIX = 24
    DETERMINISTIC_FINALITY = 25
    ADJUSTED_REWARD_DISTRIBUTION = 26


ONE_FORM: Final = frozenset((Feature.DETERMINISTIC_FINALITY, Feature.ADJUSTED_REWARD_DISTRIBUTION))
"""With either of these, signatures of Ethereum wallets have one form: the canonical one, with the
chain id of the network.
"""
IMPLEMENTED: Final = frozenset(map(int, Feature))
"""If another feature becomes active on a chain, a newer version of the program is needed."""

DESCRIPTIONS: Final[dict[int, str]] = {
    1: "Minimum Generating Balance of 1000 WAVES",
    2: "NG Protocol",
    3: "Mass Transfer Transaction",
    4: "Smart Accounts",
    5: "Data Transaction",
    6: "Burn Any Tokens",
    7: "Fee Sponsorship",
    8: "Fair PoS",
    9: "Smart Assets",
    10: "Smart Account Trading",
    11: "RIDE 4 DAPPS",
    12: "Order Version 3",
    13: "Reduce NFT fee",
    14: "Block Reward and Community Driven Monetary Policy",
    15: "Ride V4, VRF, Protobuf, Failed transactions",
    16: "Ride V5, dApp-to-dApp invocations",
    17: "Ride V6, MetaMask support",
    18: "Consensus and MetaMask updates",
    19: "Block Reward Distribution",
    20: "Capped XTN buy-back & DAO amounts",
    21: "Cease XTN buy-back",
    22: "Light Node",
    23: "Boost Block Reward",
    24: "ecrecover fix",
    25: "Deterministic Finality & RIDE V9",
    26: "Adjusted Block Reward Distribution",
    27: "Finality Improvements",
}
"""Names, of features that are not implemented too."""
