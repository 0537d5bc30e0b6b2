"""The node's part in making blocks final: voting rounds, and endorsements by its own accounts.

A round begins with each key block. The accounts that mine here and have committed to the period
endorse its parent, except the generator of the key block, whose block says as much.

An endorsement that names another final block than the rest of the network costs its deposit. The
final block named is that of our own chain, which ``/debug/rollback`` and a restored data directory
can change. So a running node signs nothing while its chain lacks the highest final block that it
has named, even if that was before a restart. A chain that has that block may know less to be final,
since the votes for it are in later blocks: an endorsement that names a lower block of the same
chain conflicts with nothing.

Without the record of what was named, a node endorses once the final block of its chain is newer
than its start: the network has decided by then, and what was named on another chain has cost the
deposit already.

What lives here: the round of our last block, signing. What does not: the record (``endorsed``),
which endorsements of peers count (``soliton.sync.endorsements``), sending them (``soliton.p2p``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/BlockEndorser.scala``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.blocks import BlockHeader
from soliton.chain.finalization import BlockEndorsement, FinalizationVoting, sign_endorsement
from soliton.crypto import base58, bls
from soliton.crypto.keys import KeyPair
from soliton.ledger.generators import GeneratorSet
from soliton.node.endorsed import FILE_NAME, EndorsedBlocks, Named, RecordProblem
from soliton.node.events import BlockAppended, BlockExtended, NodeEvent, RolledBack
from soliton.node.remote_keys import AccountKey, RemoteKey
from soliton.sync.endorsements import CheckEndorsement, Endorsements, Endorser, VotingRound

if TYPE_CHECKING:
    from soliton.node.chain_writer import ChainWriter
    from soliton.node.settings import Settings

_log = logging.getLogger(__name__)

MAX_OUTGOING: Final = 1_024
"""Endorsements kept until the network sends them; without a network they are of no use."""


class BlockEndorser:
    """Follows the chain of one node."""

    def __init__(
        self,
        chain: ChainWriter,
        settings: Settings,
        accounts: Callable[[], list[AccountKey]],
        clock: Callable[[], int],
        endorsed: EndorsedBlocks,
    ) -> None:
        """``accounts`` returns the accounts that mine here; ``clock`` (ms); ``endorsed`` is the
        record of earlier runs, too.
        """
        self._chain = chain
        self._settings = settings
        self._accounts = accounts
        self._clock = clock
        self._is_current = False
        self._endorsed = endorsed
        self._since = chain.height
        self._warned: set[tuple[Address, int]] = set()
        self._outgoing: list[BlockEndorsement] = []
        self._checks: list[CheckEndorsement] = []
        self.endorsements = Endorsements()
        """The endorsements of the present round."""

    def on_event(self, event: NodeEvent) -> None:
        """Handle an event of the node."""
        match event:
            case BlockAppended() | RolledBack():
                self._is_current = False
            case BlockExtended(voting=voting) if voting is not None and voting.conflicts:
                self._is_current = False
            case _:
                pass

    def follow(self) -> None:
        """Begin the round of the last block, if that is another one, and endorse."""
        if self._is_current:
            return
        self._is_current = True
        now, generators = self._round()
        self._log_end(now)
        self._checks += self.endorsements.begin(now)
        if now is not None and generators is not None:
            self._endorse(now, generators)

    def take_outgoing(self) -> list[BlockEndorsement]:
        """Return, once, what this node has signed."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def take_checks(self) -> list[CheckEndorsement]:
        """Return, once, the checks of endorsements that came before their round."""
        checks, self._checks = self._checks, []
        return checks

    def voting(self, header: BlockHeader) -> FinalizationVoting | None:
        """Return the voting of the next microblock of a block that this node has made, by its
        header so far.
        """
        self.follow()
        return self.endorsements.voting(header.reference, header.finalization_voting)

    def _log_end(self, following: VotingRound | None) -> None:
        ended, found = self.endorsements.round, self.endorsements
        if ended is not None and not ended.is_same(following):
            _log.debug(
                "%d of %d generators have endorsed block %s, %d conflict",
                found.count, found.possible, base58.encode(ended.endorsed_id),
                len(found.conflicting),
            )  # fmt: skip

    def _round(self) -> tuple[VotingRound | None, GeneratorSet | None]:
        chain = self._chain
        height, header = chain.height, chain.last_block.header
        age = self._clock() - header.timestamp
        # While it catches up, every block would begin a round that is over.
        if age > self._settings.miner.interval_after_last_block_ms:
            return None, None
        if header.challenged is not None or chain.rules.period_at(height) is None:
            return None, None
        generators = chain.generators_at(height)
        final = chain.finalized_height
        # The genesis block is final from the beginning.
        if generators is None or not generators.members or final >= height - 1:
            return None, None
        balances = {each.index: each.balance for each in generators.members}
        miner = from_public_key(header.generator, chain.network.chain_id)
        now = VotingRound(
            endorsed_id=header.reference,
            finalized_id=chain.meta(final).id,
            finalized_height=final,
            endorsers=tuple(
                Endorser(each.endorser_key, balances.get(index, 0))
                for index, each in enumerate(generators.committed)
            ),
            conflicting=frozenset(
                index for index, each in enumerate(generators.committed) if each.conflict_height
            ),
            miner=next(
                (i for i, each in enumerate(generators.committed) if each.address == miner), None
            ),
            is_own=any(each.public_key == header.generator for each in self._accounts()),
            max_endorsers=chain.network.functionality.max_valid_endorsers,
            id_at=self._id_at,
        )
        return now, generators

    def _id_at(self, height: int) -> bytes | None:
        return self._chain.meta(height).id if 1 <= height < self._chain.height else None

    def _endorse(self, now: VotingRound, generators: GeneratorSet) -> None:
        if not self._settings.miner.enable:
            # Another node may have the same accounts, and see another chain.
            return
        chain_id = self._chain.network.chain_id
        accounts = {from_public_key(each.public_key, chain_id): each for each in self._accounts()}
        willing: dict[Address, tuple[int, bytes]] = {}
        for member in generators.members:
            account = accounts.get(member.address)
            if account is None or not self.endorsements.lacks(member.index):
                continue
            secret = self._secret_of(account, member.address, member.index, now)
            if secret is not None:
                willing[member.address] = member.index, secret
        if not (willing and self._record(tuple(willing), now)):
            return
        for index, secret in willing.values():
            endorsement = sign_endorsement(
                secret, index, now.finalized_id, now.finalized_height, now.endorsed_id
            )
            relayed = self.endorsements.add_own(endorsement)
            if len(self._outgoing) < MAX_OUTGOING:
                self._outgoing += [each.endorsement for each in relayed]

    def _secret_of(
        self, account: AccountKey, address: Address, index: int, now: VotingRound
    ) -> bytes | None:
        """Return the key for the endorsement of an account, unless it must not endorse."""
        if isinstance(account, RemoteKey) or not isinstance(account, KeyPair):
            self._warn(address, "its key is in a signing service, which endorses no blocks")
            return None
        secret = bls.generate_key(account.private_key)
        if bls.public_key_of(secret) != now.endorsers[index].key:
            self._warn(address, "it has committed with another key for endorsements")
            return None
        if not self._endorsed.is_complete and now.finalized_height < self._since:
            self._warn(
                address,
                f"{FILE_NAME}, the record of what it has endorsed before, is missing or damaged; "
                f"it endorses again when block {self._since} is final",
            )
            return None
        named = self._endorsed[address]
        if named is not None and self._id_at(named.height) != named.block_id:
            self._warn(
                address,
                f"it has endorsed another final block, at height {named.height}; if the network "
                f"has given that block up, stop the node, and remove {FILE_NAME}",
            )
            return None
        return secret

    def _record(self, addresses: tuple[Address, ...], now: VotingRound) -> bool:
        """Record the final block that these accounts are about to name; return whether that is
        written.
        """
        higher = {
            each: Named(now.finalized_height, now.finalized_id)
            for each in addresses
            if (named := self._endorsed[each]) is None or named.height < now.finalized_height
        }
        if not higher:
            return True
        try:
            self._endorsed.add(higher)
        except RecordProblem as error:
            for each in addresses:
                self._warn(each, str(error))
            return False
        return True

    def _warn(self, address: Address, reason: str) -> None:
        period = self._chain.rules.period_at(self._chain.height)
        key = address, 0 if period is None else period.start
        if key not in self._warned:
            self._warned.add(key)
            _log.warning("%s does not endorse blocks: %s", address_text(address), reason)
