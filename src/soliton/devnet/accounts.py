"""The accounts of the private chain: one rich one that mines, and ten to play with.

The rich seed is the one that the ecosystem's private-node image uses, so that its scripts work
unchanged.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import address_text, from_public_key
from soliton.crypto import base58
from soliton.crypto.keys import key_pair

RICH_SEED: Final = "waves private node seed with waves tokens"
ACCOUNT_COUNT: Final = 10


class DevnetAccount(msgspec.Struct, frozen=True):
    """A funded account: everything in the form that clients take."""

    seed: str
    address: str
    public_key: str
    private_key: str


def funded_accounts(chain_id: int) -> tuple[DevnetAccount, ...]:
    """The ten accounts that the genesis block funds besides the rich one."""
    return tuple(
        describe(account_seed_phrase(number), chain_id) for number in range(1, ACCOUNT_COUNT + 1)
    )


def account_seed_phrase(number: int) -> str:
    """The seed phrase of a funded account, counted from 1."""
    return f"soliton devnet account {number}"


def describe(seed: str, chain_id: int) -> DevnetAccount:
    """The account of a seed phrase."""
    keys = key_pair(seed)
    return DevnetAccount(
        seed=seed,
        address=address_text(from_public_key(keys.public_key, chain_id)),
        public_key=base58.encode(keys.public_key),
        private_key=base58.encode(keys.private_key),
    )
