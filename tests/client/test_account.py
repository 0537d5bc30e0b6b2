"""Accounts: keys, addresses, seeds, against vectors and the specification's example."""

from __future__ import annotations

import pytest

from soliton import Account, decrypt_seed, encrypt_seed, new_phrase, verify
from soliton.errors import InputError
from tests.vectors import load_vectors, report

PHRASE = "manage manual recall harvest series desert melt police rose hollow moral pledge kitten"


def test_keys_and_addresses_of_others() -> None:
    vectors = load_vectors("keys")
    for vector in vectors:
        public, nonce = vector.get("public_base58"), vector.get("nonce", 0)
        private: bytes | str | None = vector.get("private_base58")
        if "secret" in vector:
            private = bytes.fromhex(vector["secret"])
        for letter, address in vector["addresses"].items():
            if private is not None:
                account = Account.from_private_key(private, letter)
                assert (account.public_key, account.address) == (public, address)
                assert Account.from_public_key(account.public_key, letter).address == address
            if "seed_text" in vector:
                account = Account.from_seed(vector["seed_text"], letter, nonce)
                assert account.address == address
            if "account_seed" in vector:
                seed = bytes.fromhex(vector["account_seed"])
                assert Account.from_account_seed(seed, letter).address == address
    report.ran("keys", len(vectors))


def test_the_devnets_accounts() -> None:
    """Its page has them: seed, address, public and private key."""
    account = Account.from_seed("soliton devnet account 1", "R")
    assert account.address == "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY"
    assert account.public_key == "6BeJbjhuQwNEn7v2ahirve4pTCFZUQU4R2py81WtW7Ej"
    assert account.private_key() == "CKTdWdRrGp1zDqjWweJJi7MutudZ3UQbpVhu5omkdRjd"
    again = Account.from_private_key(account.private_key(), ord("R"))
    assert again == account and hash(again) == hash(account)
    assert account.on("W") != account and account.on("W").on("R") == account


def test_nothing_shows_a_private_key() -> None:
    account = Account.from_seed("soliton devnet account 1", "R")
    transaction = account.transfer(account, 1)
    for text in (repr(account), str(account), repr(transaction)):
        assert account.private_key() not in text and "seed" not in text


def test_signatures() -> None:
    account = Account.from_seed("a seed", "R")
    signature = account.sign(b"hello")
    assert verify(account.public_key, b"hello", signature)
    assert not verify(account.public_key, b"hallo", signature)
    assert not verify("no key", b"hello", signature)


def test_phrases() -> None:
    phrase = new_phrase()
    assert len(phrase.split()) == 15 and phrase != new_phrase()
    assert Account.from_phrase(phrase, "W") == Account.from_seed(phrase, "W")
    assert Account.from_phrase(phrase, "W", 1) != Account.from_seed(phrase, "W")
    with pytest.raises(InputError, match="word 2") as refused:
        Account.from_phrase("manage xyzzy recall", "W")
    assert "xyzzy" not in str(refused.value)


def test_encrypted_seeds() -> None:
    """That wallets open them is for `tests/crypto` and `tests/clients/test_seeds.py`."""
    secret = encrypt_seed(PHRASE, "password", rounds=10)
    assert decrypt_seed(secret, "password", rounds=10) == PHRASE
    account = Account.from_encrypted_seed(secret, "password", "W", rounds=10)
    assert account == Account.from_seed(PHRASE, "W")
    with pytest.raises(InputError):
        Account.from_encrypted_seed("nonsense", "password", "W")
