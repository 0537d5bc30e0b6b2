"""The members of responses that become strings for clients whose JSON numbers are doubles.

What lives here: the list. What does not: the conversion (``soliton.web.number_strings``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/CustomJson.scala``.
"""

from __future__ import annotations

from soliton.web import number_strings

LONG_MEMBERS = frozenset(
    (
        "amount",
        "available",
        "balance",
        "buyMatcherFee",
        "currentReward",
        "desiredReward",
        "effective",
        "fee",
        "feeAmount",
        "generating",
        "in",
        "matcherFee",
        "minIncrement",
        "minSponsoredAssetFee",
        "out",
        "price",
        "quantity",
        "regular",
        "reward",
        "rewardShares",
        "sellMatcherFee",
        "sponsorBalance",
        "totalAmount",
        "totalFee",
        "totalWavesAmount",
        "value",
    )
)


def with_strings(encoded: bytes) -> bytes:
    """Convert the numbers of the listed members, and those within them, to strings."""
    return number_strings.with_strings(encoded, LONG_MEMBERS)
