"""Accounts: keys, an address, and what they sign.

What lives here: ``Account``, and seeds. What does not: the transactions and orders that it makes
(``making``), and files of keys (``soliton.keystore``).
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
"""As many as the ecosystem's wallets make."""
_PHRASE_BITS: Final = 11
_WORD_LIST: Final = "english"


class Account(Making):
    """An account on one chain: it signs, and makes transactions and orders.

    Make one with ``from_seed``, ``from_private_key``, ``from_phrase`` or ``from_encrypted_seed``;
    one ``from_public_key`` cannot sign, and makes unsigned transactions for others to sign. Its
    private key is never shown.

    >>> Account.from_seed("soliton devnet account 1", "R").address
    '3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY'
    """

    __slots__ = ("_chain_id", "_keys", "_point")

    def __init__(self, keys: KeyPair, chain_id: int | str, *, can_sign: bool = True) -> None:
        """Of a pair of keys; the class methods make it of what people have."""
        self._keys = keys
        self._chain_id = chain_number(chain_id)
        self._point = curve25519.signing_point(keys.private_key) if can_sign else None

    @classmethod
    def from_seed(cls, seed: str | bytes, chain_id: int | str, nonce: int = 0) -> Account:
        """The account number ``nonce`` of a seed: any text, or bytes."""
        return cls(key_pair(seed, nonce), chain_id)

    @classmethod
    def from_account_seed(cls, seed: bytes, chain_id: int | str) -> Account:
        """Of the seed of one account, as wallets of nodes export it."""
        return cls(key_pair_from_account_seed(seed), chain_id)

    @classmethod
    def from_phrase(cls, phrase: str, chain_id: int | str, nonce: int = 0) -> Account:
        """Of a phrase of words from the ecosystem's list; raises ``InputError`` where one is not
        of the list, which ``from_seed`` would take for another seed.
        """
        known = frozenset(_words())
        for number, word in enumerate(phrase.split(" "), 1):
            if word not in known:
                # Which one, but not what: it is a part of a secret.
                raise InputError(f"word {number} of the phrase is not in the list of words")
        return cls.from_seed(phrase, chain_id, nonce)

    @classmethod
    def from_private_key(cls, key: str | bytes, chain_id: int | str) -> Account:
        """Of a private key, in base58 or bytes."""
        try:
            data = base58.decode(key) if isinstance(key, str) else key
            return cls(KeyPair(data, curve25519.public_key(data)), chain_id)
        except (Base58Error, CryptoError):
            # Without the cause, which may quote it.
            raise FormatError("no private key of 32 bytes in base58") from None

    @classmethod
    def from_public_key(cls, key: str | bytes, chain_id: int | str) -> Account:
        """Of a public key, in base58 or bytes: an account that cannot sign here."""
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
        """Of a seed as wallets export it under a password. Raises ``InputError``."""
        return cls.from_seed(decrypt_seed(secret, password, rounds), chain_id, nonce)

    @property
    def chain_id(self) -> int:
        """The number of its chain."""
        return self._chain_id

    @property
    def address(self) -> str:
        """Its address on its chain, in base58."""
        return address_text(self.address_bytes)

    @property
    def address_bytes(self) -> Address:
        """The same in bytes."""
        return from_public_key(self._keys.public_key, self._chain_id)

    @property
    def public_key(self) -> str:
        """Its public key in base58."""
        return address_text(self._keys.public_key)

    @property
    def public_key_bytes(self) -> bytes:
        """The same in bytes."""
        return self._keys.public_key

    @property
    def can_sign(self) -> bool:
        """Whether its private key is here."""
        return self._point is not None

    def sign(self, message: bytes) -> bytes:
        """Its signature of some bytes; raises ``InputError`` where there is no private key."""
        if self._point is None:
            raise InputError(f"the private key of {self.address} is not here")
        return curve25519.sign(self._keys.private_key, message, None, self._point)

    def private_key(self) -> str:
        """Its private key in base58: a secret."""
        if self._point is None:
            raise InputError(f"the private key of {self.address} is not here")
        return base58.encode(self._keys.private_key)

    def on(self, chain_id: int | str) -> Account:
        """The account with the same keys on another chain."""
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
    """A new phrase of 15 words, drawn from the system's secret random bytes."""
    words = _words()
    drawn = int.from_bytes(os.urandom(32), "big")
    return " ".join(words[drawn >> _PHRASE_BITS * place & 0x7FF] for place in range(PHRASE_WORDS))


def encrypt_seed(seed: str, password: str, rounds: int = DEFAULT_ROUNDS) -> str:
    """A seed under a password, as the ecosystem's wallets export it."""
    return encrypt_text(seed, password, rounds)


def decrypt_seed(secret: str, password: str, rounds: int = DEFAULT_ROUNDS) -> str:
    """The inverse of ``encrypt_seed``; raises ``InputError`` for a wrong password."""
    return decrypt_text(secret, password, rounds)


def verify(public_key: str | bytes, message: bytes, signature: str | bytes) -> bool:
    """Whether the owner of a public key has signed some bytes; keys and signatures may be base58.

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
    from mnemonic import Mnemonic  # a quarter of a megabyte of words

    words: list[str] = Mnemonic(_WORD_LIST).wordlist
    return words
