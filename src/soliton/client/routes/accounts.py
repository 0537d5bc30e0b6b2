"""Routes about accounts: balances, data, scripts, aliases, leases."""

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
    BalanceOf,
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
    check_same,
    get,
    key_headers,
    post,
    query,
    segment,
)

PAGE: int = 1_000
"""The nodes' limit on the rows of a page."""

Json = dict[str, Any]


def address_of(account: Whom) -> str:
    """Return the address of an account, quoted as a segment of a path."""
    return segment(account if isinstance(account, str) else account.address)


def addresses(core: Core) -> Steps[list[str]]:
    """The addresses of the node's own wallet."""
    return get(core, "/addresses", list[str])


def address_of_public_key(core: Core, public_key: str) -> Steps[str]:
    """The address of a public key on the node's chain."""
    reply = yield from get(core, f"/addresses/publicKey/{segment(public_key)}", AliasRecord)
    return reply.address


def is_address(core: Core, text: str) -> Steps[bool]:
    """Whether a text is an address of the node's chain."""
    reply = yield from get(core, f"/addresses/validate/{segment(text)}", Json)
    return reply.get("valid") is True


def balance(core: Core, account: Whom, asset: AssetLike = None) -> Steps[int]:
    """The balance of an account, in the coin or an asset."""
    name = asset_text(asset)
    path = f"/assets/balance/{address_of(account)}/{name}"
    if name is None:
        path = f"/addresses/balance/{address_of(account)}"
    reply = yield from get(core, path, BalanceRecord)
    return reply.balance


def confirmed_balance(core: Core, account: Whom, confirmations: int) -> Steps[int]:
    """The lowest balance of an account in the coin over the last ``confirmations`` blocks."""
    path = f"/addresses/balance/{address_of(account)}/{int(confirmations)}"
    reply = yield from get(core, path, BalanceRecord)
    return reply.balance


def balance_details(core: Core, account: Whom) -> Steps[BalanceDetails]:
    """All balances of an account in the coin: regular, available, effective, generating."""
    return get(core, f"/addresses/balance/details/{address_of(account)}", BalanceDetails)


def balances(
    core: Core,
    accounts: Iterable[Whom],
    asset: AssetLike = None,
    height: int | None = None,
) -> Steps[dict[str, int]]:
    """The balances of several accounts, in the coin or an asset, by address."""
    names = [each if isinstance(each, str) else each.address for each in accounts]
    body: Json = {"addresses": names}
    if height is not None:
        body["height"] = height
    if asset_text(asset) is not None:
        body["asset"] = asset_text(asset)
    reply = yield from post(core, "/addresses/balance", body, list[BalanceOf])
    check_same("balances", {each.id for each in reply} - set(names), set())
    return {each.id: each.balance for each in reply}


def effective_balance(core: Core, account: Whom) -> Steps[int]:
    """The balance of an account in the coin, plus leases to it, minus leases from it."""
    path = f"/addresses/effectiveBalance/{address_of(account)}"
    reply = yield from get(core, path, BalanceRecord)
    return reply.balance


def balance_history(core: Core, account: Whom) -> Steps[list[HeightBalance]]:
    """The balance changes of an account that the node keeps, the newest first. Some nodes require
    the API key.
    """
    path = f"/debug/balances/history/{address_of(account)}"
    return ask(core, Request("GET", path, headers=key_headers(core)), list[HeightBalance])


def asset_balances(
    core: Core, account: Whom, ids: Iterable[str] | None = None
) -> Steps[list[AssetBalance]]:
    """The asset balances of an account, all or those of some ids, without NFTs."""
    path = f"/assets/balance/{address_of(account)}"
    if ids is None:
        reply = yield from get(core, path, AssetBalances)
    else:
        reply = yield from post(core, path, {"ids": list(ids)}, AssetBalances)
    return reply.balances


def nfts(core: Core, account: Whom, limit: int = PAGE) -> Pages[AssetDetails]:
    """The NFTs of an account, requested in pages of ``limit``."""

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
    """The data of an account: all entries, those of some keys, or those whose key matches a regular
    expression.
    """
    path = f"/addresses/data/{address_of(account)}"
    if keys is not None:
        rows = yield from post(core, path, {"keys": list(keys)}, list[Json])
    else:
        rows = yield from get(core, path + query(matches=matches), list[Json])
    return {row["key"]: data_value(row["type"], row["value"]) for row in rows if row.get("type")}


def data_entry(core: Core, account: Whom, key: str) -> Steps[DataValue]:
    """One entry of an account's data, ``None`` if it does not exist."""
    path = f"/addresses/data/{address_of(account)}/{segment(key)}"
    try:
        row: Mapping[str, Any] = yield from get(core, path, Json)
    except NotFound:
        return None
    check_same("an entry", row["key"], key)
    return data_value(row["type"], row["value"])


def script(core: Core, account: Whom) -> Steps[ScriptInfo]:
    """The script of an account and its complexity."""
    return get(core, f"/addresses/scriptInfo/{address_of(account)}", ScriptInfo)


def functions(core: Core, account: Whom) -> Steps[dict[str, list[Json]]]:
    """The callable functions of a dApp: name and type of each argument."""
    reply = yield from get(core, f"/addresses/scriptInfo/{address_of(account)}/meta", Json)
    found: dict[str, list[Json]] = (reply.get("meta") or {}).get("callableFuncTypes") or {}
    return found


def aliases(core: Core, account: Whom) -> Steps[list[str]]:
    """The aliases of an account, as ``alias:R:name``."""
    return get(core, f"/alias/by-address/{address_of(account)}", list[str])


def address_by_alias(core: Core, alias: str) -> Steps[str]:
    """The address of an alias, ``name`` or ``alias:R:name``; raises ``NotFound``."""
    name = alias.rpartition(":")[2]
    reply = yield from get(core, f"/alias/by-alias/{segment(name)}", AliasRecord)
    return reply.address


def active_leases(core: Core, account: Whom) -> Steps[list[Lease]]:
    """The active leases from and to an account."""
    return get(core, f"/leasing/active/{address_of(account)}", list[Lease])


def lease(core: Core, lease_id: str) -> Steps[Lease]:
    """A lease with its present state."""
    found = yield from get(core, f"/leasing/info/{segment(lease_id)}", Lease)
    check_same("a lease", found.id, lease_id)
    return found


def leases(core: Core, ids: Iterable[str]) -> Steps[list[Lease]]:
    """Several leases."""
    return post(core, "/leasing/info", {"ids": list(ids)}, list[Lease])
