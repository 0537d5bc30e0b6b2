"""Routes under ``/addresses``: accounts of the wallet, balances.

Data and scripts of accounts have a module of their own (``account_data``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
AddressApiRoute.scala`` and ``api/common/CommonAccountsApi.scala``; 0bsnetwork/Zbs ``src/main/scala/
com/zbsnetwork/api/http/AddressApiRoute.scala`` for the oldest generation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.json_reader import wrong_texts
from soliton.api.lookup import address_argument, is_oldest, node_of
from soliton.api.rest import examples
from soliton.api.route_table import row, table
from soliton.api.routes import Body, BodyKind
from soliton.chain.addresses import (
    PUBLIC_KEY_LENGTH,
    Address,
    address_text,
    from_public_key,
    parse_address,
)
from soliton.chain.errors import AddressError
from soliton.chain.values import AssetId
from soliton.crypto import base58, bls
from soliton.crypto.errors import Base58Error
from soliton.crypto.keys import KeyPair
from soliton.ledger.state import (
    WAVES,
    effective_balance_at,
    is_banned_between,
    locked_balance,
)
from soliton.node.node import Node
from soliton.node.wallet import WalletError
from soliton.storage import indexes
from soliton.storage.indexes import minimum_balance, minimum_effective_balance
from soliton.storage.reader import StoreReader

MAX_WALLET_ADDRESSES: Final = 1_000
MAX_PUBLIC_KEY_TEXT_CHARS: Final = 256
_INT: Final = 2**31


class Balance(msgspec.Struct, frozen=True, gc=False):
    """A balance in wavelets, the smallest over a number of blocks."""

    address: str
    confirmations: int
    balance: int


class BalanceDetails(msgspec.Struct, frozen=True, gc=False):
    """Balances in wavelets: total, for mining, without leases out, and with leases counted."""

    address: str
    regular: int
    generating: int
    available: int
    effective: int


class BalanceOfMany(msgspec.Struct, frozen=True, gc=False):
    """An account's balance in a list."""

    id: str
    balance: int


class OneAddress(msgspec.Struct, frozen=True, gc=False):
    """An address."""

    address: str


