"""Routes under ``/assets``: details, balances and distribution of assets.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/assets/
AssetsApiRoute.scala`` and ``api/common/AddressPortfolio.scala``; 0bsnetwork/Zbs ``src/main/scala/
com/zbsnetwork/api/http/assets/AssetsApiRoute.scala`` for the oldest generation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from operator import itemgetter
from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.hints import about_asset, with_hint
from soliton.api.http import Request, json_answer, next_page
from soliton.api.json_assets import asset_json, balance_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import (
    DIGEST_LENGTH,
    address_argument,
    decode_id,
    is_oldest,
    node_of,
)
from soliton.api.paging import in_pages
from soliton.api.rest import examples
from soliton.api.route_table import row, rows_by_ids, table
from soliton.api.schemas import ASSET
from soliton.api.streaming import json_stream, number_stream
from soliton.chain.addresses import Address, address_text, parse_address
from soliton.chain.errors import AddressError
from soliton.chain.features import Feature
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.ledger.state import ASSET_BALANCES, ASSET_SCRIPTS, ASSETS
from soliton.node.node import Node
from soliton.storage import indexes
from soliton.web.answers import Stream
from soliton.web.number_strings import Accepted, accepted
from soliton.web.openapi import ref
from soliton.web.types import Headers

_PAGE: Final = 200
"""Records read before yielding to the event loop."""
FEW_SCRIPTS: Final = 4
"""Details with more scripts, some milliseconds each, are made in time slices."""


class AssetBalance(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An account's balance of one asset."""

    address: str
    asset_id: str
    balance: int


class Distribution(msgspec.Struct, frozen=True, rename="camel"):
    """A page of an asset's holders; the next one begins after ``last_item``."""

    has_next: bool
    last_item: str | None
    items: dict[str, int | str]


def _asset_argument(request: Request) -> AssetId:
    """A path parameter as the id of an asset; raises error 4007 (199 in the oldest generation)."""
    asset_id = decode_id(request.text("assetId"))
    if asset_id is None or len(asset_id) != DIGEST_LENGTH:
        if is_oldest(node_of(request)):
            raise errors.invalid_request("Must be base58-encoded assetId")
        raise with_hint(errors.INVALID_ASSET_ID.error(), about_asset(request.text("assetId")))
    return AssetId(asset_id)


# --- balances -------------------------------------------------------------------------------------


def balances(request: Request) -> Stream:
    """The assets of an account: all but NFTs, or those in the request."""
    node, address = node_of(request), address_argument(request)
    limit = node.settings.rest_api.asset_details_limit
    texts = [] if is_oldest(node) else request.listed("id", "ids", limit)
    items = _of_assets(node, address, _ids(texts)) if texts else _portfolio(node, address)
    prefix = b'{"address":"%s","balances":[' % address_text(address).encode()
    return json_stream(request, items, prefix, b"]}")


def _ids(texts: list[str]) -> list[AssetId]:
    found = [decode_id(text) for text in texts]
    wrong = [text for text, name in zip(texts, found, strict=True) if name is None]
    if wrong:
        raise errors.INVALID_IDS.error(ids=wrong)
    # A longer text is no id: one more byte is enough to find nothing.
    return [AssetId(name[: DIGEST_LENGTH + 1]) for name in found if name is not None]


async def _of_assets(node: Node, address: Address, names: list[AssetId]) -> AsyncIterator[object]:
    for name in names:
        balance = node.chain.store.get(ASSET_BALANCES, (address, name))
        yield balance_json(name, balance, node.chain)


async def _portfolio(node: Node, address: Address) -> AsyncIterator[object]:
    chain = node.chain
    hides_nfts = chain.rules.at(chain.height).has(Feature.REDUCED_NFT_FEE)
    records = partial(indexes.asset_balances, chain.store, address)
    async for page in in_pages(records, itemgetter(0), _PAGE):
        for name, balance in page:
            if balance <= 0:
                continue
            info = chain.store.get(ASSETS, name)
            if info is None or not (info.nft and hides_nfts):
                yield balance_json(name, balance, chain)


