"""What the matcher asks of a node, whichever way it reaches it.

What lives here: the protocol and the records in it. What does not: the ways: over HTTP
(``http_client``), or in the same process (``soliton.devnet``).

Source: wavesplatform/matcher ``waves-grpc/src/main/protobuf/waves_blockchain_api.proto`` for what
a matcher needs to know.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from enum import Enum
from typing import Protocol

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.orders import Order
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.matching.account_checks import ScriptFault

Balances = dict[AssetId | None, int]
"""Amounts by asset, in the smallest unit; ``None`` is the native coin."""


class Asset(msgspec.Struct, frozen=True):
    """An asset that exists."""

    name: str
    decimals: int
    scripted: bool
    nft: bool = False


class AccountState(msgspec.Struct, frozen=True):
    """What an account owns on the chain: the balances asked for, and the native coins that it has
    leased out (they are part of the balance, but cannot be spent).
    """

    balances: Balances
    leased_out: int = 0


class ScriptAnswer(msgspec.Struct, frozen=True):
    """What scripts said about an order: ``fault`` is ``None`` when all were asked and agreed. Of
    the first that did not: whose it was (``None``: the account's), and its words or the node's.
    """

    fault: ScriptFault | None = None
    asset_id: AssetId | None = None
    words: str = ""


class Broadcast(Enum):
    """What became of a transaction that was sent, by what is to be done about it."""

    UNCONFIRMED = "it waits for a block"
    CONFIRMED = "it is on the chain"
    LATER = "the node cannot take it at this moment, whatever it holds"
    NOT_YET = "accounts and orders, as they are on the chain, do not allow it"
    TOO_LATE = "its time is over"
    OPERATOR = "something on the way to the node, or of its settings, has to be mended"
    FINAL = "no node will ever take it"


class BroadcastAnswer(msgspec.Struct, frozen=True):
    """The result of sending a transaction, and the node's words for a refusal."""

    result: Broadcast
    words: str = ""


class ChainStatus(msgspec.Struct, frozen=True):
    """The last block that the node knows."""

    height: int
    block_id: bytes


class ChainIdentity(msgspec.Struct, frozen=True):
    """Which chain a node has: the letter of its addresses as a number, and the signature of its
    first block in base58.
    """

    chain_id: int
    genesis: str


class NodeUpdate(msgspec.Struct, frozen=True):
    """A change on the node since the update before; parts that did not change are empty.

    ``rolled_back_to`` is the height of the last block that stayed, when blocks were taken off.
    ``confirmed`` are the transactions of blocks and microblocks that were added, by id, with the
    height of their block. ``appeared`` are new unconfirmed transactions, ``vanished`` ids that are
    unconfirmed no more, mined or not. ``changed`` are the accounts whose balances may have changed
    on the chain; ``None`` means anybody's. ``missed`` says that more may have happened than that:
    whoever waits for a transaction has to ask what has become of it.
    """

    status: ChainStatus
    rolled_back_to: int | None = None
    confirmed: tuple[tuple[bytes, int], ...] = ()
    appeared: tuple[AnyTransaction, ...] = ()
    vanished: tuple[bytes, ...] = ()
    changed: frozenset[Address] | None = frozenset()
    missed: bool = False


class NodeClient(Protocol):
    """A node. Every question raises ``NodeUnavailable`` when there is no usable answer.

    ``parallel_questions`` is how many of them it likes to have at once, ``parallel_broadcasts`` how
    many transactions.
    """

    parallel_questions: int
    parallel_broadcasts: int

    async def identity(self) -> ChainIdentity:
        """Which chain it has."""

    async def status(self) -> ChainStatus:
        """The last block."""

    async def feature_active(self, feature: int) -> bool:
        """Whether a feature is in force for the next block."""

    async def asset(self, asset_id: AssetId) -> Asset | None:
        """An asset, ``None`` where there is none with this id."""

    async def has_script(self, address: Address) -> bool:
        """Whether an account has a script that verifies its orders."""

    async def account(
        self, address: Address, assets: Collection[AssetId | None] | None
    ) -> AccountState:
        """The confirmed balances of an account: of some assets, or (``None``) of all."""

    async def was_executed(self, order_id: bytes) -> bool:
        """Whether any part of an order was executed on the chain, as far as the node can tell."""

    async def run_scripts(
        self, trials: Iterable[AnyTransaction], order: Order, assets: Collection[AssetId]
    ) -> ScriptAnswer:
        """What the script of an order's sender, if there is one, and the scripts of ``assets`` say;
        the first that objects. Where they could not be asked, that is a fault as well.

        ``trials`` are exchanges of the order with another one, the largest first: what asks them
        for balances may find enough for a small one only.
        """

    async def broadcast(self, transaction: AnyTransaction) -> BroadcastAnswer:
        """Send a transaction."""

    async def heights(self, transaction_ids: Sequence[bytes]) -> dict[bytes, int]:
        """The heights of those of the transactions that are on the chain; 0 of those in a pool."""

    async def now(self) -> int:
        """The time of the node's clock, in milliseconds."""

    async def block_time(self, height: int) -> int:
        """The timestamp of a block, in milliseconds."""

    async def find_exchange(
        self, trader: Address, orders: frozenset[bytes], since: int
    ) -> tuple[AnyTransaction, int] | None:
        """The transaction on the chain that settles two orders of which one is the trader's, with
        its height. Blocks before the first with a transaction older than ``since`` (ms) are not
        searched.
        """

    def updates(self) -> AsyncIterator[NodeUpdate]:
        """What changes on the node from now on. The first update describes the whole pool of
        unconfirmed transactions. After an interruption the stream goes on with an update in which
        ``changed`` is ``None``.
        """

    async def close(self) -> None:
        """End all connections."""
