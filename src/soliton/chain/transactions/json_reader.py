"""Reading transactions from the JSON that clients send.

What lives here: reading a signed transaction, or the parts of an unsigned one. All members of a
wrong type are reported together, in the reference node's messages. Invalid values of the right type
(an address with a wrong checksum) are reported after them, one at a time. What does not: the rules
on values (``codec.validate``) and on state.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/TransactionFactory.scala`` and
``api/http/requests``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from soliton.chain.addresses import PUBLIC_KEY_LENGTH
from soliton.chain.errors import (
    ChainError,
    FormatError,
    JsonFieldError,
    JsonFieldErrors,
    PublicKeyError,
    UnsupportedTransaction,
    ValueRuleError,
    WrongChainId,
)
from soliton.chain.fields import Field
from soliton.chain.json_kinds import (
    MAX_BASE58_CHARS,
    expect_string,
    read_asset,
    read_byte,
    read_bytes,
    read_long,
    read_string,
)
from soliton.chain.transactions import codec, ethereum
from soliton.chain.transactions.model import (
    AnyTransaction,
    ForeignForm,
    TransactionType,
)
from soliton.chain.transactions.table import type_by_id
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error

JsonObject = Mapping[str, Any]

_MAX_PUBLIC_KEY_CHARS: Final = 44
_FIELD_PREFIX: Final = "obj."
_MISSING: Final = JsonFieldError("", "error.path.missing")


class Request(msgspec.Struct, frozen=True):
    """The parts of a transaction in a client's JSON; ``None`` if missing."""

    kind: TransactionType
    version: int
    payload: Any
    sender: str | None
    sender_public_key: str | None
    fee: int
    fee_asset_id: AssetId | None
    timestamp: int | None
    proofs: tuple[bytes, ...]


def read_signed(obj: JsonObject, chain_id: int) -> AnyTransaction:
    """Read a signed transaction.

    Raises ``WrongChainId``, ``UnsupportedTransaction``, ``JsonFieldErrors``, ``AddressError``,
    ``PublicKeyError`` or ``ValueRuleError``.
    """
    claimed = obj.get("chainId")
    if isinstance(claimed, int) and not isinstance(claimed, bool) and claimed != chain_id:
        raise WrongChainId(chain_id, claimed)
    request = _read_request(obj, chain_id, signed=True)
    if request.sender_public_key is None:
        raise ValueRuleError("invalid.senderPublicKey")
    transaction = to_transaction(
        request, parse_public_key(request.sender_public_key), chain_id, request.timestamp or 0
    )
    codec.validate(transaction)
    codec.check_proofs(transaction.proofs)
    return transaction


def read_request(obj: JsonObject, chain_id: int) -> Request:
    """Read the parts of a transaction, signed or not, without checking rules."""
    return _read_request(obj, chain_id, signed=False)


def read_shown(obj: JsonObject, chain_id: int, timestamp: int = 0) -> AnyTransaction:
    """Read a transaction of any type, signed or not, as nodes show it: also the types that nobody
    sends any more (genesis, payments), and those of Ethereum's wallets, from their bytes. The
    ``timestamp`` is used if it has none. Raises the errors of ``read_signed``.
    """
    if obj.get("type") == ethereum.TYPE_ID:
        try:
            data = bytes.fromhex(str(obj.get("bytes")).removeprefix("0x"))
        except ValueError:
            raise FormatError("the transaction has no bytes in hexadecimal") from None
        return ethereum.from_rlp(data, chain_id)
    request = _read_request(obj, chain_id, signed=False, shown=True)
    if request.kind.senderless:
        # Its signature is its id, no proof.
        request, key = msgspec.structs.replace(request, proofs=()), b""
    elif request.sender_public_key is None:
        raise FormatError("the transaction has no senderPublicKey")
    else:
        key = parse_public_key(request.sender_public_key)
    stamp = timestamp if request.timestamp is None else request.timestamp
    return to_transaction(request, key, chain_id, stamp)


def _read_request(obj: JsonObject, chain_id: int, *, signed: bool, shown: bool = False) -> Request:
    reader = _Reader(obj, chain_id)
    type_id = reader.take("type", read_byte)
    reader.finish()
    kind = type_by_id(type_id)
    if isinstance(kind.protobuf, ForeignForm):
        raise UnsupportedTransaction(type_id, 0)
    form = kind.request
    version = reader.take("version", read_byte, form.default_version if signed else 1)
    reader.finish()
    known = version in kind.binary or codec.is_protobuf(kind, version)
    # Rules reject a signed transaction with a version below 1.
    if not (kind.versioned or shown) or not (
        known or (signed and codec.is_version_zero_or_less(kind, version))
    ):
        raise UnsupportedTransaction(type_id, version)
    if signed:
        reader.require(form.required)
    request = Request(
        kind=kind,
        version=version,
        sender=reader.take("sender", read_string, None),
        sender_public_key=reader.take("senderPublicKey", read_string, None),
        fee=reader.take("fee", read_long)
        if form.fee_required
        else reader.take("fee", read_long, 0),
        fee_asset_id=reader.take("feeAssetId", read_asset, None) if kind.fee_in_asset else None,
        timestamp=reader.take("timestamp", read_long, None),
        proofs=_read_proofs(reader),
        payload=_read_payload(reader, kind),
    )
    reader.finish()
    return request


