"""Committing to generation: the mining accounts of this node join the generators of each next
period, if the settings want it.

With deterministic finality only accounts that have committed may make the blocks of a period. A
commitment is a transaction with a deposit, which has to be in a block before the period begins. So
this follows the chain: while an account has not committed to the next period, and neither its
transaction nor another one that commits it waits in the pool, one is made and relayed.

A restart must not make another transaction where the first one may still be under way: its
timestamp is the beginning of a span of time, so that the same account and period give the same id.

What lives here: the decision, the transaction, and what an account has committed to. What does not:
the rules of a commitment (``soliton.ledger``), endorsements (``endorser``).

The reference node leaves it to an extension, ``com.wavesplatform.extension.CommitmentExtension``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.finalization import GENERATION_DEPOSIT
from soliton.chain.transactions import codec
from soliton.chain.transactions.commit_to_generation import TYPE, commitment
from soliton.chain.transactions.model import AnyTransaction
from soliton.consensus.generation import GenerationPeriod
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair
from soliton.errors import SolitonError
from soliton.ledger import generators
from soliton.ledger.state import effective_balance_of
from soliton.node.blockchain import Blockchain
from soliton.node.events import BlockAppended, NodeEvent, NodeEvents, PoolDropped, RolledBack
from soliton.node.remote_keys import AccountKey

if TYPE_CHECKING:
    from soliton.chain.networks.model import Network
    from soliton.ledger.fees import MinimumFee
    from soliton.node.chain_writer import ChainWriter
    from soliton.node.peering import Peering
    from soliton.node.pool import UtxPool
    from soliton.node.settings import Settings

_log = logging.getLogger(__name__)

RELAY_AGAIN: Final = 10
"""After so many blocks a transaction that still waits is relayed once more."""
MAX_PAUSE: Final = 64
"""After each refusal the pause before the next try doubles, up to so many blocks."""
LATE_SHARE: Final = 10
"""In the last one of so many parts of a period an account that has not committed is warned of."""


class Commitments(msgspec.Struct, frozen=True):
    """The last height of the period to which an account has committed, ``None`` if it has not
    committed to the period of the next block; whether it has committed to the period after that.
    """

    committed_until: int | None
    committed_to_next: bool


def commitments_of(chain: Blockchain, address: Address) -> Commitments | None:
    """Return what an account has committed to, ``None`` before deterministic finality. A conflict
    ends a commitment.
    """
    period = chain.rules.period_at(chain.height + 1)
    if period is None:
        return None
    state = chain.state
    index = generators.index_of(state, period, address)
    if index is not None:
        own = generators.committed_at(state, period, index, chain.network.chain_id)
        index = None if own.conflict_height else index
    return Commitments(
        None if index is None else period.end,
        generators.has_committed(state, period.next, address),
    )


class CommittingNode(Protocol):
    """The parts of a node that commit its accounts."""

    settings: Settings
    network: Network
    chain: ChainWriter
    pool: UtxPool
    events: NodeEvents
    peering: Peering | None
    clock: Callable[[], int]

    def mining_accounts(self) -> list[AccountKey]:
        """Return the mining accounts."""

    def minimum_fee(self, transaction: AnyTransaction) -> MinimumFee:
        """Return the minimum fee of a transaction in the next block."""

    def broadcast(self, transaction: AnyTransaction) -> bool:
        """Check a transaction, add it to the pool and relay it; raises the errors of both."""


class _Attempt(msgspec.Struct):
    """What this node has done for one account and period."""

    period_start: int
    transaction_id: bytes = b""
    relayed_at: int = 0
    tried_at: int = 0
    pause: int = 0
    warned: str = ""
    is_logged: bool = False


class Committer:
    """Commits the mining accounts of one node."""

    def __init__(self, node: CommittingNode) -> None:
        self._node = node
        self._is_current = False
        self._attempts: dict[Address, _Attempt] = {}
        self.is_on = node.settings.miner.commit_to_generation
        """Whether it commits; otherwise it only warns of commitments that end."""
        self.accounts: Callable[[], list[AccountKey]] = node.mining_accounts
        """Returns the accounts that mine."""
        self.last_blocks: int | None = None
        """Accounts commit in so many last blocks of a period, ``None`` for all."""
        self.only_with_others = False
        """Whether accounts commit only where others do: without a commitment everybody may make
        blocks.
        """
        node.events.subscribe(self.on_event)

    def on_event(self, event: NodeEvent) -> None:
        """Handle an event of the node."""
        match event:
            case BlockAppended():
                self._is_current = False
            case RolledBack(height=height):
                self._is_current = False
                for each in self._attempts.values():
                    if each.tried_at >= height:
                        each.pause = 0
            case PoolDropped(transaction=transaction) if transaction.type_id == TYPE.type_id:
                self._is_current = False
            case _:
                pass

    def follow(self) -> None:
        """Commit the accounts that lack it to the period after that of the next block, once for
        each state of the chain. Raises nothing.
        """
        if self._is_current:
            return
        self._is_current = True
        chain = self._node.chain
        period = chain.rules.period_at(chain.height + 1)
        if period is None or not self._node.settings.miner.enable:
            return
        for account in self.accounts():
            address = from_public_key(account.public_key, chain.network.chain_id)
            attempt = self._attempts.get(address)
            if attempt is None or attempt.period_start != period.next.start:
                attempt = self._attempts[address] = _Attempt(period.next.start)
            self._follow(account, address, period, attempt)

    def waiting(self) -> list[AnyTransaction]:
        """Return the commitments that this node has made and that wait in its pool."""
        found = (self._node.pool.get(each.transaction_id) for each in self._attempts.values())
        return [each for each in found if each is not None]

    def blocks_until_due(self) -> int:
        """Return after how many further blocks an account may have to commit, at least 1."""
        chain = self._node.chain
        period = chain.rules.period_at(chain.height + 1)
        if period is None or self.last_blocks is None:
            return 1
        chain_id = chain.network.chain_id
        addresses = [from_public_key(each.public_key, chain_id) for each in self.accounts()]
        if all(generators.has_committed(chain.state, period.next, each) for each in addresses):
            period = period.next
        return max(1, period.end - self.last_blocks - chain.height)

    def _follow(
        self, account: AccountKey, address: Address, period: GenerationPeriod, attempt: _Attempt
    ) -> None:
        node, chain = self._node, self._node.chain
        if generators.has_committed(chain.state, period.next, address):
            self._log_commitment(address, period, attempt)
            return
        attempt.is_logged = False
        left = period.end - chain.height
        is_generator = generators.has_committed(chain.state, period, address)
        if not self.is_on:
            if is_generator and left <= max(1, period.length // LATE_SHARE):
                self._warn(
                    attempt, address,
                    f"its commitment ends at block {period.end}, and it has not committed to the "
                    "next period: miner.commit-to-generation does that",
                )  # fmt: skip
            return
        if attempt.transaction_id in node.pool:
            if chain.height >= attempt.relayed_at + RELAY_AGAIN and node.peering is not None:
                attempt.relayed_at = chain.height
                node.peering.relay(attempt.transaction_id)
            return
        if self.last_blocks is not None and left > self.last_blocks:
            return
        if self.only_with_others and not generators.count_committed(node.pool.state(), period.next):
            return
        if generators.has_committed(node.pool.state(), period.next, address):
            # Somebody else has sent it.
            return
        if not isinstance(account, KeyPair):
            self._warn(
                attempt, address,
                "its key is in a signing service, which has no key for endorsements: commit by a "
                "transaction that states endorserPublicKey and commitmentSignature",
            )  # fmt: skip
            return
        if self._is_rich_enough(address, attempt, is_generator=is_generator):
            self._commit(account, address, period, attempt)

    def _log_commitment(
        self, address: Address, period: GenerationPeriod, attempt: _Attempt
    ) -> None:
        if attempt.is_logged:
            return
        attempt.is_logged = True
        coming = period.next
        _log.info(
            "%s has committed to generation in blocks %d to %d", address_text(address),
            coming.start, coming.end,
        )  # fmt: skip

    def _is_rich_enough(self, address: Address, attempt: _Attempt, *, is_generator: bool) -> bool:
        """Whether an account can generate after fee and deposit. One that can generate without
        them is worth a warning.
        """
        chain = self._node.chain
        rules = chain.rules.at(chain.height + 1)
        least = rules.minimum_generating_balance
        fees = self._node.network.fees
        costs = GENERATION_DEPOSIT + fees.base.get(TYPE.type_id, fees.unit)
        effective = effective_balance_of(chain.state, address)
        generating = chain.generating_balance(address)
        if min(effective - costs, generating) >= least:
            return True
        if min(effective, generating) >= least or is_generator:
            self._warn(
                attempt, address,
                f"its effective balance is {effective} and its generating balance {generating}; "
                f"{least} to generate and {costs} for deposit and fee are needed",
            )  # fmt: skip
        return False

    def _commit(
        self, account: KeyPair, address: Address, period: GenerationPeriod, attempt: _Attempt
    ) -> None:
        node, height = self._node, self._node.chain.height
        if height < attempt.tried_at + attempt.pause:
            return
        # Short in short periods.
        attempt.pause = max(1, min(2 * attempt.pause, MAX_PAUSE, period.length // LATE_SHARE))
        attempt.tried_at = height
        try:
            transaction = self._transaction(account, period.next.start)
            attempt.transaction_id, attempt.relayed_at = transaction.id, height
            node.broadcast(transaction)
        except SolitonError as error:
            self._warn(attempt, address, str(error))
            return
        now = generators.has_committed(node.chain.state, period, address)
        _log.info(
            "%s commits to generation in blocks %d to %d by transaction %s%s",
            address_text(address), period.next.start, period.next.end,
            base58.encode(transaction.id),
            f"; its present commitment ends at block {period.end}" if now else "",
        )  # fmt: skip

    def _transaction(self, account: KeyPair, period_start: int) -> AnyTransaction:
        node = self._node
        span = node.network.functionality.max_transaction_time_back_offset_ms // 2
        now = node.clock()
        payload = commitment(account.private_key, period_start)

        def build(fee: int) -> AnyTransaction:
            return codec.build(
                TYPE,
                payload,
                version=TYPE.max_version,
                chain_id=node.network.chain_id,
                sender_public_key=account.public_key,
                fee=fee,
                timestamp=now - now % span if span > 0 else now,
            )

        fee = node.minimum_fee(build(node.network.fees.unit)).amount
        return codec.sign(build(fee), account.private_key)

    def _warn(self, attempt: _Attempt, address: Address, reason: str) -> None:
        """Warn once for each reason."""
        if attempt.warned != reason:
            attempt.warned = reason
            _log.warning(
                "%s does not commit to generation from block %d on: %s", address_text(address),
                attempt.period_start, reason,
            )  # fmt: skip
