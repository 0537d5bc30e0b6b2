"""Parsing of transactions in requests: signed ones, and ones to sign, price or serialize.

What lives here: the handlers of ``/transactions/sign``, ``/transactions/calculateFee`` and
``/utils/transactionSerialize``, and parsing a signed transaction. What does not: the rows
(``rest.transactions``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/transaction/
TransactionFactory.scala`` (``parseRequestAndSign``, ``fromSignedRequest``) and ``api/http/
package.scala`` (``createTransaction``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from soliton.api import errors
from soliton.api.errors import TOO_MANY_LONG_ANSWERS, ApiError
from soliton.api.http import Request
from soliton.api.lookup import address_argument, is_oldest, node_of
from soliton.api.translate import is_sendable, refusal
from soliton.chain.addresses import parse_address
from soliton.chain.errors import (
    ChainError,
    JsonFieldError,
    JsonFieldErrors,
    UnsupportedTransaction,
    ValueRuleError,
)
from soliton.chain.transactions import codec, json_reader
from soliton.chain.transactions.exchange import TYPE as EXCHANGE
from soliton.chain.transactions.model import AnyTransaction, Completing, TransactionType
from soliton.chain.transactions.table import registered, type_by_id
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair
from soliton.errors import SolitonError
from soliton.ledger.errors import ActivationError
from soliton.node.node import Node
from soliton.node.remote_keys import AccountKey, SigningRefused
from soliton.node.turns import TooBusy
from soliton.ride.errors import ScriptFormatError
from soliton.ride.script import parse_script

_IGNORED_WHEN_SIGNING: Final = frozenset(("proofs", "signature", "senderPublicKey", "feeAsset"))
_BYTE_TEXT: Final = re.compile(r"[-+]?[0-9]{1,9}")
MIN_BYTE, MAX_BYTE = -128, 127
MIN_INT, MAX_INT = -(2**31), 2**31 - 1
FEE_WHEN_PRICING: Final = 1_234_567
SHORT_BYTES: Final = 16_384
"""A longer body is read in turns. Sending it to another core would cost more than its signature
check.
"""
_TRANSACTION: Final = "Transaction"

T = TypeVar("T")

JsonObject = dict[str, object]


class SignedBytes(msgspec.Struct, frozen=True, gc=False):
    """The signed bytes of a transaction, each as a number."""

    bytes: list[int]


class Fee(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The minimum fee; ``fee_asset_id`` is ``None`` for the chain's coin."""

    fee_asset_id: str | None
    fee_amount: int


def read_claimed(obj: JsonObject, node: Node) -> AnyTransaction:
    """Parse a signed transaction without checking its signature; raises the chain's errors."""
    if is_oldest(node):
        obj = _with_version_number(obj)
    try:
        transaction = json_reader.read_signed(obj, node.network.chain_id)
    except UnsupportedTransaction as error:
        raise _with_version(error, obj) from error
    _check_script(transaction)
    if is_oldest(node):
        _check_version(type_by_id(transaction.type_id), transaction.version, node)
    return transaction


def _check_script(transaction: AnyTransaction) -> None:
    """Raise ``ValueRuleError`` for a malformed script.

    The reference parses it with the other members; the rules would report it after other errors.
    """
    script = getattr(transaction.payload, "script", None)
    if isinstance(script, bytes):
        try:
            parse_script(script)
        except ScriptFormatError as error:
            raise ValueRuleError(f"ScriptParseError({error})") from error


def _check_version(kind: TransactionType, version: int, node: Node) -> None:
    """Raise ``UnsupportedTransaction`` for a version that the interface does not have.

    The oldest generation has no protobuf. No network accepts versions above the newest.
    """
    known = version in kind.binary if is_oldest(node) else version <= kind.max_version
    if not known:
        raise UnsupportedTransaction(kind.type_id, version)


async def sign(request: Request) -> JsonObject:
    """Sign with the sender's own key."""
    return codec.to_json(await signed_by_wallet(node_of(request), request.json()))


async def sign_with(request: Request) -> JsonObject:
    """Sign with the key of another account of the wallet."""
    signer = address_argument(request, "signerAddress")
    return codec.to_json(await signed_by_wallet(node_of(request), request.json(), signer))


