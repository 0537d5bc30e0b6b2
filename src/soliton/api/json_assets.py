"""Assets in the JSON of the REST API.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/assets/
AssetsApiRoute.scala`` and ``api/common/CommonAssetsApi.scala``; 0bsnetwork/Zbs ``src/main/scala/
com/zbsnetwork/api/http/assets/AssetsApiRoute.scala`` for the oldest generation.
"""

from __future__ import annotations

from soliton.api.json_snapshots import whole
from soliton.api.json_transactions import MIDDLE, Members
from soliton.api.translate import OLDEST
from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.json_kinds import encode_base64
from soliton.chain.layouts import lenient_text
from soliton.chain.transactions import issue
from soliton.chain.transactions.codec import to_json
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.ledger.state import (
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    SPONSORSHIPS,
    WAVES,
    AssetInfo,
    Status,
    locked_balance,
)
from soliton.node.blockchain import Blockchain
from soliton.ride.script import parse_script
from soliton.ride.tree_text import tree_text
from soliton.storage.errors import DamagedStore


def asset_json(
    asset_id: AssetId, chain: Blockchain, *, full: bool, in_list: bool = False
) -> Members:
    """The details of an asset; raises ``KeyError`` if there is none.

    ``full`` adds its script. A list of NFTs (``in_list``) omits an absent sponsorship.
    """
    store = chain.store
    info, name = store.get(ASSETS, asset_id), store.get(ASSET_NAMES, asset_id)
    volume, script = store.get(ASSET_VOLUMES, asset_id), store.get(ASSET_SCRIPTS, asset_id)
    if info is None:
        raise KeyError(asset_id.hex())
    if name is None or volume is None:
        raise DamagedStore(f"of the asset {base58.encode(asset_id)} records are missing")
    found = chain.transaction(info.origin)
    members: Members = {
        "assetId": base58.encode(asset_id),
        "issueHeight": info.height,
        "issueTimestamp": 0 if found is None else found.transaction.timestamp,
        "issuer": address_text(from_public_key(info.issuer, chain.network.chain_id)),
        "issuerPublicKey": base58.encode(info.issuer),
        "name": lenient_text(name.name),
        "description": lenient_text(name.description),
        "decimals": info.decimals,
        "reissuable": volume.reissuable,
        "quantity": whole(volume.quantity),
        "scripted": script is not None,
        "minSponsoredAssetFee": store.get(SPONSORSHIPS, asset_id) or None,
        "originTransactionId": base58.encode(info.origin),
        "sequenceInBlock": info.sequence,
    }
    omitted = []
    if chain.network.family == OLDEST:
        omitted = ["issuerPublicKey", "originTransactionId", "sequenceInBlock"]
    elif chain.network.family == MIDDLE:
        omitted = ["sequenceInBlock"]
    if in_list and members["minSponsoredAssetFee"] is None:
        omitted.append("minSponsoredAssetFee")
    for key in omitted:
        del members[key]
    if full and script is not None:
        members["scriptDetails"] = {
            "scriptComplexity": script.complexity,
            "script": encode_base64(script.script),
            "scriptText": tree_text(parse_script(script.script)),
        }
    return members


def balance_json(asset_id: AssetId, balance: int, chain: Blockchain) -> Members:
    """An account's balance of an asset with its details; only the id if there is no such asset."""
    store = chain.store
    info, volume = store.get(ASSETS, asset_id), store.get(ASSET_VOLUMES, asset_id)
    members: Members = {"assetId": base58.encode(asset_id)}
    if info is None or volume is None:
        return members
    members["reissuable"] = volume.reissuable
    fee = store.get(SPONSORSHIPS, asset_id)
    old = chain.network.family in (OLDEST, MIDDLE)
    if fee or old:
        members["minSponsoredAssetFee"] = fee or None
        members["sponsorBalance"] = _spendable(info, chain) if fee else None
    members["quantity"] = whole(volume.quantity)
    issued = _issue_json(asset_id, chain)
    if issued is not None or old:
        members["issueTransaction"] = issued
    members["balance"] = balance
    if not old:
        members["sequenceInBlock"] = info.sequence
    return members


def _spendable(info: AssetInfo, chain: Blockchain) -> int:
    issuer = from_public_key(info.issuer, chain.network.chain_id)
    return chain.store.get(WAVES, issuer) - locked_balance(chain.store, issuer)


def _issue_json(asset_id: AssetId, chain: Blockchain) -> Members | None:
    found = chain.transaction(asset_id)
    if found is None or found.status != Status.SUCCEEDED:
        return None
    if found.transaction.type_id != issue.TYPE.type_id:
        return None
    members: Members = to_json(found.transaction)
    if chain.network.family not in (OLDEST, MIDDLE):
        members.setdefault("chainId", None)
    return members
