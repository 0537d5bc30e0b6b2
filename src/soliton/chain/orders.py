"""Orders: offers to exchange one asset for another, versions 1 to 4.

Versions 1 to 3 are signed in a binary layout, version 4 as a protobuf message without its proofs,
or, by Ethereum wallets, as typed data (EIP-712) from whose signature the sender is recovered.

What lives here: the value, its bytes, message and JSON, its id, and the rules on its own fields.
What does not: the hash that wallets sign (``typed_data``), the exchange of two orders
(``transactions.exchange``) and fills (``soliton.ledger``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/exchange/{Order,OrderJson,EthOrders}.scala``,
``transaction/serialization/impl/OrderSerializer.scala``, ``protobuf/transaction/PBOrders.scala``;
EIP-712.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from enum import IntEnum
from operator import attrgetter
from typing import Any, Final

import msgspec

from soliton.chain import protobuf, typed_data
from soliton.chain.addresses import (
    ETHEREUM_KEY_LENGTH,
    PUBLIC_KEY_LENGTH,
    address_text,
    from_public_key,
)
from soliton.chain.errors import FormatError, JsonFieldError, OrderInvalid, ValueRuleError
from soliton.chain.json_kinds import (
    decode_base58,
    expect_string,
    member,
    read_asset,
    read_byte,
    read_bytes,
    read_items,
    read_long,
    write_asset,
    write_bytes,
)
from soliton.chain.layouts import (
    I64,
    OPTIONAL_ASSET,
    PUBLIC_KEY,
    SIGNATURE_LENGTH,
    U8,
    Field,
    compile_fields,
    read_proofs,
    take,
    write_proofs,
)
from soliton.chain.proto import order_pb2
from soliton.chain.values import AssetId, wrapped
from soliton.crypto import base58, secp256k1
from soliton.crypto.curve25519 import SignedMessage, verify
from soliton.crypto.curve25519 import sign as sign_bytes
from soliton.crypto.hashes import blake2b256

PRICE_CONSTANT: Final = 100_000_000
MAX_AMOUNT: Final = 100 * PRICE_CONSTANT * PRICE_CONSTANT
MAX_LIFETIME_MS: Final = 30 * 24 * 60 * 60 * 1_000
MAX_ATTACHMENT_BYTES: Final = 1_024
MAX_PROOFS: Final = 8
MAX_PROOF_BYTES: Final = 64
PLAIN_SIGNATURE_LENGTH: Final = 65
EIP712_SIGNATURE_LENGTHS: Final = (PLAIN_SIGNATURE_LENGTH, 129)
MAX_VERSION: Final = 4
MAX_READ_VERSION: Final = 127

_FEE_ASSET_VERSION: Final = 3
_PROTOBUF_VERSION: Final = 4
_NATIVE: Final = "WAVES"
_MAX_HEX_CHARS: Final = 1_024
"""The limit for reading; a rule checks the length of a signature later."""

AMOUNT_ERROR: Final = f"amount should be in interval (0; {MAX_AMOUNT}]"
PRICE_ERROR: Final = "price should be > 0"
_WALLET_ERROR: Final = "eip712Signature available only in V4"
MATCHER_FEE_ERROR: Final = f"matcher fee should be in interval (0; {MAX_AMOUNT})"


class Side(IntEnum):
    """Whether the amount asset is bought or sold."""

    BUY = 0
    SELL = 1


class PriceMode(IntEnum):
    """How many decimals a price has: 8, or a number that follows from the pair's assets."""

    DEFAULT = 0
    FIXED_DECIMALS = 1
    ASSET_DECIMALS = 2


_SIDE_NUMBERS: Final = {int(side): side for side in Side}
_SIDE_NAMES: Final = {Side.BUY: "buy", Side.SELL: "sell"}
_SIDES: Final = {name: side for side, name in _SIDE_NAMES.items()}
MODE_NAMES: Final = {
    PriceMode.DEFAULT: None,
    PriceMode.FIXED_DECIMALS: "fixedDecimals",
    PriceMode.ASSET_DECIMALS: "assetDecimals",
}
"""The names of the modes in JSON; the default mode has none."""
_MODES: Final = {name: mode for mode, name in MODE_NAMES.items() if name is not None}


