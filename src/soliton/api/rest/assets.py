"""Routes under ``/assets``: what assets are, who has them, and how much.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/assets/
AssetsApiRoute.scala`` and ``api/common/AddressPortfolio.scala``; 0bsnetwork/Zbs ``src/main/scala/
com/zbsnetwork/api/http/assets/AssetsApiRoute.scala`` for the oldest generation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import islice
from typing import Final

import msgspec

from soliton.api.errors import (
    ASSET_DOES_NOT_EXIST,
    ASSET_ID_NOT_SPECIFIED,
    ASSETS_DOES_NOT_EXIST,
    CUSTOM_VALIDATION_ERROR,
    INVALID_ADDRESS,
    INVALID_ASSET_ID,
    INVALID_IDS,
    TOO_BIG_SEQUENCE,
    TOO_BIG_SEQUENCE_WITH_LIMIT,
    invalid_request,
)
from soliton.api.hints import about_asset, with_hint
from soliton.api.http import Json, JsonStream, NumberStream, Request, next_page
from soliton.api.json_assets import asset_json, balance_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import (
    ADDRESS,
    DIGEST_LENGTH,
    address_argument,
    decode_id,
    id_list,
    id_query,
    is_oldest,
    node_of,
    order_query,
    with_slash,
)
from soliton.api.rest import examples
from soliton.api.routes import (
    BOOLEAN,
    GET,
    NATURAL,
    POST,
    TEXT,
    Parameter,
    Route,
    query_parameter,
)
from soliton.api.schemas import ASSET, ref
from soliton.chain.addresses import Address, address_text, parse_address
from soliton.chain.errors import AddressError
from soliton.chain.features import Feature
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.ledger.state import ASSET_BALANCES, ASSETS
from soliton.node.node import Node
from soliton.storage import indexes
from soliton.web.significands import Accepted, accepted
from soliton.web.types import Headers

_TAG: Final = "assets"
_PAGE: Final = 200
"""So many records are read before others get their turn."""

FAMILIES: Final = {
    "/assets/nft/{address}/limit/{limit}": ("waves", "tn"),
    "/assets/details": ("waves", "tn"),
    "/assets/details/": ("waves", "tn"),
}
"""Routes that only some families of networks have."""


class AssetBalance(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An account's balance of one asset."""

    address: str
    asset_id: str
    balance: int


class Distribution(msgspec.Struct, frozen=True, rename="camel"):
    """Some of an asset's holders; ``last_item`` is where the next page begins."""

    has_next: bool
    last_item: str | None
    items: dict[str, int | str]


def _asset_argument(request: Request) -> AssetId:
    """A path parameter as the id of an asset; error 4007 (199 in the oldest generation)."""
    asset_id = decode_id(request.text("assetId"))
    if asset_id is None or len(asset_id) != DIGEST_LENGTH:
        if is_oldest(node_of(request)):
            raise invalid_request("Must be base58-encoded assetId")
        raise with_hint(INVALID_ASSET_ID.error(), about_asset(request.text("assetId")))
    return AssetId(asset_id)


# --- balances -------------------------------------------------------------------------------------


def balances(request: Request) -> JsonStream:
    """The assets of an account: all but NFTs, or those that are asked for."""
    node, address = node_of(request), address_argument(request)
    texts = [] if is_oldest(node) else request.listed("id", "ids")
    limit = node.settings.rest_api.asset_details_limit
    if len(texts) > limit:
        raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=limit)
    items = _of_assets(node, address, _ids(texts)) if texts else _portfolio(node, address)
    prefix = b'{"address":"%s","balances":[' % address_text(address).encode()
    return JsonStream(items, prefix, b"]}")


def _ids(texts: list[str]) -> list[AssetId]:
    found = [decode_id(text) for text in texts]
    wrong = [text for text, name in zip(texts, found, strict=True) if name is None]
    if wrong:
        raise INVALID_IDS.error(ids=wrong)
    # What is longer than an id is unknown as well, and too long to look for.
    return [AssetId(name[: DIGEST_LENGTH + 1]) for name in found if name is not None]


