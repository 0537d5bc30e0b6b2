"""Routes under ``/eth``: JSON-RPC, assets by the addresses that wallets know them by, and the
interfaces of dApps in the form that Ethereum's libraries read.

What does not live here: the methods of JSON-RPC (``soliton.api.ethereum_rpc``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/eth/EthRpcRoute.scala`` and
``transaction/EthABIConverter.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.api import ethereum_rpc
from soliton.api.errors import (
    INVALID_ADDRESS,
    INVALID_IDS,
    TOO_BIG_SEQUENCE_WITH_LIMIT,
    RejectionError,
)
from soliton.api.http import Raw, Request
from soliton.api.json_assets import asset_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import ADDRESS, address_argument, id_list, id_query, node_of, with_slash
from soliton.api.rest import examples
from soliton.api.routes import GET, POST, Body, BodyKind, Route
from soliton.api.schemas import ASSET
from soliton.ledger.ride_scripts import abi_type
from soliton.ledger.scripts import account_script
from soliton.ledger.state import ERC20
from soliton.node.node import Node
from soliton.ride.compiler.compaction import with_original_names
from soliton.ride.errors import ScriptFormatError
from soliton.ride.expressions import DApp
from soliton.ride.meta import argument_types, read_meta
from soliton.ride.script import parse_script

_TAG: Final = "eth"
_ADDRESS_BYTES: Final = 20
_PREFIX: Final = "0x"
_EXAMPLE_ID: Final = "0xbc0fc8572edec311291658e766f2d47f12cd8390"

FAMILIES: Final = dict.fromkeys(
    ("/eth", "/eth/", "/eth/assets", "/eth/assets/", "/eth/abi/{address}"), ("waves",)
)
"""Routes that only some families of networks have."""


async def json_rpc(request: Request) -> object:
    """A call in JSON-RPC, or several."""
    return await ethereum_rpc.answer(request.body, node_of(request))


def abi(request: Request) -> object:
    """The functions of a dApp that wallets can call; nothing at all where there is no script."""
    node, address = node_of(request), address_argument(request)
    found = account_script(address, node.chain.store)
    if found is None:
        return Raw(b"")
    content = parse_script(found.script).content
    if not isinstance(content, DApp):
        return []
    try:
        signatures = argument_types(read_meta(content.meta)) or ()
    except ScriptFormatError:
        return []
    shown = []
    for each, signature in zip(with_original_names(content).callables, signatures, strict=False):
        types = tuple(map(abi_type, signature))
        if None not in types:
            names = each.function.parameters
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
    """What is known about assets."""
    node = node_of(request)
    texts = request.listed("id", "ids")
    limit = node.settings.rest_api.asset_details_limit
    if not texts:
        raise RejectionError("no ids")
    if len(texts) > limit:
        raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=limit)
    found = [_asset_id(text, node) for text in texts]
    wrong = [text for text, name in zip(texts, found, strict=True) if name is None]
    if wrong:
        raise INVALID_IDS.error(ids=wrong)
    return [asset_json(name, node.chain, full=False) for name in found if name is not None]


def _asset_id(text: str, node: Node) -> bytes | None:
    digits = text.removeprefix(_PREFIX)
    if len(digits) != 2 * _ADDRESS_BYTES:
        return None
    try:
        return node.chain.store.get(ERC20, bytes.fromhex(digits))
    except ValueError:
        return None


_RPC_CALL: Final = {
    "type": "object",
    "properties": {
        "jsonrpc": {"type": "string", "enum": ["2.0"]},
        "id": {"description": "Comes back with the answer"},
        "method": {"type": "string", "enum": list(ethereum_rpc.METHODS)},
        "params": {"type": "array"},
    },
    "required": ["method"],
}
_RPC_ANSWER: Final = {
    "type": "object",
    "properties": {
        "jsonrpc": {"type": "string"},
        "id": {},
        "result": {},
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "integer"},
                "message": {"type": "string"},
                "data": {"description": "The error as other routes answer it"},
            },
            "required": ["code", "message"],
        },
    },
    "required": ["jsonrpc", "id"],
}
_RPC_BODY: Final = Body(
    BodyKind.JSON,
    f"A call in JSON-RPC 2.0, or an array of up to {ethereum_rpc.MAX_BATCH} of them",
    {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []},
    {"oneOf": [_RPC_CALL, {"type": "array", "items": _RPC_CALL}]},
)

ROUTES: tuple[Route, ...] = (
    *with_slash(
        Route(
            methods=POST,
            path="/eth",
            handler=json_rpc,
            tag=_TAG,
            summary="The JSON-RPC that Ethereum's wallets and libraries speak",
            body=_RPC_BODY,
            response={"oneOf": [_RPC_ANSWER, {"type": "array", "items": _RPC_ANSWER}]},
            example={"id": 1, "jsonrpc": "2.0", "result": "0x52"},
        )
    ),
    Route(
        methods=GET,
        path="/eth/abi/{address}",
        handler=abi,
        tag=_TAG,
        summary="The functions of a dApp in Ethereum's ABI; empty where there is no script",
        parameters=(ADDRESS,),
        response={"type": "array", "items": {"type": "object"}},
        example=[_function("deposit", [{"name": "months", "type": "int64"}, _PAYMENTS])],
        text="Empty: the account has no script",
        errors=(INVALID_ADDRESS,),
    ),
    *(
        each
        for methods, parameters, body in (
            (GET, (id_query("Addresses of 20 bytes in hexadecimal", _EXAMPLE_ID),), None),
            (POST, (), id_list(_EXAMPLE_ID)),
        )
        for each in with_slash(
            Route(
                methods=methods,
                path="/eth/assets",
                handler=assets,
                tag=_TAG,
                summary="What is known about assets that wallets know by these addresses",
                parameters=parameters,
                body=body,
                response={"type": "array", "items": ASSET},
                example=[examples.ASSET],
                errors=(INVALID_IDS, TOO_BIG_SEQUENCE_WITH_LIMIT),
            )
        )
    ),
)