class Order(msgspec.Struct, frozen=True, gc=False):
    """An order of any version. Build one with ``build``, which fills ``body`` and ``id``.

    ``amount`` of ``amount_asset`` for at most (selling: at least) ``price`` of ``price_asset``
    each, until ``expiration``; times in milliseconds. ``sender_public_key`` has 64 bytes for an
    Ethereum wallet, and is empty if no key can be recovered from ``eip712_signature``.
    """

    version: int
    chain_id: int
    sender_public_key: bytes
    matcher_public_key: bytes
    amount_asset: AssetId | None
    price_asset: AssetId | None
    side: Side
    amount: int
    price: int
    timestamp: int
    expiration: int
    matcher_fee: int
    matcher_fee_asset: AssetId | None = None
    price_mode: PriceMode = PriceMode.DEFAULT
    attachment: bytes | None = None
    proofs: tuple[bytes, ...] = ()
    eip712_signature: bytes | None = None
    body: bytes = b""
    id: bytes = b""


def build(draft: Order) -> Order:
    """Return the order with its signed bytes, its id and, for an EIP-712 signature, its sender.

    Raises ``FormatError`` for values that its version cannot represent, and ``OrderInvalid`` for a
    wallet's signature in an older version.
    """
    if draft.eip712_signature is not None:
        sender = recover_sender(draft, draft.eip712_signature) or b""
        draft = msgspec.structs.replace(draft, sender_public_key=sender, proofs=())
    body = _body(draft)
    return msgspec.structs.replace(draft, body=body, id=blake2b256(body))


def sign(order: Order, private_key: bytes, random: bytes | None = None) -> Order:
    """Return the order with one proof, the signature of its body."""
    proof = sign_bytes(private_key, order.body, random)
    return msgspec.structs.replace(order, proofs=(proof,))


def signature_is_valid(order: Order) -> bool:
    """Whether the first proof is the sender's signature, or an Ethereum key was recovered."""
    claim = signature_claim(order)
    return claim if isinstance(claim, bool) else verify(*claim)


def signature_claim(order: Order) -> SignedMessage | bool:
    """Return the signature to verify for ``signature_is_valid``, or its result if there is none."""
    if order.eip712_signature is not None:
        return order.sender_public_key != b""
    if len(order.sender_public_key) != PUBLIC_KEY_LENGTH or not order.proofs:
        return False
    return order.sender_public_key, order.body, order.proofs[0]


# --- binary, versions 1 to 3 ----------------------------------------------------------------------

_COMMON: Final = (
    Field("sender_public_key", PUBLIC_KEY),
    Field("matcher_public_key", PUBLIC_KEY),
    Field("amount_asset", OPTIONAL_ASSET),
    Field("price_asset", OPTIONAL_ASSET),
    Field("side", U8),
    Field("price", I64),
    Field("amount", I64),
    Field("timestamp", I64),
    Field("expiration", I64),
    Field("matcher_fee", I64),
)
_FEE_ASSET: Final = Field("matcher_fee_asset", OPTIONAL_ASSET)
_FIELDS: Final = {1: _COMMON, 2: _COMMON, 3: (*_COMMON, _FEE_ASSET)}
_HEADS: Final = {1: b"", 2: b"\2", 3: b"\3"}
_LAYOUTS: Final = {
    version: (_HEADS[version], compile_fields(fields), attrgetter(*(each.name for each in fields)))
    for version, fields in _FIELDS.items()
}