async def _of_assets(node: Node, address: Address, names: list[AssetId]) -> AsyncIterator[object]:
    for name in names:
        balance = node.chain.store.get(ASSET_BALANCES, (address, name))
        yield balance_json(name, balance, node.chain)


async def _portfolio(node: Node, address: Address) -> AsyncIterator[object]:
    """Piece by piece: the store may be written between two pieces, not within one."""
    chain = node.chain
    hides_nfts = chain.rules.at(chain.height).has(Feature.REDUCED_NFT_FEE)
    after: AssetId | None = None
    while True:
        page = list(islice(indexes.asset_balances(chain.store, address, after), _PAGE))
        for name, balance in page:
            if balance <= 0:
                continue
            info = chain.store.get(ASSETS, name)
            if info is None or not (info.nft and hides_nfts):
                yield balance_json(name, balance, chain)
        if len(page) < _PAGE:
            return
        after = page[-1][0]
        await asyncio.sleep(0)


def balance(request: Request) -> AssetBalance:
    """An account's balance of one asset."""
    node, address = node_of(request), address_argument(request)
    asset_id = _asset_argument(request)
    found = node.chain.store.get(ASSET_BALANCES, (address, asset_id))
    return AssetBalance(address_text(address), request.text("assetId"), found)


# --- details --------------------------------------------------------------------------------------


def details(request: Request) -> Members:
    """What is known about an asset."""
    node, asset_id = node_of(request), _asset_argument(request)
    try:
        return asset_json(asset_id, node.chain, full=request.flag("full"))
    except KeyError as error:
        if is_oldest(node):
            message = "Failed to find issue transaction by ID"
            raise invalid_request(message) from error
        text = request.text("assetId")
        raise with_hint(ASSET_DOES_NOT_EXIST.error(id=text), about_asset(text)) from error


def details_of_many(request: Request) -> list[Members]:
    """What is known about assets."""
    node = node_of(request)
    texts = request.listed("id", "ids")
    limit = node.settings.rest_api.asset_details_limit
    if len(texts) > limit:
        raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=limit)
    if not texts:
        raise ASSET_ID_NOT_SPECIFIED.error()
    names = _ids(texts)
    unknown = [
        text
        for text, name in zip(texts, names, strict=True)
        if node.chain.store.get(ASSETS, name) is None
    ]
    if unknown:
        raise ASSETS_DOES_NOT_EXIST.error(ids=unknown)
    return [asset_json(name, node.chain, full=request.flag("full")) for name in names]


async def nfts(request: Request) -> JsonStream:
    """The NFTs of an account in the order of their issue."""
    node, address = node_of(request), address_argument(request)
    text, order = request.optional_text("after"), request.optional_text("order")
    after = decode_id(text) if text else None
    if text and after is None:
        raise INVALID_ASSET_ID.error()
    limit = request.integer("limit")
    if limit > node.settings.rest_api.transactions_by_address_limit:
        raise TOO_BIG_SEQUENCE.error()
    newest_first = order == "desc"
    start: tuple[int, int] | None = None
    if after is not None:
        info = node.chain.store.get(ASSETS, AssetId(after[: DIGEST_LENGTH + 1]))
        # The reference looks for the asset in the account's list and finds the list's end.
        end = (0, 0) if newest_first else (2**32 - 1, 2**32 - 1)
        start = end if info is None else (info.height, info.sequence)
    names = await _nfts(node, address, start, limit + 1, newest_first=newest_first)
    headers: Headers = ()
    if 0 < limit < len(names):
        path = f"/assets/nft/{address_text(address)}/limit/{limit}"
        headers = next_page(path, after=base58.encode(names[limit - 1]), order=order)
    return JsonStream(_assets(node, names[:limit]), headers=headers)


async def _nfts(
    node: Node,
    address: Address,
    start: tuple[int, int] | None,
    limit: int,
    *,
    newest_first: bool,
) -> list[AssetId]:
    """Piece by piece: the store may be written between two pieces, not within one."""
    store = node.chain.store
    found: list[AssetId] = []
    while True:
        records = indexes.nfts(store, address, start, newest_first=newest_first)
        page = list(islice(records, _PAGE))
        found += (name for name, _ in page if store.get(ASSET_BALANCES, (address, name)) > 0)
        if len(page) < _PAGE or len(found) >= limit:
            return found[:limit]
        start = page[-1][1]
        await asyncio.sleep(0)


