"""Random blocks, microblocks and rollbacks: who follows the updates holds what the node holds."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.chain.addresses import Alias
from soliton.chain.transactions import (
    burn,
    create_alias,
    data,
    issue,
    lease,
    lease_cancel,
    mass_transfer,
    reissue,
    sponsor_fee,
    transfer,
)
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId, DataEntry
from soliton.crypto.keys import KeyPair
from soliton.errors import SolitonError
from soliton.grpc_api.proto.blockchain_updates_pb2 import SubscribeEvent, SubscribeRequest
from soliton.ledger.state import ASSETS, LEASE_STATES
from soliton.node.key_blocks import mine_key_block
from soliton.storage import layout
from tests.api.chain import PrivateChain
from tests.grpc_api.consumer import Consumer
from tests.grpc_api.serving import Stream, eventually, served
from tests.grpc_api.test_recorded_updates import SERVICE
from tests.node import forging
from tests.node.chains import RICH, address_of, person

STEPS = 1_500 if os.environ.get("SOLITON_TESTS") == "long" else 250
PEOPLE = [RICH, *map(person, "abcde")]
COIN = 100_000_000


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    yield made
    made.node.close()


class Life:
    """What happens to a chain by chance."""

    def __init__(self, chain: PrivateChain, seed: int) -> None:
        self.chain = chain
        self.node = chain.node
        self.chance = random.Random(seed)
        self.aliases = 0

    def step(self) -> None:
        """One thing."""
        chance = self.chance.random()
        if chance < 0.5:
            for _ in range(self.chance.randrange(1, 5)):
                self.send()
        elif chance < 0.72:
            forging.mine_micro(self.node, RICH)
        elif chance < 0.9:
            self.chain.tick(self.chance.randrange(1, 60_000))
            mine_key_block(self.node, RICH)
            self.node.pool.settle()
        elif chance < 0.95:
            self.chain.mine()
        elif self.node.chain.height > 4:
            depth = self.chance.randrange(1, min(8, self.node.chain.height - 2))
            keep = self.chance.random() < 0.5
            forging.roll_back(self.node, self.node.chain.height - depth, keep=keep)

    def send(self) -> None:
        """Send something; what the rules refuse is let go."""
        with contextlib.suppress(SolitonError):
            self.node.broadcast(self.transaction())

    def transaction(self) -> AnyTransaction:
        chance, sender = self.chance, self.chance.choice(PEOPLE)
        to, amount = address_of(chance.choice(PEOPLE)), chance.randrange(1, 50) * COIN
        asset_id = self.asset()
        match chance.randrange(13):
            case 0 | 1 | 2:
                wanted = chance.choice((None, asset_id))
                amount = amount if wanted is None else chance.randrange(1, 100)
                return self.sign(
                    sender, transfer.TYPE, transfer.Transfer(to, wanted, amount, b""), 3
                )
            case 3:
                items = tuple(
                    mass_transfer.TransferItem(address_of(each), amount) for each in PEOPLE[:3]
                )
                payload = mass_transfer.MassTransfer(None, items, b"")
                return self.sign(sender, mass_transfer.TYPE, payload, 2)
            case 4 | 5:
                values = (None, chance.randrange(5), True, b"x", "text")
                keys = chance.sample("abcdefgh", chance.randrange(1, 4))
                entries = tuple(DataEntry(key, chance.choice(values)) for key in keys)
                return self.sign(sender, data.TYPE, data.Data(entries), 2)
            case 6:
                script = SCRIPT if chance.random() < 0.3 else None
                new = issue.Issue(b"Random", b"", chance.randrange(1, 10**6), 2, True, script)
                return self.sign(RICH, issue.TYPE, new, 3, fee=COIN)
            case 7:
                more = reissue.Reissue(asset_id, chance.randrange(1, 1_000), True)
                return self.sign(RICH, reissue.TYPE, more, 3)
            case 8:
                return self.sign(RICH, burn.TYPE, burn.Burn(asset_id, chance.randrange(1, 50)), 3)
            case 9:
                return self.sign(sender, lease.TYPE, lease.Lease(to, amount), 3)
            case 10:
                ended = lease_cancel.LeaseCancel(self.lease())
                return self.sign(sender, lease_cancel.TYPE, ended, 3)
            case 11:
                self.aliases += 1
                alias = Alias(self.node.network.chain_id, f"name{self.aliases:05}")
                made = create_alias.CreateAlias(alias)
                return self.sign(sender, create_alias.TYPE, made, 3)
            case _:
                fee = chance.choice((None, 5, 7))
                return self.sign(RICH, sponsor_fee.TYPE, sponsor_fee.SponsorFee(asset_id, fee), 2)

    def sign(
        self, keys: KeyPair, kind: object, payload: object, version: int, fee: int = 10**6
    ) -> AnyTransaction:
        return self.chain.sign(kind, payload, version, keys=keys, fee=fee)

    def asset(self) -> AssetId:
        prefix = layout.ROWS[ASSETS].prefix
        found = [key[1:] for key, _ in self.node.chain.store.scan(prefix, prefix)]
        return AssetId(self.chance.choice(found) if found else bytes(32))

    def lease(self) -> bytes:
        prefix = layout.ROWS[LEASE_STATES].prefix
        found = [key[1:] for key, _ in self.node.chain.store.scan(prefix, prefix)]
        return self.chance.choice(found) if found else bytes(32)


SCRIPT = bytes.fromhex("0506ed28da0c")
"""That of an asset: yes."""


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_consumer_holds_what_the_node_holds(chain: PrivateChain, seed: int) -> None:
    life = Life(chain, seed)
    for each in PEOPLE[1:]:
        payload = transfer.Transfer(address_of(each), None, 10_000 * COIN, b"")
        chain.send(chain.sign(transfer.TYPE, payload, 3))
    chain.mine()
    consumer = Consumer()
    request = SubscribeRequest(from_height=1).SerializeToString()
    async with served(chain.node) as client:
        stream = client.stream(f"/{SERVICE}/Subscribe", request)

        def up_to_date() -> bool:
            return caught_up(stream, consumer, chain)

        for number in range(STEPS):
            life.step()
            if number % 10 == 0 or number == STEPS - 1:
                await eventually(up_to_date)
                consumer.compare(chain.node)
        late = Consumer()
        other = client.stream(f"/{SERVICE}/Subscribe", request)
        await eventually(lambda: caught_up(other, late, chain))
        late.compare(chain.node)
    assert consumer.kinds.keys() == {"block", "micro_block", "block back", "micro back"}


def caught_up(stream: Stream, consumer: Consumer, chain: PrivateChain) -> bool:
    """Take what has come; whether that is all that there is."""
    assert not stream.done, "it goes on"
    for each in stream.take():
        consumer.take(SubscribeEvent.FromString(each).update)
    return bool(consumer.chain) and consumer.chain[-1][1] == chain.node.chain.last_block.id
