"""Making blocks with a remote signer's key.

A block is made unsigned, signed remotely while the event loop serves other work, and appended if
the chain has not changed meanwhile. If the signer has already signed a block on this parent (its
answer was lost, or this node was restarted), that block is used instead: there is never a second
one.

What lives here: these steps. What does not: making blocks (``miner``), scheduling (``mining``).
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
from soliton.node.miner import microblock_of
from soliton.node.node import Node
from soliton.node.remote_keys import RemoteKey, SignedBefore, SignerUnavailable, SigningRefused

_log = logging.getLogger(__name__)


async def prove_turn(node: Node, account: RemoteKey) -> None:
    """Fetch the VRF proof for the account's next slot, if its balance allows one."""
    chain = node.chain
    rules = chain.rules.header_at(chain.height + 1)
    source = headers.hit_source(chain)
    if not rules.uses_vrf or source in account.proofs:
        return
    balance = chain.generating_balance(from_public_key(account.public_key, node.network.chain_id))
    if balance <= 0 or balance < rules.minimum_generating_balance:
        return
    try:
        proof = await account.signer.proof(account.public_key, source)
        if vrf.verify(account.public_key, source, proof) is None:
            raise SigningRefused("its VRF proof does not verify")
    except (SigningRefused, SignerUnavailable) as error:
        account.log_problem(str(error))
    else:
        account.log_problem("")
        account.keep_proof(source, proof)


async def mine_key_block(node: Node, account: RemoteKey) -> Block:
    """Like ``key_blocks.mine_key_block``; also raises ``SigningRefused``, ``SignerUnavailable``."""
    height = node.chain.height + 1
    draft = key_blocks.draft_key_block(node, account).block
    try:
        block = await _signed(account, height, draft)
    except SignedBefore as before:
        block = _usable(before, draft)
        _log.warning("block %d was signed before: it is taken as it was", height)
    account.log_problem("")
    return key_blocks.put_key_block(node, block)


async def mine(
    node: Node, account: RemoteKey, *, empty: bool, most: int = MAX_TRANSACTIONS
) -> Block:
    """Like ``Node.mine_in_steps``; also raises ``SigningRefused``, ``SignerUnavailable``."""
    last = node.chain.last_block
    forged = await node.forged_in_steps(account, empty=empty, most=most)
    try:
        block = await _signed(account, node.chain.height + 1, forged.block)
    except SignedBefore as before:
        block = _usable(before, forged.block)
        forged = msgspec.structs.replace(forged, progress=None)
    account.log_problem("")
    _check_still_last(node, last)
    made = node.put_forged(msgspec.structs.replace(forged, block=block))
    node.settle_in_turns()
    return made


async def mine_microblock(node: Node, account: RemoteKey) -> int:
    """Like ``Node.mine_micro_in_steps``; also raises ``SigningRefused``, ``SignerUnavailable``."""
    last, height = node.chain.last_block, node.chain.height
    forged = await node.micro_forged_in_steps(account)
    if forged is None:
        return 0
    total = forged.block
    added = len(total.transactions) - len(last.transactions)
    voting = forged.voting
    micro = microblock_of(total, last.id, added, bytes(SIGNATURE_LENGTH), voting)
    made = await account.signer.microblock(account.public_key, height, total, micro)
    _check_still_last(node, last)
    account.log_problem("")
    block = _checked(blocks.assemble(total.header, total.transactions, made.total))
    if not microblocks.signature_is_valid(microblock_of(block, last.id, added, made.micro, voting)):
        raise SigningRefused("its signature of the microblock does not verify")
    account.keep_announcement(block.id, made.announcement)
    node.put_micro(msgspec.structs.replace(forged, block=block, micro_signature=made.micro))
    node.settle_in_turns()
    return added


async def _signed(account: RemoteKey, height: int, draft: Block) -> Block:
    signature = await account.signer.block(account.public_key, height, draft)
    return _checked(blocks.assemble(draft.header, draft.transactions, signature))


def _checked(block: Block) -> Block:
    if not blocks.signature_is_valid(block):
        raise SigningRefused("its signature of the block does not verify")
    return block


def _usable(before: SignedBefore, draft: Block) -> Block:
    """Return the block signed before if it can be appended; otherwise raise ``SignedBefore``."""
    block = before.block
    if block is None or block.header.reference != draft.header.reference:
        raise before
    modern = block.header.version >= blocks.PROTOBUF_VERSION
    if modern and blocks.transactions_root(()) != block.header.transactions_root:
        # The signer keeps only the header; the transactions are lost.
        raise before
    return _checked(block)


def _check_still_last(node: Node, last: Block) -> None:
    if node.chain.last_block is not last:
        raise BlockRejected(node.chain.height, "another block came first")
