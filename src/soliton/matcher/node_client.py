"""The interface between the matcher and a node.

What lives here: the protocol and its records. What does not: the implementations, over HTTP
(``http_client``) or in the same process (``soliton.devnet``).

Source: wavesplatform/matcher ``waves-grpc/src/main/protobuf/waves_blockchain_api.proto`` for what
a matcher needs to know.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Final, Protocol

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.orders import Order
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.matching.account_checks import ScriptFault

OrderPair = frozenset[bytes]
"""The ids of the two orders of an exchange."""
EXECUTED: Final = "succeeded"
MAX_STATUS_CHARS: Final = 64
"""The part of an unknown ``applicationStatus`` that is kept."""

Balances = dict[AssetId | None, int]
"""Amounts by asset, in the smallest unit; ``None`` is the native coin."""


class Asset(msgspec.Struct, frozen=True):
    """An existing asset."""

    name: str
    decimals: int
    scripted: bool
    nft: bool = False


class AccountState(msgspec.Struct, frozen=True):
    """What an account owns on the chain: the requested balances, and the native coins it has leased
    out (which are part of the balance, but cannot be spent).
    """

    balances: Balances
    leased_out: int = 0


class ScriptAnswer(msgspec.Struct, frozen=True):
    """The result of running scripts on an order. ``fault`` is ``None`` if all scripts allowed it.
    Otherwise ``asset_id`` tells whose script rejected it (``None``: the account's), and ``message``
    is the script's or the node's.
    """

    fault: ScriptFault | None = None
    asset_id: AssetId | None = None
    message: str = ""


class Broadcast(Enum):
    """The result of sending a transaction, by what to do next."""

    UNCONFIRMED = "it is in the pool"
    CONFIRMED = "it is on the chain"
    LATER = "the node cannot accept transactions now"
    NOT_YET = "the present state of accounts and orders does not allow it"
    TOO_LATE = "its timestamp is too old"
    OPERATOR = "a proxy or the node's settings reject it"
    FINAL = "no node will ever accept it"


class BroadcastAnswer(msgspec.Struct, frozen=True):
    """The result of sending a transaction, and the node's message if it was rejected."""

    result: Broadcast
    message: str = ""


class ChainStatus(msgspec.Struct, frozen=True):
    """The node's last block."""

    height: int
    block_id: bytes


class ChainIdentity(msgspec.Struct, frozen=True):
    """The identity of a chain: the number of its address letter, and the base58 signature of its
    first block.
    """

    chain_id: int
    genesis: str


class Inclusion(msgspec.Struct, frozen=True):
    """Where a transaction is: the height of its block, 0 for the pool. ``failure`` is the chain's
    status of a transaction in a block that was not executed (``script_execution_failed`` or
    ``elided``): only its fee was paid, if that. It is empty for an executed one.
    """

    height: int
    failure: str = ""


class FoundExchange(msgspec.Struct, frozen=True):
    """A transaction on the chain that settles two orders with each other."""

    transaction: AnyTransaction
    inclusion: Inclusion


def failure_in(status: object) -> str:
    """``Inclusion.failure`` for a node's ``applicationStatus``, which older nodes leave out.

    Source: wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/api/http/TransactionJsonSerializer.scala``.
    """
    if status is None or status == EXECUTED:
        return ""
    return str(status)[:MAX_STATUS_CHARS] or "unknown"


class NodeUpdate(msgspec.Struct, frozen=True):
    """The changes on the node since the previous update; unchanged parts are empty.

    ``rolled_back_to`` is the height of the last remaining block, if blocks were rolled back.
    ``confirmed`` are the transactions of added blocks and microblocks: their ids, with the height
    of the block; ``failures`` those of them that were not executed, with ``Inclusion.failure``.
    ``appeared`` are new unconfirmed transactions, ``vanished`` the ids of those that
    left the pool, mined or not. ``changed`` are the accounts whose balances may have changed on the
    chain; ``None`` means any account. ``missed`` is true if events may be missing, so that the
    state of awaited transactions must be queried. ``resumed`` is true if the connection was
    interrupted before: another node may answer. ``finalized`` is the height of the highest block
    that the node reports as final, on this very chain; 0 if it reports none.
    """

    status: ChainStatus
    rolled_back_to: int | None = None
    confirmed: tuple[tuple[bytes, int], ...] = ()
    appeared: tuple[AnyTransaction, ...] = ()
    vanished: tuple[bytes, ...] = ()
    changed: frozenset[Address] | None = frozenset()
    missed: bool = False
    failures: Mapping[bytes, str] = MappingProxyType({})
    resumed: bool = False
    finalized: int = 0


class NodeClient(Protocol):
    """A node. Every request raises ``NodeUnavailable`` if there is no valid response.

    ``parallel_requests`` and ``parallel_broadcasts`` are the preferred numbers of concurrent
    requests and of concurrently sent transactions.
    """

    parallel_requests: int
    parallel_broadcasts: int

    async def identity(self) -> ChainIdentity:
        """The identity of its chain."""

    async def status(self) -> ChainStatus:
        """The last block."""

    async def block_id(self, height: int) -> bytes | None:
        """The id of the block at a height, ``None`` if the chain does not reach it."""

    async def feature_active(self, feature: int) -> bool:
        """Whether a feature is active for the next block."""

    async def asset(self, asset_id: AssetId) -> Asset | None:
        """An asset, or ``None`` if none has this id."""

    async def has_script(self, address: Address) -> bool:
        """Whether an account has a verifier script."""

    async def account(
        self, address: Address, assets: Collection[AssetId | None] | None
    ) -> AccountState:
        """The confirmed balances of an account: of some assets, or of all (``None``)."""

    async def was_executed(self, order_id: bytes) -> bool:
        """Whether any part of an order was executed on the chain, as far as the node knows."""

    async def run_scripts(
        self,
        trials: Iterable[AnyTransaction],
        order: Order,
        assets: Collection[AssetId],
        *,
        blind: bool,
    ) -> ScriptAnswer:
        """Run the script of an order's sender, if any, and the scripts of ``assets``; the result is
        that of the first to reject the order. Failing to run them is a fault as well.

        ``trials`` are exchanges of the order with another one, the largest first: an implementation
        that checks balances first may find them sufficient only for a small one.

        With ``blind``, the account's script should not read the chain, which may change before the
        order is executed; an implementation may be unable to prevent it.
        """

    async def broadcast(self, transaction: AnyTransaction) -> BroadcastAnswer:
        """Send a transaction."""

    async def inclusions(self, transaction_ids: Sequence[bytes]) -> dict[bytes, Inclusion]:
        """Where those transactions are that are on the chain or in the pool."""

    async def now(self) -> int:
        """The time of the node's clock, in milliseconds."""

    async def block_time(self, height: int) -> int:
        """The timestamp of a block, in milliseconds."""

    async def find_exchanges(
        self, account: Address, wanted: Collection[OrderPair], since: int
    ) -> dict[OrderPair, FoundExchange]:
        """The transactions on the chain that settle some pairs of orders, among those in the list
        of an account: one of its traders, or the sender (only this one has those that failed). For
        each pair one that was executed, if there is any. The search goes back to the first
        transaction older than ``since`` (ms).
        """

    def updates(self) -> AsyncGenerator[NodeUpdate, None]:
        """The changes on the node from now on. The first update contains the whole pool of
        unconfirmed transactions. After an interruption the stream continues with an update in which
        ``changed`` is ``None``.
        """

    async def close(self) -> None:
        """Close all connections."""
