"""Routes under ``/addresses``: accounts of the wallet, balances.

Data and scripts of accounts have a module of their own (``account_data``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
AddressApiRoute.scala`` and ``api/common/CommonAccountsApi.scala``; 0bsnetwork/Zbs ``src/main/scala/
com/zbsnetwork/api/http/AddressApiRoute.scala`` for the oldest generation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from soliton.api.errors import (
    CUSTOM_VALIDATION_ERROR,
    INVALID_ADDRESS,
    INVALID_PUBLIC_KEY,
    MISSING_SENDER_PRIVATE_KEY,
    TOO_BIG_SEQUENCE,
    TOO_BIG_SEQUENCE_WITH_LIMIT,
    invalid_request,
)
from soliton.api.http import Request
from soliton.api.json_reader import wrong_texts
from soliton.api.lookup import ADDRESS, address_argument, is_oldest, node_of
from soliton.api.rest import examples
from soliton.api.routes import (
    ANY_METHOD,
    DELETE,
    GET,
    INTEGER,
    NATURAL,
    POST,
    TEXT,
    Body,
    BodyKind,
    Parameter,
    Route,
    query_parameter,
)
from soliton.chain.addresses import (
    PUBLIC_KEY_LENGTH,
    Address,
    address_text,
    from_public_key,
    parse_address,
)
from soliton.chain.errors import AddressError
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.ledger.state import (
    LEASES,
    WAVES,
    effective_balance,
)
from soliton.node.node import Node
from soliton.node.wallet import WalletError
from soliton.storage import indexes
from soliton.storage.indexes import minimum_balance, minimum_effective_balance

MAX_WALLET_ADDRESSES: Final = 1_000
MAX_PUBLIC_KEY_TEXT_CHARS: Final = 256

_TAG: Final = "addresses"


class Balance(msgspec.Struct, frozen=True, gc=False):
    """A balance in wavelets, the smallest over a number of blocks."""

    address: str
    confirmations: int
    balance: int


class BalanceDetails(msgspec.Struct, frozen=True, gc=False):
    """Wavelets: owned, good for mining, free of leases, and with leases counted."""

    address: str
    regular: int
    generating: int
    available: int
    effective: int


class BalanceOfMany(msgspec.Struct, frozen=True, gc=False):
    """One balance of a list."""

    id: str
    balance: int


class OneAddress(msgspec.Struct, frozen=True, gc=False):
    """An address."""

    address: str


class Validity(msgspec.Struct, frozen=True, gc=False):
    """Whether a text is an address of this network."""

    address: str
    valid: bool


class Deleted(msgspec.Struct, frozen=True, gc=False):
    """Whether the account was in the wallet."""

    deleted: bool


class AccountSeed(msgspec.Struct, frozen=True, gc=False):
    """The account seed behind an address, in base58."""

    address: str
    seed: str

    def __repr__(self) -> str:
        return f"AccountSeed({self.address}, …)"


# --- the wallet -----------------------------------------------------------------------------------


def own(request: Request) -> list[str]:
    """The accounts of the node's wallet."""
    return _wallet_addresses(node_of(request))


def _wallet_addresses(node: Node) -> list[str]:
    return [address_text(item) for item in node.wallet.accounts(node.network.chain_id)]


def own_slice(request: Request) -> list[str]:
    """Some of the accounts of the node's wallet."""
    node = node_of(request)
    start, end = request.integer("from"), request.integer("to")
    if not is_oldest(node):
        if start > end:
            raise invalid_request("Invalid sequence")
        if end - start >= MAX_WALLET_ADDRESSES:
            raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=MAX_WALLET_ADDRESSES)
    elif start - end >= MAX_WALLET_ADDRESSES:
        # The oldest generation has its bounds the wrong way round.
        raise TOO_BIG_SEQUENCE.error()
    return _wallet_addresses(node)[start:end]


def create(request: Request) -> OneAddress:
    """Add the next account to the node's wallet."""
    node = node_of(request)
    try:
        return OneAddress(address_text(node.wallet.generate_account(node.network.chain_id)))
    except WalletError as error:
        raise invalid_request(str(error)) from error


