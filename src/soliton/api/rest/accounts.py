"""What else accounts have: aliases, assets, leases.

No transaction of these kinds can be on a chain of this version, so lists are read where the state
has them and are empty where it has none.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/alias/
AliasApiRoute.scala``, ``assets/AssetsApiRoute.scala`` and ``leasing/LeaseApiRoute.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.api.errors import (
    ALIAS_DOES_NOT_EXIST,
    CUSTOM_VALIDATION_ERROR,
    INVALID_ADDRESS,
    INVALID_ASSET_ID,
    invalid_request,
)
from soliton.api.http import Request
from soliton.api.lookup import ADDRESS, DIGEST_LENGTH, address_argument, decode_id, node_of
from soliton.api.rest import examples
from soliton.api.routes import GET, TEXT, Parameter, Route
from soliton.chain.addresses import address_text, make_alias
from soliton.chain.errors import AliasError
from soliton.ledger.state import ALIASES, ASSET_BALANCES


class AliasAddress(msgspec.Struct, frozen=True, gc=False):
    """Whom an alias names."""

    address: str


class AssetBalances(msgspec.Struct, frozen=True, gc=False):
    """The assets of an account."""

    address: str
    balances: list[dict[str, Any]]


class AssetBalance(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An account's balance of one asset."""

    address: str
    asset_id: str
    balance: int


def address_of_alias(request: Request) -> AliasAddress:
    """Whom an alias names."""
    node = node_of(request)
    try:
        alias = make_alias(request.text("alias"), node.network.chain_id)
    except AliasError as error:
        raise invalid_request(str(error)) from error
    address = node.chain.store.get(ALIASES, alias.name)
    if address is None:
        raise ALIAS_DOES_NOT_EXIST.error(alias=alias.text())
    return AliasAddress(address_text(address))


def aliases_of_address(request: Request) -> list[str]:
    """The aliases of an account."""
    address_argument(request)
    return []


def asset_balances(request: Request) -> AssetBalances:
    """The assets of an account."""
    return AssetBalances(address_text(address_argument(request)), [])


def asset_balance(request: Request) -> AssetBalance:
    """An account's balance of one asset."""
    node, address = node_of(request), address_argument(request)
    text = request.text("assetId")
    asset_id = decode_id(text)
    if asset_id is None or len(asset_id) != DIGEST_LENGTH:
        raise INVALID_ASSET_ID.error()
    balance = node.chain.store.get(ASSET_BALANCES, (address, asset_id))
    return AssetBalance(address_text(address), text, balance)


def active_leases(request: Request) -> list[dict[str, object]]:
    """The leases from and to an account that are in force."""
    address_argument(request)
    return []


_OBJECTS: Final = {"type": "array", "items": {"type": "object"}}

ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/alias/by-alias/{alias}",
        handler=address_of_alias,
        tag="alias",
        summary="Whom an alias names",
        parameters=(Parameter("alias", TEXT, "The bare name, 4 to 30 characters", "somebody"),),
        response=AliasAddress,
        example={"address": examples.ADDRESS},
        errors=(ALIAS_DOES_NOT_EXIST, CUSTOM_VALIDATION_ERROR),
    ),
    Route(
        methods=GET,
        path="/alias/by-address/{address}",
        handler=aliases_of_address,
        tag="alias",
        summary="The aliases of an account",
        parameters=(ADDRESS,),
        response=list[str],
        example=["alias:R:somebody"],
        errors=(INVALID_ADDRESS,),
    ),
    Route(
        methods=GET,
        path="/assets/balance/{address}",
        handler=asset_balances,
        tag="assets",
        summary="The assets of an account",
        parameters=(ADDRESS,),
        response=AssetBalances,
        example={"address": examples.ADDRESS, "balances": []},
        errors=(INVALID_ADDRESS,),
    ),
    Route(
        methods=GET,
        path="/assets/balance/{address}/{assetId}",
        handler=asset_balance,
        tag="assets",
        summary="An account's balance of one asset",
        parameters=(ADDRESS, Parameter("assetId", TEXT, "Id of the asset", examples.ASSET_ID)),
        response=AssetBalance,
        example={"address": examples.ADDRESS, "assetId": examples.ASSET_ID, "balance": 0},
        errors=(INVALID_ADDRESS, INVALID_ASSET_ID),
    ),
    Route(
        methods=GET,
        path="/leasing/active/{address}",
        handler=active_leases,
        tag="leasing",
        summary="The leases from and to an account that are in force",
        parameters=(ADDRESS,),
        response=_OBJECTS,
        example=[
            {
                "id": examples.TRANSACTION_ID,
                "originTransactionId": examples.TRANSACTION_ID,
                "sender": examples.ADDRESS,
                "recipient": "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY",
                "amount": 100000000,
                "height": 2,
                "status": "active",
                "cancelHeight": None,
                "cancelTransactionId": None,
            }
        ],
        errors=(INVALID_ADDRESS,),
    ),
)