def balance(request: Request) -> AssetBalance:
    """An account's balance of one asset."""
    node, address = node_of(request), address_argument(request)
    asset_id = _asset_argument(request)
    found = node.chain.store.get(ASSET_BALANCES, (address, asset_id))
    return AssetBalance(address_text(address), request.text("assetId"), found)


# --- details --------------------------------------------------------------------------------------


def details(request: Request) -> Members:
    """The details of an asset."""
    node, asset_id = node_of(request), _asset_argument(request)
    try:
        return asset_json(asset_id, node.chain, full=request.flag("full"))
    except KeyError as error:
        if is_oldest(node):
            message = "Failed to find issue transaction by ID"
            raise errors.invalid_request(message) from error
        text = request.text("assetId")
        raise with_hint(errors.ASSET_DOES_NOT_EXIST.error(id=text), about_asset(text)) from error


def details_of_many(request: Request) -> object:
    """The details of several assets."""
    node = node_of(request)
    texts = request.listed("id", "ids", node.settings.rest_api.asset_details_limit)
    if not texts:
        raise errors.ASSET_ID_NOT_SPECIFIED.error()
    names = _ids(texts)
    unknown = [
        text
        for text, name in zip(texts, names, strict=True)
        if node.chain.store.get(ASSETS, name) is None
    ]
    if unknown:
        raise errors.ASSETS_DOES_NOT_EXIST.error(ids=unknown)
    full, store = request.flag("full"), node.chain.store
    read = partial(_details, node, full=full)
    if full and sum(store.get(ASSET_SCRIPTS, name) is not None for name in names) > FEW_SCRIPTS:
        return request.context.time_slices.map(read, names)
    return [read(name) for name in names]


def _details(node: Node, name: AssetId, *, full: bool) -> Members:
    try:
        return asset_json(name, node.chain, full=full)
    except KeyError as error:
        # The issue has been rolled back meanwhile.
        raise errors.ASSETS_DOES_NOT_EXIST.error(ids=[base58.encode(name)]) from error


async def nfts(request: Request) -> Stream:
    """The NFTs of an account in the order of their issue."""
    node, address = node_of(request), address_argument(request)
    text, order = request.optional_text("after"), request.optional_text("order")
    after = decode_id(text) if text else None
    if text and after is None:
        raise errors.INVALID_ASSET_ID.error()
    limit = request.integer("limit")
    if limit > node.settings.rest_api.transactions_by_address_limit:
        raise errors.TOO_BIG_SEQUENCE.error()
    newest_first = order == "desc"
    start: tuple[int, int] | None = None
    if after is not None:
        # The reference searches the account's list for another asset, up to the list's end.
        end = (0, 0) if newest_first else (2**32 - 1, 2**32 - 1)
        start = indexes.nft_place(node.chain.store, address, after) or end
    names = await _nfts(node, address, start, limit + 1, newest_first=newest_first)
    headers: Headers = ()
    if 0 < limit < len(names):
        path = f"/assets/nft/{address_text(address)}/limit/{limit}"
        headers = next_page(path, after=base58.encode(names[limit - 1]), order=order)
    return json_stream(request, _assets(node, names[:limit]), headers=headers)


async def _nfts(
    node: Node,
    address: Address,
    start: tuple[int, int] | None,
    limit: int,
    *,
    newest_first: bool,
) -> list[AssetId]:
    store = node.chain.store
    found: list[AssetId] = []
    records = partial(indexes.nfts, store, address, newest_first=newest_first)
    async for page in in_pages(records, itemgetter(1), _PAGE, start):
        found += (name for name, _ in page if store.get(ASSET_BALANCES, (address, name)) > 0)
        if len(found) >= limit:
            break
    return found[:limit]


async def _assets(node: Node, names: list[AssetId]) -> AsyncIterator[object]:
    for name in names:
        yield asset_json(name, node.chain, full=True, in_list=True)


# --- holders --------------------------------------------------------------------------------------


def distribution(request: Request) -> Stream:
    """The holders of an asset and their balances."""
    node = node_of(request)
    return number_stream(request, _holders(node, _asset_argument(request), node.chain.height, None))


async def _holders(
    node: Node, asset_id: AssetId, height: int, after: Address | None
) -> AsyncIterator[tuple[str, int]]:
    records = partial(indexes.asset_distribution, node.chain.store, asset_id, height)
    async for page in in_pages(records, itemgetter(0), _PAGE, after):
        for address, amount in page:
            yield address_text(address), amount


