"""Type 18, Ethereum: a transaction signed by an Ethereum wallet.

It is a transfer of the native coin or of an asset, or a call of a dApp. Some of its fields have
another meaning than on Ethereum: the nonce is the timestamp, the gas limit the fee, the gas price a
constant. The sender is recovered from the signature of the Keccak hash of ``Transaction.body``.

What lives here: decoding the envelope and the call data, and its rules. What does not: the asset of
a token address and the types of a dApp's functions, which need the state
(``soliton.ledger.rules.ethereum``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/EthereumTransaction.scala``; EIP-155.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from soliton.chain.addresses import PUBLIC_KEY_HASH_LENGTH, Address, from_public_key_hash
from soliton.chain.errors import (
    FormatError,
    InsufficientFee,
    NonPositiveAmount,
    ValueRuleError,
    WrongChainId,
)
from soliton.chain.ethereum_encoding import (
    PAYMENTS_TYPE,
    SELECTOR_LENGTH,
    WORD,
    AbiValue,
    read_arguments,
    read_rlp_list,
    read_rlp_number,
    rlp_list,
    rlp_number,
)
from soliton.chain.function_calls import FunctionCall
from soliton.chain.json_schemas import TEXT_SCHEMA, described
from soliton.chain.layouts import take
from soliton.chain.transactions.invoke_script import InvokeScript, Payment
from soliton.chain.transactions.model import (
    AnyTransaction,
    ForeignForm,
    Transaction,
    TransactionType,
)
from soliton.chain.values import MAX_I64, wrapped
from soliton.crypto import secp256k1
from soliton.crypto.hashes import keccak256

TYPE_ID: Final = 18
VERSION: Final = 1
MAX_BYTES: Final = 1_048_576
GAS_PRICE: Final = 10_000_000_000
"""In wei: ten gwei."""
WEI_PER_WAVELET: Final = 10_000_000_000
EIP155_OFFSET: Final = 35
"""``v`` is this plus twice the chain id plus the recovery id (0 or 1)."""
TRANSFER_SELECTOR: Final = bytes.fromhex("a9059cbb")
"""``transfer(address,uint256)``, the token transfer of wallets."""
TRANSFER_DATA_LENGTH: Final = SELECTOR_LENGTH + 2 * WORD

_FIELDS: Final = 9
_NATIVE_ASSET: Final = bytes(32)
_LAST_LEGACY_V: Final = 28
_V_WITHOUT_CHAIN: Final = (27, 28)
_LENGTH_OF_RESTRICTED: Final = len(b"restricted")


class EthereumTransfer(msgspec.Struct, frozen=True, gc=False):
    """Sends ``amount`` to ``recipient``: wavelets, or units of the asset whose id begins with
    ``token`` (20 bytes).
    """

    token: bytes | None
    recipient: Address
    amount: int


class EthereumCall(msgspec.Struct, frozen=True, gc=False):
    """A call of ``d_app``; ``data`` is a selector and arguments in the ABI of the function."""

    d_app: Address
    data: bytes


class Ethereum(msgspec.Struct, frozen=True, gc=False):
    """The fields that are not in the envelope; ``encoded`` is the transaction's RLP.

    ``value`` and ``gas_price`` are in wei; ``v``, ``r`` and ``s`` are the signature.
    """

    gas_price: int
    to: bytes
    value: int
    data: bytes
    v: int
    r: int
    s: int
    encoded: bytes
    action: EthereumTransfer | EthereumCall


def from_rlp(data: bytes, chain_id: int) -> AnyTransaction:
    """Decode a signed transaction from RLP.

    Without a valid signature its ``sender_public_key`` is empty. Raises ``FormatError`` or
    ``WrongChainId``.
    """
    if len(data) > MAX_BYTES:
        raise FormatError(f"{len(data)} bytes are more than a transaction can have")
    items = read_rlp_list(data)
    if len(items) != _FIELDS:
        raise FormatError(f"an Ethereum transaction of {len(items)} fields")
    to, call_data = items[3], items[5]
    nonce, gas_price, gas_limit, value, v, r = map(
        read_rlp_number, (*items[:3], items[4], *items[6:8])
    )
    s = _read_s(items[8])
    if max(nonce, gas_limit, value // WEI_PER_WAVELET) > MAX_I64:
        raise FormatError("a number with more than 64 bits")
    if len(to) != PUBLIC_KEY_HASH_LENGTH:
        raise FormatError(f"an Ethereum address of {len(to)} bytes")
    if v >= EIP155_OFFSET and _chain_byte(v) != chain_id:
        raise WrongChainId(chain_id, _chain_byte(v))
    body = rlp_list([*items[:6], rlp_number(chain_id), b"", b""])
    sender = (
        secp256k1.recover(keccak256(body), r, s, recovery_id(v, chain_id)) if items[8] else None
    )
    action = _action(to, value, call_data, chain_id)
    return Transaction(
        TYPE_ID,
        VERSION,
        chain_id,
        sender or b"",
        gas_limit,
        None,
        nonce,
        Ethereum(gas_price, to, value, call_data, v, r, s, data, action),
        (),
        body,
        keccak256(data),
    )


def recovery_id(v: int, chain_id: int) -> int:
    """Return the recovery id that ``v`` holds. The result may be invalid.

    The reference node takes the lowest 32 bits. ``v`` may have others, which change the id of the
    transaction and nothing else.
    """
    if v <= _LAST_LEGACY_V:
        return v - 27
    return (v - 2 * chain_id - EIP155_OFFSET + 2**31) % 2**32 - 2**31


def claimed_chain_id(v: int) -> int | None:
    """Return the whole chain id that ``v`` holds, by a division of 64-bit numbers; ``None`` if it
    holds none.
    """
    number = wrapped(v)
    if number in _V_WITHOUT_CHAIN:
        return None
    twice = wrapped(number - EIP155_OFFSET)
    return twice // 2 if twice >= 0 else -(-twice // 2)


def _chain_byte(v: int) -> int:
    return (claimed_chain_id(v) or 0) % 2**8


def _read_s(item: bytes) -> int:
    """Read the second half of the signature as web3j does.

    It fills 32 bytes and takes ten bytes for a word of private transactions, which are not signed.
    It writes zero, which a signature may have, as a byte; without any there is no signature.
    """
    if len(item) > WORD or len(item) == _LENGTH_OF_RESTRICTED:
        raise FormatError(f"half a signature of {len(item)} bytes")
    return 0 if item == b"\0" else read_rlp_number(item)


def _action(to: bytes, value: int, data: bytes, chain_id: int) -> EthereumTransfer | EthereumCall:
    if not data:
        recipient = from_public_key_hash(to, chain_id)
        return EthereumTransfer(None, recipient, value // WEI_PER_WAVELET)
    if not data.startswith(TRANSFER_SELECTOR):
        return EthereumCall(from_public_key_hash(to, chain_id), data)
    # The first 12 bytes of an address word are ignored.
    word = take(data, SELECTOR_LENGTH, WORD)
    amount = int.from_bytes(take(data, SELECTOR_LENGTH + WORD, WORD), "big")
    if amount > MAX_I64:
        raise FormatError("an amount with more than 64 bits")
    recipient = from_public_key_hash(word[-PUBLIC_KEY_HASH_LENGTH:], chain_id)
    return EthereumTransfer(to, recipient, amount)


def to_invoke(
    call: EthereumCall, function: str, argument_types: Sequence[str]
) -> tuple[InvokeScript, bool]:
    """Convert a call to an invocation of a function with these ABI types; also return whether its
    arguments fill the data.

    The selector (``ethereum_encoding.selector``) determines the function. Raises ``FormatError``
    for data that does not fit the types.
    """
    data = call.data[SELECTOR_LENGTH:]
    values, exact = read_arguments(data, (*argument_types, PAYMENTS_TYPE))
    *args, payments = values
    assert isinstance(payments, tuple)
    return InvokeScript(
        call.d_app, FunctionCall(function, tuple(args)), tuple(map(_payment, payments))
    ), exact


def _payment(value: AbiValue) -> Payment:
    match value:
        case (bytes() as asset_id, int() as amount):
            return Payment(amount, None if asset_id == _NATIVE_ASSET else asset_id)
        case _:
            raise FormatError("a payment that is not an asset and an amount")


def sign(
    private_key: bytes,
    *,
    chain_id: int,
    timestamp: int,
    fee: int,
    to: bytes,
    value: int = 0,
    data: bytes = b"",
) -> AnyTransaction:
    """Build and sign a transaction as an Ethereum wallet does; ``value`` in wei. Raises
    ``FormatError``.
    """
    items = [rlp_number(timestamp), rlp_number(GAS_PRICE), rlp_number(fee), to]
    items += [rlp_number(value), data]
    digest = keccak256(rlp_list([*items, rlp_number(chain_id), b"", b""]))
    r, s, recovery_id = secp256k1.sign(private_key, digest)
    v = 2 * chain_id + EIP155_OFFSET + recovery_id
    return from_rlp(rlp_list([*items, *map(rlp_number, (v, r, s))]), chain_id)


def _validate(transaction: AnyTransaction) -> None:
    payload: Ethereum = transaction.payload
    if payload.v <= _LAST_LEGACY_V:
        raise ValueRuleError("Legacy transactions are not supported")
    if transaction.fee <= 0:
        raise InsufficientFee
    if payload.gas_price != GAS_PRICE:
        raise ValueRuleError("Gas price must be 10 Gwei")
    if payload.value == 0 and not payload.data:
        raise ValueRuleError("Transaction cancellation is not supported")
    if payload.value and payload.data:
        raise ValueRuleError("Transaction should have either data or value")
    action = payload.action
    if isinstance(action, EthereumTransfer) and action.amount <= 0:
        token = "waves" if action.token is None else "0x" + action.token.hex()
        raise NonPositiveAmount(action.amount, token)
    if not transaction.sender_public_key:
        raise ValueRuleError("No sender can be recovered from the signature")


def _derived_json(transaction: AnyTransaction) -> dict[str, Any]:
    return {"bytes": "0x" + transaction.payload.encoded.hex()}


def _accounts(payload: Ethereum) -> tuple[Address]:
    action = payload.action
    return (action.recipient if isinstance(action, EthereumTransfer) else action.d_app,)


def _called(payload: Ethereum) -> Address | None:
    return payload.action.d_app if isinstance(payload.action, EthereumCall) else None


def _spends(payload: Ethereum) -> tuple[tuple[None, int], ...]:
    match payload.action:
        case EthereumTransfer(token=None, amount=amount):
            return ((None, amount),)
        case _:
            # The asset of a token, and the payments of a call, depend on the state.
            return ()


def _encoded(transaction: AnyTransaction) -> bytes:
    encoded: bytes = transaction.payload.encoded
    return encoded


TYPE = TransactionType(
    type_id=TYPE_ID,
    name="ethereum",
    title="EthereumTransaction",
    payload=Ethereum,
    max_version=VERSION,
    binary={},
    protobuf=ForeignForm("ethereum_transaction", from_rlp, _encoded),
    fields=(),
    validate=_validate,
    protobuf_since=VERSION,
    derived_json=_derived_json,
    derived_schemas={"bytes": described(TEXT_SCHEMA, "The signed RLP in hexadecimal after `0x`")},
    spends=_spends,
    accounts=_accounts,
    calls=_called,
)