def _body(order: Order) -> bytes:
    layout = _LAYOUTS.get(order.version)
    if layout is None:
        return protobuf.serialize(to_message(order, with_proofs=False))
    if order.eip712_signature is not None:
        raise OrderInvalid(order, _WALLET_ERROR)
    for key in (order.sender_public_key, order.matcher_public_key):
        if len(key) != PUBLIC_KEY_LENGTH:
            raise FormatError(f"a key of {len(key)} bytes in an order of version {order.version}")
    head, codec, row_of = layout
    return head + codec.write_row(row_of(order))


def to_bytes(order: Order) -> bytes:
    """Return the binary form of versions 1 to 3; raise ``FormatError`` for others."""
    if order.version not in _LAYOUTS:
        raise FormatError(f"orders of version {order.version} have no binary form")
    if order.version > 1:
        return order.body + write_proofs(order.proofs)
    if len(order.proofs) != 1 or len(order.proofs[0]) != SIGNATURE_LENGTH:
        raise FormatError(f"this version holds one signature of {SIGNATURE_LENGTH} bytes")
    return order.body + order.proofs[0]


def from_bytes(version: int, data: bytes, chain_id: int) -> Order:
    """The inverse of ``to_bytes``; raises ``FormatError``."""
    layout = _LAYOUTS.get(version)
    if layout is None:
        raise FormatError(f"orders of version {version} have no binary form")
    head, codec, _ = layout
    if not data.startswith(head):
        raise FormatError(f"an order of version {version} does not begin as it should")
    row, end = codec.read_row(data, len(head))
    body = data[:end]
    if version == 1:
        proofs: tuple[bytes, ...] = (take(data, end, SIGNATURE_LENGTH),)
        end += SIGNATURE_LENGTH
    else:
        proofs, end = read_proofs(data, end)
    if end != len(data):
        raise FormatError(f"{len(data) - end} bytes after the order")
    if version < _FEE_ASSET_VERSION:
        row = (*row, None)
    sender, matcher, amount_asset, price_asset, side, price, amount = row[:7]
    timestamp, expiration, fee, fee_asset = row[7:]
    # Positional arguments take a sixth of the time, and journals contain millions of orders.
    return Order(
        version,
        chain_id,
        sender,
        matcher,
        amount_asset,
        price_asset,
        _side(side),
        amount,
        price,
        timestamp,
        expiration,
        fee,
        fee_asset,
        PriceMode.DEFAULT,
        None,
        proofs,
        None,
        body,
        blake2b256(body),
    )


def _side(number: int) -> Side:
    side = _SIDE_NUMBERS.get(number)
    if side is None:
        raise FormatError(f"Unknown order type: {number}")
    return side


# --- protobuf -------------------------------------------------------------------------------------


def to_message(order: Order, *, with_proofs: bool = True) -> order_pb2.Order:
    """Return the ``Order`` message of an order of any version."""
    message = order_pb2.Order()
    fill_message(message, order, with_proofs=with_proofs)
    return message


def fill_message(message: order_pb2.Order, order: Order, *, with_proofs: bool = True) -> None:
    """Fill an empty ``Order`` message."""
    message.chain_id = order.chain_id
    message.matcher_public_key = order.matcher_public_key
    message.order_side = int(order.side)  # type: ignore[assignment]  # the generated type is nominal
    message.amount = order.amount
    message.price = order.price
    message.timestamp = order.timestamp
    message.expiration = order.expiration
    message.version = order.version
    if order.price_mode is not PriceMode.DEFAULT:
        message.price_mode = int(order.price_mode)  # type: ignore[assignment]  # as above
    if order.attachment is not None:
        message.attachment = order.attachment
    pair = message.asset_pair
    pair.SetInParent()
    if order.amount_asset is not None:
        pair.amount_asset_id = order.amount_asset
    if order.price_asset is not None:
        pair.price_asset_id = order.price_asset
    protobuf.write_amount(message.matcher_fee, order.matcher_fee_asset, order.matcher_fee)
    if order.eip712_signature is not None:
        message.eip712_signature = order.eip712_signature
    else:
        message.sender_public_key = order.sender_public_key
    if with_proofs:
        message.proofs.extend(order.proofs)