async def distribution_at(request: Request) -> object:
    """The holders of an asset after the block at a height, page by page."""
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
            raise errors.INVALID_ADDRESS.error() from error
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
    return json_answer(found, request.accepts, headers=next_page(path, after=last))


def _check_limit(node: Node, limit: int) -> None:
    most = node.settings.rest_api.distribution_address_limit
    if limit <= 0:
        raise errors.invalid_request("Limit should be greater than 0")
    if is_oldest(node) and limit >= most:
        raise errors.invalid_request(f"Limit should be less than {most}")
    if limit > most:
        raise errors.invalid_request(f"Limit should be less than or equal to {most}")


def _check_height(node: Node, height: int) -> None:
    top = node.chain.height
    lowest = top - node.settings.db.max_rollback_depth
    if height <= 0:
        raise errors.invalid_request("Height should be greater than zero")
    if height == top:
        raise errors.invalid_request(
            "Using 'assetDistributionAtHeight' on current height can lead to inconsistent result"
        )
    if height > top:
        raise errors.invalid_request(
            f"Asset distribution available only at height not greater than {top - 1}"
        )
    if height < lowest:
        raise errors.invalid_request(f"Unable to get distribution past height {lowest}")


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

ROUTES: Final = table("assets", f"""
assetId       | text    | Id of the asset in base58     | {examples.ASSET_ID}
id            | text*   | Ids of assets                 | {examples.ASSET_ID}
id.only     | text*   | Only these assets             | {examples.ASSET_ID}
full          | boolean | Add the asset's script        | false
limit         | natural | At most so many; 1000         | 10
height.before | natural | Height, below the current one | 1
after.nft     | text    | Begin after this NFT          | {examples.ASSET_ID}
after.holder  | text    | Begin after this address      | {examples.ADDRESS}
""",
    rows_by_ids("/assets/balance/{address}?id.only", balances,
        "The assets of an account, NFTs left out", _BALANCES_SCHEMA, _BALANCES_EXAMPLE,
        "INVALID_ADDRESS INVALID_IDS TOO_BIG_SEQUENCE_WITH_LIMIT"),
    row("GET /assets/balance/{address}/{assetId}", balance, "An account's balance of one asset",
        AssetBalance, {"address": examples.ADDRESS, "assetId": examples.ASSET_ID, "balance": 0},
        "INVALID_ADDRESS INVALID_ASSET_ID"),
    rows_by_ids("/assets/details?id&full family=waves,tn", details_of_many,
        "The details of several assets", _ASSETS_SCHEMA, [examples.ASSET],
        "INVALID_IDS ASSETS_DOES_NOT_EXIST ASSET_ID_NOT_SPECIFIED TOO_BIG_SEQUENCE_WITH_LIMIT"),
    row("GET /assets/details/{assetId}?full", details, "The details of an asset", ASSET,
        examples.ASSET, "INVALID_ASSET_ID ASSET_DOES_NOT_EXIST CUSTOM_VALIDATION_ERROR"),
    row("GET /assets/nft/{address}/limit/{limit}?after.nft&order.asc family=waves,tn", nfts,
        "The NFTs of an account in the order of their issue", _ASSETS_SCHEMA,
        [{**_NFT, "quantity": 1, "reissuable": False, "decimals": 0}],
        "INVALID_ADDRESS INVALID_ASSET_ID TOO_BIG_SEQUENCE"),
    row("GET /assets/{assetId}/distribution[/]", distribution,
        "The holders of an asset and their balances",
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {examples.ADDRESS: 5000000000}, "INVALID_ASSET_ID CUSTOM_VALIDATION_ERROR"),
    row("GET /assets/{assetId}/distribution/{height.before}/limit/{limit}?after.holder",
        distribution_at,
        "The holders of an asset after the block at a height, page by page", Distribution,
        {"hasNext": False, "lastItem": examples.ADDRESS, "items": {examples.ADDRESS: 5000000000}},
        "INVALID_ASSET_ID INVALID_ADDRESS CUSTOM_VALIDATION_ERROR"),
    reads="state",
)  # fmt: skip
