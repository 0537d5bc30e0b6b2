"""Keys that this process does not have: a signer holds them, and signs in their place.

What lives here: what a node asks a signer for, what one can say, the key as mining sees it, and the
wallet of such keys. What does not: the way to the signer (``cli.wallet_signer``), blocks
(``held_mining``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple, NoReturn, Protocol, TypeAlias

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.blocks import Block
from soliton.chain.microblocks import Microblock
from soliton.chain.orders import Order
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.keys import KeyPair
from soliton.errors import EnvironmentProblem, InputError
from soliton.node.wallet import Wallet, WalletError

KEPT: Final = 16
"""Proofs and announcements that are kept: of the last turns, and of microblocks on their way."""
_ELSEWHERE: Final = "wallet.signer keeps the keys: they are made, shown and taken away there"

_log = logging.getLogger(__name__)


class SigningRefused(InputError):
    """The signer says no; its words."""


class SignedBefore(SigningRefused):
    """The signer has signed another block in this place: ``block``, if it still has it."""

    def __init__(self, message: str, block: Block | None = None) -> None:
        super().__init__(message)
        self.block = block


class SignerSilent(EnvironmentProblem):
    """The signer gives no usable answer."""


class MicroSignatures(NamedTuple):
    """Of the block that comes of a microblock, of the microblock, and of its announcement."""

    total: bytes
    micro: bytes
    announcement: bytes


class KeyHolder(Protocol):
    """What signs. All of it raises ``SigningRefused`` or ``SignerSilent``."""

    async def transaction(self, public_key: bytes, transaction: AnyTransaction) -> bytes:
        """The signature of a transaction."""

    async def order(self, public_key: bytes, order: Order) -> bytes:
        """The signature of an order."""

    async def text(self, public_key: bytes, text: str) -> bytes:
        """The signature of a printable text."""

    async def proof(self, public_key: bytes, hit_source: bytes) -> bytes:
        """The VRF proof of a hit source."""

    async def block(self, public_key: bytes, height: int, block: Block) -> bytes:
        """The signature of a block that has none; raises ``SignedBefore`` as well."""

    async def microblock(
        self, public_key: bytes, height: int, total: Block, micro: Microblock
    ) -> MicroSignatures:
        """The signatures of a microblock that has none, and of the block that it makes."""


class HeldKey:
    """The key of one account."""

    __slots__ = ("_told", "announcements", "holder", "proofs", "public_key")

    def __init__(self, public_key: bytes, holder: KeyHolder) -> None:
        self.public_key = public_key
        self.holder = holder
        self.proofs: dict[bytes, bytes] = {}
        """VRF proofs by hit sources."""
        self.announcements: dict[bytes, bytes] = {}
        """Signatures of announcements by the ids of the blocks that come of microblocks."""
        self._told = ""

    def keep_proof(self, hit_source: bytes, proof: bytes) -> None:
        """Remember a proof for a while."""
        _keep(self.proofs, hit_source, proof)

    def keep_announcement(self, block_id: bytes, signature: bytes) -> None:
        """Remember the signature of an announcement for a while."""
        _keep(self.announcements, block_id, signature)

    def tell(self, trouble: str) -> None:
        """Log what keeps it from signing, once as long as it stays the same."""
        if trouble and trouble != self._told:
            _log.error("the signer does not sign blocks: %s", trouble)
        self._told = trouble


AccountKey: TypeAlias = KeyPair | HeldKey
"""A key of a wallet, here or elsewhere."""


def _keep(kept: dict[bytes, bytes], name: bytes, value: bytes) -> None:
    while len(kept) >= KEPT:
        del kept[next(iter(kept))]
    kept[name] = value


class HeldWallet:
    """The accounts of a signer, in the place of a wallet. It has no secrets."""

    path = None

    def __init__(self, keys: Iterable[HeldKey]) -> None:
        self._keys = {each.public_key: each for each in keys}

    @property
    def seed(self) -> bytes:
        """There is none: raises ``WalletError``."""
        self._refuse()

    def accounts(self, chain_id: int) -> list[Address]:
        """The addresses of all accounts on a chain."""
        return [from_public_key(public_key, chain_id) for public_key in self._keys]

    def key(self, address: bytes) -> HeldKey | None:
        """The key of the account that has this address, on whatever chain."""
        chain_id = address[1] if len(address) > 1 else 0
        return next(
            (it for key, it in self._keys.items() if from_public_key(key, chain_id) == address),
            None,
        )

    def account_seed(self, address: bytes) -> bytes | None:
        """Raises ``WalletError``."""
        del address
        self._refuse()

    def generate_account(self, chain_id: int) -> Address:
        """Raises ``WalletError``."""
        del chain_id
        self._refuse()

    def delete_account(self, address: bytes) -> bool:
        """Raises ``WalletError``."""
        del address
        self._refuse()

    @staticmethod
    def _refuse() -> NoReturn:
        raise WalletError(_ELSEWHERE)


AnyWallet: TypeAlias = Wallet | HeldWallet
"""Where a node's accounts come from."""
