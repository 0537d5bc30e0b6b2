"""Routes under ``/debug`` for the operator: status of the node, balances of all accounts, rollback.

What lives here: the routes that require the API key. What does not: public ones (``debug``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
DebugApiRoute.scala``; 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/http/DebugApiRoute.scala`` for
the oldest generation.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
from collections.abc import AsyncIterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from soliton.api import errors
from soliton.api.http import Request, big_number
from soliton.api.json_transactions import Members
from soliton.api.lookup import address_argument, decode_id, is_oldest, node_of
from soliton.api.paging import in_pages
from soliton.api.rest import examples
from soliton.api.route_table import json_body, row, table, text_body
from soliton.api.streaming import number_stream
from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.json_schemas import list_of, shape
from soliton.crypto import base58
from soliton.crypto.hashes import blake2b256
from soliton.ledger.scripts import account_script
from soliton.ledger.state import LEASES, WAVES
from soliton.node import miner
from soliton.node.committer import commitments_of
from soliton.node.miner import CannotMine
from soliton.node.node import Node
from soliton.storage import indexes
from soliton.storage.errors import RollbackTooDeep
from soliton.web.answers import Stream, Whole

MAX_PRINTED_CHARS: Final = 250
MAX_LAST_BLOCKS: Final = 100
"""The limit of ``/debug/blocks``, which reads whole blocks."""
_LAST_IDS: Final = 10
_PAGE: Final = 200
"""Records read before yielding to the event loop."""

_log = logging.getLogger(__name__)


class MiningInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The earliest time at which an account may mine, and its mining balance. With deterministic
    finality, the end of the period to which it has committed, if it has, and whether it has
    committed to the next one.
    """

    address: str
    mining_balance: int
    timestamp: int
    committed_until: int | msgspec.UnsetType | None = msgspec.UNSET
    committed_to_next: bool | msgspec.UnsetType = msgspec.UNSET


class RolledBack(msgspec.Struct, frozen=True):
    """The last block after a rollback."""

    BlockId: str


# --- balances -------------------------------------------------------------------------------------


def state(request: Request) -> Stream:
    """The balances of all accounts."""
    node = node_of(request)
    return number_stream(request, _balances(node, node.chain.height))


def state_at(request: Request) -> Stream:
    """The balances of all accounts after the block at a height."""
    return number_stream(request, _balances(node_of(request), request.integer("height")))


async def _balances(node: Node, height: int) -> AsyncIterator[tuple[str, int]]:
    records = partial(indexes.distribution, node.chain.store, height)
    async for page in in_pages(records, itemgetter(0), _PAGE):
        for address, balance in page:
            yield address_text(address), balance


async def portfolio(request: Request) -> Members:
    """The balances of an account; by default after the transactions of the pool."""
    node, address = node_of(request), address_argument(request)
    with_pool = request.arguments.get("considerUnspent", True) is True
    source = node.pool.state() if with_pool else node.chain.store
    leases = source.get(LEASES, address)
    assets: dict[str, int] = {}
    records = partial(indexes.asset_balances, node.chain.store, address)
    async for page in in_pages(records, itemgetter(0), _PAGE):
        assets |= {base58.encode(name): balance for name, balance in page if balance}
    return {
        "balance": source.get(WAVES, address),
        "lease": {"in": leases.lease_in, "out": leases.lease_out},
        "assets": assets,
    }


# --- the node -------------------------------------------------------------------------------------


def info(request: Request) -> Members:
    """The status of the node's parts."""
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
    """The earliest times at which the accounts of the settings, or else of the wallet, may mine."""
    node = node_of(request)
    chain, found = node.chain, []
    for keys in node.mining_accounts():
        address = from_public_key(keys.public_key, node.network.chain_id)
        if account_script(address, chain.store) is not None:
            continue
        try:
            slot = miner.next_slot(chain, keys)
        except CannotMine:
            continue
        balance = chain.generating_balance(address)
        info = MiningInfo(address_text(address), balance, max(node.clock(), slot.earliest))
        if (own := commitments_of(chain, address)) is not None:
            info = msgspec.structs.replace(info, **msgspec.structs.asdict(own))
        found.append(info)
    return found


def config_info(request: Request) -> Members:
    """The settings of the node, without the secrets of the wallet and private keys."""
    node = node_of(request)
    settings, miner = msgspec.structs.asdict(node.settings), node.settings.miner
    settings["wallet"] = {"file": node.settings.wallet.file}
    accounts = [base58.encode(each.public_key) for each in miner.accounts]
    settings["miner"] = msgspec.structs.asdict(miner) | {"accounts": accounts}
    shown = msgspec.to_builtins(settings, enc_hook=_plain)
    root = node.network.family
    if request.flag("full"):
        return {root: shown, "soliton": {"network": node.network.name}}
    return {root: shown}


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value)} in the settings")


def print_message(request: Request) -> Whole:
    """Write a text to the node's log."""
    reader = request.reader()
    message = reader.text("message")
    reader.finish()
    _log.debug("%s", message[:MAX_PRINTED_CHARS])
    return Whole(b"")


def blacklist(request: Request) -> Whole:
    """Ban an IP address and close its connections; host names are not resolved."""
    try:
        host = urlsplit(f"node://{request.body_text()}").hostname
    except ValueError:
        host = None
    if not host:
        return _BAD_REQUEST
    peering = node_of(request).peering
    if peering is not None:
        with contextlib.suppress(ValueError):
            peering.ban(ipaddress.ip_address(host), "the operator wants it")
    return Whole(b"OK")


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


# --- rollback -------------------------------------------------------------------------------------


