"""Keys held by a remote signer.

What lives here: the interface of a signer and its errors, such a key as mining sees it, and a
wallet of such keys. What does not: the client of the signer (``cli.wallet_signer``), making blocks
(``remote_mining``).
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
"""How many VRF proofs and signatures of announcements are cached."""
_ELSEWHERE: Final = "wallet.signer keeps the keys: they are made, shown and taken away there"

_log = logging.getLogger(__name__)


class SigningRefused(InputError):
    """The signer has refused; the message is the signer's."""


class SignedBefore(SigningRefused):
    """The signer has already signed another block on this parent: ``block``, if it still has it."""

    def __init__(self, message: str, block: Block | None = None) -> None:
        super().__init__(message)
        self.block = block


class SignerUnavailable(EnvironmentProblem):
    """The signer gives no usable answer."""


class MicroSignatures(NamedTuple):
    """The signatures of the resulting block, of the microblock, and of its announcement."""

    total: bytes
    micro: bytes
    announcement: bytes


class RemoteSigner(Protocol):
    """A signer. All methods raise ``SigningRefused`` or ``SignerUnavailable``."""

    async def transaction(self, public_key: bytes, transaction: AnyTransaction) -> bytes:
        """Sign a transaction."""

    async def order(self, public_key: bytes, order: Order) -> bytes:
        """Sign an order."""

    async def text(self, public_key: bytes, text: str) -> bytes:
        """Sign a printable text."""

    async def proof(self, public_key: bytes, hit_source: bytes) -> bytes:
        """Return the VRF proof of a hit source."""

    async def block(self, public_key: bytes, height: int, block: Block) -> bytes:
        """Sign a block; raises ``SignedBefore`` as well."""

    async def microblock(
        self, public_key: bytes, height: int, total: Block, micro: Microblock
    ) -> MicroSignatures:
        """Sign a microblock and the resulting block."""


class RemoteKey:
    """The key of one account."""

    __slots__ = ("_logged", "announcements", "proofs", "public_key", "signer")

    def __init__(self, public_key: bytes, signer: RemoteSigner) -> None:
        self.public_key = public_key
        self.signer = signer
        self.proofs: dict[bytes, bytes] = {}
        """VRF proofs by hit sources."""
        self.announcements: dict[bytes, bytes] = {}
        """Signatures of announcements of microblocks, by the ids of the resulting blocks."""
        self._logged = ""

    def keep_proof(self, hit_source: bytes, proof: bytes) -> None:
        """Cache a proof."""
        _keep(self.proofs, hit_source, proof)

    def keep_announcement(self, block_id: bytes, signature: bytes) -> None:
        """Cache the signature of an announcement."""
        _keep(self.announcements, block_id, signature)

    def log_problem(self, problem: str) -> None:
        """Log why the signer does not sign, unless it is the last logged one; empty resets it."""
        if problem and problem != self._logged:
            _log.error("the signer does not sign blocks: %s", problem)
        self._logged = problem


AccountKey: TypeAlias = KeyPair | RemoteKey
"""A local or remote key of a wallet."""


def _keep(kept: dict[bytes, bytes], name: bytes, value: bytes) -> None:
    while len(kept) >= KEPT:
        del kept[next(iter(kept))]
    kept[name] = value


class RemoteWallet:
    """The accounts of a remote signer, with the interface of ``Wallet``. It has no secrets."""

    path = None

    def __init__(self, keys: Iterable[RemoteKey]) -> None:
        self._keys = {each.public_key: each for each in keys}

    @property
    def seed(self) -> bytes:
        """Raises ``WalletError``."""
        self._refuse()

    def accounts(self, chain_id: int) -> list[Address]:
        """Return the addresses of all accounts on a chain."""
        return [from_public_key(public_key, chain_id) for public_key in self._keys]

    def key(self, address: bytes) -> RemoteKey | None:
        """Return the key of the account with this address, on any chain."""
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


AnyWallet: TypeAlias = Wallet | RemoteWallet
"""A wallet of local or remote keys."""
