"""The genesis block, made from a network's settings.

Its generator is the account of the empty seed. The settings of public networks contain its
signature; otherwise the block is signed here with fixed randomness, so that all nodes of a private
chain have the same genesis block.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/block/Block.scala``
(``genesis``).
"""

from __future__ import annotations

from typing import Final

from soliton.chain import blocks
from soliton.chain.addresses import parse_address
from soliton.chain.blocks import Block, BlockHeader
from soliton.chain.errors import ChainError
from soliton.chain.networks.model import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.genesis import TYPE, Genesis
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.crypto.keys import key_pair_from_account_seed

GENESIS_REFERENCE: Final = b"\xff" * 64
GENESIS_GENERATION_SIGNATURE: Final = bytes(32)
_FIXED_RANDOMNESS: Final = bytes(64)


class GenesisError(ChainError):
    """The settings do not describe a valid genesis block."""


def genesis_block(network: Network) -> Block:
    """Return the genesis block; raise ``GenesisError`` if its signature or its sum is wrong."""
    settings = network.genesis
    generator = key_pair_from_account_seed(b"")
    transactions = tuple(
        _transaction(network, transfer.recipient, transfer.amount)
        for transfer in settings.transactions
    )
    total = sum(transfer.amount for transfer in settings.transactions)
    if total != settings.initial_balance:
        raise GenesisError(f"genesis transfers sum to {total}, not {settings.initial_balance}")
    header = BlockHeader(
        version=blocks.GENESIS_VERSION,
        chain_id=network.chain_id,
        timestamp=settings.block_timestamp,
        reference=GENESIS_REFERENCE,
        base_target=settings.initial_base_target,
        generation_signature=GENESIS_GENERATION_SIGNATURE,
        generator=generator.public_key,
    )
    if settings.signature is None:
        return blocks.sign(header, transactions, generator.private_key, _FIXED_RANDOMNESS)
    block = blocks.assemble(header, transactions, base58.decode(settings.signature))
    if not blocks.signature_is_valid(block):
        raise GenesisError(f"the genesis signature of {network.name} is not valid")
    return block


def _transaction(network: Network, recipient: str, amount: int) -> AnyTransaction:
    return codec.build(
        TYPE,
        Genesis(parse_address(recipient, network.chain_id), amount),
        version=1,
        chain_id=network.chain_id,
        sender_public_key=b"",
        fee=0,
        timestamp=network.genesis.transaction_timestamp,
    )
