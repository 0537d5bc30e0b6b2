"""Ethereum's JSON-RPC, as far as Ethereum wallets and libraries need it: connecting, balances,
sending transactions and waiting for receipts.

What lives here: the methods, and requests, batches and errors of JSON-RPC 2.0. What does not: the
route (``rest.ethereum``), and the JSON of blocks and transactions (``ethereum_json``).

The reference node puts an error of its REST API into ``result``, and answers ``{}`` to an unknown
method. Clients expect an ``error``, so the response here has one; its ``data`` is the error of the
REST API.

Sources: https://www.jsonrpc.org/specification; wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/eth/EthRpcRoute.scala``;
https://ethereum.github.io/execution-apis for what it leaves out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Final

from soliton.api import devnet_rpc
from soliton.api.errors import ApiError, invalid_request
from soliton.api.ethereum_json import (
    block_json,
    hexadecimal,
    pending_json,
    quantity,
    receipt_json,
    transaction_json,
)
from soliton.api.json_reader import parse_json
from soliton.api.json_transactions import Members
from soliton.api.rest.broadcasting import finish, submit
from soliton.api.translate import refusal
from soliton.chain.addresses import PUBLIC_KEY_HASH_LENGTH, Address, from_public_key_hash
from soliton.chain.ethereum_encoding import SELECTOR_LENGTH, WORD, write_text, write_word
from soliton.chain.transactions import codec, ethereum
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.controls.control import Controls
from soliton.controls.errors import ControlRefused
from soliton.errors import InputError, SolitonError
from soliton.ledger.scripts import account_script
from soliton.ledger.state import ASSET_BALANCES, ASSET_NAMES, ASSET_VOLUMES, ASSETS, ERC20, WAVES
from soliton.node.node import Node
from soliton.ride.script import parse_script
from soliton.storage.layout import TransactionLocation
from soliton.storage.retrying import disable_retry, retry_until_read

MAX_BATCH: Final = 100
"""The limit on calls in a batch; ethers.js sends as many."""

PARSE_ERROR: Final = -32_700
INVALID_REQUEST: Final = -32_600
METHOD_NOT_FOUND: Final = -32_601
INVALID_PARAMS: Final = -32_602
REJECTED: Final = -32_000
"""The node rejects the call; ``data`` is the error of the REST API."""

_PREFIX: Final = "0x"
_MAX_BLOCK_DIGITS: Final = 16
_MAX_VALUE_DIGITS: Final = 64
_ANY_KEY: Final = (1).to_bytes(32, "big")
"""A private key for transactions that are only estimated: the fee does not depend on the sender."""
_ZERO_ADDRESS: Final = bytes(PUBLIC_KEY_HASH_LENGTH)
_ANY_FEE: Final = 100_000
_HAS_CODE: Final = "0xff"
_NO_DATA: Final = "0x"
_FIRST_OF_A_LIST: Final = b"\x80"
"""Typed transactions begin with their type, which is a smaller byte (EIP-2718)."""
_LEGACY_ONLY: Final = "Only transactions of type 0 (legacy) are supported"
_TRANSACTION_HINT: Final = (
    "send a transaction of type 0 (legacy) with the chain id of the network, a gas price of 10 "
    "gwei, the time in milliseconds as nonce and the fee as gas limit"
)

Call = Callable[["Arguments", Node], object]


class RpcError(SolitonError):
    """An error of JSON-RPC."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def body(self) -> Members:
        """The ``error`` object of the response."""
        members: Members = {"code": self.code, "message": self.message}
        return members if self.data is None else members | {"data": self.data}