def from_message(message: order_pb2.Order, chain_id: int) -> Order:
    """Convert an ``Order`` message; its own chain id is ignored.

    Raises ``FormatError`` or ``OrderInvalid``.
    """
    match message.WhichOneof("sender"):
        case "sender_public_key":
            signature, sender = None, message.sender_public_key
        case "eip712_signature":
            signature, sender = message.eip712_signature, b""
        case _:
            raise FormatError("Order should have either senderPublicKey or eip712Signature")
    if not 0 < message.version <= MAX_READ_VERSION:
        raise FormatError(f"order of version {message.version}")
    if signature is None:
        _check_key_length(sender)
    _check_key_length(message.matcher_public_key)
    return build(
        # Python makes a dictionary for a call with more than 15 keywords, which takes longer.
        Order(
            message.version,
            chain_id,
            sender,
            message.matcher_public_key,
            amount_asset=protobuf.read_asset(message.asset_pair.amount_asset_id),
            price_asset=protobuf.read_asset(message.asset_pair.price_asset_id),
            side=_side(message.order_side),
            amount=message.amount,
            price=message.price,
            timestamp=message.timestamp,
            expiration=message.expiration,
            matcher_fee=message.matcher_fee.amount,
            matcher_fee_asset=protobuf.read_asset(message.matcher_fee.asset_id),
            price_mode=_price_mode(message.price_mode),
            attachment=message.attachment or None,
            proofs=tuple(message.proofs),
            eip712_signature=signature,
        )
    )


def _price_mode(number: int) -> PriceMode:
    try:
        return PriceMode(number)
    except ValueError as error:
        raise FormatError(f"Unknown order price mode: {number}") from error


def _check_key_length(key: bytes) -> None:
    if len(key) not in (PUBLIC_KEY_LENGTH, ETHEREUM_KEY_LENGTH):
        raise FormatError(f"invalid public key length: {len(key)}")


# --- rules on the fields --------------------------------------------------------------------------


def check_ranges(order: Order) -> None:
    """Raise ``ValueRuleError`` unless amount, price and matcher fee are within their bounds."""
    if not 0 < order.amount <= MAX_AMOUNT:
        raise ValueRuleError(AMOUNT_ERROR)
    if order.price <= 0:
        raise ValueRuleError(PRICE_ERROR)
    if not 0 < order.matcher_fee < MAX_AMOUNT:
        raise ValueRuleError(MATCHER_FEE_ERROR)


def fault(order: Order, now: int) -> str | None:
    """Return the reference node's message for the first rule that an order violates at a time."""
    signature, attachment, proofs = order.eip712_signature, order.attachment, order.proofs
    longest, lifetime = max(map(len, proofs), default=0), wrapped(order.expiration - now)
    rules = (
        (order.amount_asset != order.price_asset, "Invalid AssetPair"),
        (order.timestamp > 0, "timestamp should be > 0"),
        (lifetime <= MAX_LIFETIME_MS, "expiration should be earlier than 30 days"),
        (order.expiration >= now, "expiration should be > currentTime"),
        (
            order.matcher_fee_asset is None or order.version >= _FEE_ASSET_VERSION,
            "matcherFeeAssetId should be waves",
        ),
        (0 < order.version <= MAX_VERSION, "invalid version"),
        (signature is None or order.version >= _PROTOBUF_VERSION, _WALLET_ERROR),
        (
            signature is None or len(signature) in EIP712_SIGNATURE_LENGTHS,
            "eip712Signature should be of length 65 or 129",
        ),
        (
            order.version >= _PROTOBUF_VERSION or order.price_mode is PriceMode.DEFAULT,
            f"price mode should be default for V{order.version}",
        ),
        (
            len(proofs) <= MAX_PROOFS,
            f"Too many proofs ({len(proofs)}), only {MAX_PROOFS} allowed",
        ),
        (
            longest <= MAX_PROOF_BYTES,
            f"Too large proof ({longest}), must be max {MAX_PROOF_BYTES} bytes",
        ),
        (
            attachment is None or order.version >= _PROTOBUF_VERSION,
            "non-empty attachment field is allowed only for version >= V4",
        ),
        (
            attachment is None or len(attachment) <= MAX_ATTACHMENT_BYTES,
            f"attachment size should be <= {MAX_ATTACHMENT_BYTES} bytes",
        ),
        (attachment != b"", "attachment size should be > 0"),
    )
    return next((message for holds, message in rules if not holds), None)


