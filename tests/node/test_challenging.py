"""Which blocks can be challenged: those whose only fault is the state hash.

Expected values: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/diffs/``
``BlockDiffer.scala`` (``fromBlock`` with a ``challengedHitSource``, ``checkStateHash``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain import blocks
from soliton.chain.blocks import Block
from soliton.chain.transactions import codec
from soliton.crypto.keys import KeyPair
from soliton.ledger.errors import BlockRejected, WrongStateHash
from soliton.node.chain_writer import ChainWriter
from soliton.node.challenger import challenging
from soliton.node.verify import verify
from soliton.steps import run_steps
from tests.node.chains import (
    RICH,
    address_of,
    forge,
    mine,
    open_chain,
    person,
    shared_network,
    transfer,
)
from tests.node.committing import (
    ACTIVATION,
    CARL,
    OWNERS,
    PERIOD,
    commit,
    committed_chain,
    endorse,
    finality_network,
    grow,
    voting_of,
)

COIN = 10**8
ANN, BOB = person("ann"), person("bob")
LATE = 10**12
"""After the earliest block of anybody."""


@pytest.fixture
def chain(tmp_path: Path) -> Any:
    chain = open_chain(tmp_path, shared_network(RICH, ANN))
    mine(chain)
    yield chain
    chain.store.close()


def wrong_block(chain: ChainWriter, state_hash: bytes | None, *content: Any) -> Block:
    good = forge(chain, at=chain.last_block.header.timestamp + LATE)
    header = msgspec.structs.replace(
        good.header, state_hash=state_hash, transactions_root=blocks.transactions_root(content)
    )
    return blocks.sign(header, content, RICH.private_key)


@pytest.mark.parametrize("state_hash", [None, bytes(32)])
def test_a_missing_state_hash_can_be_challenged_like_a_wrong_one(
    chain: ChainWriter, state_hash: bytes | None
) -> None:
    wrong = wrong_block(chain, state_hash, transfer(chain, RICH, BOB, COIN))
    with pytest.raises(WrongStateHash):
        chain.append(wrong)
    challenge = run_steps(challenging(chain, wrong, [ANN]))
    # As peers receive it.
    received = blocks.decode(challenge.data, chain.network.chain_id)
    challenged = received.header.challenged
    assert challenged is not None
    assert challenged.state_hash == state_hash
    assert blocks.original_header(received.header, challenged) == wrong.header
    chain.append(received)
    assert chain.generating_balance(address_of(RICH)) == 0
    assert chain.balance(address_of(BOB)) == COIN


def test_a_block_with_an_invalid_signature_of_a_transaction_cannot_be_challenged(
    chain: ChainWriter,
) -> None:
    unsigned = codec.with_proofs(transfer(chain, RICH, BOB, COIN), (bytes(64),))
    wrong = wrong_block(chain, bytes(32), unsigned)
    challenge = run_steps(challenging(chain, wrong, [ANN]))
    for verify_signatures in (True, False):
        with pytest.raises(BlockRejected, match=r"invalid block challenge: .*Proof doesn't val"):
            chain.append(challenge, verify_signatures=verify_signatures)
    assert chain.height == 2


DAN = person("dan")
"""Has not committed, and may challenge all the same."""


@pytest.mark.parametrize("challenger", [DAN, CARL])
def test_a_block_with_a_voting_is_challenged(tmp_path: Path, challenger: KeyPair) -> None:
    network = finality_network(*OWNERS, DAN)
    chain = open_chain(tmp_path, network)
    grow(chain, ACTIVATION)
    grow(chain, ACTIVATION + 1, first=[commit(chain, each) for each in OWNERS])
    grow(chain, ACTIVATION + PERIOD + 1)
    final, height = chain.finalized_height, chain.height
    voting = voting_of([endorse(chain, each, 1, endorsed=chain.last_block.id) for each in [BOB]])
    good = forge(chain, account=ANN, at=chain.last_block.header.timestamp + LATE)
    header = msgspec.structs.replace(good.header, state_hash=bytes(32), finalization_voting=voting)
    wrong = blocks.sign(header, (), ANN.private_key)
    with pytest.raises(WrongStateHash):
        chain.append(wrong)
    challenge = run_steps(challenging(chain, wrong, [challenger]))
    received = blocks.decode(challenge.data, network.chain_id)
    challenged = received.header.challenged
    assert challenged is not None
    assert challenged.finalization_voting == voting
    assert received.header.finalization_voting is None
    assert blocks.original_header(received.header, challenged) == header
    own = msgspec.structs.replace(received.header, finalization_voting=voting)
    with pytest.raises(BlockRejected, match="voting is not allowed in challenging block"):
        chain.append(blocks.sign(own, (), challenger.private_key))
    chain.append(received)
    # The votes of the wrong block are lost, and its generator has no turn in the next block.
    assert (chain.meta(chain.height).finalized_height, chain.finalized_height) == (0, final)
    following = chain.generator_set(received.header.timestamp)
    assert following is not None
    assert [each.address for each in following.members] == [address_of(BOB), address_of(CARL)]
    chain.flush()
    assert verify(chain).blocks == chain.height == height + 1
    chain.store.close()


def test_a_wrong_voting_cannot_be_challenged(tmp_path: Path) -> None:
    chain = committed_chain(tmp_path, *OWNERS)
    voting = voting_of([endorse(chain, CARL, 1, endorsed=chain.last_block.id)])
    good = forge(chain, account=ANN, at=chain.last_block.header.timestamp + LATE)
    header = msgspec.structs.replace(good.header, state_hash=bytes(32), finalization_voting=voting)
    challenge = run_steps(challenging(chain, blocks.sign(header, (), ANN.private_key), [CARL]))
    with pytest.raises(BlockRejected, match="invalid block challenge: invalid signature of an en"):
        chain.append(challenge)
    chain.store.close()