async def _assets(node: Node, names: list[AssetId]) -> AsyncIterator[object]:
    for name in names:
        yield asset_json(name, node.chain, full=True, in_list=True)


# --- holders --------------------------------------------------------------------------------------


def distribution(request: Request) -> NumberStream:
    """Who has an asset, and how much."""
    node = node_of(request)
    return NumberStream(_holders(node, _asset_argument(request), node.chain.height, None))


async def _holders(
    node: Node, asset_id: AssetId, height: int, after: Address | None
) -> AsyncIterator[tuple[str, int]]:
    """Piece by piece: the store may be written between two pieces, not within one."""
    while True:
        found = indexes.asset_distribution(node.chain.store, asset_id, height, after)
        page = list(islice(found, _PAGE))
        for address, amount in page:
            yield address_text(address), amount
        if len(page) < _PAGE:
            return
        after = page[-1][0]
        await asyncio.sleep(0)


async def distribution_at(request: Request) -> object:
    """Who had an asset after the block at a height, page by page."""
    node, asset_id = node_of(request), _asset_argument(request)
    limit, height = request.integer("limit"), request.integer("height")
    _check_limit(node, limit)
    _check_height(node, height)
    after = None
    text = request.optional_text("after")
    if text is not None:
        try:
            after = parse_address(text, node.network.chain_id)
        except AddressError as error:
            raise INVALID_ADDRESS.error() from error
    items: dict[str, int | str] = {}
    as_text = accepted(request.headers.get(b"accept")) is Accepted.STRINGS
    async for address, amount in _holders(node, asset_id, height, after):
        items[address] = str(amount) if as_text else amount
        if len(items) == limit:
            break
    last = next(reversed(items), None)
    found = Distribution(len(items) == limit, last, items)
    if not found.has_next:
        return found
    path = f"/assets/{base58.encode(asset_id)}/distribution/{height}/limit/{limit}"
    return Json(found, headers=next_page(path, after=last))


def _check_limit(node: Node, limit: int) -> None:
    most = node.settings.rest_api.distribution_address_limit
    if limit <= 0:
        raise invalid_request("Limit should be greater than 0")
    if is_oldest(node) and limit >= most:
        raise invalid_request(f"Limit should be less than {most}")
    if limit > most:
        raise invalid_request(f"Limit should be less than or equal to {most}")


def _check_height(node: Node, height: int) -> None:
    top = node.chain.height
    lowest = top - node.settings.db.max_rollback_depth
    if height <= 0:
        raise invalid_request("Height should be greater than zero")
    if height == top:
        raise invalid_request(
            "Using 'assetDistributionAtHeight' on current height can lead to inconsistent result"
        )
    if height > top:
        raise invalid_request(
            f"Asset distribution available only at height not greater than {top - 1}"
        )
    if height < lowest:
        raise invalid_request(f"Unable to get distribution past height {lowest}")


_ASSET: Final = Parameter("assetId", TEXT, "Id of the asset in base58", examples.ASSET_ID)
_FULL: Final = query_parameter("full", BOOLEAN, "Add the asset's script", False)
_LIMIT: Final = Parameter("limit", NATURAL, "At most so many; 1000", 10)
_NFT: Final = {
    name: value for name, value in examples.ASSET.items() if name != "minSponsoredAssetFee"
}
_ASSETS_SCHEMA: Final = {"type": "array", "items": ASSET}
_BALANCES_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "address": {"type": "string"},
        "balances": {"type": "array", "items": ref("AssetBalanceOfAccount")},
    },
    "required": ["address", "balances"],
}
_BALANCES_EXAMPLE: Final = {
    "address": examples.ADDRESS,
    "balances": [
        {
            "assetId": examples.ASSET_ID,
            "reissuable": True,
            "quantity": 5000000000,
            "issueTransaction": examples.ISSUE,
            "balance": 5000000000,
            "sequenceInBlock": 2,
        }
    ],
}

