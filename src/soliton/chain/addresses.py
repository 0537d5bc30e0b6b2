"""Addresses and aliases: the identifiers of accounts.

An *address* is 26 bytes: version 1, chain id, 20 bytes of the public key's secure hash, 4 bytes of
checksum; it is represented as ``bytes``. An *alias* is a short name registered on the chain. A
*recipient* is either of them.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/account/Recipient.scala`` and
``PublicKey.scala``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NewType

import msgspec

from soliton.chain.errors import AddressError, AliasError
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.crypto.hashes import keccak256, secure_hash

Address = NewType("Address", bytes)

ADDRESS_VERSION: Final = 1
ALIAS_VERSION: Final = 2
ADDRESS_LENGTH: Final = 26
PUBLIC_KEY_HASH_LENGTH: Final = 20
CHECKSUM_LENGTH: Final = 4
PUBLIC_KEY_LENGTH: Final = 32
ETHEREUM_KEY_LENGTH: Final = 64
ETHEREUM_KEY_BITS: Final = 504
"""A public key with fewer bits is shorter than other keys as a two's complement number."""
ALIAS_MIN_LENGTH: Final = 4
ALIAS_MAX_LENGTH: Final = 30
ALIAS_ALPHABET: Final = frozenset("-.0123456789@_abcdefghijklmnopqrstuvwxyz")
ADDRESS_PREFIX: Final = "address:"
"""Texts of addresses may begin with it."""
ALIAS_PREFIX: Final = "alias:"
MAX_CHAIN_ID: Final = 255
MAX_ADDRESS_CHARS: Final = 36
"""The longest base58 form of 26 bytes."""

# Computing an address takes four hashes, and the same accounts occur frequently.
_CACHED_ADDRESSES: Final = 65_536


class Alias(msgspec.Struct, frozen=True, gc=False):
    """A registered short name: ``chain_id`` and ``name`` (4 to 30 characters of the alias
    alphabet).
    """

    chain_id: int
    name: str

    def to_bytes(self) -> bytes:
        """``02 ‖ chain id ‖ u16 length ‖ name``."""
        name = self.name.encode()
        return bytes((ALIAS_VERSION, self.chain_id)) + len(name).to_bytes(2, "big") + name

    def text(self) -> str:
        """The form used in JSON: ``alias:<chain character>:<name>``."""
        return f"{ALIAS_PREFIX}{chr(self.chain_id)}:{self.name}"


Recipient = Address | Alias


@lru_cache(maxsize=_CACHED_ADDRESSES)
def from_public_key(public_key: bytes, chain_id: int) -> Address:
    """Return the address of a public key on a chain.

    Keys have 32 bytes. A key of 64 bytes is an Ethereum key; its address contains the 20 bytes of
    the account's Ethereum address.
    """
    if len(public_key) == ETHEREUM_KEY_LENGTH:
        return from_public_key_hash(keccak256(public_key)[-PUBLIC_KEY_HASH_LENGTH:], chain_id)
    return from_public_key_hash(secure_hash(public_key)[:PUBLIC_KEY_HASH_LENGTH], chain_id)


@lru_cache(maxsize=_CACHED_ADDRESSES)
def from_public_key_hash(key_hash: bytes, chain_id: int) -> Address:
    """Return the address with this hash; raise ``AddressError`` unless it has 20 bytes."""
    if len(key_hash) != PUBLIC_KEY_HASH_LENGTH:
        raise AddressError(f"Invalid public key hash length: {len(key_hash)}")
    return _with_checksum(bytes((ADDRESS_VERSION, chain_id)) + key_hash)


@lru_cache(maxsize=_CACHED_ADDRESSES)
def _with_checksum(body: bytes) -> Address:
    return Address(body + secure_hash(body)[:CHECKSUM_LENGTH])


def public_key_hash(address: Address) -> bytes:
    """Return the 20 middle bytes of an address, which protobuf messages and Ethereum use."""
    return address[2:22]


