"""Routes under ``/eth`` that are no JSON-RPC: assets by the addresses that wallets know them by.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/eth/EthRpcRoute.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.api.errors import INVALID_IDS, TOO_BIG_SEQUENCE_WITH_LIMIT, RejectionError
from soliton.api.http import Request
from soliton.api.json_assets import asset_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import id_list, id_query, node_of, with_slash
from soliton.api.routes import GET, POST, Route
from soliton.ledger.state import ERC20
from soliton.node.node import Node

_ADDRESS_BYTES: Final = 20
_PREFIX: Final = "0x"
_EXAMPLE_ID: Final = "0xbc0fc8572edec311291658e766f2d47f12cd8390"

FAMILIES: Final = dict.fromkeys(("/eth/assets", "/eth/assets/"), ("waves",))
"""Routes that only some families of networks have."""


def assets(request: Request) -> list[Members]:
    """What is known about assets."""
    node = node_of(request)
    texts = request.listed("id", "ids")
    limit = node.settings.rest_api.asset_details_limit
    if not texts:
        raise RejectionError("no ids")
    if len(texts) > limit:
        raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=limit)
    found = [_asset_id(text, node) for text in texts]
    wrong = [text for text, name in zip(texts, found, strict=True) if name is None]
    if wrong:
        raise INVALID_IDS.error(ids=wrong)
    return [asset_json(name, node.chain, full=False) for name in found if name is not None]


def _asset_id(text: str, node: Node) -> bytes | None:
    digits = text.removeprefix(_PREFIX)
    if len(digits) != 2 * _ADDRESS_BYTES:
        return None
    try:
        return node.chain.store.get(ERC20, bytes.fromhex(digits))
    except ValueError:
        return None


ROUTES: tuple[Route, ...] = tuple(
    each
    for methods, parameters, body in (
        (GET, (id_query("Addresses of 20 bytes in hexadecimal", _EXAMPLE_ID),), None),
        (POST, (), id_list(_EXAMPLE_ID)),
    )
    for each in with_slash(
        Route(
            methods=methods,
            path="/eth/assets",
            handler=assets,
            tag="eth",
            summary="What is known about assets that wallets know by these addresses",
            parameters=parameters,
            body=body,
            response={"type": "array", "items": {"type": "object"}},
            example=[{"assetId": "Df7c7UZoMyz3YzavjWQ2oxA25NZyswD86wZJKVrRzFmN"}],
            errors=(INVALID_IDS, TOO_BIG_SEQUENCE_WITH_LIMIT),
        )
    )
)