ROUTES: tuple[Route, ...] = (
    *(
        each
        for methods, parameters, body in (
            (GET, (ADDRESS, id_query("Only these assets", examples.ASSET_ID)), None),
            (POST, (ADDRESS,), id_list(examples.ASSET_ID)),
        )
        for each in with_slash(
            Route(
                methods=methods,
                path="/assets/balance/{address}",
                handler=balances,
                tag=_TAG,
                summary="The assets of an account, NFTs left out",
                parameters=parameters,
                body=body,
                response=_BALANCES_SCHEMA,
                example=_BALANCES_EXAMPLE,
                errors=(INVALID_ADDRESS, INVALID_IDS, TOO_BIG_SEQUENCE_WITH_LIMIT),
            )
        )
    ),
    Route(
        methods=GET,
        path="/assets/balance/{address}/{assetId}",
        handler=balance,
        tag=_TAG,
        summary="An account's balance of one asset",
        parameters=(ADDRESS, _ASSET),
        response=AssetBalance,
        example={"address": examples.ADDRESS, "assetId": examples.ASSET_ID, "balance": 0},
        errors=(INVALID_ADDRESS, INVALID_ASSET_ID),
    ),
    *(
        each
        for methods, parameters, body in (
            (GET, (id_query("Ids of assets", examples.ASSET_ID), _FULL), None),
            (POST, (_FULL,), id_list(examples.ASSET_ID)),
        )
        for each in with_slash(
            Route(
                methods=methods,
                path="/assets/details",
                handler=details_of_many,
                tag=_TAG,
                summary="What is known about assets",
                parameters=parameters,
                body=body,
                response=_ASSETS_SCHEMA,
                example=[examples.ASSET],
                errors=(
                    INVALID_IDS,
                    ASSETS_DOES_NOT_EXIST,
                    ASSET_ID_NOT_SPECIFIED,
                    TOO_BIG_SEQUENCE_WITH_LIMIT,
                ),
            )
        )
    ),
    Route(
        methods=GET,
        path="/assets/details/{assetId}",
        handler=details,
        tag=_TAG,
        summary="What is known about an asset",
        parameters=(_ASSET, _FULL),
        response=ASSET,
        example=examples.ASSET,
        errors=(INVALID_ASSET_ID, ASSET_DOES_NOT_EXIST, CUSTOM_VALIDATION_ERROR),
    ),
    Route(
        methods=GET,
        path="/assets/nft/{address}/limit/{limit}",
        handler=nfts,
        tag=_TAG,
        summary="The NFTs of an account in the order of their issue",
        parameters=(
            ADDRESS,
            _LIMIT,
            query_parameter("after", TEXT, "Begin after this NFT", examples.ASSET_ID),
            order_query("asc"),
        ),
        response=_ASSETS_SCHEMA,
        example=[{**_NFT, "quantity": 1, "reissuable": False, "decimals": 0}],
        errors=(INVALID_ADDRESS, INVALID_ASSET_ID, TOO_BIG_SEQUENCE),
    ),
    *with_slash(
        Route(
            methods=GET,
            path="/assets/{assetId}/distribution",
            handler=distribution,
            tag=_TAG,
            summary="Who has an asset, and how much",
            parameters=(_ASSET,),
            response={"type": "object", "additionalProperties": {"type": "integer"}},
            example={examples.ADDRESS: 5000000000},
            errors=(INVALID_ASSET_ID,),
        )
    ),
    Route(
        methods=GET,
        path="/assets/{assetId}/distribution/{height}/limit/{limit}",
        handler=distribution_at,
        tag=_TAG,
        summary="Who had an asset after the block at a height, page by page",
        parameters=(
            _ASSET,
            Parameter("height", NATURAL, "Height, below the current one", 1),
            _LIMIT,
            query_parameter("after", TEXT, "Begin after this address", examples.ADDRESS),
        ),
        response=Distribution,
        example={
            "hasNext": False,
            "lastItem": examples.ADDRESS,
            "items": {examples.ADDRESS: 5000000000},
        },
        errors=(INVALID_ASSET_ID, INVALID_ADDRESS, CUSTOM_VALIDATION_ERROR),
    ),
)