# --- wallets -------------------------------------------------------------------------------------


def recover_sender(order: Order, signature: bytes) -> bytes | None:
    """Recover the 64-byte key from an EIP-712 signature (``r``, ``s`` and ``v``), or ``None``."""
    if len(signature) not in EIP712_SIGNATURE_LENGTHS:
        return None
    size = len(signature) // 2
    r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:-1], "big")
    return secp256k1.recover(
        typed_data.order_hash(order), r, s, recovery_id(signature[-1], order.chain_id)
    )


def recovery_id(v: int, chain_id: int) -> int:
    """Return the recovery id in the last number of a signature: plain, plus 27, or with the chain
    id as in EIP-155. The result may be invalid.
    """
    if v in (0, 1):
        return v
    return v - 2 * chain_id - 35 if v > 28 else v - 27


# --- JSON -----------------------------------------------------------------------------------------


def to_json(order: Order) -> dict[str, Any]:
    """Return the order in the JSON of the reference node."""
    sender = order.sender_public_key
    proofs = [base58.encode(proof) for proof in order.proofs]
    out: dict[str, Any] = {
        "version": order.version,
        "id": base58.encode(order.id),
        "sender": address_text(from_public_key(sender, order.chain_id)),
        "senderPublicKey": address_text(sender),
        "matcherPublicKey": address_text(order.matcher_public_key),
        "assetPair": {
            "amountAsset": write_asset(order.amount_asset),
            "priceAsset": write_asset(order.price_asset),
        },
        "orderType": _SIDE_NAMES[order.side],
        "amount": order.amount,
        "price": order.price,
        "timestamp": order.timestamp,
        "expiration": order.expiration,
        "matcherFee": order.matcher_fee,
        "signature": proofs[0] if proofs else "",
        "proofs": proofs,
    }
    if order.version >= _FEE_ASSET_VERSION:
        out["matcherFeeAssetId"] = write_asset(order.matcher_fee_asset)
    if order.version >= _PROTOBUF_VERSION:
        signature = order.eip712_signature
        out["eip712Signature"] = None if signature is None else "0x" + signature.hex()
        out["priceMode"] = MODE_NAMES[order.price_mode]
    if order.attachment is not None:
        out["attachment"] = write_bytes(order.attachment)
    return out


