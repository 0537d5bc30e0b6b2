"""Manual changes in a block of a private chain, which no other node would accept.

What lives here: detecting them when the block is stored. What does not: making them
(``soliton.controls``).
"""

from __future__ import annotations

from soliton.chain.addresses import from_public_key
from soliton.chain.blocks import Block
from soliton.ledger.edits import ByHand
from soliton.ledger.environment import BlockEnvironment

_NOTHING = ByHand()


def by_hand_of(block: Block, environment: BlockEnvironment, drift_ms: int) -> ByHand | None:
    """Return the manual changes of a block that was applied in an environment, ``None`` if it
    follows all rules. ``drift_ms`` is the additional tolerance for timestamps.
    """
    proven = environment.proven
    if proven and not (environment.edits or environment.waived or drift_ms):
        return None
    senders = {each.sender_public_key for each in block.transactions if each.sender_public_key}
    addresses = {from_public_key(each, block.header.chain_id) for each in senders}
    found = ByHand(
        edits=environment.edits,
        impersonated=tuple(sorted(addresses & environment.waived)),
        proven=proven,
        hit_source=b"" if proven else environment.hit_source,
        late=bool(drift_ms) and _has_drifted(block, environment, drift_ms),
    )
    return None if found == _NOTHING else found


def _has_drifted(block: Block, environment: BlockEnvironment, drift_ms: int) -> bool:
    rules, parent = environment.rules, environment.parent
    back, forward = rules.max_time_back_ms - drift_ms, rules.max_time_forward_ms - drift_ms
    return any(
        each.timestamp - block.header.timestamp > forward
        or (parent is not None and parent.timestamp - each.timestamp > back)
        for each in block.transactions
    )