class EndorserKey(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The key (BLS12-381) with which a generator endorses blocks."""

    bls_public_key: str


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
            raise errors.invalid_request("Invalid sequence")
        if end - start >= MAX_WALLET_ADDRESSES:
            raise errors.TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=MAX_WALLET_ADDRESSES)
    elif start - end >= MAX_WALLET_ADDRESSES:
        # The oldest generation checks the difference with the wrong sign.
        raise errors.TOO_BIG_SEQUENCE.error()
    return _wallet_addresses(node)[start:end]


def create(request: Request) -> OneAddress:
    """Add the next account to the node's wallet."""
    node = node_of(request)
    try:
        return OneAddress(address_text(node.wallet.generate_account(node.network.chain_id)))
    except WalletError as error:
        raise errors.invalid_request(str(error)) from error


def delete(request: Request) -> Deleted:
    """Delete an account of the node's wallet."""
    node = node_of(request)
    try:
        return Deleted(node.wallet.delete_account(address_argument(request)))
    except WalletError as error:
        raise errors.invalid_request(str(error)) from error


def seed(request: Request) -> AccountSeed:
    """The account seed of an account of the node's wallet."""
    node = node_of(request)
    text = request.text("address")
    try:
        address = parse_address(text, node.network.chain_id)
    except AddressError as error:
        raise errors.INVALID_ADDRESS.error() from error
    try:
        found = node.wallet.account_seed(address)
    except WalletError as error:
        raise errors.invalid_request(str(error)) from error
    if found is None:
        raise errors.MISSING_SENDER_PRIVATE_KEY.error()
    return AccountSeed(text, base58.encode(found))


def endorser_key(request: Request) -> EndorserKey:
    """The key for endorsements of an account of the node's wallet."""
    keys = node_of(request).wallet.key(address_argument(request))
    if not isinstance(keys, KeyPair):
        # A key outside of the node makes no such signatures.
        raise errors.MISSING_SENDER_PRIVATE_KEY.error()
    return EndorserKey(base58.encode(bls.public_key_of(bls.generate_key(keys.private_key))))


# --- conversion and validation --------------------------------------------------------------------


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
        raise errors.INVALID_PUBLIC_KEY.error() from error
    if len(key) != PUBLIC_KEY_LENGTH and not is_oldest(node):
        raise errors.INVALID_PUBLIC_KEY.error()
    return OneAddress(address_text(from_public_key(key, node.network.chain_id)))


# --- balances -------------------------------------------------------------------------------------


def balance(request: Request) -> Balance:
    """An account's balance."""
    address = address_argument(request)
    return Balance(address_text(address), 0, node_of(request).chain.balance(address))


def confirmed_balance(request: Request) -> Balance:
    """An account's smallest balance over the last blocks."""
    return _minimum(request, minimum_balance, confirmed=True)


def effective(request: Request) -> Balance:
    """An account's balance, leases counted."""
    return _minimum(request, _minimum_effective, confirmed=False)


def confirmed_effective(request: Request) -> Balance:
    """An account's smallest balance over the last blocks, leases counted."""
    return _minimum(request, _minimum_effective, confirmed=True)


def _minimum(
    request: Request,
    read: Callable[[StoreReader, Address, int, int], int],
    *,
    confirmed: bool,
) -> Balance:
    node, address = node_of(request), address_argument(request)
    top, confirmations = node.chain.height, request.integer("confirmations") if confirmed else 0
    if confirmed and not is_oldest(node):
        _check_depth(node, top - confirmations)
    bottom = min(top, max(1, top - confirmations + 1))
    least = read(node.chain.store, address, bottom, top)
    return Balance(address_text(address), confirmations, least)


def _minimum_effective(store: StoreReader, address: Address, bottom: int, top: int) -> int:
    if is_banned_between(store, address, bottom, top):
        return 0
    return minimum_effective_balance(store, address, bottom, top)


def _check_depth(node: Node, height: int) -> None:
    lowest = node.chain.height - node.settings.db.max_rollback_depth
    if height < lowest:
        raise errors.invalid_request(f"Unable to get balance past height {lowest}")


def details(request: Request) -> BalanceDetails:
    """All balances of an account in the chain's coin."""
    node, address = node_of(request), address_argument(request)
    regular = node.chain.balance(address)
    return BalanceDetails(
        address_text(address),
        regular,
        node.chain.generating_balance(address),
        regular - locked_balance(node.chain.state, address),
        effective_balance_at(node.chain.state, address, node.chain.height),
    )


def of_many(request: Request) -> list[BalanceOfMany]:
    """Balances of the accounts in the query."""
    return _of_many(
        node_of(request),
        request.query.get("address", []),
        request.optional_integer("height"),
        request.optional_text("asset"),
    )


def of_many_posted(request: Request) -> list[BalanceOfMany]:
    """Balances of the accounts in the body."""
    body = request.json()
    texts, height, asset = body.get("addresses"), body.get("height"), body.get("asset")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise wrong_texts("addresses", texts)
    return _of_many(
        node_of(request),
        [text for text in texts if isinstance(text, str)],
        height if type(height) is int and -_INT <= height < _INT else None,
        asset if isinstance(asset, str) else None,
    )


def _of_many(
    node: Node, texts: Sequence[str], height: int | None, asset: str | None
) -> list[BalanceOfMany]:
    top = node.chain.height
    at = top if height is None else height
    _check_depth(node, at)
    if len(texts) > node.settings.rest_api.transactions_by_address_limit:
        raise errors.TOO_BIG_SEQUENCE.error()
    if not 1 <= at <= top:
        raise errors.invalid_request(f"Illegal height: {at}")
    try:
        asset_id = None if asset is None else base58.decode(asset, MAX_PUBLIC_KEY_TEXT_CHARS)
    except Base58Error as error:
        raise errors.invalid_request(str(error)) from error
    found = []
    for text in dict.fromkeys(texts):
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


_BALANCES_BODY: Final = Body(
    BodyKind.JSON_OR_REJECT,
    "Addresses; optionally a height and an asset's id",
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
_MANY_ERRORS: Final = "TOO_BIG_SEQUENCE CUSTOM_VALIDATION_ERROR"
_BALANCES: Final = ("regular", "generating", "available", "effective")
_BALANCE_EXAMPLE: Final = {
    "address": examples.ADDRESS,
    "confirmations": 0,
    "balance": examples.AMOUNT,
}

ROUTES: Final = table("addresses", f"""
from          | natural | Index of the first        | 0
to            | natural | Index after the last      | 1
publicKey     | text    | Public key in base58      | {examples.PUBLIC_KEY}
confirmations | natural | Number of blocks          | 2
address.any   | text*   | Addresses                 | {examples.ADDRESS}
height.at     | integer | At this height            | 1
asset         | text    | Of the asset with this id | {examples.ASSET_ID}
""",
    row("GET /addresses reads=node", own, "The accounts of the node's wallet", list[str],
        [examples.ADDRESS]),
    row("POST /addresses key=accounts reads=node", create,
        "Add the next account to the node's wallet", OneAddress, {"address": examples.ADDRESS},
        "CUSTOM_VALIDATION_ERROR"),
    row("DELETE /addresses/{address} key=accounts reads=node", delete,
        "Delete an account of the node's wallet", Deleted, {"deleted": True},
        "INVALID_ADDRESS CUSTOM_VALIDATION_ERROR"),
    row("GET /addresses/seq/{from}/{to} reads=node", own_slice,
        "Some of the accounts of the node's wallet, at most 1000", list[str], [examples.ADDRESS],
        "CUSTOM_VALIDATION_ERROR TOO_BIG_SEQUENCE TOO_BIG_SEQUENCE_WITH_LIMIT"),
    row("GET /addresses/seed/{address} key=seeds reads=node", seed,
        "The account seed of an account of the node's wallet, in base58", AccountSeed,
        {"address": examples.ADDRESS, "seed": examples.ACCOUNT_SEED},
        "INVALID_ADDRESS MISSING_SENDER_PRIVATE_KEY CUSTOM_VALIDATION_ERROR"),
    row("GET /addresses/bls/{address} reads=node family=waves", endorser_key,
        "The key for endorsements of an account of the node's wallet", EndorserKey,
        {"blsPublicKey": examples.ENDORSER_KEY}, "INVALID_ADDRESS MISSING_SENDER_PRIVATE_KEY"),
    row("GET /addresses/publicKey/{publicKey}", of_public_key, "The address of a public key",
        OneAddress, {"address": examples.ADDRESS}, "INVALID_PUBLIC_KEY"),
    row("GET /addresses/validate/{address}", validate,
        "Whether a text is an address of this network", Validity,
        {"address": examples.ADDRESS, "valid": True}),
    row("GET /addresses/balance/{address}", balance, "Balance of an account", Balance,
        _BALANCE_EXAMPLE, "INVALID_ADDRESS"),
    row("GET /addresses/balance/{address}/{confirmations}", confirmed_balance,
        "Smallest balance of an account over the last blocks", Balance,
        {**_BALANCE_EXAMPLE, "confirmations": 2}, "INVALID_ADDRESS CUSTOM_VALIDATION_ERROR"),
    row("GET /addresses/balance/details/{address}", details,
        "All balances of an account in the chain's coin", BalanceDetails,
        {"address": examples.ADDRESS, **dict.fromkeys(_BALANCES, examples.AMOUNT)},
        "INVALID_ADDRESS"),
    row("GET /addresses/balance?address.any&height.at&asset", of_many,
        "Balances of several accounts", list[BalanceOfMany],
        [{"id": examples.ADDRESS, "balance": examples.AMOUNT}], _MANY_ERRORS),
    row("POST /addresses/balance reads=chain", of_many_posted, "Balances of several accounts",
        list[BalanceOfMany], [{"id": examples.ADDRESS, "balance": examples.AMOUNT}], _MANY_ERRORS,
        body=_BALANCES_BODY),
    row("ANY /addresses/effectiveBalance/{address} reads=chain", effective,
        "Balance of an account, leases counted", Balance, _BALANCE_EXAMPLE, "INVALID_ADDRESS"),
    row("ANY /addresses/effectiveBalance/{address}/{confirmations} reads=chain",
        confirmed_effective, "Smallest balance of an account over the last blocks, leases counted",
        Balance, {**_BALANCE_EXAMPLE, "confirmations": 2},
        "INVALID_ADDRESS CUSTOM_VALIDATION_ERROR"),
    reads="state",
)  # fmt: skip
