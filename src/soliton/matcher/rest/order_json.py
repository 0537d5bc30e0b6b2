"""The JSON of orders.

A matcher reads a subset of the chain's JSON: id, sender and chain id of the request are ignored,
since they follow from the rest, and so is the price mode: prices of orders of version 4 have the
decimals of the pair, and an order signed otherwise has an invalid signature.

Amounts, times and fees of any size are accepted here; validation checks them later with the
matcher's own error codes.

What lives here: decoding, and the one difference in encoding. What does not: the rest of encoding
(``soliton.chain.orders.to_json``) and the rules (``soliton.matching.validation``).

Sources: wavesplatform/matcher
``waves-integration/src/main/scala/com/wavesplatform/dex/domain/order/OrderJson.scala``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from soliton.chain import orders
from soliton.chain.addresses import ETHEREUM_KEY_LENGTH, PUBLIC_KEY_LENGTH
from soliton.chain.errors import ChainError
from soliton.chain.json_kinds import BASE64_PREFIX
from soliton.chain.layouts import DIGEST_LENGTH, SIGNATURE_LENGTH
from soliton.chain.orders import (
    MAX_READ_VERSION,
    MAX_VERSION,
    MODE_NAMES,
    Order,
    PriceMode,
    Side,
    build,
)
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.matcher.rest.answers import Refusal
from soliton.matcher.rest.forms import Form
from soliton.matcher.rest.requests import MAX_LONG, invalid_json
from soliton.matching import errors
from soliton.matching.errors import ErrorKind, MatcherError, Param
from soliton.matching.pairs import MAX_ASSET_CHARS, NATIVE_TEXT

KEPT_KEYS: Final = 16_384
KEPT_ASSETS: Final = 1_024
"""The sizes of the caches of decoded keys and asset ids, which repeat in many orders."""
MAX_KEY_CHARS: Final = 88
MAX_PROOF_CHARS: Final = 256
MAX_SIGNATURE_CHARS: Final = 2 + 2 * 129
MAX_PROOFS_READ: Final = 64
MAX_ATTACHMENT_CHARS: Final = 1_400
"""Slightly more than the longest attachment that the chain accepts, in base58 or base64."""
_SIDES: Final = {"buy": Side.BUY, "sell": Side.SELL}
_FEE_ASSET_VERSION: Final = 3
_WALLET_VERSION: Final = 4
_PRICE_MODE: Final = MODE_NAMES[PriceMode.ASSET_DECIMALS]
_OTHER_MODE: Final = (
    f"a matcher takes orders with the price mode {_PRICE_MODE} only: set priceMode to "
    f'"{_PRICE_MODE}" before signing'
)


class _Pair(msgspec.Struct):
    amountAsset: str | None = None  # noqa: N815 - members are named as in JSON
    priceAsset: str | None = None  # noqa: N815


class _Form(msgspec.Struct):
    matcherPublicKey: str  # noqa: N815
    assetPair: _Pair  # noqa: N815
    orderType: str  # noqa: N815
    amount: int
    price: int
    timestamp: int
    expiration: int
    matcherFee: int  # noqa: N815
    senderPublicKey: str | None = None  # noqa: N815
    version: int | None = None
    signature: str | None = None
    proofs: list[str] | None = None
    matcherFeeAssetId: str | None = None  # noqa: N815
    eip712Signature: str | None = None  # noqa: N815
    attachment: str | None = None
    priceMode: Any = None  # noqa: N815


_FORM: Final = Form(_Form)
_NUMBERS: Final = ("amount", "price", "timestamp", "expiration", "matcherFee")


def read_order(body: bytes, chain_id: int) -> Order:
    """Decode an order from JSON and compute its id; its signature is not verified.

    Raises ``Refusal`` for invalid JSON, with the paths of all missing or invalid members, and for
    an unknown version.
    """
    return _order_of(_FORM.read(body), chain_id)


def order_json(order: Order) -> dict[str, Any]:
    """The JSON of an order, with the native coin by its name in the pair."""
    out = orders.to_json(order)
    pair = out["assetPair"]
    for name, text in pair.items():
        if text is None:
            pair[name] = NATIVE_TEXT
    return out


def _order_of(form: _Form, chain_id: int) -> Order:
    wrong = [
        f"/{name}" for name in _NUMBERS if not -MAX_LONG - 1 <= getattr(form, name) <= MAX_LONG
    ]
    side = _SIDES.get(form.orderType)
    if side is None:
        wrong.append("/orderType")
    matcher = _take(form.matcherPublicKey, "/matcherPublicKey", _key, wrong)
    proofs = _proofs(form, wrong)
    version = _version(form, proofs, wrong)
    wallet = form.eip712Signature if version >= _WALLET_VERSION else None
    if wallet is not None and form.priceMode not in (None, _PRICE_MODE):
        # With another signed mode, the sender recovered from the signature would be wrong.
        raise _refused(errors.ORDER_COMMON_VALIDATION_FAILED, details=_OTHER_MODE)
    signature = None if wallet is None else _take(wallet, "/eip712Signature", _hexadecimal, wrong)
    attachment = None
    if form.attachment and version >= _WALLET_VERSION:
        attachment = _take(form.attachment, "/attachment", _attachment, wrong)
    sender: bytes | None = b""
    if wallet is None:
        sender = _take(form.senderPublicKey or "", "/senderPublicKey", _key, wrong)
    pair = form.assetPair
    amount_asset = _asset(pair.amountAsset, "/assetPair/amountAsset", wrong)
    price_asset = _asset(pair.priceAsset, "/assetPair/priceAsset", wrong)
    fee_asset = None
    if version >= _FEE_ASSET_VERSION:
        fee_asset = _asset(form.matcherFeeAssetId, "/matcherFeeAssetId", wrong)
    if wrong or side is None or matcher is None or sender is None:
        raise invalid_json(*sorted(wrong))
    # Python makes a dictionary for a call with more than 15 keywords, which takes longer.
    draft = Order(
        version,
        chain_id,
        sender,
        matcher,
        amount_asset=amount_asset,
        price_asset=price_asset,
        side=side,
        amount=form.amount,
        price=form.price,
        timestamp=form.timestamp,
        expiration=form.expiration,
        matcher_fee=form.matcherFee,
        matcher_fee_asset=fee_asset,
        price_mode=(PriceMode.ASSET_DECIMALS if version >= _WALLET_VERSION else PriceMode.DEFAULT),
        attachment=attachment,
        proofs=proofs,
        eip712_signature=signature,
    )
    try:
        return build(draft)
    except ChainError as error:
        raise _refused(errors.ORDER_COMMON_VALIDATION_FAILED, details=str(error)) from None


def _version(form: _Form, proofs: tuple[bytes, ...], wrong: list[str]) -> int:
    version = form.version
    if version is None:
        return 1 if len(proofs) == 1 and len(proofs[0]) == SIGNATURE_LENGTH else 2
    if not 0 < version <= MAX_READ_VERSION:
        wrong.append("/version")
        return MAX_VERSION
    if version > MAX_VERSION:
        raise _refused(errors.UNSUPPORTED_ORDER_VERSION, version=version)
    return version


def _proofs(form: _Form, wrong: list[str]) -> tuple[bytes, ...]:
    if form.proofs is None:
        texts, path = ([form.signature] if form.signature else []), "/signature"
    else:
        texts, path = form.proofs, "/proofs"
    if len(texts) > MAX_PROOFS_READ:
        wrong.append(path)
        return ()
    proofs = [_take(text, path, _proof, wrong) for text in texts]
    return tuple(proof for proof in proofs if proof is not None)


def _take(text: str, path: str, read: Callable[[str], bytes], wrong: list[str]) -> bytes | None:
    try:
        return read(text)
    except (Base58Error, ValueError):
        if path not in wrong:
            wrong.append(path)
        return None


@lru_cache(maxsize=KEPT_KEYS)
def _key(text: str) -> bytes:
    key = base58.decode(text, MAX_KEY_CHARS)
    if len(key) not in (PUBLIC_KEY_LENGTH, ETHEREUM_KEY_LENGTH):
        raise ValueError("no public key")
    return key


def _proof(text: str) -> bytes:
    return base58.decode(text, MAX_PROOF_CHARS)


def _attachment(text: str) -> bytes:
    if len(text) <= MAX_ATTACHMENT_CHARS and text.startswith(BASE64_PREFIX):
        return base64.b64decode(text.removeprefix(BASE64_PREFIX), validate=True)
    return base58.decode(text, MAX_ATTACHMENT_CHARS)


def _hexadecimal(text: str) -> bytes:
    if len(text) > MAX_SIGNATURE_CHARS:
        raise ValueError("no signature")
    return bytes.fromhex(text.removeprefix("0x"))


def _asset(text: str | None, path: str, wrong: list[str]) -> AssetId | None:
    if text is None or text in ("", NATIVE_TEXT):
        return None
    asset_id = _take(text, path, _asset_bytes, wrong)
    if asset_id is not None and len(asset_id) != DIGEST_LENGTH:
        raise _refused(errors.ASSET_NOT_FOUND, assetId=text)
    return asset_id


@lru_cache(maxsize=KEPT_ASSETS)
def _asset_bytes(text: str) -> bytes:
    return base58.decode(text, MAX_ASSET_CHARS)


def _refused(kind: ErrorKind, **params: Param) -> Refusal:
    return Refusal(MatcherError(kind, form=0, **params), "OrderRejected", flat=True)
