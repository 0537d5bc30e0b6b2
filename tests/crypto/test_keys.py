"""From seeds to keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from soliton.crypto import base58, keys
from soliton.crypto.errors import CryptoError
from soliton.crypto.hashes import secure_hash
from tests.vectors import load_vectors, report

# The worked example of the public documentation of the protocol.
PHRASE = (
    "manage manual recall harvest series desert melt police rose hollow moral pledge kitten "
    "position add"
)
ACCOUNT_SEED = "H4do9ZcPUASvtFJHvESapnxfmQ8tjBXMU7NtUARk9Jrf"
PRIVATE_KEY = "3kMEhU5z3v8bmer1ERFUUhW58Dtuhyo9hE5vrhjqAWYT"
PUBLIC_KEY = "HBqhfdFASRQ5eBBpu2y6c6KKi1az6bMx8v1JxX4iW1Q8"


def test_documented_example() -> None:
    assert base58.encode(keys.account_seed(PHRASE.encode())) == ACCOUNT_SEED
    pair = keys.key_pair(PHRASE)
    assert base58.encode(pair.private_key) == PRIVATE_KEY
    assert base58.encode(pair.public_key) == PUBLIC_KEY
    assert keys.key_pair(PHRASE.encode(), 0) == pair
    assert keys.key_pair_from_account_seed(base58.decode(ACCOUNT_SEED)) == pair


def test_genesis_generator_has_the_empty_account_seed() -> None:
    pair = keys.key_pair_from_account_seed(b"")
    assert base58.encode(pair.public_key) == "2eEUvypDSivnzPiLrbYEW39SM8yMZ1aq4eJuiKfs4sEY"


def test_nonce_comes_first_with_its_highest_byte_first() -> None:
    assert keys.account_seed(b"seed", 258) == secure_hash(b"\0\0\1\2seed")
    assert keys.account_seed(b"seed", -2) == secure_hash(b"\xff\xff\xff\xfeseed")


def test_nonces_make_different_accounts() -> None:
    nonces = [0, 1, -1, keys.MIN_NONCE, keys.MAX_NONCE]
    assert len({keys.key_pair(b"seed", nonce).public_key for nonce in nonces}) == len(nonces)


@pytest.mark.parametrize("nonce", [keys.MIN_NONCE - 1, keys.MAX_NONCE + 1, 2**64])
def test_nonce_out_of_range(nonce: int) -> None:
    with pytest.raises(CryptoError, match="nonce"):
        keys.account_seed(b"seed", nonce)


def test_phrase_that_is_not_text() -> None:
    with pytest.raises(CryptoError, match="UTF-8"):
        keys.key_pair("\ud800")


@pytest.mark.parametrize("show", [repr, str, "{}".format])
def test_private_key_is_not_shown(show: Callable[[object], str]) -> None:
    pair = keys.key_pair(PHRASE)
    shown = show(pair)
    assert "public_key" in shown
    assert "private" not in shown
    assert repr(pair.private_key) not in shown


def derive(vector: dict[str, Any]) -> keys.KeyPair:
    if "account_seed" in vector:
        return keys.key_pair_from_account_seed(bytes.fromhex(vector["account_seed"]))
    return keys.key_pair(vector["seed_text"], vector.get("nonce", 0))


def address(public_key: bytes, chain_id: str) -> str:
    """The text of the key's address, by the published rule: some vectors state nothing else."""
    start = b"\x01" + chain_id.encode() + secure_hash(public_key)[:20]
    return base58.encode(start + secure_hash(start)[:4])


def test_vectors() -> None:
    vectors = load_vectors("keys")
    for vector in vectors:
        pair = derive(vector)
        found: dict[str, object] = {
            "secret": pair.private_key.hex(),
            "private_base58": base58.encode(pair.private_key),
            "public": pair.public_key.hex(),
            "public_base58": base58.encode(pair.public_key),
            "addresses": {name: address(pair.public_key, name) for name in vector["addresses"]},
        }
        if "account_seed_base58" in vector:
            found["account_seed_base58"] = base58.encode(
                keys.account_seed(vector["seed_text"].encode(), vector["nonce"])
            )
        stated = {name: vector[name] for name in found if name in vector}
        assert stated == {name: found[name] for name in stated}
        assert stated["addresses"]
    report.ran("keys", len(vectors))
