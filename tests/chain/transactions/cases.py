"""Material for the text tables of the transaction types: JSON of a good transaction of each, and
what becomes of one in which members are changed.
"""

from __future__ import annotations

from typing import Any

from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.transactions import codec, json_reader
from soliton.crypto import base58
from soliton.errors import SolitonError

T = ord("T")
KEY = base58.encode(bytes(range(32)))
OTHER_KEY = base58.encode(bytes(range(1, 33)))
ASSET = base58.encode(bytes([7] * 32))
SHORT_ID = base58.encode(bytes([7] * 31))
PROOF = base58.encode(bytes([9] * 64))
SELF = address_text(from_public_key(bytes(range(32)), T))
ADDRESS = address_text(from_public_key(bytes(32), T))
FOREIGN = address_text(from_public_key(bytes(32), ord("W")))
EXPRESSION = "base64:BQbtKNoM"
DAPP = "base64:AAIFAAAAAAAAAAAAAAAAAAAAAAA="
MAX = 2**63 - 1

SHORT_ID_WORDS = (
    f"JsonFieldErrors obj.assetId: Invalid validation. Size of asset id {SHORT_ID} "
    "not equal 32 bytes"
)

ABSENT = object()
"""In a table: the member is not there."""


def with_members(obj: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
    """The object with other members; a dot leads inside."""
    out = {**obj}
    for path, value in members.items():
        head, _, rest = path.partition(".")
        if rest:
            out[head] = with_members(out[head], {rest: value})
        elif value is ABSENT:
            out.pop(head, None)
        else:
            out[head] = value
    return out


def order(side: str, **members: Any) -> dict[str, Any]:
    """A good order of version 3."""
    made: dict[str, Any] = {
        "version": 3,
        "senderPublicKey": KEY if side == "buy" else OTHER_KEY,
        "matcherPublicKey": KEY,
        "assetPair": {"amountAsset": ASSET, "priceAsset": None},
        "orderType": side,
        "amount": 10,
        "price": 20,
        "timestamp": 900,
        "expiration": 2_000,
        "matcherFee": 3,
        "matcherFeeAssetId": None,
        "proofs": [PROOF],
    }
    return with_members(made, members)


MEMBERS: dict[int, dict[str, Any]] = {
    3: {
        "version": 3,
        "name": "name",
        "description": "",
        "quantity": 1,
        "decimals": 0,
        "reissuable": True,
        "script": None,
    },
    5: {"version": 3, "assetId": ASSET, "quantity": 1, "reissuable": False},
    6: {"version": 3, "assetId": ASSET, "amount": 1},
    7: {
        "version": 3,
        "order1": order("buy"),
        "order2": order("sell"),
        "amount": 10,
        "price": 20,
        "buyMatcherFee": 1,
        "sellMatcherFee": 1,
    },
    8: {"version": 3, "amount": 1, "recipient": ADDRESS},
    9: {"version": 3, "leaseId": ASSET},
    10: {"version": 3, "alias": "somebody"},
    11: {
        "version": 2,
        "assetId": None,
        "attachment": "",
        "transfers": [{"recipient": ADDRESS, "amount": 1}],
    },
    13: {"version": 2, "script": EXPRESSION},
    14: {"version": 2, "assetId": ASSET, "minSponsoredAssetFee": 1},
    15: {"version": 2, "assetId": ASSET, "script": EXPRESSION},
    16: {
        "version": 2,
        "dApp": ADDRESS,
        "payment": [{"amount": 1, "assetId": None}],
        "call": {"function": "f", "args": [{"type": "integer", "value": 1}]},
    },
    17: {"version": 1, "chainId": T, "assetId": ASSET, "name": "name", "description": ""},
    19: {
        "version": 1,
        "generationPeriodStart": 5,
        "endorserPublicKey": base58.encode(bytes([1] * 48)),
        "commitmentSignature": base58.encode(bytes([2] * 96)),
    },
}


def signed(type_id: int, members: dict[str, Any] | None = None) -> dict[str, Any]:
    """JSON of a good transaction, with members changed."""
    obj = {
        "type": type_id,
        "senderPublicKey": KEY,
        "fee": 100,
        "timestamp": 1_000,
        "proofs": [PROOF],
        **MEMBERS[type_id],
    }
    return with_members(obj, members or {})


def outcome(obj: dict[str, Any]) -> str:
    """``ok``, or the refusal and its words; what is read is written and read again on the way."""
    try:
        transaction = json_reader.read_signed(obj, T)
    except SolitonError as error:
        return f"{type(error).__name__} {error}"
    assert json_reader.read_signed(codec.to_json(transaction), T) == transaction
    return "ok"
