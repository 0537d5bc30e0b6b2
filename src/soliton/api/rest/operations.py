"""Routes under ``/debug`` that want the API key: what the node is doing, balances of everybody,
taking blocks back.

What lives here: those of the operator. What does not: those that are open to all (``debug``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
DebugApiRoute.scala``; 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/http/DebugApiRoute.scala`` for
the oldest generation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from soliton.api.errors import (
    BLOCK_DOES_NOT_EXIST,
    CUSTOM_VALIDATION_ERROR,
    INVALID_ADDRESS,
    INVALID_SIGNATURE,
    WRONG_JSON,
    WRONG_JSON_DATA,
    invalid_request,
)
from soliton.api.http import NumberStream, Raw, Request, big_number
from soliton.api.json_transactions import Members
from soliton.api.lookup import ADDRESS, address_argument, decode_id, node_of
from soliton.api.rest import examples
from soliton.api.routes import (
    BOOLEAN,
    DELETE,
    GET,
    NATURAL,
    POST,
    TEXT,
    Body,
    BodyKind,
    Parameter,
    Route,
    query_parameter,
)
from soliton.chain.addresses import Address, address_text
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.hashes import blake2b256
from soliton.ledger.scripts import account_script
from soliton.ledger.state import LEASES, WAVES
from soliton.node import miner
from soliton.node.miner import CannotMine
from soliton.node.node import Node
from soliton.storage import indexes
from soliton.storage.errors import RollbackTooDeep

MAX_PRINTED_CHARS: Final = 250
MAX_LAST_BLOCKS: Final = 100
"""``/debug/blocks`` reads whole blocks; nobody looks at more."""
_LAST_IDS: Final = 10
_TAG: Final = "debug"
_PAGE: Final = 200
"""So many records are read before others get their turn."""

_log = logging.getLogger(__name__)


class MiningInfo(msgspec.Struct, frozen=True, rename="camel"):
    """When an account of the wallet may make the next block, and with what."""

    address: str
    mining_balance: int
    timestamp: int


class RolledBack(msgspec.Struct, frozen=True):
    """The block that is the last one now."""

    BlockId: str


# --- balances -------------------------------------------------------------------------------------


def state(request: Request) -> NumberStream:
    """Everybody's balance."""
    node = node_of(request)
    return NumberStream(_balances(node, node.chain.height))


def state_at(request: Request) -> NumberStream:
    """Everybody's balance after the block at a height."""
    return NumberStream(_balances(node_of(request), request.integer("height")))


async def _balances(node: Node, height: int) -> AsyncIterator[tuple[str, int]]:
    """Piece by piece: the store may be written between two pieces, not within one."""
    after: Address | None = None
    while True:
        page = list(islice(indexes.distribution(node.chain.store, height, after), _PAGE))
        for address, balance in page:
            yield address_text(address), balance
        if len(page) < _PAGE:
            return
        after = page[-1][0]
        await asyncio.sleep(0)


async def portfolio(request: Request) -> Members:
    """All that an account has; with what it would lose by the pool, unless that is declined."""
    node, address = node_of(request), address_argument(request)
    chosen = request.arguments.get("considerUnspent", True) is True
    source = node.pool.state() if chosen else node.chain.store
    leases = source.get(LEASES, address)
    assets: dict[str, int] = {}
    after: AssetId | None = None
    while True:
        page = list(islice(indexes.asset_balances(node.chain.store, address, after), _PAGE))
        assets |= {base58.encode(name): balance for name, balance in page if balance}
        if len(page) < _PAGE:
            break
        after = page[-1][0]
        await asyncio.sleep(0)
    return {
        "balance": source.get(WAVES, address),
        "lease": {"in": leases.lease_in, "out": leases.lease_out},
        "assets": assets,
    }


# --- the node -------------------------------------------------------------------------------------


def info(request: Request) -> Members:
    """What the parts of the node are doing."""
    node = node_of(request)
    chain = node.chain
    score = int.from_bytes(chain.meta(chain.height).score, "big")
    return {
        "stateHeight": chain.height,
        "extensionLoaderState": "State(Idle,Idle)",
        "historyReplierCacheSizes": {"blocks": 0, "microBlocks": 0},
        "microBlockSynchronizerCacheSizes": {
            "microBlockOwners": 0,
            "nextInvs": 0,
            "awaiting": 0,
            "successfullyReceived": 0,
        },
        "scoreObserverStats": {
            "localScore": big_number(score),
            "currentBestChannel": "None",
            "scoresCacheSize": 0,
        },
        "minerState": "mining blocks" if node.settings.miner.enable else "disabled",
    }


def miner_info(request: Request) -> list[MiningInfo]:
    """When the accounts of the wallet may make the next block."""
    node = node_of(request)
    chain, found = node.chain, []
    for address in node.wallet.accounts(node.network.chain_id):
        keys = node.wallet.private_key(address)
        if keys is None or account_script(address, chain.store) is not None:
            continue
        try:
            slot = miner.next_slot(chain, keys)
        except CannotMine:
            continue
        balance = chain.generating_balance(address)
        found.append(MiningInfo(address_text(address), balance, max(node.clock(), slot.earliest)))
    return found