def to_transaction(
    request: Request, sender_public_key: bytes, chain_id: int, timestamp: int
) -> AnyTransaction:
    """Build the transaction of a request, with its proofs."""
    return codec.build(
        request.kind,
        request.payload,
        version=request.version,
        chain_id=chain_id,
        sender_public_key=sender_public_key,
        fee=request.fee,
        fee_asset_id=request.fee_asset_id,
        timestamp=timestamp,
        proofs=request.proofs,
    )


@lru_cache(maxsize=4_096)
def parse_public_key(text: str) -> bytes:
    """Parse a public key in base58; raise ``PublicKeyError``, or ``ValueRuleError`` for its
    length.
    """
    try:
        key = base58.decode(text, _MAX_PUBLIC_KEY_CHARS)
    except Base58Error as error:
        raise PublicKeyError(str(error)) from error
    if len(key) != PUBLIC_KEY_LENGTH:
        raise ValueRuleError(f"requirement failed: invalid public key length: {len(key)}")
    return key


class _Reader:
    """Reads members one by one, collects errors, and raises them in ``finish``."""

    __slots__ = ("_chain_id", "_first_problem", "_obj", "_shape_errors")

    def __init__(self, obj: JsonObject, chain_id: int) -> None:
        self._obj = obj
        self._chain_id = chain_id
        self._shape_errors: list[JsonFieldError] = []
        self._first_problem: ChainError | None = None

    def require(self, keys: Iterable[str]) -> None:
        """Record an error for each of these members that is missing."""
        for key in sorted(keys):
            if key not in self._obj:
                self._add(key, _MISSING)

    def has(self, key: str) -> bool:
        return self._obj.get(key) is not None

    def take(
        self,
        key: str,
        read: Callable[[Any, int], Any],
        default: Any = msgspec.UNSET,  # noqa: ANN401 - of the kind that ``read`` gives
    ) -> Any:  # noqa: ANN401 - what ``read`` gives
        value = self._obj.get(key, msgspec.UNSET)
        if value is msgspec.UNSET or (value is None and default is not msgspec.UNSET):
            if default is msgspec.UNSET:
                self._add(key, _MISSING)
            return default
        try:
            return read(value, self._chain_id)
        except JsonFieldError as error:
            self._add(key, error)
        except ChainError as error:
            self._first_problem = self._first_problem or error
        return None

    def _add(self, key: str, error: JsonFieldError) -> None:
        self._shape_errors.append(error.below(_FIELD_PREFIX + key))

    def finish(self) -> None:
        if self._shape_errors:
            raise JsonFieldErrors(self._shape_errors)
        if self._first_problem is not None:
            raise self._first_problem


def _read_proofs(reader: _Reader) -> tuple[bytes, ...]:
    signature = reader.take("signature", _signature, None)
    proofs: tuple[bytes, ...] | None = reader.take("proofs", _proof_list, None)
    if proofs and signature is not None and proofs[0] != signature:
        raise ValueRuleError(
            "Both proofs and signature are provided, but proofs do not match signature"
        )
    if proofs is not None:
        return proofs
    return () if signature is None else (signature,)


def _signature(value: object, chain_id: int) -> bytes | None:
    # Requests to sign often contain an empty one.
    return None if value == "" else read_bytes(value, chain_id)


def _proof_list(value: object, _chain_id: int) -> tuple[bytes, ...]:
    if not isinstance(value, list):
        raise JsonFieldError("", "invalid.proofs")
    proofs = []
    for item in value:
        if not isinstance(item, str):
            raise JsonFieldError("", "expected.string")
        try:
            proofs.append(base58.decode(expect_string(item), MAX_BASE58_CHARS))
        except Base58Error as error:
            raise JsonFieldError("", "invalid.base58", str(error)) from error
    try:
        codec.check_proofs(tuple(proofs))
    except codec.ProofsError as error:
        # The reference node checks proofs while it reads them.
        raise JsonFieldError("", "invalid.proofs", str(error)) from error
    return tuple(proofs)


def _read_payload(reader: _Reader, kind: TransactionType) -> object:
    values = {field.attribute: _read_field(reader, field) for field in kind.fields}
    return kind.payload(**values)


def _read_field(reader: _Reader, field: Field) -> object:
    if field.aliases:
        for key in (field.key, *field.aliases):
            if reader.has(key):
                return reader.take(key, field.read_json)
    return reader.take(field.key, field.read_json, field.default)