async def signed_by_wallet(
    node: Node, request: JsonObject, signer: bytes | None = None
) -> AnyTransaction:
    """The transaction of a request, signed with the key of its sender or of ``signer`` from the
    node's wallet. Raises ``ApiError``.
    """
    obj = {name: value for name, value in request.items() if name not in _IGNORED_WHEN_SIGNING}
    try:
        obj = _with_version_number(obj)
        if obj.get("type") == EXCHANGE.type_id:
            # The only type that can be sent but not signed by a wallet.
            raise _not_signable(node)
        draft = _read_request(_completed(obj, node, signer), node)
        _check_version(draft.kind, draft.version, node)
        if draft.sender is None:
            raise JsonFieldErrors([JsonFieldError("obj.sender", "error.path.missing")])
        sender = parse_address(draft.sender, node.network.chain_id)
        keys = key_of(node, sender)
        transaction = json_reader.to_transaction(
            draft,
            keys.public_key,
            node.network.chain_id,
            node.clock() if draft.timestamp is None else draft.timestamp,
        )
        codec.validate(transaction)
        _check_script(transaction)
    except SolitonError as error:
        raise refusal(error, node.network.family) from error
    signing = keys if signer is None or signer == sender else key_of(node, signer)
    if isinstance(signing, KeyPair):
        return codec.sign(transaction, signing.private_key)
    signature = await signature_of(signing.signer.transaction(signing.public_key, transaction))
    return codec.with_proofs(transaction, (signature,))


def _completed(obj: JsonObject, node: Node, signer: bytes | None) -> JsonObject:
    """Add what a wallet knows of a transaction, for types that clients may leave it out of."""
    kind = next((each for each in registered() if each.type_id == obj.get("type")), None)
    if kind is None or kind.complete is None:
        return obj
    period = node.chain.rules.period_at(node.chain.height + 1)
    if period is None:
        raise ActivationError("DeterministicFinality is not yet activated")

    def private_key() -> bytes:
        address = signer
        if address is None:
            if not isinstance(sender := obj.get("sender"), str):
                raise JsonFieldErrors([JsonFieldError("obj.sender", "error.path.missing")])
            address = parse_address(sender, node.network.chain_id)
        key = key_of(node, address)
        if not isinstance(key, KeyPair):
            raise ValueRuleError(
                "The key for endorsements follows from the private key, which is not in this "
                "wallet: state endorserPublicKey and commitmentSignature"
            )
        return key.private_key

    fee = node.network.fees.base.get(kind.type_id, node.network.fees.unit)
    return kind.complete(obj, Completing(fee, period.next.start, private_key))


async def signature_of(request: Coroutine[Any, Any, bytes]) -> bytes:
    """Await the signature of an external signer; raises ``ApiError`` if it refuses."""
    try:
        return await request
    except SigningRefused as error:
        raise errors.SIGNER_REFUSES.error(reason=str(error)) from error


def _not_signable(node: Node) -> ApiError:
    if is_oldest(node):
        return errors.invalid_request("UnsupportedTransactionType")
    return errors.UNSUPPORTED_TRANSACTION_TYPE.error()


def key_of(node: Node, address: bytes) -> AccountKey:
    """The key of an account of the wallet; raises ``ApiError``."""
    keys = node.wallet.key(address)
    if keys is None:
        raise errors.MISSING_SENDER_PRIVATE_KEY.error().with_hint(
            "GET /addresses lists the accounts of the node's wallet, POST /addresses adds one"
        )
    return keys


def calculate_fee(request: Request) -> Fee:
    """The minimum fee of a transaction."""
    node = node_of(request)
    obj = request.json() | {"fee": FEE_WHEN_PRICING}
    try:
        least = node.minimum_fee(read_unsigned(node, obj, obj.get("senderPublicKey")))
    except SolitonError as error:
        raise refusal(error, node.network.family) from error
    asset_id = None if least.asset_id is None else base58.encode(least.asset_id)
    return Fee(asset_id, least.amount)


def serialize(request: Request) -> object:
    """The signed bytes of a transaction."""
    if len(request.body) > SHORT_BYTES:
        return _serialize_long(request)
    return _serialized(node_of(request), request.json())


