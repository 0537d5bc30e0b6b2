"""Replay of confirmed transactions on the state before them.

What lives here: finding that state. What does not: observing (``soliton.ride.observation``),
recording (``soliton.ride.recording``).
"""

from __future__ import annotations

from soliton.controls.errors import ControlRefused
from soliton.errors import SolitonError
from soliton.ledger.apply import BlockInProgress, observe
from soliton.ledger.environment import next_environment
from soliton.node.chain_writer import ChainWriter
from soliton.ride.observation import Observer
from soliton.steps import run_steps


def observe_again(chain: ChainWriter, transaction_id: bytes, observer: Observer) -> str:
    """Replay a confirmed transaction with an observer; return its error, or an empty string.

    Raises ``ControlRefused`` if the chain does not have it, or cannot restore its state.
    """
    found = chain.transaction(transaction_id)
    if found is None:
        raise ControlRefused("the chain has no such transaction")
    height = found.height
    if height == 1:
        raise ControlRefused("there is no chain before the first block")
    try:
        before = chain.branch(height - 1)
    except SolitonError as error:
        raise ControlRefused(f"the chain cannot go back to height {height - 1}: {error}") from error
    block = chain.block_at(height)
    environment = next_environment(before, block.header, chain.meta(height).hit_source)
    progress = BlockInProgress(before.state, environment)
    progress.begin(block.transactions)
    earlier = []
    for each in block.transactions:
        if each.id == transaction_id:
            break
        earlier.append(each)
    elide = block.header.challenged is not None
    run_steps(progress.adding(earlier, verify_signatures=False, elide=elide))
    try:
        outcome = observe(progress, found.transaction, observer)
    except SolitonError as error:
        return str(error)
    changes = outcome.state_changes
    return "" if changes is None or changes.error is None else changes.error.text
