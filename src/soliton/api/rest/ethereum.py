"""Routes under ``/eth``: JSON-RPC, assets by their addresses in wallets, and dApps in Ethereum's
ABI.

What does not live here: the methods of JSON-RPC (``soliton.api.ethereum_rpc``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/eth/EthRpcRoute.scala`` and
``transaction/EthABIConverter.scala``.
"""

from __future__ import annotations

import binascii
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Final

from soliton.api import devnet_rpc, errors, ethereum_rpc
from soliton.api.ethereum_json import hexadecimal
from soliton.api.http import Request
from soliton.api.json_assets import asset_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import MAX_ID_TEXT_CHARS, address_argument, node_of
from soliton.api.rest import examples
from soliton.api.rest.devnet import check_page
from soliton.api.route_table import json_body, row, rows_by_ids, table
from soliton.api.schemas import ASSET
from soliton.chain.json_schemas import list_of, shape
from soliton.ledger.scripts import account_script
from soliton.ledger.state import ERC20
from soliton.ledger.wallet_calls import abi_type
from soliton.ride.compiler.compaction import with_original_names
from soliton.ride.errors import ScriptFormatError
from soliton.ride.expressions import DApp
from soliton.ride.meta import argument_types, read_meta
from soliton.ride.script import parse_script
from soliton.storage.errors import DamagedStore
from soliton.web.answers import Whole

_ADDRESS_BYTES: Final = 20
_PREFIX: Final = "0x"
_DIGITS: Final = {digit: value for value, digit in enumerate("0123456789abcdef")}
_EXAMPLE_ID: Final = "0xbc0fc8572edec311291658e766f2d47f12cd8390"


async def json_rpc(request: Request) -> object:
    """A JSON-RPC call or batch."""
    controls = request.context.controls
    check: Callable[[], None] | None = None
    if controls is not None:
        check = partial(check_page, request, controls)
    return await ethereum_rpc.answer(request.body, node_of(request), controls, check)


def abi(request: Request) -> object:
    """The functions of a dApp that wallets can call; empty if the account has no script."""
    node, address = node_of(request), address_argument(request)
    found = account_script(address, node.chain.store)
    if found is None:
        return Whole(b"")
    content = parse_script(found.script).content
    if not isinstance(content, DApp):
        return []
    try:
        signatures = argument_types(read_meta(content.meta)) or ()
    except ScriptFormatError:
        return []
    shown = []
    for each, signature in zip(with_original_names(content).callables, signatures, strict=False):
        names = each.function.parameters
        types = tuple(map(abi_type, signature[: len(names)]))
        if None not in types:
            inputs: list[object] = [
                {"name": name, "type": kind} for name, kind in zip(names, types, strict=False)
            ]
            shown.append(_function(each.function.name, [*inputs, _PAYMENTS]))
    return shown


def _function(name: str, inputs: list[object]) -> Members:
    return {
        "name": name,
        "type": "function",
        "constant": False,
        "payable": False,
        "stateMutability": "nonpayable",
        "inputs": inputs,
        "outputs": [],
    }


_PAYMENTS: Final = {
    "name": "payments",
    "type": "tuple[]",
    "components": [
        {"name": "assetId", "type": "bytes32"},
        {"name": "amount", "type": "int64"},
    ],
}


def assets(request: Request) -> list[Members]:
    """The details of assets by their addresses in wallets."""
    node = node_of(request)
    texts = request.listed("id", "ids", node.settings.rest_api.asset_details_limit)
    if not texts:
        raise errors.RejectionError("no ids")
    asked = [_bytes(text) for text in texts]
    found = [node.chain.store.get(ERC20, each[: _ADDRESS_BYTES + 1]) for each in asked]
    wrong = [each for each, name in zip(asked, found, strict=True) if name is None]
    if wrong:
        raise errors.INVALID_IDS.error(ids=[hexadecimal(each) for each in wrong])
    try:
        return [asset_json(name, node.chain, full=False) for name in found if name is not None]
    except KeyError as error:
        raise DamagedStore(f"a short id belongs to no asset, {error}") from error


def _bytes(text: str) -> bytes:
    """The bytes of a text in hexadecimal. Wrong digits have the value -1, as in the reference's
    library (``hexStringToByteArray`` of web3j).
    """
    digits = text.removeprefix(_PREFIX)
    digits = digits.zfill(len(digits) + len(digits) % 2)
    with contextlib.suppress(ValueError):
        return binascii.unhexlify(digits)
    if len(digits) > MAX_ID_TEXT_CHARS:
        # Digit by digit, a long one would hold up other requests.
        raise errors.INVALID_IDS.error(ids=[text])
    values = [_DIGITS.get(digit.lower(), -1) for digit in digits]
    pairs = zip(values[::2], values[1::2], strict=True)
    return bytes(((high << 4) + low) & 0xFF for high, low in pairs)


_RPC_CALL: Final = shape(
    "jsonrpc?, id?, method, params?",
    jsonrpc={"type": "string", "enum": ["2.0"]},
    id={"description": "Returned with the response"},
    method={"type": "string", "enum": [*ethereum_rpc.METHODS, *devnet_rpc.METHODS]},
    params={"type": "array"},
)
_RPC_ERROR: Final = shape(
    "code: integer, message: string, data?",
    data={"description": "The error in the form of the other routes"},
)
_RPC_ANSWER: Final = shape(
    "jsonrpc: string, id, result?, error?", id={}, result={}, error=_RPC_ERROR
)
_RPC_BODY: Final = json_body(
    f"A call in JSON-RPC 2.0, or an array of up to {ethereum_rpc.MAX_BATCH} of them",
    {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []},
    {"oneOf": [_RPC_CALL, list_of(_RPC_CALL)]},
)

ROUTES: Final = table("eth", f"""
id | text* | Addresses of 20 bytes in hexadecimal | {_EXAMPLE_ID}
""",
    row("POST /eth[/] reads=node", json_rpc,
        "JSON-RPC for Ethereum's wallets and libraries",
        {"oneOf": [_RPC_ANSWER, list_of(_RPC_ANSWER)]},
        {"id": 1, "jsonrpc": "2.0", "result": "0x52"}, body=_RPC_BODY),
    row("GET /eth/abi/{address}", abi,
        "The functions of a dApp in Ethereum's ABI; empty if there is no script",
        list_of({"type": "object"}),
        [_function("deposit", [{"name": "months", "type": "int64"}, _PAYMENTS])], "INVALID_ADDRESS",
        text="Empty: the account has no script"),
    rows_by_ids("/eth/assets?id", assets,
        "The details of assets by their addresses in wallets", list_of(ASSET),
        [examples.ASSET], "INVALID_IDS TOO_BIG_SEQUENCE_WITH_LIMIT"),
    reads="state", family="waves",
)  # fmt: skip
