"""Chains for tests: made here, block by block, in simulated time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from soliton.chain import networks
from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.blocks import Block
from soliton.chain.networks import GenesisTransfer, Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.payment import Payment
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import AssetId, DataEntry
from soliton.crypto import keys
from soliton.crypto.keys import KeyPair
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.storage.store import Store
from tests.node import forging

RICH = keys.key_pair("waves private node seed with waves tokens")
FEE = 100_000
DEVNET = networks.load("devnet")


def person(name: str) -> KeyPair:
    return keys.key_pair(f"the seed of {name}")


def address_of(pair: KeyPair, network: Network = DEVNET) -> Address:
    return from_public_key(pair.public_key, network.chain_id)


def old_network(features: Iterable[int] = (), **functionality: Any) -> Network:
    """A chain like devnet with only these features, and with blocks of a minute."""
    functionality = {"block_version_3_after_height": 1_000, **functionality}
    settings = msgspec.structs.replace(
        DEVNET.functionality,
        pre_activated_features=dict.fromkeys(features, 0),
        **functionality,
    )
    genesis = msgspec.structs.replace(
        DEVNET.genesis, average_block_delay_ms=60_000, initial_base_target=153_722_867
    )
    return msgspec.structs.replace(DEVNET, name="old", functionality=settings, genesis=genesis)


def shared_network(*owners: KeyPair) -> Network:
    """Devnet with everything in equal parts from the start: each of the owners may mine."""
    part = DEVNET.genesis.initial_balance // len(owners)
    transfers = tuple(GenesisTransfer(address_text(address_of(owner)), part) for owner in owners)
    genesis = msgspec.structs.replace(
        DEVNET.genesis, transactions=transfers, initial_balance=part * len(owners)
    )
    return msgspec.structs.replace(DEVNET, name="shared", genesis=genesis)


def open_chain(directory: Path, network: Network = DEVNET, **options: Any) -> ChainWriter:
    return ChainWriter(network, Store(directory, network.name, durable=False, **options))


def now(chain: ChainWriter) -> int:
    """A time shortly after the last block."""
    return chain.last_block.header.timestamp + 1_000


def signed(pair: KeyPair, type_id: int, payload: object, **envelope: Any) -> AnyTransaction:
    envelope = {"chain_id": DEVNET.chain_id, "fee": FEE, **envelope}
    transaction = codec.build(
        type_by_id(type_id), payload, sender_public_key=pair.public_key, **envelope
    )
    return codec.sign(transaction, pair.private_key)


def transfer(
    chain: ChainWriter,
    pair: KeyPair,
    to: KeyPair,
    amount: int,
    *,
    version: int = 2,
    asset_id: AssetId | None = None,
    **envelope: Any,
) -> AnyTransaction:
    payload = Transfer(address_of(to), asset_id, amount, b"")
    envelope = {"timestamp": now(chain), **envelope}
    return signed(pair, 4, payload, version=version, **envelope)


def payment(chain: ChainWriter, pair: KeyPair, to: KeyPair, amount: int) -> AnyTransaction:
    return signed(pair, 2, Payment(address_of(to), amount), version=1, timestamp=now(chain))


def data(chain: ChainWriter, pair: KeyPair, **entries: Any) -> AnyTransaction:
    payload = Data(tuple(DataEntry(key, value) for key, value in entries.items()))
    return signed(pair, 12, payload, version=2, timestamp=now(chain))


def forge(
    chain: ChainWriter,
    candidates: Sequence[AnyTransaction] = (),
    account: KeyPair = RICH,
    at: int | None = None,
) -> Block:
    """The next block, not yet on the chain."""
    time = now(chain) if at is None else at
    return forging.forge(chain, miner.next_slot(chain, account), candidates, time).block


def mine(
    chain: ChainWriter, candidates: Sequence[AnyTransaction] = (), account: KeyPair = RICH
) -> Block:
    """The next block, on the chain and on disk; all candidates must fit."""
    block = forge(chain, candidates, account)
    assert len(block.transactions) == len(candidates)
    chain.append(block, now=now(chain) + 10**12)
    chain.flush()
    return block


def record(block: Block) -> bytes:
    return len(block.data).to_bytes(4, "big") + block.data
