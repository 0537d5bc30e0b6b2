"""The accounts of the private chain: a rich one, which mines, and by default ten others.

The rich seed is that of the ecosystem's private-node image, so that its scripts work unchanged.

What lives here: the balances in the genesis block. What does not: the network's other parameters
(``soliton.chain.networks``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.networks.model import GenesisTransfer, Network
from soliton.chain.values import MAX_I64
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.errors import InputError

RICH_SEED: Final = "waves private node seed with waves tokens"
ACCOUNT_COUNT: Final = 10
SEED: Final = "soliton devnet account"
COIN: Final = 10**8
BALANCE: Final = 1_000_000 * COIN
MAX_ACCOUNTS: Final = 200
"""Limit on the accounts: a genesis block counts its transactions in one byte."""
MAX_SEED_CHARACTERS: Final = 1_000


class FundingRefused(InputError):
    """The genesis block cannot have these accounts."""


class Funding(msgspec.Struct, frozen=True):
    """``count`` accounts with ``balance`` each, in the smallest unit; their seed phrases are
    ``seed`` and a number.
    """

    count: int = ACCOUNT_COUNT
    balance: int = BALANCE
    seed: str = SEED

    def phrases(self) -> list[str]:
        """Return the seed phrases in order."""
        return [account_seed_phrase(number, self.seed) for number in range(1, self.count + 1)]


class DevnetAccount(msgspec.Struct, frozen=True, rename="camel"):
    """A funded account, in the encodings that clients use."""

    seed: str
    address: str
    public_key: str
    private_key: str


def network_with(network: Network, funding: Funding) -> Network:
    """Return the private chain's network with these accounts in its genesis block.

    Raises ``FundingRefused``.
    """
    rich = network.genesis.transactions[0]
    if not 1 <= funding.count <= MAX_ACCOUNTS:
        raise FundingRefused(f"{funding.count} accounts: 1 to {MAX_ACCOUNTS} are possible")
    if len(funding.seed) > MAX_SEED_CHARACTERS:
        raise FundingRefused(f"a seed of more than {MAX_SEED_CHARACTERS} characters")
    total = rich.amount + funding.count * funding.balance
    if funding.balance < 1 or total > MAX_I64:
        most = (MAX_I64 - rich.amount) // funding.count // COIN
        raise FundingRefused(
            f"a balance of {funding.balance / COIN:g}: at most {most} for {funding.count} accounts"
        )
    given = tuple(
        GenesisTransfer(each.address, funding.balance)
        for each in funded_accounts(network.chain_id, funding)
    )
    genesis = msgspec.structs.replace(
        network.genesis, transactions=(rich, *given), initial_balance=total
    )
    return msgspec.structs.replace(network, genesis=genesis)


def funded_accounts(chain_id: int, funding: Funding | None = None) -> tuple[DevnetAccount, ...]:
    """Return the accounts that the genesis block funds, without the rich one."""
    return tuple(describe(phrase, chain_id) for phrase in (funding or Funding()).phrases())


def account_seed_phrase(number: int, seed: str = SEED) -> str:
    """Return the seed phrase of a funded account, counted from 1."""
    return f"{seed} {number}"


def describe(seed: str, chain_id: int) -> DevnetAccount:
    """Return the account of a seed phrase."""
    keys = key_pair(seed)
    return DevnetAccount(
        seed=seed,
        address=address_text(from_public_key(keys.public_key, chain_id)),
        public_key=base58.encode(keys.public_key),
        private_key=base58.encode(keys.private_key),
    )