class Arguments:
    """The ``params`` of a call. Missing and ill-typed arguments raise ``RpcError``."""

    __slots__ = ("_values",)

    def __init__(self, values: object) -> None:
        if values is None:
            values = []
        if not isinstance(values, list):
            raise RpcError(INVALID_PARAMS, "params should be an array")
        self._values: list[object] = values

    @property
    def values(self) -> list[object]:
        """All arguments."""
        return self._values

    def text(self) -> str:
        """The first argument, a string."""
        value = self._values[0] if self._values else None
        if not isinstance(value, str):
            raise RpcError(INVALID_PARAMS, "Error extracting required parameter")
        return value

    def data(self) -> bytes:
        """The first argument, bytes in hexadecimal."""
        return _bytes(self.text())

    def obj(self) -> Members:
        """The first argument, an object."""
        value = self._values[0] if self._values else None
        if not isinstance(value, dict):
            raise RpcError(INVALID_PARAMS, "Error extracting required parameter")
        return value

    def flag(self) -> bool:
        """The second argument; absent means false."""
        return len(self._values) > 1 and self._values[1] is True


def _nobody_is_foreign() -> None:
    """The check of a caller without a page."""


async def answer(
    body: bytes,
    node: Node,
    controls: Controls | None = None,
    check: Callable[[], None] | None = None,
) -> object:
    """The response to a request: an object, or a list of objects for a batch. Only a private chain
    has ``controls``; ``check`` raises ``ApiError`` for a caller that may not use them.
    """
    check = check or _nobody_is_foreign
    try:
        request = parse_json(body)
    except ApiError as error:
        return _failed(None, RpcError(PARSE_ERROR, "Parse error", error.body()))
    if not isinstance(request, list):
        return await _one(request, node, controls, check)
    if not 0 < len(request) <= MAX_BATCH:
        message = f"a batch has 1 to {MAX_BATCH} calls, this one {len(request)}"
        return _failed(None, RpcError(INVALID_REQUEST, message))
    responses = []
    for each in request:
        responses.append(await _one(each, node, controls, check))
        # Yield to other requests between the calls of a batch.
        await asyncio.sleep(0)
    return responses


async def _one(
    request: object, node: Node, controls: Controls | None, check: Callable[[], None]
) -> Members:
    if not isinstance(request, dict):
        return _failed(None, RpcError(INVALID_REQUEST, "a call is a JSON object"))
    name, method = request.get("id"), request.get("method")
    try:
        if not isinstance(method, str):
            raise RpcError(INVALID_REQUEST, "a call has a `method`, which is a string")
        call = METHODS.get(method)
        if call is not None:
            work = partial(_called, call, Arguments(request.get("params")), node)
            result = await (work() if node.store.below is None else retry_until_read(work))
        elif controls is not None and method in devnet_rpc.METHODS:
            check()
            result = await _control(method, Arguments(request.get("params")), controls)
        else:
            raise RpcError(METHOD_NOT_FOUND, f"the method {method} is not available")
    except RpcError as error:
        return _failed(name, error)
    except ApiError as error:
        return _failed(name, RpcError(REJECTED, error.message, error.body()))
    return {"id": name, "jsonrpc": "2.0", "result": result}


async def _called(call: Call, arguments: Arguments, node: Node) -> object:
    result = call(arguments, node)
    return await result if isinstance(result, Coroutine) else result


async def _control(method: str, arguments: Arguments, controls: Controls) -> object:
    """Call a control of a private chain. Its refusal becomes an ``RpcError``."""
    disable_retry()
    try:
        result = devnet_rpc.METHODS[method](arguments.values, controls)
        return await result if isinstance(result, Coroutine) else result
    except ControlRefused as error:
        raise RpcError(INVALID_PARAMS, str(error)) from error
    except InputError as error:
        raise refusal(error, controls.chain.network.family) from error


def _failed(name: object, error: RpcError) -> Members:
    return {"id": name, "jsonrpc": "2.0", "error": error.body()}


# --- arguments ------------------------------------------------------------------------------------


def _bytes(text: str) -> bytes:
    digits = text.removeprefix(_PREFIX)
    try:
        # Numbers may have an odd number of digits.
        return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
    except ValueError as error:
        raise RpcError(INVALID_PARAMS, "an argument is not hexadecimal") from error


def _number(text: object, digits: int) -> int:
    if not isinstance(text, str) or not 0 < len(text.removeprefix(_PREFIX)) <= digits:
        raise RpcError(INVALID_PARAMS, "an argument is not a number in hexadecimal")
    return int.from_bytes(_bytes(text), "big")


