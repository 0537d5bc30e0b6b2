"""Secrets, and the keys that follow from them.

What lives here: the records, new phrases, parsing of secrets. What does not: files (``files``) and
the formats of other programs (``imports``).

Source of the phrases: wavesplatform/ts-lib-crypto ``src/crypto/random-seed.ts`` (fifteen words of
the BIP-39 list, drawn independently, without a checksum).
"""

from __future__ import annotations

import contextlib
import re
import secrets
from enum import Enum
from typing import Final

import msgspec

from soliton.crypto import base58
from soliton.crypto.curve25519 import KEY_BYTES, clamp, public_key
from soliton.crypto.errors import CryptoError
from soliton.crypto.keys import KeyPair, key_pair, key_pair_from_account_seed
from soliton.errors import InputError

PHRASE_WORDS: Final = 15
MAX_PHRASE_CHARACTERS: Final = 2_048
MAX_ACCOUNT_SEED_BYTES: Final = 1_024
MAX_NAME_CHARACTERS: Final = 64
BASE58_PREFIX: Final = "base58:"
"""Wallets write a phrase that is not text as this prefix and the Base58 of its bytes."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*")


class KeyProblem(InputError):
    """A key, name or secret is invalid. Messages never quote a secret."""


class SecretKind(Enum):
    """The kinds of secret from which an account's keys are derived."""

    PHRASE = "phrase"
    ACCOUNT_SEED = "account-seed"
    PRIVATE_KEY = "private-key"


class Secret(msgspec.Struct, frozen=True):
    """The bytes of a phrase (with the account's nonce), an account seed or a private key."""

    kind: SecretKind
    value: bytes
    nonce: int = 0

    def __repr__(self) -> str:
        return f"Secret({self.kind.value})"

    def keys(self) -> KeyPair:
        """Return the account's keys; raise ``KeyProblem`` if the secret is invalid."""
        try:
            match self.kind:
                case SecretKind.PHRASE:
                    return key_pair(self.value, self.nonce)
                case SecretKind.ACCOUNT_SEED:
                    return key_pair_from_account_seed(self.value)
                case SecretKind.PRIVATE_KEY:
                    private = clamp(self.value)
                    return KeyPair(private, public_key(private))
        except CryptoError as error:
            raise KeyProblem(str(error)) from None

    def plain_text(self) -> str:
        """Return the secret as wallets write it, to be shown to the owner only."""
        if self.kind is not SecretKind.PHRASE:
            return base58.encode(self.value)
        with contextlib.suppress(UnicodeDecodeError):
            text = self.value.decode()
            if text.isprintable():
                return text
        return BASE58_PREFIX + base58.encode(self.value)


class NamedSecret(msgspec.Struct, frozen=True):
    """A secret and its name."""

    name: str
    secret: Secret


def new_phrase() -> str:
    """Return fifteen random words (165 bits)."""
    words = _words()
    return " ".join(secrets.choice(words) for _ in range(PHRASE_WORDS))


def phrase(text: str, nonce: int = 0) -> Secret:
    """Return the secret of a seed phrase; raise ``KeyProblem`` if it is empty or too long.

    As everywhere in the ecosystem, any text is a valid phrase.
    """
    if not text:
        raise KeyProblem("the phrase is empty")
    if len(text) > MAX_PHRASE_CHARACTERS:
        raise KeyProblem(f"the phrase is longer than {MAX_PHRASE_CHARACTERS} characters")
    if text.startswith(BASE58_PREFIX):
        return Secret(SecretKind.PHRASE, _base58(text.removeprefix(BASE58_PREFIX)), nonce)
    try:
        return Secret(SecretKind.PHRASE, text.encode(), nonce)
    except UnicodeEncodeError:
        raise KeyProblem("the phrase cannot be encoded as UTF-8") from None


def account_seed(text: str) -> Secret:
    """Parse an account seed in Base58; raise ``KeyProblem`` if it is invalid."""
    value = _base58(text)
    if not 0 < len(value) <= MAX_ACCOUNT_SEED_BYTES:
        raise KeyProblem(f"an account seed has 1 to {MAX_ACCOUNT_SEED_BYTES} bytes")
    return Secret(SecretKind.ACCOUNT_SEED, value)


def private_key(text: str) -> Secret:
    """Parse a private key in Base58; raise ``KeyProblem`` if it is invalid."""
    value = _base58(text)
    if len(value) != KEY_BYTES:
        raise KeyProblem(f"a private key has {KEY_BYTES} bytes, not {len(value)}")
    return Secret(SecretKind.PRIVATE_KEY, value)


def check_name(name: str) -> str:
    """Return ``name`` if it is a file name on every system; raise ``KeyProblem`` if not."""
    if len(name) > MAX_NAME_CHARACTERS or _NAME.fullmatch(name) is None:
        raise KeyProblem(
            f"a key's name has 1 to {MAX_NAME_CHARACTERS} letters, digits, dots, dashes, "
            "underscores or @, the first a letter or digit"
        )
    return name


def _base58(text: str) -> bytes:
    try:
        return base58.decode(text, MAX_PHRASE_CHARACTERS)
    except CryptoError:
        # No cause: it quotes what may be a secret.
        raise KeyProblem("the secret is not base58") from None


def _words() -> list[str]:
    from mnemonic import Mnemonic

    return list(Mnemonic("english").wordlist)