def from_json(obj: object, chain_id: int) -> Order:
    """The inverse of ``to_json``; id and sender are computed.

    Raises ``JsonFieldError`` with the path of an invalid member.
    """
    if not isinstance(obj, dict):
        raise JsonFieldError("", f"Order object expected: {str(obj)[:80]}")
    later = _is_later(obj.get("version", 1))
    signature_proofs: tuple[bytes, ...] = member(obj, "signature", _signature, chain_id, ())
    proofs = member(obj, "proofs", _proofs, chain_id, signature_proofs)
    version = member(obj, "version", read_byte, chain_id, 0) or _guess_version(proofs)
    signature = member(obj, "eip712Signature", _hex, chain_id, None) if later else None
    sender = member(obj, "senderPublicKey", _key, chain_id, b"" if later else msgspec.UNSET)
    pair = obj.get("assetPair")
    draft = Order(
        version=version,
        chain_id=chain_id,
        sender_public_key=sender,
        matcher_public_key=member(obj, "matcherPublicKey", _key, chain_id),
        amount_asset=_pair_asset(pair, "amountAsset", chain_id),
        price_asset=_pair_asset(pair, "priceAsset", chain_id),
        side=member(obj, "orderType", _read_side, chain_id),
        amount=member(obj, "amount", read_long, chain_id),
        price=member(obj, "price", read_long, chain_id),
        timestamp=member(obj, "timestamp", read_long, chain_id),
        expiration=member(obj, "expiration", read_long, chain_id),
        matcher_fee=member(obj, "matcherFee", read_long, chain_id),
        proofs=proofs,
    )
    if later:
        draft = msgspec.structs.replace(
            draft,
            matcher_fee_asset=member(obj, "matcherFeeAssetId", read_asset, chain_id, None),
            price_mode=member(obj, "priceMode", _mode, chain_id, PriceMode.DEFAULT),
            attachment=member(obj, "attachment", read_bytes, chain_id, None),
            eip712_signature=signature,
        )
    try:
        check_ranges(draft)
    except ValueRuleError as error:
        raise JsonFieldError("", str(error)) from error
    if signature is None and not sender:
        raise ValueRuleError("Either senderPublicKey or eip712Signature should be provided")
    return build(draft)


def _is_later(version: Any) -> bool:  # noqa: ANN401 - a value in JSON
    """Whether orders of this version have the newer members."""
    is_number = isinstance(version, int | Decimal) and not isinstance(version, bool)
    if is_number and (version in (1, 2) or version >= _FEE_ASSET_VERSION):
        return bool(version >= _FEE_ASSET_VERSION)
    raise JsonFieldError("", f"Invalid version: {str(version)[:80]}")


def _guess_version(proofs: tuple[bytes, ...]) -> int:
    return 1 if len(proofs) == 1 and len(proofs[0]) == SIGNATURE_LENGTH else 2


def _base58(value: object, _chain_id: int) -> bytes:
    try:
        return decode_base58(value)
    except JsonFieldError as error:
        wrong = "error.incorrect.base58" if isinstance(value, str) else error.expected
        raise JsonFieldError("", wrong) from error


def _signature(value: object, chain_id: int) -> tuple[bytes, ...]:
    return () if value == "" else (_base58(value, chain_id),)


def _proofs(value: object, chain_id: int) -> tuple[bytes, ...]:
    return read_items(value, chain_id, MAX_READ_VERSION, _base58, "proofs")


def _key(value: object, chain_id: int) -> bytes:
    with suppress(JsonFieldError):
        key = _base58(value, chain_id)
        if len(key) in (PUBLIC_KEY_LENGTH, ETHEREUM_KEY_LENGTH):
            return key
    raise JsonFieldError("", "error.incorrectAccount")


def _pair_asset(pair: object, key: str, chain_id: int) -> AssetId | None:
    try:
        return member(pair, key, _pair_member, chain_id, None)
    except JsonFieldError as error:
        raise error.below(".assetPair") from error


def _pair_member(value: object, chain_id: int) -> AssetId | None:
    asset: AssetId | None = None if value == _NATIVE else read_asset(value, chain_id)
    return asset


def _read_side(value: object, _chain_id: int) -> Side:
    side = _SIDES.get(expect_string(value))
    if side is None:
        raise JsonFieldError("", "Unexpected OrderType")
    return side


def _mode(value: object, _chain_id: int) -> PriceMode:
    mode = _MODES.get(expect_string(value))
    if mode is None:
        raise JsonFieldError("", f"Unexpected order price mode: {str(value)[:80]}")
    return mode


def _hex(value: object, _chain_id: int) -> bytes:
    if not isinstance(value, str) or len(value) > _MAX_HEX_CHARS:
        raise JsonFieldError("", "error.expected.jsstring")
    try:
        return bytes.fromhex(value.removeprefix("0x"))
    except ValueError as error:
        raise JsonFieldError("", "invalid hexadecimal digits") from error