def _key_hash(text: object) -> bytes:
    data = _bytes(text) if isinstance(text, str) else b""
    if len(data) != PUBLIC_KEY_HASH_LENGTH:
        raise RpcError(INVALID_PARAMS, "an address has 20 bytes in hexadecimal")
    return data


def _address(text: object, node: Node) -> Address:
    return from_public_key_hash(_key_hash(text), node.network.chain_id)


def _asset(key_hash: bytes, node: Node) -> AssetId | None:
    """The asset whose token contract has this address in wallets."""
    return node.chain.store.get(ERC20, key_hash)


def _call_data(obj: Members) -> bytes:
    """The call data, which newer clients name ``input``."""
    text = obj.get("data", obj.get("input", _NO_DATA))
    return _bytes(text) if isinstance(text, str) else b""


# --- methods --------------------------------------------------------------------------------------


def _chain_id(_arguments: Arguments, node: Node) -> str:
    return quantity(node.network.chain_id)


def _block_number(_arguments: Arguments, node: Node) -> str:
    return quantity(node.chain.height)


def _transaction_count(_arguments: Arguments, node: Node) -> str:
    """The next nonce of every account: nonces are timestamps."""
    return quantity(node.clock())


def _block_by_number(arguments: Arguments, node: Node) -> Members | None:
    chain, text = node.chain, arguments.text()
    match text:
        case "pending":
            return pending_json()
        case "earliest":
            height = 1
        case "latest":
            height = chain.height
        case "safe" | "finalized":
            height = chain.finalized_height
        case _:
            height = _number(text, _MAX_BLOCK_DIGITS)
    if not 1 <= height <= chain.height:
        return None
    return block_json(chain, height, whole=arguments.flag())


def _block_by_hash(arguments: Arguments, node: Node) -> Members | None:
    height = node.chain.height_of(arguments.data())
    if height is None:
        return None
    found = block_json(node.chain, height, whole=arguments.flag())
    return found | {"baseFeePerGas": quantity(0)}


def _balance(arguments: Arguments, node: Node) -> str:
    address = _address(arguments.text(), node)
    return quantity(node.chain.store.get(WAVES, address) * ethereum.WEI_PER_WAVELET)


async def _send(arguments: Arguments, node: Node) -> str:
    data = arguments.data()
    if data[:1] < _FIRST_OF_A_LIST:
        raise invalid_request(_LEGACY_ONLY).with_hint(_TRANSACTION_HINT)
    try:
        transaction = ethereum.from_rlp(data, node.network.chain_id)
        codec.validate(transaction)
    except SolitonError as error:
        raise refusal(error, node.network.family).with_hint(_TRANSACTION_HINT) from error
    turn = node.turns.begin(partial(submit, node, transaction))
    await turn.wait()
    finish(node, transaction, turn)
    return hexadecimal(transaction.id)


def _transaction(arguments: Arguments, node: Node) -> Members | None:
    name = arguments.data()
    unconfirmed = node.pool.get(name)
    if unconfirmed is not None and unconfirmed.type_id == ethereum.TYPE_ID:
        return transaction_json(unconfirmed, None, node.chain)
    found = _confirmed(name, node)
    return None if found is None else transaction_json(*found, node.chain)


def _receipt(arguments: Arguments, node: Node) -> Members | None:
    found = _confirmed(arguments.data(), node)
    return None if found is None else receipt_json(*found, node.chain)


def _confirmed(name: bytes, node: Node) -> tuple[AnyTransaction, TransactionLocation] | None:
    """An Ethereum transaction of the chain."""
    location = node.chain.store.transaction_location(name)
    found = node.chain.transaction(name)
    if found is None or location is None or found.transaction.type_id != ethereum.TYPE_ID:
        return None
    return found.transaction, location


def _estimate(arguments: Arguments, node: Node) -> str:
    obj = arguments.obj()
    to = _ZERO_ADDRESS if obj.get("to") is None else _key_hash(obj["to"])
    value = 0 if obj.get("value") is None else _number(obj["value"], _MAX_VALUE_DIGITS)
    data = _call_data(obj)
    try:
        transaction = ethereum.sign(
            _ANY_KEY,
            chain_id=node.network.chain_id,
            timestamp=node.clock(),
            fee=_ANY_FEE,
            to=to,
            value=value,
            data=data,
        )
        codec.validate(transaction)
        least = node.minimum_fee(transaction)
    except SolitonError as error:
        raise refusal(error, node.network.family) from error
    return quantity(least.amount)