async def rollback(request: Request) -> object:
    """Roll back to a height."""
    node, reader = node_of(request), request.reader()
    height = reader.int32("rollbackTo")
    other = "returnTransactionsToUTX"
    keep = reader.boolean(other if other in reader else "returnTransactionsToUtx")
    reader.finish()
    if not 1 <= height <= node.chain.height:
        return Whole(b"Block at height not found", status=400)
    return await _roll_back(node, height, node.chain.meta(height).id, keep=keep)


async def rollback_to(request: Request) -> RolledBack:
    """Roll back to the block with an id. For a form of the last block nothing is removed."""
    node = node_of(request)
    text = request.text("id")
    name = decode_id(text)
    if name is None:
        raise errors.INVALID_SIGNATURE.error()
    height = node.chain.height_of(name)
    if height is None:
        oldest = f"No block with signature: {text} found in blockchain"
        raise errors.invalid_request(oldest if is_oldest(node) else f"No such block {text}")
    return await _roll_back(node, height, name, keep=False)


async def _roll_back(node: Node, height: int, name: bytes, *, keep: bool) -> RolledBack:
    """Roll back to the block ``name`` at a height, unless that is deeper than the settings allow.

    The depth counts from the block below the last one, which the reference has not stored yet
    (``state/BlockchainUpdaterImpl.scala``, ``database/RocksDBWriter.scala``).
    """
    lowest = node.chain.height - 1 - node.settings.db.max_rollback_depth + is_oldest(node)
    try:
        if height < node.chain.height:
            if height < lowest:
                raise RollbackTooDeep(height, lowest)
            await node.roll_back_in_steps(height, keep=keep)
    except RollbackTooDeep as error:
        place = "a height:" if is_oldest(node) else "the height"
        raise errors.invalid_request(
            f"Rollback is possible only to the block at {place} {error.lowest}"
        ) from error
    return RolledBack(base58.encode(name))


_BAD_REQUEST: Final = Whole(b"The request contains bad syntax or cannot be fulfilled.", status=400)
_NUMBERS: Final = {"type": "object", "additionalProperties": {"type": "integer"}}
_BALANCES: Final = {examples.ADDRESS: examples.AMOUNT}
_OBJECT: Final = {"type": "object"}
_PORTFOLIO_EXAMPLE: Final = {
    "balance": examples.AMOUNT,
    "lease": {"in": 0, "out": 0},
    "assets": {examples.ASSET_ID: 5},
}
_MINER: Final = {"address": examples.ADDRESS, "miningBalance": examples.AMOUNT}
_INFO_EXAMPLE: Final = {
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
}
_STATES: Final = {"waves": "stateWaves", "tn": "stateTN", "zbs": "stateZbs"}

ROUTES: Final = table("debug", """
considerUnspent | boolean  | Count the pool            | true
full            | boolean! | Other sections as well    | false
height.of       | natural  | Height                    | 1
howMany         | natural  | Number of blocks          | 2
""",
    row("GET /debug/state key=debug", state, "Balances of all accounts", _NUMBERS, _BALANCES),
    *(
        row(f"GET /debug/{name}/{{height.of}} key=debug family={family}", state_at,
            "Balances of all accounts after the block at a height", _NUMBERS, _BALANCES,
            statuses=((404, "The height is not a number"),))
        for family, name in _STATES.items()
    ),
    row("GET /debug/portfolios/{address}?considerUnspent key=debug family=zbs,tn", portfolio,
        "The balances of an account", _OBJECT,
        _PORTFOLIO_EXAMPLE, "INVALID_ADDRESS"),
    row("GET /debug/info key=debug", info, "The status of the node's parts", _OBJECT,
        _INFO_EXAMPLE),
    row("GET /debug/minerInfo key=debug", miner_info,
        "The earliest times at which the accounts of the node may mine", list[MiningInfo],
        [{**_MINER, "timestamp": 1795174397440, "committedUntil": None, "committedToNext": False}]),
    row("GET /debug/configInfo?full key=debug", config_info, "The settings of the node", _OBJECT,
        {"waves": {"directory": "data"}}),
    row("POST /debug/print key=operate", print_message, "Write a text to the node's log",
        {"type": "string"}, '""', "WRONG_JSON WRONG_JSON_DATA",
        body=json_body("The text; 250 characters are logged", {"message": "here I am"},
            shape("message: string"), get_is_405=True),
        content_type="text/plain"),
    row("POST /debug/blacklist key=operate", blacklist, "Ban a host", {"type": "string"}, "OK",
        body=text_body("Host and port", "127.0.0.1:6868"),
        content_type="text/plain", statuses=((400, "The body is not a host"),)),
    row("POST /debug/rollback key=operate", rollback, "Roll back to a height",
        RolledBack, {"BlockId": examples.BLOCK_ID},
        "WRONG_JSON WRONG_JSON_DATA CUSTOM_VALIDATION_ERROR",
        body=json_body("The height, and whether transactions return to the pool",
            {"rollbackTo": 3, "returnTransactionsToUtx": False},
            shape("rollbackTo: integer, returnTransactionsToUtx: boolean"), get_is_405=True)),
    row("DELETE /debug/rollback-to/{id.block} key=operate family=zbs,tn", rollback_to,
        "Roll back to the block with an id", RolledBack, {"BlockId": examples.BLOCK_ID},
        "INVALID_SIGNATURE CUSTOM_VALIDATION_ERROR"),
    row("GET /debug/blocks/{howMany} key=debug family=zbs", last_blocks,
        "Size and hash of the last blocks, at most 100", list_of(_OBJECT),
        [{"522": examples.TRANSACTION_ID}], statuses=((404, "The count is not a number"),)),
    row("GET /debug/historyInfo key=debug family=zbs", history_info, "The ids of the last blocks",
        _OBJECT, {"lastBlockIds": [examples.BLOCK_ID], "microBlockIds": []}),
)  # fmt: skip
