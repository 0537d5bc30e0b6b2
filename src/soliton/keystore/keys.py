"""What a key is: a name, a public key, and the secret that it was made of.

What lives here: the records, new phrases, and from secrets to keys. What does not: files
(``files``) and what other programs write (``imports``).

Source of the phrases: wavesplatform/ts-lib-crypto ``src/crypto/random-seed.ts`` (fifteen words of
the list of BIP-39, drawn one by one; there is no check word).
"""

from __future__ import annotations

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
"""Wallets mark a phrase that is no text with this: the base58 of its bytes follows."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*")


class KeyProblem(InputError):
    """A key, a name or a secret is not as it has to be. Messages never quote a secret."""


class SecretKind(Enum):
    """What a secret is; the account's keys follow from each."""

    PHRASE = "phrase"
    ACCOUNT_SEED = "account-seed"
    PRIVATE_KEY = "private-key"


class Secret(msgspec.Struct, frozen=True):
    """What has to stay secret: the bytes of a phrase (with the account's nonce), of an account
    seed, or of a private key.
    """

    kind: SecretKind
    value: bytes
    nonce: int = 0

    def __repr__(self) -> str:
        return f"Secret({self.kind.value})"

    def keys(self) -> KeyPair:
        """The two keys; raises ``KeyProblem``."""
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

    def shown(self) -> str:
        """As people and wallets write it; to be shown to the owner alone."""
        if self.kind is not SecretKind.PHRASE:
            return base58.encode(self.value)
        try:
            text = self.value.decode()
        except UnicodeDecodeError:
            return BASE58_PREFIX + base58.encode(self.value)
        return text if text.isprintable() else BASE58_PREFIX + base58.encode(self.value)


class NamedSecret(msgspec.Struct, frozen=True):
    """A secret with the name that its owner, or another program, has given it."""

    name: str
    secret: Secret


def new_phrase() -> str:
    """Fifteen words, drawn by chance: 165 bits."""
    words = _words()
    return " ".join(secrets.choice(words) for _ in range(PHRASE_WORDS))


def phrase(text: str, nonce: int = 0) -> Secret:
    """The secret of a seed phrase; raises ``KeyProblem``. Any text is one: its words are not
    looked at, as nobody else looks at them.
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
        raise KeyProblem("the phrase holds half a character") from None


def account_seed(text: str) -> Secret:
    """The secret of an account seed in base58; raises ``KeyProblem``."""
    value = _base58(text)
    if not 0 < len(value) <= MAX_ACCOUNT_SEED_BYTES:
        raise KeyProblem(f"an account seed has 1 to {MAX_ACCOUNT_SEED_BYTES} bytes")
    return Secret(SecretKind.ACCOUNT_SEED, value)


def private_key(text: str) -> Secret:
    """The secret of a private key in base58; raises ``KeyProblem``."""
    value = _base58(text)
    if len(value) != KEY_BYTES:
        raise KeyProblem(f"a private key has {KEY_BYTES} bytes, not {len(value)}")
    return Secret(SecretKind.PRIVATE_KEY, value)


def check_name(name: str) -> str:
    """A name that can be that of a file everywhere; raises ``KeyProblem``."""
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
        # Without its cause, which quotes what may be a secret.
        raise KeyProblem("the secret is not base58") from None


def _words() -> list[str]:
    from mnemonic import Mnemonic

    return list(Mnemonic("english").wordlist)
