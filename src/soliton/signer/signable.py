"""Things to sign: from JSON to the signed bytes, and from the signature to the answer.

What lives here: one reader for each kind, for the JSON of ``@waves/waves-transactions``, and the
exact signed bytes of messages that are not transactions. What does not: the policy (``policy``),
and keys (``soliton.keystore``).

Raw bytes cannot be signed: they could be those of a transaction. A text is signed as
``customData``, whose prefix no transaction has, or bare, if it is printable, which no transaction
is.

Sources: wavesplatform/waves-transactions ``src/requests`` (``auth``, ``wavesAuth``,
``custom-data``, ``cancel-order``); the JSON of transactions and orders is the node's
(``chain.transactions.json_reader``, ``chain.orders``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

import msgspec

from soliton.chain import orders
from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.errors import ChainError, JsonFieldError, JsonFieldErrors
from soliton.chain.json_kinds import (
    data_entry_json,
    decode_base58,
    decode_base64,
    encode_base64,
    read_data_entry,
)
from soliton.chain.layouts import write_bytes16
from soliton.chain.transactions import codec
from soliton.chain.transactions.data import MAX_ENTRIES
from soliton.chain.transactions.json_reader import (
    parse_public_key,
    read_request,
    to_transaction,
)
from soliton.chain.transactions.model import MAX_PROOFS
from soliton.chain.values import MAX_I64, DataEntry, entry_bytes
from soliton.crypto import base58
from soliton.crypto.errors import CryptoError
from soliton.crypto.hashes import blake2b256
from soliton.signer.errors import NOT_SIGNABLE, RequestRefused
from soliton.signer.measures import Decimals, Kind, Measures, of_order, of_transaction

MAX_PROOF_PLACE: Final = MAX_PROOFS - 1
MAX_HOST_CHARACTERS: Final = 255
MAX_TEXT_BYTES: Final = 64 * 1024
MIN_HIDDEN: Final = 8
"""Texts of a request from this length on are removed from messages: they may be secrets."""
_AUTH_PREFIX: Final = b"WavesWalletAuthentication"
_DATA_PREFIX: Final = b"\xff\xff\xff"
_ID_BYTES: Final = 32
_DIGITS: Final = 20
_NUMBERS: Final = frozenset(
    (
        *("amount", "fee", "timestamp", "quantity", "price", "expiration", "matcherFee"),
        *("buyMatcherFee", "sellMatcherFee", "minSponsoredAssetFee"),
    )
)
_MAX_DEPTH: Final = 32


class Signable(msgspec.Struct, frozen=True, gc=False):
    """One thing to sign. ``id`` is that of the transaction or order, or the hash of a message.
    ``timestamp`` is the one found or filled in. ``finish`` makes the answer from a signature.
    """

    measures: Measures
    body: bytes
    id: str
    timestamp: int
    finish: Callable[[bytes], dict[str, Any]]


class ReadContext(msgspec.Struct, frozen=True):
    """Inputs of reading: the signing key's public key, the chain, the default timestamp, the index
    of the proof if given, and the decimals of assets.
    """

    public_key: bytes
    chain_id: int
    now: int
    proof_at: int | None
    decimals: Decimals


def read_signable(kind: Kind, value: Any, context: ReadContext) -> Signable:  # noqa: ANN401 - JSON
    """Read a thing to sign; raises ``RequestRefused``."""
    if not isinstance(value, dict):
        raise RequestRefused(NOT_SIGNABLE, f"{kind.value} should be an object", kind.value)
    try:
        return _READERS[kind](value, context)
    except (JsonFieldError, JsonFieldErrors) as error:
        # Client libraries write large numbers as strings.
        numbers = with_numbers(value)
        if numbers == value:
            _refuse(error, value, kind)
        value = numbers
    except (ChainError, CryptoError) as error:
        _refuse(error, value, kind)
    try:
        return _READERS[kind](value, context)
    except (ChainError, CryptoError) as error:
        _refuse(error, value, kind)


def _refuse(error: Exception, value: object, kind: Kind) -> NoReturn:
    message = str(error)
    for text in sorted(_texts(value), key=len, reverse=True):
        if len(text) >= MIN_HIDDEN:
            message = message.replace(text, "…")
    raise RequestRefused(NOT_SIGNABLE, f"{kind.value}: {message[:1_000]}", kind.value) from None


def _texts(value: object) -> set[str]:
    if isinstance(value, str):
        return {value}
    if isinstance(value, dict):
        return set().union(*map(_texts, value.values()))
    return set().union(*map(_texts, value)) if isinstance(value, list) else set()


def with_numbers(value: Any, name: str = "", depth: int = 0) -> Any:  # noqa: ANN401 - JSON
    """Return the same JSON with numbers where client libraries write strings."""
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, dict):
        named = "amount" if value.get("type") == "integer" else ""
        return {
            key: with_numbers(item, named if key == "value" else key, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [with_numbers(item, name, depth + 1) for item in value]
    if name in _NUMBERS and isinstance(value, str) and len(value) <= _DIGITS:
        digits = value.removeprefix("-")
        return int(value) if digits.isascii() and digits.isdigit() else value
    return value


# --- transactions and orders ----------------------------------------------------------------------


def _transaction(value: dict[str, Any], context: ReadContext) -> Signable:
    _check_chain(value, context)
    request = read_request(value, context.chain_id)
    key = context.public_key
    if request.sender_public_key is not None:
        key = parse_public_key(request.sender_public_key)
    now = context.now if request.timestamp is None else request.timestamp
    transaction = to_transaction(request, key, context.chain_id, now)
    sender = transaction.sender_public_key
    if request.sender is not None and request.sender != _address(sender, context.chain_id):
        raise RequestRefused(NOT_SIGNABLE, "sender is not the address of the public key", "sender")
    codec.validate(transaction)
    place = _place(transaction.proofs, context.proof_at)

    def finish(signature: bytes) -> dict[str, Any]:
        proofs = _with_proof(transaction.proofs, place, signature)
        shown = codec.to_json(codec.with_proofs(transaction, proofs))
        # Nodes leave it out of forms without it; client libraries need it for an alias.
        shown.setdefault("chainId", context.chain_id)
        return shown

    measures = of_transaction(transaction)
    return Signable(measures, transaction.body, base58.encode(transaction.id), now, finish)


def _order(value: dict[str, Any], context: ReadContext) -> Signable:
    _check_chain(value, context)
    if value.get("eip712Signature"):
        raise RequestRefused(NOT_SIGNABLE, "the order has a wallet's signature", "eip712Signature")
    given = {
        "senderPublicKey": base58.encode(context.public_key),
        "timestamp": context.now,
        **{name: item for name, item in value.items() if item is not None},
    }
    if not given.get("version"):
        raise RequestRefused(NOT_SIGNABLE, "order: version is missing", "version")
    order = orders.from_json(given, context.chain_id)
    message = orders.fault(order, context.now)
    if message is not None:
        raise RequestRefused(NOT_SIGNABLE, f"order: {message}")
    place = _place(order.proofs, context.proof_at)

    def finish(signature: bytes) -> dict[str, Any]:
        proofs = _with_proof(order.proofs, place, signature)
        return orders.to_json(msgspec.structs.replace(order, proofs=proofs))

    measures = of_order(order, context.decimals)
    return Signable(measures, order.body, base58.encode(order.id), order.timestamp, finish)


def _check_chain(value: dict[str, Any], context: ReadContext) -> None:
    claimed = value.get("chainId")
    if claimed is not None and claimed not in (context.chain_id, chr(context.chain_id)):
        message = f"chainId is not that of this signer's network, {context.chain_id}"
        raise RequestRefused(NOT_SIGNABLE, message, "chainId")


def _place(proofs: tuple[bytes, ...], wanted: int | None) -> int:
    """Return the index of the signature among the proofs."""
    if wanted is None:
        if any(proofs):
            message = "there are proofs already: proofAt says at which place the signature goes"
            raise RequestRefused(NOT_SIGNABLE, message, "proofAt")
        return 0
    if wanted < len(proofs) and proofs[wanted]:
        message = f"there is a proof at place {wanted} already"
        raise RequestRefused(NOT_SIGNABLE, message, "proofAt")
    return wanted


def _with_proof(proofs: tuple[bytes, ...], place: int, signature: bytes) -> tuple[bytes, ...]:
    padded = [*proofs, *[b""] * (place + 1 - len(proofs))]
    padded[place] = signature
    return tuple(padded)


# --- messages -------------------------------------------------------------------------------------


def _cancel_order(value: dict[str, Any], context: ReadContext) -> Signable:
    sender = _own_key(value.get("senderPublicKey") or value.get("sender"), context)
    order_id = decode_base58(value.get("orderId"))
    if len(order_id) != _ID_BYTES:
        raise JsonFieldError(".orderId", f"{_ID_BYTES} bytes in base58")
    body = sender + order_id
    shown = {"sender": base58.encode(sender), "orderId": base58.encode(order_id)}
    return _message(Kind.CANCEL_ORDER, 1, body, sender, context, shown)


def _waves_auth(value: dict[str, Any], context: ReadContext) -> Signable:
    sender = _own_key(value.get("publicKey"), context)
    timestamp = value.get("timestamp", context.now)
    if type(timestamp) is not int or not 0 <= timestamp <= MAX_I64:
        raise JsonFieldError(".timestamp", "milliseconds")
    body = sender + timestamp.to_bytes(8, "big")
    shown = {
        "publicKey": base58.encode(sender),
        "address": _address(sender, context.chain_id),
        "timestamp": timestamp,
    }
    return _message(Kind.WAVES_AUTH, 1, body, sender, context, shown, timestamp=timestamp)


def _auth(value: dict[str, Any], context: ReadContext) -> Signable:
    sender = _own_key(value.get("publicKey"), context)
    host, data = value.get("host", ""), value.get("data", "")
    for name, text, most in (("host", host, MAX_HOST_CHARACTERS), ("data", data, MAX_TEXT_BYTES)):
        if not isinstance(text, str) or len(text) > most or not _is_utf8(text):
            raise JsonFieldError(f".{name}", f"a text of at most {most} characters")
    if len(data.encode()) > MAX_TEXT_BYTES - 1:
        raise JsonFieldError(".data", f"a text of less than {MAX_TEXT_BYTES} bytes")
    texts = _AUTH_PREFIX, host.encode(), data.encode()
    shown = {
        "host": host,
        "data": data,
        "prefix": _AUTH_PREFIX.decode(),
        "publicKey": base58.encode(sender),
        "address": _address(sender, context.chain_id),
    }
    body = b"".join(map(write_bytes16, texts))
    return _message(Kind.AUTH, 1, body, sender, context, shown, host=host)


def _text(value: dict[str, Any], context: ReadContext) -> Signable:
    """A plain text. Its bytes cannot be those of anything else that is signed here: amounts,
    timestamps and types contain unprintable bytes, and a text must not begin with the key.
    """
    sender = _own_key(value.get("publicKey"), context)
    text = value.get("text")
    if not isinstance(text, str) or not 0 < len(text) <= MAX_TEXT_BYTES or not _is_utf8(text):
        raise JsonFieldError(".text", f"a text of 1 to {MAX_TEXT_BYTES} characters")
    body = text.encode()
    is_plain = text[0].isprintable() and all(it.isprintable() or it in "\t\n\r" for it in text)
    if not is_plain or len(body) > MAX_TEXT_BYTES or body.startswith(sender):
        raise JsonFieldError(
            ".text", "printable characters and ends of lines, the first no such end"
        )
    shown = {
        "text": text,
        "publicKey": base58.encode(sender),
        "address": _address(sender, context.chain_id),
    }
    return _message(Kind.TEXT, 1, body, sender, context, shown)


def _custom_data(value: dict[str, Any], context: ReadContext) -> Signable:
    sender = _own_key(value.get("publicKey"), context)
    version = value.get("version", 1)
    shown: dict[str, Any]
    keys: tuple[str, ...] = ()
    if version == 1:
        data = _binary(value)
        body = _DATA_PREFIX + b"\1" + data
        shown = {"version": 1, "binary": encode_base64(data)}
    elif version == 2:
        entries = _entries(value.get("data"))
        keys = tuple(entry.key for entry in entries)
        body = _DATA_PREFIX + b"\2" + len(entries).to_bytes(2, "big")
        body += b"".join(map(entry_bytes, entries))
        shown = {"version": 2, "data": [data_entry_json(entry) for entry in entries]}
    else:
        raise JsonFieldError(".version", "1 or 2")
    shown["publicKey"] = base58.encode(sender)
    return _message(Kind.CUSTOM_DATA, version, body, sender, context, shown, data_keys=keys)


def _binary(value: dict[str, Any]) -> bytes:
    """Return the bytes of custom data, or of a text."""
    text = value.get("text")
    if isinstance(text, str) and "binary" not in value and _is_utf8(text):
        data = text.encode()
    elif isinstance(value.get("binary"), str):
        data = decode_base64(value["binary"])
    else:
        raise JsonFieldError(".binary", "base64, or text in its place")
    if len(data) > MAX_TEXT_BYTES:
        raise JsonFieldError(".binary", f"at most {MAX_TEXT_BYTES} bytes")
    return data


def _entries(value: object) -> tuple[DataEntry, ...]:
    if not isinstance(value, list) or len(value) > MAX_ENTRIES:
        raise JsonFieldError(".data", f"a list of at most {MAX_ENTRIES} entries")
    entries = tuple(map(read_data_entry, value))
    if any(entry.value is None for entry in entries):
        raise JsonFieldError(".data", "entries with values")
    return entries


def _message(
    kind: Kind,
    version: int,
    body: bytes,
    sender: bytes,
    context: ReadContext,
    shown: dict[str, Any],
    *,
    timestamp: int | None = None,
    host: str = "",
    data_keys: tuple[str, ...] = (),
) -> Signable:
    digest = base58.encode(blake2b256(body))

    def finish(signature: bytes) -> dict[str, Any]:
        return {**shown, "hash": digest, "signature": base58.encode(signature)}

    measures = Measures(
        kind=kind,
        type_id=0,
        name=kind.value,
        version=version,
        sender=sender,
        binds_chain=False,
        host=host,
        data_keys=data_keys,
    )
    return Signable(measures, body, digest, context.now if timestamp is None else timestamp, finish)


def _own_key(value: object, context: ReadContext) -> bytes:
    if value is None or value == "":
        return context.public_key
    if not isinstance(value, str):
        raise JsonFieldError(".publicKey", "a public key in base58")
    return parse_public_key(value)


def _address(public_key: bytes, chain_id: int) -> str:
    return address_text(from_public_key(public_key, chain_id))


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


_READERS: Final[dict[Kind, Callable[[dict[str, Any], ReadContext], Signable]]] = {
    Kind.TRANSACTION: _transaction,
    Kind.ORDER: _order,
    Kind.CANCEL_ORDER: _cancel_order,
    Kind.CUSTOM_DATA: _custom_data,
    Kind.AUTH: _auth,
    Kind.WAVES_AUTH: _waves_auth,
    Kind.TEXT: _text,
}
