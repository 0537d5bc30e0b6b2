"""Routes about assets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from soliton.client.making import Whom
from soliton.client.records import AssetDetails, Distribution
from soliton.client.routes.accounts import PAGE, address_of
from soliton.client.steps import (
    Core,
    Pages,
    Request,
    Steps,
    call,
    check_same,
    decoded,
    get,
    post,
    query,
    segment,
)


def asset(core: Core, asset_id: str) -> Steps[AssetDetails]:
    """The details of an asset; raises ``NotFound``. Pass the record as an asset, and amounts of it
    can be decimal text.
    """
    found = yield from get(core, f"/assets/details/{segment(asset_id)}", AssetDetails)
    check_same("an asset", found.asset_id, asset_id)
    return found


def assets(core: Core, ids: Iterable[str]) -> Steps[list[AssetDetails]]:
    """The details of several assets."""
    asked = list(ids)
    rows = yield from post(core, "/assets/details", {"ids": asked}, list[AssetDetails])
    check_same("assets", {each.asset_id for each in rows} - set(asked), set())
    return rows


def asset_distribution(
    core: Core, asset_id: str, height: int, limit: int = PAGE
) -> Pages[tuple[str, int]]:
    """The holders of an asset after the block at a height: pairs of address and balance."""

    def page(after: str | None) -> Steps[tuple[list[tuple[str, int]], str | None]]:
        path = f"/assets/{segment(asset_id)}/distribution/{int(height)}/limit/{int(limit)}"
        reply = yield from get(core, path + query(after=after), Distribution)
        return list(reply.items.items()), reply.last_item if reply.has_next else None

    return page


def assets_of_ethereum(core: Core, ids: Iterable[str]) -> Steps[list[AssetDetails]]:
    """The assets with these Ethereum addresses (``0x`` and 40 digits)."""
    return get(core, "/eth/assets" + query(id=list(ids)), list[AssetDetails])


def ethereum_abi(core: Core, account: Whom) -> Steps[list[dict[str, Any]]]:
    """The functions of a dApp in Ethereum's ABI; empty without a script."""
    answer = yield from call(core, Request("GET", f"/eth/abi/{address_of(account)}"))
    if answer.status == 200 and not answer.body:
        return []
    return decoded(answer, list[dict[str, Any]])
