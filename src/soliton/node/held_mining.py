"""Making blocks with a key that a signer holds.

A block is made without a signature, signed elsewhere while others get their turn, and put on the
chain if that is still where it was. What the signer says it signed in this place before, because
its answer was lost or this node was started again, is taken instead: there is never a second one.

What lives here: that. What does not: making blocks (``miner``), when (``mining``).
"""

from __future__ import annotations

import logging

import msgspec

from soliton.chain import blocks, microblocks
from soliton.chain.addresses import from_public_key
from soliton.chain.blocks import MAX_TRANSACTIONS, Block
from soliton.chain.layouts import SIGNATURE_LENGTH
from soliton.crypto import vrf
from soliton.ledger import headers
from soliton.ledger.errors import BlockRejected
from soliton.node import key_blocks
from soliton.node.held_keys import HeldKey, SignedBefore, SignerSilent, SigningRefused
from soliton.node.miner import microblock_of
from soliton.node.node import Node

_log = logging.getLogger(__name__)


async def prove_turn(node: Node, account: HeldKey) -> None:
    """Have the proof made that the account's next turn takes, if it may have one."""
    chain = node.chain
    rules = chain.rules.header_at(chain.height + 1)
    source = headers.hit_source(chain)
    if not rules.uses_vrf or source in account.proofs:
        return
    balance = chain.generating_balance(from_public_key(account.public_key, node.network.chain_id))
    if balance <= 0 or balance < rules.minimum_generating_balance:
        return
    try:
        proof = await account.holder.proof(account.public_key, source)
        if vrf.verify(account.public_key, source, proof) is None:
            raise SigningRefused("its VRF proof does not verify")
    except (SigningRefused, SignerSilent) as error:
        account.tell(str(error))
    else:
        account.tell("")
        account.keep_proof(source, proof)


async def mine_key_block(node: Node, account: HeldKey) -> Block:
    """As ``key_blocks.mine_key_block``; raises ``SigningRefused`` and ``SignerSilent`` as well."""
    height = node.chain.height + 1
    draft = key_blocks.draft_key_block(node, account).block
    try:
        block = await _signed(account, height, draft)
    except SignedBefore as before:
        block = _usable(before, draft)
        _log.warning("block %d was signed before: it is taken as it was", height)
    account.tell("")
    return key_blocks.put_key_block(node, block)


async def mine(node: Node, account: HeldKey, *, empty: bool, most: int = MAX_TRANSACTIONS) -> Block:
    """As ``Node.mine_in_steps``; raises ``SigningRefused`` and ``SignerSilent`` as well."""
    last = node.chain.last_block
    forged = await node.forged_in_steps(account, empty=empty, most=most)
    try:
        block = await _signed(account, node.chain.height + 1, forged.block)
    except SignedBefore as before:
        block = _usable(before, forged.block)
        forged = msgspec.structs.replace(forged, progress=None)
    account.tell("")
    _check_still_last(node, last)
    made = node.put_forged(msgspec.structs.replace(forged, block=block))
    node.settle_in_turns()
    return made


async def mine_microblock(node: Node, account: HeldKey) -> int:
    """As ``Node.mine_micro_in_steps``; raises ``SigningRefused`` and ``SignerSilent`` as well."""
    last, height = node.chain.last_block, node.chain.height
    forged = await node.micro_forged_in_steps(account)
    if forged is None:
        return 0
    total = forged.block
    added = len(total.transactions) - len(last.transactions)
    micro = microblock_of(total, last.id, added, bytes(SIGNATURE_LENGTH))
    made = await account.holder.microblock(account.public_key, height, total, micro)
    _check_still_last(node, last)
    account.tell("")
    block = _checked(blocks.assemble(total.header, total.transactions, made.total))
    if not microblocks.signature_is_valid(microblock_of(block, last.id, added, made.micro)):
        raise SigningRefused("its signature of the microblock does not verify")
    account.keep_announcement(block.id, made.announcement)
    node.put_micro(msgspec.structs.replace(forged, block=block, micro_signature=made.micro))
    node.settle_in_turns()
    return added


async def _signed(account: HeldKey, height: int, draft: Block) -> Block:
    signature = await account.holder.block(account.public_key, height, draft)
    return _checked(blocks.assemble(draft.header, draft.transactions, signature))


def _checked(block: Block) -> Block:
    if not blocks.signature_is_valid(block):
        raise SigningRefused("its signature of the block does not verify")
    return block


def _usable(before: SignedBefore, draft: Block) -> Block:
    """The block that was signed, if it can be put on the chain; else raises ``SignedBefore``."""
    block = before.block
    if block is None or block.header.reference != draft.header.reference:
        raise before
    modern = block.header.version >= blocks.PROTOBUF_VERSION
    if modern and blocks.transactions_root(()) != block.header.transactions_root:
        # Only the header was kept, and nobody knows which transactions were in it.
        raise before
    return _checked(block)


def _check_still_last(node: Node, last: Block) -> None:
    if node.chain.last_block is not last:
        raise BlockRejected(node.chain.height, "another block came first")