def config_info(request: Request) -> Members:
    """The settings in force; nothing of the wallet's secrets."""
    node = node_of(request)
    settings = msgspec.structs.asdict(node.settings)
    settings["wallet"] = {"file": node.settings.wallet.file}
    shown = msgspec.to_builtins(settings, enc_hook=_plain)
    root = node.network.family
    if request.flag("full"):
        return {root: shown, "soliton": {"network": node.network.name}}
    return {root: shown}


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value)} in the settings")


def print_message(request: Request) -> Raw:
    """Write a text to the node's log."""
    reader = request.reader()
    message = reader.text("message")
    reader.finish()
    _log.debug("%s", message[:MAX_PRINTED_CHARS])
    return Raw(b"")


def blacklist(request: Request) -> Raw:
    """Refuse a host; without a connection to it there is nothing to close."""
    try:
        host = urlsplit(f"node://{request.body_text()}").hostname
    except ValueError:
        host = None
    if not host:
        return _BAD_REQUEST
    return Raw(b"OK")


def last_blocks(request: Request) -> list[dict[str, str]]:
    """Size and hash of the last blocks, the newest first."""
    chain = node_of(request).chain
    count = min(request.integer("howMany"), MAX_LAST_BLOCKS)
    found = []
    for height in range(chain.height, max(0, chain.height - count), -1):
        data = chain.store.block_data(height)
        if data is not None:
            found.append({str(len(data)): base58.encode(blake2b256(data))})
    return found


def history_info(request: Request) -> Members:
    """The ids of the last blocks, the newest first."""
    chain = node_of(request).chain
    heights = range(chain.height, max(0, chain.height - _LAST_IDS), -1)
    names = [base58.encode(chain.meta(height).id) for height in heights]
    return {"lastBlockIds": names, "microBlockIds": []}


# --- taking blocks back ---------------------------------------------------------------------------


async def rollback(request: Request) -> object:
    """Take blocks back down to a height."""
    node, reader = node_of(request), request.reader()
    height = reader.int32("rollbackTo")
    other = "returnTransactionsToUTX"
    keep = reader.boolean(other if other in reader else "returnTransactionsToUtx")
    reader.finish()
    if not 1 <= height <= node.chain.height:
        return Raw(b"Block at height not found", status=400)
    return await _roll_back(node, height, keep=keep)


async def rollback_to(request: Request) -> RolledBack:
    """Take blocks back down to the one with an id."""
    node = node_of(request)
    name = decode_id(request.text("id"))
    if name is None:
        raise INVALID_SIGNATURE.error()
    height = node.chain.store.height_of(name)
    if height is None:
        raise BLOCK_DOES_NOT_EXIST.error()
    return await _roll_back(node, height, keep=False)


async def _roll_back(node: Node, height: int, *, keep: bool) -> RolledBack:
    try:
        await node.roll_back_in_steps(height, keep=keep)
    except RollbackTooDeep as error:
        raise invalid_request(str(error)) from error
    return RolledBack(base58.encode(node.chain.last_block.id))