def _code(arguments: Arguments, node: Node) -> str:
    address = _address(arguments.text(), node)
    if _asset(_key_hash(arguments.text()), node) is not None:
        return _HAS_CODE
    found = account_script(address, node.chain.store)
    return _HAS_CODE if found is not None and parse_script(found.script).is_dapp else _NO_DATA


def _call(arguments: Arguments, node: Node) -> str:
    obj = arguments.obj()
    data = _call_data(obj)
    method = _TOKEN_METHODS.get(data[:SELECTOR_LENGTH])
    if method is None:
        return _NO_DATA
    return hexadecimal(method(_asset(_key_hash(obj.get("to")), node), data, node))


# --- methods of token contracts -------------------------------------------------------------------


def _name(asset_id: AssetId | None, _data: bytes, node: Node) -> bytes:
    found = None if asset_id is None else node.chain.store.get(ASSET_NAMES, asset_id)
    return write_text(b"" if found is None else found.name)


def _decimals(asset_id: AssetId | None, _data: bytes, node: Node) -> bytes:
    found = None if asset_id is None else node.chain.store.get(ASSETS, asset_id)
    return write_word(0 if found is None else found.decimals)


def _total_supply(asset_id: AssetId | None, _data: bytes, node: Node) -> bytes:
    found = None if asset_id is None else node.chain.store.get(ASSET_VOLUMES, asset_id)
    return write_word(0 if found is None else int(found.quantity))


def _balance_of(asset_id: AssetId | None, data: bytes, node: Node) -> bytes:
    if len(data) < SELECTOR_LENGTH + WORD:
        raise RpcError(INVALID_PARAMS, "balanceOf is asked of an address")
    owner = from_public_key_hash(data[-PUBLIC_KEY_HASH_LENGTH:], node.network.chain_id)
    if asset_id is None:
        return write_word(0)
    return write_word(node.chain.store.get(ASSET_BALANCES, (owner, asset_id)))


def _supports_interface(_asset_id: AssetId | None, _data: bytes, _node: Node) -> bytes:
    return write_word(0)


_TOKEN_METHODS: Final[Mapping[bytes, Callable[[AssetId | None, bytes, Node], bytes]]] = {
    bytes.fromhex("06fdde03"): _name,
    bytes.fromhex("95d89b41"): _name,
    bytes.fromhex("313ce567"): _decimals,
    bytes.fromhex("18160ddd"): _total_supply,
    bytes.fromhex("70a08231"): _balance_of,
    bytes.fromhex("01ffc9a7"): _supports_interface,
}
"""By selector: ``name``, ``symbol``, ``decimals``, ``totalSupply``, ``balanceOf(address)`` and
``supportsInterface`` of ERC-165.
"""

METHODS: Final[Mapping[str, Call]] = {
    "eth_chainId": _chain_id,
    "net_version": _chain_id,
    "eth_blockNumber": _block_number,
    "eth_getTransactionCount": _transaction_count,
    "eth_getBlockByNumber": _block_by_number,
    "eth_getBlockByHash": _block_by_hash,
    "eth_getBalance": _balance,
    "eth_sendRawTransaction": _send,
    "eth_getTransactionReceipt": _receipt,
    "eth_getTransactionByHash": _transaction,
    "eth_call": _call,
    "eth_estimateGas": _estimate,
    "eth_gasPrice": lambda _arguments, _node: quantity(ethereum.GAS_PRICE),
    "eth_getCode": _code,
    # Libraries call these as well; this chain has no logs and no accounts of its own.
    "eth_accounts": lambda _arguments, _node: [],
    "eth_getLogs": lambda _arguments, _node: [],
    "eth_syncing": lambda _arguments, _node: False,
    "web3_clientVersion": lambda _arguments, node: node.agent,
}
"""All methods by name."""