def delete(request: Request) -> Deleted:
    """Forget an account of the node's wallet."""
    node = node_of(request)
    return Deleted(node.wallet.delete_account(address_argument(request)))


def seed(request: Request) -> AccountSeed:
    """The account seed of an account of the node's wallet."""
    node = node_of(request)
    text = request.text("address")
    try:
        address = parse_address(text, node.network.chain_id)
    except AddressError as error:
        raise INVALID_ADDRESS.error() from error
    found = node.wallet.account_seed(address)
    if found is None:
        raise MISSING_SENDER_PRIVATE_KEY.error()
    return AccountSeed(text, base58.encode(found))


# --- addresses as such ----------------------------------------------------------------------------


def validate(request: Request) -> Validity:
    """Whether a text is an address of this network."""
    text = request.text("address")
    try:
        parse_address(text, node_of(request).network.chain_id)
    except AddressError:
        return Validity(text, valid=False)
    return Validity(text, valid=True)


def of_public_key(request: Request) -> OneAddress:
    """The address of a public key."""
    node = node_of(request)
    try:
        key = base58.decode(request.text("publicKey"), MAX_PUBLIC_KEY_TEXT_CHARS)
    except Base58Error as error:
        raise INVALID_PUBLIC_KEY.error() from error
    if len(key) != PUBLIC_KEY_LENGTH and not is_oldest(node):
        raise INVALID_PUBLIC_KEY.error()
    return OneAddress(address_text(from_public_key(key, node.network.chain_id)))


# --- balances -------------------------------------------------------------------------------------


def balance(request: Request) -> Balance:
    """An account's balance."""
    address = address_argument(request)
    return Balance(address_text(address), 0, node_of(request).chain.balance(address))


def confirmed_balance(request: Request) -> Balance:
    """An account's smallest balance over the last blocks."""
    node, address = node_of(request), address_argument(request)
    confirmations = _confirmations(request, node)
    top = node.chain.height
    least = minimum_balance(node.chain.store, address, _bottom(top, confirmations), top)
    return Balance(address_text(address), confirmations, least)


def effective(request: Request) -> Balance:
    """An account's balance with leases."""
    node, address = node_of(request), address_argument(request)
    top = node.chain.height
    found = minimum_effective_balance(node.chain.store, address, top, top)
    return Balance(address_text(address), 0, found)


def confirmed_effective(request: Request) -> Balance:
    """An account's smallest balance with leases over the last blocks."""
    node, address = node_of(request), address_argument(request)
    confirmations = _confirmations(request, node)
    top = node.chain.height
    least = minimum_effective_balance(node.chain.store, address, _bottom(top, confirmations), top)
    return Balance(address_text(address), confirmations, least)


def _bottom(top: int, confirmations: int) -> int:
    return min(top, max(1, top - confirmations + 1))


def _confirmations(request: Request, node: Node) -> int:
    confirmations = request.integer("confirmations")
    if not is_oldest(node):
        _check_depth(node, node.chain.height - confirmations)
    return confirmations


def _check_depth(node: Node, height: int) -> None:
    lowest = node.chain.height - node.settings.db.max_rollback_depth
    if height < lowest:
        raise invalid_request(f"Unable to get balance past height {lowest}")


def details(request: Request) -> BalanceDetails:
    """All balances of an account in the native coin."""
    node, address = node_of(request), address_argument(request)
    regular = node.chain.balance(address)
    leases = node.chain.store.get(LEASES, address)
    return BalanceDetails(
        address_text(address),
        regular,
        node.chain.generating_balance(address),
        regular - leases.lease_out,
        effective_balance(regular, leases),
    )


def of_many(request: Request) -> list[BalanceOfMany]:
    """Balances of several accounts, named in the query."""
    return _of_many(
        node_of(request),
        request.query.get("address", []),
        request.optional_integer("height"),
        request.optional_text("asset"),
    )