async def _serialize_long(request: Request) -> SignedBytes:
    return await in_turns(request, partial(_serialized, node_of(request), request.json()))


async def in_turns(request: Request, work: Callable[[], T]) -> T:
    """Return the result of work on a body that may be long: other requests are answered meanwhile.
    Raises ``ApiError``.
    """
    turn = node_of(request).turns.begin(work)
    await turn.wait()
    request.charge(turn.later_seconds)
    try:
        return turn.result()
    except TooBusy as error:
        raise TOO_MANY_LONG_ANSWERS.error() from error


def _serialized(node: Node, obj: JsonObject) -> SignedBytes:
    try:
        transaction = read_claimed(obj, node)
    except SolitonError as error:
        key = obj.get("senderPk", obj.get("senderPublicKey"))
        try:
            transaction = read_unsigned(node, obj, key)
        except SolitonError as again:
            raise refusal(again, node.network.family) from error
    return SignedBytes(list(transaction.body))


def read_unsigned(node: Node, obj: JsonObject, sender_public_key: object) -> AnyTransaction:
    """Parse a transaction and drop its proofs; raises the chain's errors."""
    try:
        plain = _with_number(obj)
    except JsonFieldError as error:
        faults = {"obj": [{"msg": [error.expected], "args": []}]}
        raise errors.WRONG_JSON.error(cause=None, validationErrors=faults) from error
    plain = {name: value for name, value in plain.items() if name not in ("proofs", "signature")}
    try:
        draft = _read_request(plain, node)
    except UnsupportedTransaction as error:
        raise _unsupported(error, node) from error
    if not isinstance(sender_public_key, str):
        raise JsonFieldErrors([JsonFieldError("obj.senderPublicKey", "error.path.missing")])
    transaction = json_reader.to_transaction(
        draft,
        json_reader.parse_public_key(sender_public_key),
        node.network.chain_id,
        draft.timestamp or 0,
    )
    codec.validate(transaction)
    _check_script(transaction)
    return transaction


def _read_request(obj: JsonObject, node: Node) -> json_reader.Request:
    try:
        return json_reader.read_request(obj, node.network.chain_id)
    except UnsupportedTransaction as error:
        raise _with_version(error, obj) from error


def _unsupported(error: UnsupportedTransaction, node: Node) -> ChainError:
    """The error for a type without an unsigned form: genesis, payment, Ethereum's transactions."""
    kind = next((each for each in registered() if each.type_id == error.type_id), None)
    if kind is None or is_sendable(kind) or is_oldest(node):
        return error
    return ValueRuleError(f"Unsupported transaction type: {kind.title.removesuffix(_TRANSACTION)}")


def _with_version(error: UnsupportedTransaction, obj: JsonObject) -> UnsupportedTransaction:
    """The same error with the version of the request."""
    version = obj.get("version", 1)
    return UnsupportedTransaction(error.type_id, version if isinstance(version, int) else 1)


def _with_version_number(obj: JsonObject) -> JsonObject:
    """Convert ``version`` to a number; raises ``ValueRuleError`` if it is malformed."""
    try:
        return _with_number(obj)
    except JsonFieldError as error:
        shown = f"(,List(JsonValidationError(List({error.expected}),List())))"
        raise ValueRuleError(f"Wrong JSON: {shown}") from error


def _with_number(obj: JsonObject) -> JsonObject:
    """Convert ``version`` to a number; raises ``JsonFieldError`` if it is malformed.

    Old clients send it as a string. Of a 32-bit number the reference uses the lowest 8 bits.
    """
    version = obj.get("version")
    if version is None:
        return obj
    reason = "error.expected.jsstring"
    if isinstance(version, str):
        reason = "Can't parse version"
        if _BYTE_TEXT.fullmatch(version) and MIN_BYTE <= int(version) <= MAX_BYTE:
            return {**obj, "version": int(version)}
    elif type(version) is int and MIN_INT <= version <= MAX_INT:
        return {**obj, "version": (version - MIN_BYTE) % 256 + MIN_BYTE}
    raise JsonFieldError("", reason)
