"""Parsing of request fields, and lookups that several services need.

What lives here: addresses, recipients, heights; assets of an account. What does not: the calls that
use them.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/protobuf/transaction/
PBRecipients.scala``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from soliton.chain.addresses import (
    ADDRESS_LENGTH,
    PUBLIC_KEY_HASH_LENGTH,
    PUBLIC_KEY_LENGTH,
    Address,
    check_address,
    from_public_key,
    from_public_key_hash,
    make_alias,
)
from soliton.chain.errors import AddressError, AliasError
from soliton.chain.features import Feature
from soliton.chain.proto.recipient_pb2 import Recipient
from soliton.chain.values import AssetId
from soliton.grpc_api.errors import AddressRefused, invalid
from soliton.ledger.state import ALIASES, ASSETS
from soliton.node.blockchain import Blockchain
from soliton.storage import indexes

_HASH_WITH_HEAD: Final = PUBLIC_KEY_HASH_LENGTH
MAX_INT: Final = 2**31 - 1


def read_address(data: bytes, chain_id: int) -> Address:
    """Return an address given as its 26 bytes, its hash of 20 or a public key of 32; raises
    ``AddressRefused`` with the reference's message.
    """
    match len(data):
        case n if n == PUBLIC_KEY_LENGTH:
            return from_public_key(data, chain_id)
        case n if n == _HASH_WITH_HEAD:
            return from_public_key_hash(data, chain_id)
        case n if n != ADDRESS_LENGTH:
            raise AddressRefused(f"GenericError(Invalid address length: {n})")
    try:
        return check_address(data, chain_id)
    except AddressError as error:
        raise AddressRefused(f"InvalidAddress({error})") from error


def stream_address(data: bytes, chain_id: int) -> Address:
    """Like ``read_address``, but raises ``Refused`` with the status of streaming calls."""
    try:
        return read_address(data, chain_id)
    except AddressRefused as error:
        raise invalid(str(error)) from error


def resolved(recipient: Recipient, chain: Blockchain) -> Address:
    """Return the address of a recipient; raises ``Refused``."""
    chain_id = chain.network.chain_id
    match recipient.WhichOneof("recipient"):
        case "public_key_hash":
            return stream_address(recipient.public_key_hash, chain_id)
        case "alias":
            try:
                alias = make_alias(recipient.alias, chain_id)
            except AliasError as error:
                raise invalid(f"GenericError({error})") from error
            address = address_of_alias(alias.name, chain)
            if address is None:
                raise invalid(f"Alias '{alias.text()}' does not exist.")
            return address
        case _:
            raise invalid(
                "GenericError(Not an address or alias: Recipient(Empty,UnknownFieldSet(Map())))"
            )


def address_of_alias(name: str, chain: Blockchain) -> Address | None:
    """Return the address of an alias, ``None`` if it does not exist."""
    if name in chain.rules.at(chain.height).disabled_aliases:
        return None
    return chain.store.get(ALIASES, name)


def fungible_balances(chain: Blockchain, address: Address) -> Iterator[tuple[AssetId, int] | None]:
    """Yield the assets of an account, without NFTs once that feature is active, and ``None`` for
    each that is left out, so that other calls get their turn.
    """
    hides_nfts = chain.rules.at(chain.height).has(Feature.REDUCED_NFT_FEE)
    for name, balance in indexes.asset_balances(chain.store, address):
        info = chain.store.get(ASSETS, name) if balance > 0 else None
        hidden = balance <= 0 or (info is not None and info.nft and hides_nfts)
        yield None if hidden else (name, balance)


def signed_height(unsigned: int) -> int:
    """Convert a height sent as unsigned: negative ones are above 2^31."""
    return unsigned - 2**32 if unsigned > MAX_INT else unsigned
