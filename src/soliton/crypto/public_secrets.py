"""API keys and seeds that are published in documentation, samples and images.

A service that uses one of them is open to everyone who can reach it. What lives here: the lists and
their lookups. What does not: the warning (the settings of each service).

Sources: wavesplatform/Waves ``docker/private/waves.custom.conf``, ``node/src/main/resources/
network-defaults.conf``, ``node-it/src/test/resources/template.conf``, the documents of its REST
interface; wavesplatform/matcher ``dex-it/src/test/resources/dex-servers/dex-base.conf``; and this
program's own devnet and documents.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from soliton.crypto import base58
from soliton.crypto.hashes import secure_hash
from soliton.crypto.keys import key_pair, key_pair_from_account_seed

_API_KEYS: Final = (
    "", "api-key", "api_key", "apikey", "integration-test-rest-api", "my api key", "myapikey",
    "password", "ridethewaves!", "secret", "test", "waves", "waves-private-node",
)  # fmt: skip
# Keys of which only the hashes are published.
_API_KEY_HASHES: Final = (
    "7B74gZMpdzQSB45A7KRwKW6mDUYaWhFY8kWh5qiLRRoA",
    "Fo8fR7J1gB3k2WoaE6gYKMwgWfoh9EtZtXAMBxYYCJWG",
)
_SEEDS: Final = (
    b"waves private node seed with waves tokens",
    base58.decode("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    base58.decode("3x5dmD"),
    *(f"soliton devnet account {number}".encode() for number in range(1, 11)),
)
_ACCOUNT_SEEDS: Final = (base58.decode("AWiNZQLw5ZU1LD7xK6HnkLbmhCwECR5YLuJAb3Uu5Et8"),)


def is_public_api_key(key_hash: bytes) -> bool:
    """Whether the API key with this hash is published."""
    return key_hash in _hashes()


def is_public_seed(seed: bytes) -> bool:
    """Whether this seed is published."""
    return seed in _SEEDS


def is_public_account(public_key: bytes) -> bool:
    """Whether the private key of this public key is published."""
    return public_key in _accounts()


@cache
def _hashes() -> frozenset[bytes]:
    known = (secure_hash(key.encode()) for key in _API_KEYS)
    return frozenset((*known, *map(base58.decode, _API_KEY_HASHES)))


@cache
def _accounts() -> frozenset[bytes]:
    first = (key_pair(seed) for seed in _SEEDS)
    return frozenset(
        each.public_key for each in (*first, *map(key_pair_from_account_seed, _ACCOUNT_SEEDS))
    )