def of_many_posted(request: Request) -> list[BalanceOfMany]:
    """Balances of several accounts, named in the body."""
    body = request.json()
    texts, height, asset = body.get("addresses"), body.get("height"), body.get("asset")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise wrong_texts("addresses", texts)
    return _of_many(
        node_of(request),
        [text for text in texts if isinstance(text, str)],
        height if isinstance(height, int) else None,
        asset if isinstance(asset, str) else None,
    )


def _of_many(
    node: Node, texts: Iterable[str], height: int | None, asset: str | None
) -> list[BalanceOfMany]:
    top = node.chain.height
    at = top if height is None else height
    _check_depth(node, at)
    wanted = list(dict.fromkeys(texts))
    if len(wanted) > node.settings.rest_api.transactions_by_address_limit:
        raise TOO_BIG_SEQUENCE.error()
    if not 1 <= at <= top:
        raise invalid_request(f"Illegal height: {at}")
    try:
        asset_id = None if asset is None else base58.decode(asset, MAX_PUBLIC_KEY_TEXT_CHARS)
    except Base58Error as error:
        raise invalid_request(str(error)) from error
    found = []
    for text in wanted:
        try:
            address = parse_address(text, node.network.chain_id)
        except AddressError:
            continue
        found.append(BalanceOfMany(text, _balance_at(node, address, at, asset_id)))
    return found


def _balance_at(node: Node, address: Address, height: int, asset_id: bytes | None) -> int:
    if asset_id is not None:
        return indexes.asset_balance_at(node.chain.store, address, AssetId(asset_id), height)
    if height == node.chain.height:
        return node.chain.store.get(WAVES, address)
    return minimum_balance(node.chain.store, address, height, height)