def check_address(data: bytes, chain_id: int) -> Address:
    """Return ``data`` as an address of the chain.

    Raises ``AddressError`` for a wrong length, version, chain id or checksum, in this order.
    """
    if len(data) != ADDRESS_LENGTH:
        raise AddressError(
            f"Wrong addressBytes length: expected: {ADDRESS_LENGTH}, actual: {len(data)}"
        )
    if data[0] != ADDRESS_VERSION:
        raise AddressError(f"Unknown address version: {data[0]}")
    if data[1] != chain_id:
        raise AddressError(
            "Address belongs to another network: expected: "
            f"{chain_id}({chr(chain_id)}), actual: {data[1]}({chr(data[1])})"
        )
    if _with_checksum(data[:-CHECKSUM_LENGTH]) != data:
        raise AddressError("Bad address checksum")
    return Address(data)


@lru_cache(maxsize=_CACHED_ADDRESSES)
def parse_address(text: str, chain_id: int) -> Address:
    """Parse an address in base58, with or without ``address:``; raise ``AddressError`` unless it is
    one of the chain.
    """
    return check_address(_decoded(text), chain_id)


def _decoded(text: str) -> bytes:
    text = text.removeprefix(ADDRESS_PREFIX)
    if len(text) > MAX_ADDRESS_CHARS:
        raise AddressError(
            f"Wrong address string length: max={MAX_ADDRESS_CHARS}, actual: {len(text)}"
        )
    try:
        return base58.decode(text, MAX_ADDRESS_CHARS)
    except Base58Error as error:
        raise AddressError(f"Unable to decode base58: {error}") from error


@lru_cache(maxsize=_CACHED_ADDRESSES)
def address_text(address: bytes) -> str:
    """Return an address (or any short bytes) in base58, from a cache."""
    return base58.encode(address)


def make_alias(name: str, chain_id: int) -> Alias:
    """Return an alias; raise ``AliasError`` if the name's length or characters are not allowed."""
    if not ALIAS_MIN_LENGTH <= len(name) <= ALIAS_MAX_LENGTH:
        raise AliasError(
            f"Alias '{name}' length should be between {ALIAS_MIN_LENGTH} and {ALIAS_MAX_LENGTH}"
        )
    if not ALIAS_ALPHABET.issuperset(name):
        raise AliasError(
            f"Alias should contain only following characters: {''.join(sorted(ALIAS_ALPHABET))}"
        )
    return Alias(chain_id, name)


def parse_alias(text: str) -> Alias:
    """Parse ``alias:<chain character>:<name>`` of any chain; raise ``AliasError`` for another form,
    or a name that is not allowed.
    """
    rest = text.removeprefix(ALIAS_PREFIX)
    if not text.startswith(ALIAS_PREFIX) or rest[1:2] != ":":
        raise AliasError("Alias string pattern is 'alias:<chain-id>:<address-alias>")
    # Of the character the reference takes the lowest byte.
    return make_alias(rest[2:], ord(rest[0]) & MAX_CHAIN_ID)


def parse_claimed_recipient(text: str, chain_id: int) -> Recipient:
    """Parse an address or an alias of any chain, since a later rule checks the chain.

    Raises ``AddressError``.
    """
    if text.startswith(ALIAS_PREFIX):
        return parse_alias(text)
    return _parse_claimed_address(text, chain_id)


@lru_cache(maxsize=_CACHED_ADDRESSES)
def _parse_claimed_address(text: str, chain_id: int) -> Address:
    data = _decoded(text)
    other = len(data) == ADDRESS_LENGTH and data[0] == ADDRESS_VERSION
    return check_address(data, data[1] if other else chain_id)


def recipient_text(recipient: Recipient) -> str:
    """Return the JSON form of a recipient."""
    return recipient.text() if isinstance(recipient, Alias) else address_text(recipient)
