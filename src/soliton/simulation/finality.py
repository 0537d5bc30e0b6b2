"""What must hold for final blocks, whatever goes wrong in a simulated network.

Nobody finalizes two blocks of one height, at any time and on any host, unless a third of the stake
lies and votes on both sides of a partition. No honest host loses a final block or a deposit. Once
there are no more faults, and if less than a third of the stake lies, blocks go on to become final,
and conflicting endorsements have cost their senders' deposits.

What lives here: following the honest hosts, and these checks. What does not: those of all
simulations (``checks``), the rules (``soliton.ledger.finality``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.consensus.generation import GenerationPeriod
from soliton.ledger.generators import committed_to
from soliton.simulation.host import Host
from soliton.simulation.liars import ConflictingEndorsements
from soliton.simulation.plan import Plan

LIVELY_BLOCKS: Final = 3
"""So many blocks after the last fault must become final."""
_TWO_FACED: Final = "two-faced-endorsements"


class FinalityWatch:
    """Follows what is final at all honest hosts."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._final: dict[int, bytes] = {}
        self._reached: dict[int, int] = {}
        self._goal = 0
        self._faults: dict[int, str] = {}

    @property
    def highest(self) -> int:
        """The height of the highest block that was voted to be final, 0 if none was."""
        return max(self._reached.values(), default=0)

    @property
    def is_lively(self) -> bool:
        """Whether final blocks must come: less than a third of the stake lies."""
        lies = len(self._plan.lies)
        return 3 * lies < self._plan.nodes + lies

    @property
    def split_at(self) -> int:
        """The lowest height at which two blocks are final, 0 if there is none or if that is a
        fault. It is none if those who lie vote on both sides, with a third of the stake.
        """
        is_fault = self.is_lively or _TWO_FACED not in self._plan.lies
        return 0 if is_fault else min(self._faults, default=0)

    def block(self, host: Host) -> None:
        """An honest host has appended a block: what is below it may have become final."""
        if not self._plan.generation_period:
            return
        chain, number = host.node.chain, host.place.number
        final = chain.voted_height
        for height in range(max(1, self._reached.get(number, 1) - 1), final + 1):
            block_id = chain.meta(height).id
            known = self._final.setdefault(height, block_id)
            if known != block_id:
                self._faults.setdefault(
                    height,
                    f"{host.name} finalizes {block_id.hex()} at height {height}, "
                    f"where {known.hex()} is final",
                )
        self._reached[number] = max(final, self._reached.get(number, 0))

    def settle(self, honest: Sequence[Host]) -> None:
        """All faults are over: what comes now must become final."""
        self._goal = max(each.node.chain.height for each in honest) + LIVELY_BLOCKS

    def is_done(self, hosts: Sequence[Host]) -> bool:
        """Whether all has come that must."""
        return not any(self._missing(hosts))

    def _missing(self, hosts: Sequence[Host]) -> Iterator[str]:
        if not self._plan.generation_period:
            return
        honest = hosts[: self._plan.nodes]
        for each in honest:
            chain = each.node.chain
            for height, block_id in self._final.items():
                if height <= chain.height and chain.meta(height).id != block_id:
                    yield f"{each.name} lacks the final block at height {height}"
                    break
        if not self.is_lively:
            return
        for each in honest:
            if each.node.chain.voted_height < self._goal:
                yield f"{each.name} has no final block from height {self._goal} on"
        punished = {address for address, _ in _conflicts(honest[0])}
        for liar in hosts[self._plan.nodes :]:
            if isinstance(liar, ConflictingEndorsements) and liar.own not in punished:
                yield f"{liar.name} has not lost its deposit"

    def faults_of(self, hosts: Sequence[Host]) -> Iterator[str]:
        """Yield all violated invariants."""
        if not self._plan.generation_period or self.split_at:
            return
        yield from self._faults.values()
        yield from self._missing(hosts)
        honest = hosts[: self._plan.nodes]
        own = {_address(each) for each in honest}
        for each in honest:
            for address, height in _conflicts(each):
                if address in own:
                    yield f"honest {address_text(address)} is punished at height {height}"

    def punished(self, host: Host) -> int:
        """Return the number of conflicting endorsements on the chain of a host."""
        return sum(1 for _ in _conflicts(host))


def _address(host: Host) -> Address:
    return from_public_key(host.place.account.public_key, host.node.network.chain_id)


def _conflicts(host: Host) -> Iterable[tuple[Address, int]]:
    """Yield the generators with a conflict on the chain of a host, and its height."""
    chain = host.node.chain
    period: GenerationPeriod | None = chain.rules.period_at(1)
    while period is not None and period.start <= chain.height:
        for each in committed_to(chain.state, period, chain.network.chain_id):
            if each.conflict_height:
                yield each.address, each.conflict_height
        period = period.next