_BAD_REQUEST: Final = Raw(b"The request contains bad syntax or cannot be fulfilled.", status=400)
_NUMBERS: Final = {"type": "object", "additionalProperties": {"type": "integer"}}
_EVERYBODY: Final = {examples.ADDRESS: examples.AMOUNT}
_OBJECT: Final = {"type": "object"}
_STATES: Final = {"waves": "stateWaves", "tn": "stateTN", "zbs": "stateZbs"}

ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/debug/state",
        handler=state,
        tag=_TAG,
        summary="Everybody's balance",
        key=True,
        response=_NUMBERS,
        example=_EVERYBODY,
    ),
    *(
        Route(
            methods=GET,
            path=f"/debug/{name}/{{height}}",
            handler=state_at,
            tag=_TAG,
            summary="Everybody's balance after the block at a height",
            parameters=(Parameter("height", NATURAL, "Height", 1),),
            key=True,
            response=_NUMBERS,
            example=_EVERYBODY,
            statuses=((404, "The height is no number"),),
        )
        for name in _STATES.values()
    ),
    Route(
        methods=GET,
        path="/debug/portfolios/{address}",
        handler=portfolio,
        tag=_TAG,
        summary="All that an account has",
        parameters=(
            ADDRESS,
            query_parameter("considerUnspent", BOOLEAN, "Count what is in the pool", True),
        ),
        key=True,
        response=_OBJECT,
        example={
            "balance": examples.AMOUNT,
            "lease": {"in": 0, "out": 0},
            "assets": {examples.ASSET_ID: 5},
        },
        errors=(INVALID_ADDRESS,),
    ),
    Route(
        methods=GET,
        path="/debug/info",
        handler=info,
        tag=_TAG,
        summary="What the parts of the node are doing",
        key=True,
        response=_OBJECT,
        example={
            "stateHeight": 3,
            "extensionLoaderState": "State(Idle,Idle)",
            "historyReplierCacheSizes": {"blocks": 0, "microBlocks": 0},
            "microBlockSynchronizerCacheSizes": {
                "microBlockOwners": 0,
                "nextInvs": 0,
                "awaiting": 0,
                "successfullyReceived": 0,
            },
            "scoreObserverStats": {
                "localScore": 27670116108,
                "currentBestChannel": "None",
                "scoresCacheSize": 0,
            },
            "minerState": "mining blocks",
        },
    ),
    Route(
        methods=GET,
        path="/debug/minerInfo",
        handler=miner_info,
        tag=_TAG,
        summary="When the accounts of the wallet may make the next block",
        key=True,
        response=list[MiningInfo],
        example=[
            {
                "address": examples.ADDRESS,
                "miningBalance": examples.AMOUNT,
                "timestamp": 1795174397440,
            }
        ],
    ),
    Route(
        methods=GET,
        path="/debug/configInfo",
        handler=config_info,
        tag=_TAG,
        summary="The settings in force",
        parameters=(
            query_parameter("full", BOOLEAN, "Other sections as well", False, required=True),
        ),
        key=True,
        response=_OBJECT,
        example={"waves": {"directory": "data"}},
    ),
    Route(
        methods=POST,
        path="/debug/print",
        handler=print_message,
        tag=_TAG,
        summary="Write a text to the node's log",
        body=Body(
            BodyKind.JSON,
            "The text, of which 250 characters count",
            {"message": "here I am"},
            {
                "type": "object",
                "properties": {"message": {"type": "string"}},
                "required": ["message"],
            },
            get_is_405=True,
        ),
        key=True,
        response={"type": "string"},
        example='""',
        content_type="text/plain",
        errors=(WRONG_JSON, WRONG_JSON_DATA),
    ),
    Route(
        methods=POST,
        path="/debug/blacklist",
        handler=blacklist,
        tag=_TAG,
        summary="Refuse a host",
        body=Body(BodyKind.TEXT, "Host and port", "127.0.0.1:6868", {"type": "string"}),
        key=True,
        response={"type": "string"},
        example="OK",
        content_type="text/plain",
        statuses=((400, "The body is no host"),),
    ),
    Route(
        methods=POST,
        path="/debug/rollback",
        handler=rollback,
        tag=_TAG,
        summary="Take blocks back down to a height",
        body=Body(
            BodyKind.JSON,
            "The height, and whether transactions go back to the pool",
            {"rollbackTo": 3, "returnTransactionsToUtx": False},
            {
                "type": "object",
                "properties": {
                    "rollbackTo": {"type": "integer"},
                    "returnTransactionsToUtx": {"type": "boolean"},
                },
                "required": ["rollbackTo", "returnTransactionsToUtx"],
            },
            get_is_405=True,
        ),
        key=True,
        response=RolledBack,
        example={"BlockId": examples.BLOCK_ID},
        errors=(WRONG_JSON, WRONG_JSON_DATA, CUSTOM_VALIDATION_ERROR),
    ),
    Route(
        methods=DELETE,
        path="/debug/rollback-to/{id}",
        handler=rollback_to,
        tag=_TAG,
        summary="Take blocks back down to the one with an id",
        parameters=(Parameter("id", TEXT, "Id of a block in base58", examples.BLOCK_ID),),
        key=True,
        response=RolledBack,
        example={"BlockId": examples.BLOCK_ID},
        errors=(INVALID_SIGNATURE, BLOCK_DOES_NOT_EXIST, CUSTOM_VALIDATION_ERROR),
    ),
    Route(
        methods=GET,
        path="/debug/blocks/{howMany}",
        handler=last_blocks,
        tag=_TAG,
        summary="Size and hash of the last blocks, at most 100",
        parameters=(Parameter("howMany", NATURAL, "How many", 2),),
        key=True,
        response={"type": "array", "items": _OBJECT},
        example=[{"522": examples.TRANSACTION_ID}],
        statuses=((404, "The count is no number"),),
    ),
    Route(
        methods=GET,
        path="/debug/historyInfo",
        handler=history_info,
        tag=_TAG,
        summary="The ids of the last blocks",
        key=True,
        response=_OBJECT,
        example={"lastBlockIds": [examples.BLOCK_ID], "microBlockIds": []},
    ),
)

FAMILIES: Final = {
    **{f"/debug/{name}/{{height}}": (family,) for family, name in _STATES.items()},
    "/debug/portfolios/{address}": ("zbs", "tn"),
    "/debug/rollback-to/{id}": ("zbs", "tn"),
    "/debug/blocks/{howMany}": ("zbs",),
    "/debug/historyInfo": ("zbs",),
}
"""Routes that only some families of networks have."""
