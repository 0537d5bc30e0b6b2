"""The JSON schemas of an order, as it is rendered and as clients send it.

What does not live here: reading and writing (``orders``).
"""

from __future__ import annotations

from typing import Final

from soliton.chain.json_kinds import ASSET_SCHEMA, BASE58_SCHEMA, SENT_BYTES_SCHEMA
from soliton.chain.json_schemas import (
    INTEGER_SCHEMA,
    LONG_SCHEMA,
    TEXT_SCHEMA,
    Named,
    Schema,
    described,
    list_of,
    object_of,
    or_null,
)

_PAIR: Final = object_of({"amountAsset": ASSET_SCHEMA, "priceAsset": ASSET_SCHEMA})
_MEMBERS: Final[dict[str, Schema]] = {
    "matcherPublicKey": BASE58_SCHEMA,
    "assetPair": _PAIR,
    "orderType": {"type": "string", "enum": ["buy", "sell"]},
    "amount": LONG_SCHEMA,
    "price": LONG_SCHEMA,
    "timestamp": LONG_SCHEMA,
    "expiration": LONG_SCHEMA,
    "matcherFee": LONG_SCHEMA,
}
_LATER_MEMBERS: Final[dict[str, Schema]] = {
    "matcherFeeAssetId": described(ASSET_SCHEMA, "From version 3 on; null is the native coin"),
    "eip712Signature": described(or_null(TEXT_SCHEMA), "From version 4 on, hexadecimal after `0x`"),
    "priceMode": {
        "description": "From version 4 on",
        "type": ["string", "null"],
        "enum": ["fixedDecimals", "assetDecimals", None],
    },
    "attachment": BASE58_SCHEMA,
}
_SENT_LATER_MEMBERS: Final[dict[str, Schema]] = {
    **_LATER_MEMBERS,
    "attachment": or_null(SENT_BYTES_SCHEMA),
    "version": or_null(INTEGER_SCHEMA),
    "senderPublicKey": described(or_null(BASE58_SCHEMA), "Or `eip712Signature`"),
    "signature": or_null(BASE58_SCHEMA),
    "proofs": or_null(list_of(BASE58_SCHEMA)),
}

ORDER_SCHEMA: Final = Named(
    "Order",
    object_of(
        {
            "version": INTEGER_SCHEMA,
            "id": BASE58_SCHEMA,
            "sender": TEXT_SCHEMA,
            "senderPublicKey": BASE58_SCHEMA,
            **_MEMBERS,
            "signature": described(BASE58_SCHEMA, "The first of the proofs"),
            "proofs": list_of(BASE58_SCHEMA),
        },
        _LATER_MEMBERS,
    ),
)
SENT_ORDER_SCHEMA: Final = Named(
    "OrderToSend",
    object_of(
        {
            **_MEMBERS,
            "assetPair": object_of(
                {},
                {
                    "amountAsset": described(ASSET_SCHEMA, "Or `WAVES`"),
                    "priceAsset": described(ASSET_SCHEMA, "Or `WAVES`"),
                },
            ),
        },
        _SENT_LATER_MEMBERS,
    ),
)
