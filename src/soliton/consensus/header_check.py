"""The consensus checks of a block header against its parent: version, base target, generation
signature, balance, delay.

What lives here: one function that checks a header and returns the block's hit source. What does
not: the block's signature and transactions, and looking up the parent's numbers
(``soliton.ledger``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/appender/package.scala``
and ``consensus/PoSSelector.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.blocks import (
    GENERATION_SIGNATURE_LENGTH,
    MAX_FEATURE_VOTES,
    NG_VERSION,
    PROTOBUF_VERSION,
    VRF_PROOF_LENGTH,
    BlockHeader,
)
from soliton.consensus import pos
from soliton.consensus.pos import PoS
from soliton.crypto import base58, curve25519, vrf
from soliton.errors import InputError

MAX_TIME_DRIFT_MS: Final = 100

EARLY_BLOCKS: Final[dict[int, bytes]] = {
    812_608: base58.decode(
        "2GNCYVy7k3kEPXzz12saMtRDeXFKr8cymVsG8Yxx3sZZ75eHj9csfXnGHuuJe7XawbcwjKdifUrV1uMq4ZNCWPf1"
    ),
    813_207: base58.decode(
        "5uZoDnRKeWZV9Thu2nvJVZ5dBvPB7k2gvpzFD618FMXCbBVBMN2rRyvKBZBhAGnGdgeh2LXEeSr9bJqruJxngsE7"
    ),
}
"""Two blocks of Waves mainnet that were accepted before their time, by their parent's height."""


class ConsensusError(InputError):
    """A block violates a consensus rule. The message has the actual and the expected value."""


class FromFuture(ConsensusError):
    """The block's timestamp is in the future. Later checks have not run."""


class Parent(msgspec.Struct, frozen=True):
    """The parent of a block, and the other values of the chain that its check needs.

    ``hit_source`` is that of the block 100 heights below the new one, or the parent's where there
    is no such block or the rule is not active. ``generating_balance`` is the generator's, in
    wavelets. ``challenged_balance`` is that of the challenged generator: it is added for the delay,
    but does not count towards the minimum.
    """

    height: int
    header: BlockHeader
    hit_source: bytes
    great_grandparent_timestamp: int | None
    generating_balance: int
    challenged_balance: int = 0


class HeaderRules(msgspec.Struct, frozen=True):
    """The consensus rules in force for a block.

    ``too_early_tolerated`` skips the delay check, as early history of one network requires.
    """

    version: int
    pos: PoS
    uses_vrf: bool
    refuse_weak_keys: bool
    target_delay_seconds: int
    minimum_generating_balance: int
    minimum_applies_from: int
    state_hash_required: bool
    too_early_tolerated: bool = False


def check_header(
    header: BlockHeader, block_id: bytes, parent: Parent, rules: HeaderRules, now: int | None
) -> bytes:
    """Check a header against its parent and return the hit source of the new block.

    ``now`` (ms) limits how far in the future a block may be; ``None``, for imported history, means
    no limit. Raises ``ConsensusError``.
    """
    _check_form(header, rules)
    if now is not None and header.timestamp - now >= MAX_TIME_DRIFT_MS:
        raise FromFuture(f"timestamp {header.timestamp} is from the future, now is {now}")
    expected = pos.next_base_target(
        rules.pos,
        rules.target_delay_seconds,
        parent.height,
        parent.header.base_target,
        parent.header.timestamp,
        parent.great_grandparent_timestamp,
        header.timestamp,
    )
    if header.base_target != expected:
        raise ConsensusError(f"base target {header.base_target} is not the expected {expected}")
    signature, hit_source = _generation_signature(header, parent, rules)
    balance = parent.generating_balance
    if (
        balance < rules.minimum_generating_balance
        and header.timestamp >= rules.minimum_applies_from
    ):
        raise ConsensusError(
            f"generating balance {balance} is below {rules.minimum_generating_balance}"
        )
    balance += parent.challenged_balance
    if balance <= 0:
        raise ConsensusError(f"generating balance {balance} is not above zero")
    delay = pos.delay_ms(rules.pos, pos.hit(signature), parent.header.base_target, balance)
    earliest = parent.header.timestamp + delay
    tolerated = rules.too_early_tolerated or EARLY_BLOCKS.get(parent.height) == block_id
    if header.timestamp < earliest and not tolerated:
        raise ConsensusError(f"timestamp {header.timestamp} is before the earliest one, {earliest}")
    return hit_source


def _check_form(header: BlockHeader, rules: HeaderRules) -> None:
    if header.version != rules.version:
        raise ConsensusError(f"block version {header.version}, {rules.version} expected")
    found = len(header.generation_signature)
    length = VRF_PROOF_LENGTH if rules.uses_vrf else GENERATION_SIGNATURE_LENGTH
    if found < length or (found > length and not rules.uses_vrf):
        raise ConsensusError(f"generation signature of {found} bytes, {length} expected")
    _check_votes(header)
    # A missing state hash is a wrong one, which is found when the block is applied: others may
    # challenge it.
    if header.state_hash is not None and not rules.state_hash_required:
        raise ConsensusError("the header cannot hold a state hash yet")
    if header.challenged is not None:
        if not rules.state_hash_required:
            raise ConsensusError("the header cannot challenge another one yet")
        if header.challenged.generator == header.generator:
            raise ConsensusError("a generator cannot challenge itself")


def _check_votes(header: BlockHeader) -> None:
    """Check the votes for features of a block in binary form. The reference node checks those of a
    message only when it makes it (``block/validation/Validators.scala``): a block of version 5 may
    have any.
    """
    votes = header.feature_votes
    if header.version >= PROTOBUF_VERSION:
        return
    if votes and header.version < NG_VERSION:
        raise ConsensusError(f"block version {header.version} cannot vote for features")
    if len(votes) > MAX_FEATURE_VOTES or len(set(votes)) != len(votes):
        raise ConsensusError(f"feature votes {votes} are too many or repeated")


def _generation_signature(
    header: BlockHeader, parent: Parent, rules: HeaderRules
) -> tuple[bytes, bytes]:
    """Return the bytes that determine the hit, and the hit source of this block."""
    if rules.uses_vrf:
        if rules.refuse_weak_keys and curve25519.is_weak(header.generator):
            raise ConsensusError("the generator's public key is weak")
        # The reference node's library ignores bytes after the proof.
        proof = header.generation_signature[:VRF_PROOF_LENGTH]
        output = vrf.verify(header.generator, parent.hit_source, proof)
        if output is None:
            raise ConsensusError("the generation signature is no valid VRF proof")
        return output, output
    expected = pos.generation_signature(parent.header.generation_signature, header.generator)
    if header.generation_signature != expected:
        raise ConsensusError(
            f"generation signature {header.generation_signature.hex()} is not {expected.hex()}"
        )
    hit_bytes = pos.generation_signature(parent.hit_source, header.generator)
    return hit_bytes, header.generation_signature