_CONFIRMATIONS: Final = Parameter("confirmations", NATURAL, "Number of blocks", 2)
_BALANCES_BODY: Final = Body(
    BodyKind.JSON_OR_REJECT,
    "Addresses; a height and an asset's id if wanted",
    {"addresses": [examples.ADDRESS], "height": 1},
    {
        "type": "object",
        "properties": {
            "addresses": {"type": "array", "items": {"type": "string"}},
            "height": {"type": "integer"},
            "asset": {"type": "string"},
        },
        "required": ["addresses"],
    },
)
_MANY_ERRORS: Final = (TOO_BIG_SEQUENCE, CUSTOM_VALIDATION_ERROR)
_BALANCE_EXAMPLE: Final = {
    "address": examples.ADDRESS,
    "confirmations": 0,
    "balance": examples.AMOUNT,
}

ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/addresses",
        handler=own,
        tag=_TAG,
        summary="The accounts of the node's wallet",
        response=list[str],
        example=[examples.ADDRESS],
    ),
    Route(
        methods=POST,
        path="/addresses",
        handler=create,
        tag=_TAG,
        summary="Add the next account to the node's wallet",
        key=True,
        response=OneAddress,
        example={"address": examples.ADDRESS},
        errors=(CUSTOM_VALIDATION_ERROR,),
    ),
    Route(
        methods=DELETE,
        path="/addresses/{address}",
        handler=delete,
        tag=_TAG,
        summary="Forget an account of the node's wallet",
        parameters=(ADDRESS,),
        key=True,
        response=Deleted,
        example={"deleted": True},
        errors=(INVALID_ADDRESS,),
    ),
    Route(
        methods=GET,
        path="/addresses/seq/{from}/{to}",
        handler=own_slice,
        tag=_TAG,
        summary="Some of the accounts of the node's wallet, at most 1000",
        parameters=(
            Parameter("from", NATURAL, "Index of the first", 0),
            Parameter("to", NATURAL, "Index after the last", 1),
        ),
        response=list[str],
        example=[examples.ADDRESS],
        errors=(CUSTOM_VALIDATION_ERROR, TOO_BIG_SEQUENCE, TOO_BIG_SEQUENCE_WITH_LIMIT),
    ),
    Route(
        methods=GET,
        path="/addresses/seed/{address}",
        handler=seed,
        tag=_TAG,
        summary="The account seed of an account of the node's wallet, in base58",
        parameters=(ADDRESS,),
        key=True,
        response=AccountSeed,
        example={"address": examples.ADDRESS, "seed": examples.ACCOUNT_SEED},
        errors=(INVALID_ADDRESS, MISSING_SENDER_PRIVATE_KEY),
    ),
    Route(
        methods=GET,
        path="/addresses/publicKey/{publicKey}",
        handler=of_public_key,
        tag=_TAG,
        summary="The address of a public key",
        parameters=(Parameter("publicKey", TEXT, "Public key in base58", examples.PUBLIC_KEY),),
        response=OneAddress,
        example={"address": examples.ADDRESS},
        errors=(INVALID_PUBLIC_KEY,),
    ),
    Route(
        methods=GET,
        path="/addresses/validate/{address}",
        handler=validate,
        tag=_TAG,
        summary="Whether a text is an address of this network",
        parameters=(ADDRESS,),
        response=Validity,
        example={"address": examples.ADDRESS, "valid": True},
    ),
    Route(
        methods=GET,
        path="/addresses/balance/{address}",
        handler=balance,
        tag=_TAG,
        summary="Balance of an account",
        parameters=(ADDRESS,),
        response=Balance,
        example=_BALANCE_EXAMPLE,
        errors=(INVALID_ADDRESS,),
    ),
    Route(
        methods=GET,
        path="/addresses/balance/{address}/{confirmations}",
        handler=confirmed_balance,
        tag=_TAG,
        summary="Smallest balance of an account over the last blocks",
        parameters=(ADDRESS, _CONFIRMATIONS),
        response=Balance,
        example={**_BALANCE_EXAMPLE, "confirmations": 2},
        errors=(INVALID_ADDRESS, CUSTOM_VALIDATION_ERROR),
    ),
    Route(
        methods=GET,
        path="/addresses/balance/details/{address}",
        handler=details,
        tag=_TAG,
        summary="All balances of an account in the native coin",
        parameters=(ADDRESS,),
        response=BalanceDetails,
        example={
            "address": examples.ADDRESS,
            "regular": examples.AMOUNT,
            "generating": examples.AMOUNT,
            "available": examples.AMOUNT,
            "effective": examples.AMOUNT,
        },
        errors=(INVALID_ADDRESS,),
    ),
    Route(
        methods=GET,
        path="/addresses/balance",
        handler=of_many,
        tag=_TAG,
        summary="Balances of several accounts",
        parameters=(
            query_parameter("address", TEXT, "Addresses", [examples.ADDRESS], repeated=True),
            query_parameter("height", INTEGER, "At this height", 1),
            query_parameter("asset", TEXT, "Of the asset with this id", examples.ASSET_ID),
        ),
        response=list[BalanceOfMany],
        example=[{"id": examples.ADDRESS, "balance": examples.AMOUNT}],
        errors=_MANY_ERRORS,
    ),
    Route(
        methods=POST,
        path="/addresses/balance",
        handler=of_many_posted,
        tag=_TAG,
        summary="Balances of several accounts",
        body=_BALANCES_BODY,
        response=list[BalanceOfMany],
        example=[{"id": examples.ADDRESS, "balance": examples.AMOUNT}],
        errors=_MANY_ERRORS,
    ),
    Route(
        methods=ANY_METHOD,
        path="/addresses/effectiveBalance/{address}",
        handler=effective,
        tag=_TAG,
        summary="Balance of an account, leases counted",
        parameters=(ADDRESS,),
        response=Balance,
        example=_BALANCE_EXAMPLE,
        errors=(INVALID_ADDRESS,),
    ),
    Route(
        methods=ANY_METHOD,
        path="/addresses/effectiveBalance/{address}/{confirmations}",
        handler=confirmed_effective,
        tag=_TAG,
        summary="Smallest balance of an account over the last blocks, leases counted",
        parameters=(ADDRESS, _CONFIRMATIONS),
        response=Balance,
        example={**_BALANCE_EXAMPLE, "confirmations": 2},
        errors=(INVALID_ADDRESS, CUSTOM_VALIDATION_ERROR),
    ),
)
