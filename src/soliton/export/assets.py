"""Rows of assets: the state of an asset after each transaction that changed it.

A transaction contains only its changes of an asset; the table has the whole state. The previous
state is read from the database once, and cached until a batch fails or the chain is rolled back.

What lives here: the rows. What does not: reading and writing them (``database``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from soliton.chain.addresses import address_text, from_public_key
from soliton.crypto import base58
from soliton.export.rows import Row, moment, text
from soliton.export.sources import ChainTransaction, Members

CURRENT: Final = 9_223_372_036_854_775_806
"""The value of ``superseded_by`` in current rows."""
MAX_KEPT: Final = 100_000

UPDATE_COLUMNS: Final = (
    *("block_uid", "uid", "superseded_by", "asset_id", "decimals", "name", "description"),
    *("reissuable", "volume", "script", "sponsorship", "nft"),
)
ORIGIN_COLUMNS: Final = (
    *("asset_id", "first_asset_update_uid", "origin_transaction_id", "issuer", "issue_height"),
    "issue_time_stamp",
)


class Asset(msgspec.Struct, frozen=True, gc=False):
    """An asset after a transaction; ``uid`` is that of its row."""

    uid: int = 0
    decimals: int = 0
    name: str = ""
    description: str = ""
    reissuable: bool = False
    volume: int = 0
    script: str | None = None
    sponsorship: int | None = None
    nft: bool = False


def changed_assets(assets: Members) -> set[str]:
    """Return the ids of the assets in a snapshot."""
    return {each["id"] for rows in assets.values() for each in rows}


class AssetRows:
    """The rows of a batch, on top of the stored ones."""

    def __init__(self, known: dict[str, Asset], next_uid: int, chain_id: int) -> None:
        """``known`` caches the assets' states; adding rows updates it."""
        self._known = known
        self._next_uid = next_uid
        self._chain_id = chain_id
        self._rows: dict[int, list[object]] = {}
        self.origins: list[Row] = []
        self.superseded: dict[str, int] = {}
        """By asset, the row of this batch that supersedes the stored one."""

    @property
    def updates(self) -> list[Row]:
        """The rows, by uid."""
        return [tuple(row) for row in self._rows.values()]

    def add(self, transaction: ChainTransaction, height: int, block_uid: int) -> None:
        """Add the rows of a transaction."""
        assets = transaction.assets
        if not assets:
            return
        made: dict[str, Members] = {each["id"]: each for each in assets["assetStatics"]}
        for asset_id in sorted(changed_assets(assets)):
            before = self._known.get(asset_id, Asset())
            after = _changed(before, asset_id, assets)
            uid = self._next_uid
            self._next_uid += 1
            if before.uid in self._rows:
                self._rows[before.uid][2] = uid
            elif before.uid:
                self.superseded[asset_id] = uid
            if asset_id in made:
                self._add_origin(made[asset_id], uid, height, transaction.members)
            after = self._known[asset_id] = msgspec.structs.replace(after, uid=uid)
            self._rows[uid] = [
                *(block_uid, uid, CURRENT, asset_id, after.decimals, after.name),
                *(after.description, after.reissuable, after.volume, after.script),
                *(after.sponsorship, after.nft),
            ]

    def _add_origin(self, static: Members, uid: int, height: int, members: Members) -> None:
        issuer = address_text(from_public_key(base58.decode(static["issuer"]), self._chain_id))
        self.origins.append(
            (static["id"], uid, members["id"], issuer, height, moment(members["timestamp"]))
        )


def _changed(asset: Asset, asset_id: str, assets: Members) -> Asset:
    """Return an asset with the changes of a snapshot."""
    changes: dict[str, object] = {}
    for name, read in _READERS.items():
        for each in assets[name]:
            if each["id"] == asset_id:
                changes |= read(each)
    return msgspec.structs.replace(asset, **changes)


_READERS: Final[Mapping[str, Callable[[Members], Members]]] = {
    "assetStatics": lambda each: {"decimals": each["decimals"], "nft": each["nft"]},
    "assetVolumes": lambda each: {
        "reissuable": each["isReissuable"],
        "volume": each["volume"] if isinstance(each["volume"], int) else int(bytes(each["volume"])),
    },
    "assetNamesAndDescriptions": lambda each: {
        "name": text(each["name"]),
        "description": text(each["description"]),
    },
    "assetScripts": lambda each: {"script": each["script"].removeprefix("base64:")},
    "sponsorships": lambda each: {"sponsorship": each["minSponsoredAssetFee"] or None},
}


def named_assets(transactions: Iterable[ChainTransaction]) -> set[str]:
    """Return the assets that transactions change."""
    found: set[str] = set()
    for each in transactions:
        if each.assets:
            found |= changed_assets(each.assets)
    return found
