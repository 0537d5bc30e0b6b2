"""Accounts: keys, an address, and signing.

What lives here: ``Account``, and seeds. What does not: the transactions and orders that it makes
(``making``), and key files (``soliton.keystore``).
"""

from __future__ import annotations

import os
from typing import Final

from soliton.chain.addresses import (
    PUBLIC_KEY_LENGTH,
    Address,
    address_text,
    from_public_key,
)
from soliton.chain.errors import FormatError, PublicKeyError
from soliton.client.making import Making
from soliton.client.transaction import chain_number
from soliton.crypto import base58, curve25519
from soliton.crypto.encrypted_seeds import DEFAULT_ROUNDS, decrypt_text, encrypt_text
from soliton.crypto.errors import Base58Error, CryptoError
from soliton.crypto.keys import KeyPair, key_pair, key_pair_from_account_seed
from soliton.errors import InputError

PHRASE_WORDS: Final = 15
"""The length of the ecosystem's seed phrases."""
_PHRASE_BITS: Final = 11
_WORD_LIST: Final = "english"


class Account(Making):
    """An account on one chain: it signs, and makes transactions and orders.

    Create one with ``from_seed``, ``from_private_key``, ``from_phrase`` or ``from_encrypted_seed``.
    An account ``from_public_key`` cannot sign: it makes unsigned transactions for others to sign.
    ``repr`` and ``str`` never show the private key.

    >>> Account.from_seed("soliton devnet account 1", "R").address
    '3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY'
    """

    __slots__ = ("_chain_id", "_keys", "_point")

    def __init__(self, keys: KeyPair, chain_id: int | str, *, can_sign: bool = True) -> None:
        """``keys`` is a key pair; see the class methods for other forms. Raises ``InputError`` for
        an invalid chain id.
        """
        self._keys = keys
        self._chain_id = chain_number(chain_id)
        self._point = curve25519.signing_point(keys.private_key) if can_sign else None

    @classmethod
    def from_seed(cls, seed: str | bytes, chain_id: int | str, nonce: int = 0) -> Account:
        """Create account number ``nonce`` of a seed, any text or bytes."""
        return cls(key_pair(seed, nonce), chain_id)

    @classmethod
    def from_account_seed(cls, seed: bytes, chain_id: int | str) -> Account:
        """Create an account from its account seed, as node wallets export it."""
        return cls(key_pair_from_account_seed(seed), chain_id)

    @classmethod
    def from_phrase(cls, phrase: str, chain_id: int | str, nonce: int = 0) -> Account:
        """Create an account from a phrase of words of the ecosystem's list. Raises ``InputError``
        for other words, which ``from_seed`` would accept as a different seed.
        """
        known = frozenset(_words())
        for number, word in enumerate(phrase.split(" "), 1):
            if word not in known:
                # The position, but not the word, which is part of a secret.
                raise InputError(f"word {number} of the phrase is not in the list of words")
        return cls.from_seed(phrase, chain_id, nonce)

    @classmethod
    def from_private_key(cls, key: str | bytes, chain_id: int | str) -> Account:
        """Create an account from a private key, in base58 or bytes. Raises ``InputError``."""
        try:
            data = base58.decode(key) if isinstance(key, str) else key
            return cls(KeyPair(data, curve25519.public_key(data)), chain_id)
        except (Base58Error, CryptoError):
            # Without the cause, which may quote the key.
            raise FormatError("not a private key of 32 bytes in base58") from None

    @classmethod
    def from_public_key(cls, key: str | bytes, chain_id: int | str) -> Account:
        """Create an account that cannot sign, from a public key in base58 or bytes. Raises
        ``InputError``.
        """
        try:
            data = base58.decode(key) if isinstance(key, str) else key
        except Base58Error as error:
            raise PublicKeyError(str(error)) from error
        if len(data) != PUBLIC_KEY_LENGTH:
            raise PublicKeyError(f"a public key has {PUBLIC_KEY_LENGTH} bytes, not {len(data)}")
        return cls(KeyPair(b"", data), chain_id, can_sign=False)

    @classmethod
    def from_encrypted_seed(
        cls,
        secret: str,
        password: str,
        chain_id: int | str,
        nonce: int = 0,
        rounds: int = DEFAULT_ROUNDS,
    ) -> Account:
        """Create an account from a wallet's password-protected seed. Raises ``InputError``."""
        return cls.from_seed(decrypt_seed(secret, password, rounds), chain_id, nonce)

    @property
    def chain_id(self) -> int:
        """The chain id of its chain."""
        return self._chain_id

    @property
    def address(self) -> str:
        """Its address on its chain, in base58."""
        return address_text(self.address_bytes)

    @property
    def address_bytes(self) -> Address:
        """Its address in bytes."""
        return from_public_key(self._keys.public_key, self._chain_id)

    @property
    def public_key(self) -> str:
        """Its public key in base58."""
        return address_text(self._keys.public_key)

    @property
    def public_key_bytes(self) -> bytes:
        """Its public key in bytes."""
        return self._keys.public_key

    @property
    def can_sign(self) -> bool:
        """Whether the private key is known."""
        return self._point is not None

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message; raises ``InputError`` without a private key."""
        if self._point is None:
            raise InputError(f"the private key of {self.address} is not available")
        return curve25519.sign(self._keys.private_key, message, None, self._point)

    def private_key(self) -> str:
        """Return the private key in base58, a secret; raises ``InputError`` without one."""
        if self._point is None:
            raise InputError(f"the private key of {self.address} is not available")
        return base58.encode(self._keys.private_key)

    def on(self, chain_id: int | str) -> Account:
        """Return the account with the same keys on another chain."""
        return Account(self._keys, chain_id, can_sign=self.can_sign)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Account):
            return NotImplemented
        mine = (self._keys.public_key, self._chain_id)
        return mine == (other._keys.public_key, other._chain_id)

    def __hash__(self) -> int:
        return hash((self._keys.public_key, self._chain_id))

    def __repr__(self) -> str:
        return f"<Account {self.address}>"

    def __str__(self) -> str:
        return self.address


def new_phrase() -> str:
    """Return a new seed phrase of 15 words, from the operating system's random source."""
    words = _words()
    number = int.from_bytes(os.urandom(32), "big")
    return " ".join(words[number >> _PHRASE_BITS * place & 0x7FF] for place in range(PHRASE_WORDS))


def encrypt_seed(seed: str, password: str, rounds: int = DEFAULT_ROUNDS) -> str:
    """Encrypt a seed with a password, in the format of the ecosystem's wallets."""
    return encrypt_text(seed, password, rounds)


def decrypt_seed(secret: str, password: str, rounds: int = DEFAULT_ROUNDS) -> str:
    """Return the seed in the result of ``encrypt_seed``; raises ``InputError`` for a wrong
    password.
    """
    return decrypt_text(secret, password, rounds)


def verify(public_key: str | bytes, message: bytes, signature: str | bytes) -> bool:
    """Whether a signature of a message is valid; the key and the signature may be in base58.

    >>> alice = Account.from_seed("soliton devnet account 1", "R")
    >>> verify(alice.public_key, b"hello", alice.sign(b"hello"))
    True
    """
    try:
        key = base58.decode(public_key) if isinstance(public_key, str) else public_key
        data = base58.decode(signature) if isinstance(signature, str) else signature
    except Base58Error:
        return False
    return curve25519.verify(key, message, data)


def _words() -> list[str]:
    from mnemonic import Mnemonic  # slow to import: a quarter of a megabyte of words

    words: list[str] = Mnemonic(_WORD_LIST).wordlist
    return words
