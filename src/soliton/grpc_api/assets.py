"""``waves.node.grpc.AssetsApi``: details of assets, NFTs of accounts.

Source: wavesplatform/Waves ``grpc-server/src/main/scala/com/wavesplatform/api/grpc/
AssetsApiGrpcImpl.scala``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from soliton.api import errors
from soliton.chain.addresses import from_public_key
from soliton.chain.layouts import lenient_text
from soliton.chain.transactions import issue
from soliton.chain.values import AssetId, wrapped
from soliton.grpc_api.errors import of_rest
from soliton.grpc_api.messages import DIGEST_LENGTH, script_text, signed_transaction
from soliton.grpc_api.proto import assets_api_pb2 as pb
from soliton.grpc_api.reading import stream_address
from soliton.ledger.state import (
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    SPONSORSHIPS,
    WAVES,
    Status,
    locked_balance,
)
from soliton.node.blockchain import Blockchain
from soliton.storage import indexes

SERVICE: Final = pb.DESCRIPTOR.services_by_name["AssetsApi"]


def get_info(chain: Blockchain, request: pb.AssetRequest) -> pb.AssetInfoResponse:
    """Return the details of an asset."""
    found = None
    if len(request.asset_id) == DIGEST_LENGTH:
        found = _info(chain, AssetId(request.asset_id))
    if found is None:
        raise of_rest(errors.TRANSACTION_DOES_NOT_EXIST.error())
    return found


def _info(
    chain: Blockchain, asset_id: AssetId, *, in_list: bool = False
) -> pb.AssetInfoResponse | None:
    store = chain.store
    info, name = store.get(ASSETS, asset_id), store.get(ASSET_NAMES, asset_id)
    volume, script = store.get(ASSET_VOLUMES, asset_id), store.get(ASSET_SCRIPTS, asset_id)
    if info is None or name is None or volume is None:
        return None
    response = pb.AssetInfoResponse(
        issuer=info.issuer,
        name=lenient_text(name.name),
        description=lenient_text(name.description),
        decimals=info.decimals,
        reissuable=volume.reissuable,
        total_volume=wrapped(volume.quantity),
        sequence_in_block=info.sequence,
        issue_height=info.height,
    )
    if script is not None:
        response.script.script_bytes = script.script
        response.script.script_text = script_text(script.script)
        response.script.complexity = script.complexity
    fee = store.get(SPONSORSHIPS, asset_id)
    if fee:
        issuer = from_public_key(info.issuer, chain.network.chain_id)
        response.sponsorship = fee
        response.sponsor_balance = store.get(WAVES, issuer) - locked_balance(store, issuer)
    made_by = None if in_list else chain.transaction(asset_id)
    if (
        made_by is not None
        and made_by.status == Status.SUCCEEDED
        and made_by.transaction.type_id == issue.TYPE.type_id
    ):
        response.issue_transaction.CopyFrom(signed_transaction(made_by.transaction))
    return response


def get_nft_list(chain: Blockchain, request: pb.NFTRequest) -> Iterator[pb.NFTResponse | None]:
    """Return the NFTs of an account in the order of their issue, after a given one."""
    if not request.address:
        return
    address = stream_address(request.address, chain.network.chain_id)
    left, after = request.limit, None
    if request.after_asset_id:
        after = indexes.nft_place(chain.store, address, request.after_asset_id)
        if after is None:
            # As in the reference, the list is searched for it up to the end.
            return
    if left <= 0:
        return
    for asset_id, _ in indexes.nfts(chain.store, address, after):
        if chain.store.get(ASSET_BALANCES, (address, asset_id)) <= 0:
            yield None
            continue
        yield pb.NFTResponse(asset_id=asset_id, asset_info=_info(chain, asset_id, in_list=True))
        left -= 1
        if left == 0:
            return


METHODS: Final = {"GetInfo": get_info, "GetNFTList": get_nft_list}
