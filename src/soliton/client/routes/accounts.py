"""What accounts have: balances, data, scripts, aliases, leases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from soliton.client.amounts import AssetLike, asset_text
from soliton.client.errors import NotFound
from soliton.client.making import Whom
from soliton.client.records import (
    AliasRecord,
    AssetBalance,
    AssetBalances,
    AssetDetails,
    BalanceDetails,
    BalanceRecord,
    DataValue,
    HeightBalance,
    Lease,
    ScriptInfo,
    data_value,
)
from soliton.client.steps import (
    Core,
    Pages,
    Request,
    Steps,
    ask,
    get,
    key_headers,
    post,
    query,
    segment,
)

PAGE: int = 1_000
"""As many as a node gives at once."""

Json = dict[str, Any]


def address_of(account: Whom) -> str:
    """The address of whatever has one, as a part of a path."""
    return segment(account if isinstance(account, str) else account.address)


def addresses(core: Core) -> Steps[list[str]]:
    """The accounts of the node's own wallet."""
    return get(core, "/addresses", list[str])


def address_of_public_key(core: Core, public_key: str) -> Steps[str]:
    """The address of a public key on the node's chain."""
    told = yield from get(core, f"/addresses/publicKey/{segment(public_key)}", AliasRecord)
    return told.address


def is_address(core: Core, text: str) -> Steps[bool]:
    """Whether a text is an address of the node's chain."""
    told = yield from get(core, f"/addresses/validate/{segment(text)}", Json)
    return told.get("valid") is True


def balance(core: Core, account: Whom, asset: AssetLike = None) -> Steps[int]:
    """How much of the coin, or of an asset, an account has."""
    name = asset_text(asset)
    path = f"/assets/balance/{address_of(account)}/{name}"
    if name is None:
        path = f"/addresses/balance/{address_of(account)}"
    told = yield from get(core, path, BalanceRecord)
    return told.balance


def confirmed_balance(core: Core, account: Whom, confirmations: int) -> Steps[int]:
    """The least that an account had of the coin in the last blocks."""
    path = f"/addresses/balance/{address_of(account)}/{int(confirmations)}"
    told = yield from get(core, path, BalanceRecord)
    return told.balance


def balance_details(core: Core, account: Whom) -> Steps[BalanceDetails]:
    """All balances of an account in the coin: with leases, and for generating."""
    return get(core, f"/addresses/balance/details/{address_of(account)}", BalanceDetails)


def balances(
    core: Core,
    accounts: Iterable[Whom],
    asset: AssetLike = None,
    height: int | None = None,
) -> Steps[dict[str, int]]:
    """How much of the coin, or of an asset, several accounts have, by address."""
    names = [each if isinstance(each, str) else each.address for each in accounts]
    body: Json = {"addresses": names}
    if height is not None:
        body["height"] = height
    if asset_text(asset) is not None:
        body["asset"] = asset_text(asset)
    told = yield from post(core, "/addresses/balance", body, list[Json])
    return {row["id"]: row["balance"] for row in told}


def effective_balance(core: Core, account: Whom) -> Steps[int]:
    """How much of the coin an account has, leases to it added and those from it taken off."""
    path = f"/addresses/effectiveBalance/{address_of(account)}"
    told = yield from get(core, path, BalanceRecord)
    return told.balance


def balance_history(core: Core, account: Whom) -> Steps[list[HeightBalance]]:
    """Every change of an account's balance that the node remembers, the newest first. Some nodes
    want the API key for this.
    """
    path = f"/debug/balances/history/{address_of(account)}"
    return ask(core, Request("GET", path, headers=key_headers(core)), list[HeightBalance])


def asset_balances(
    core: Core, account: Whom, ids: Iterable[str] | None = None
) -> Steps[list[AssetBalance]]:
    """The assets of an account, or those of some ids; NFTs are left out."""
    path = f"/assets/balance/{address_of(account)}"
    if ids is None:
        told = yield from get(core, path, AssetBalances)
    else:
        told = yield from post(core, path, {"ids": list(ids)}, AssetBalances)
    return told.balances


def nfts(core: Core, account: Whom, limit: int = PAGE) -> Pages[AssetDetails]:
    """The NFTs of an account, in pages of at most ``limit``."""

    def page(after: str | None) -> Steps[tuple[list[AssetDetails], str | None]]:
        path = f"/assets/nft/{address_of(account)}/limit/{int(limit)}" + query(after=after)
        rows = yield from get(core, path, list[AssetDetails])
        return rows, rows[-1].asset_id if len(rows) == limit else None

    return page


def data(
    core: Core,
    account: Whom,
    *,
    keys: Iterable[str] | None = None,
    matches: str | None = None,
) -> Steps[dict[str, DataValue]]:
    """The data of an account: all of it, that of some keys, or of the keys that a regular
    expression matches.
    """
    path = f"/addresses/data/{address_of(account)}"
    if keys is not None:
        rows = yield from post(core, path, {"keys": list(keys)}, list[Json])
    else:
        rows = yield from get(core, path + query(matches=matches), list[Json])
    return {row["key"]: data_value(row["type"], row["value"]) for row in rows if row.get("type")}


def data_entry(core: Core, account: Whom, key: str) -> Steps[DataValue]:
    """One entry of an account's data; ``None`` where there is none."""
    path = f"/addresses/data/{address_of(account)}/{segment(key)}"
    try:
        row: Mapping[str, Any] = yield from get(core, path, Json)
    except NotFound:
        return None
    return data_value(row["type"], row["value"])


def script(core: Core, account: Whom) -> Steps[ScriptInfo]:
    """The script of an account, and what it costs."""
    return get(core, f"/addresses/scriptInfo/{address_of(account)}", ScriptInfo)


def functions(core: Core, account: Whom) -> Steps[dict[str, list[Json]]]:
    """The functions of a dApp that can be called: name and type of each argument."""
    told = yield from get(core, f"/addresses/scriptInfo/{address_of(account)}/meta", Json)
    found: dict[str, list[Json]] = (told.get("meta") or {}).get("callableFuncTypes") or {}
    return found


def aliases(core: Core, account: Whom) -> Steps[list[str]]:
    """The aliases of an account, as ``alias:R:name``."""
    return get(core, f"/alias/by-address/{address_of(account)}", list[str])


def address_by_alias(core: Core, alias: str) -> Steps[str]:
    """Whom an alias names: ``name``, or ``alias:R:name``; raises ``NotFound``."""
    name = alias.rpartition(":")[2]
    told = yield from get(core, f"/alias/by-alias/{segment(name)}", AliasRecord)
    return told.address


def active_leases(core: Core, account: Whom) -> Steps[list[Lease]]:
    """The leases from and to an account that are in force."""
    return get(core, f"/leasing/active/{address_of(account)}", list[Lease])


def lease(core: Core, lease_id: str) -> Steps[Lease]:
    """A lease and what became of it."""
    return get(core, f"/leasing/info/{segment(lease_id)}", Lease)


def leases(core: Core, ids: Iterable[str]) -> Steps[list[Lease]]:
    """Several leases."""
    return post(core, "/leasing/info", {"ids": list(ids)}, list[Lease])
