"""A market on a private chain, for what the Scala matcher asks its node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from google.protobuf.message import Message

from soliton.chain import orders
from soliton.chain.orders import Order, Side
from soliton.chain.transactions import codec, exchange, issue, set_script, transfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto.keys import KeyPair
from soliton.grpc_api.proto import waves_blockchain_api_pb2 as pb
from soliton.node.grpc_settings import GrpcSettings
from soliton.ride.compiler import compile_source
from tests.api.chain import PrivateChain
from tests.grpc_api.serving import Called, Client, Stream, served
from tests.node.chains import address_of, person

SERVICE = "/waves.dex.grpc.integration.WavesBlockchainApi/"
ALICE, BOB, POOL, MATCHER = map(person, ("alice", "bob", "pool", "matcher"))
COIN = 100_000_000
SUPPLY = 10**6
R = TypeVar("R", bound=Message)


class Market:
    """A chain with an asset, accounts that have some of both, and the service on it."""

    def __init__(self, chain: PrivateChain, client: Client) -> None:
        self.chain = chain
        self.client = client
        self.gold = AssetId(self.issue(None).id)
        for each in (ALICE, BOB, POOL, MATCHER):
            self.pay(each, None, 100 * COIN)
        chain.mine()
        for each in (ALICE, BOB, POOL):
            self.pay(each, self.gold, 1_000)
        chain.mine()

    def issue(self, script: bytes | None, quantity: int = SUPPLY) -> AnyTransaction:
        decimals, reissuable = (0, False) if quantity == 1 else (2, True)
        made = issue.Issue(b"Gold", b"", quantity, decimals, reissuable, script)
        return self.chain.send(self.chain.sign(issue.TYPE, made, 3, fee=COIN))

    def pay(self, to: KeyPair, asset_id: AssetId | None, amount: int) -> AnyTransaction:
        payload = transfer.Transfer(address_of(to), asset_id, amount, b"")
        return self.chain.send(self.chain.sign(transfer.TYPE, payload, 3))

    def set_script(self, keys: KeyPair, source: str) -> None:
        payload = set_script.SetScript(compiled(source))
        self.chain.send(self.chain.sign(set_script.TYPE, payload, 2, keys=keys, fee=5_000_000))
        self.chain.mine()

    def order(self, keys: KeyPair, side: Side, amount: int = 100, **changes: Any) -> Order:
        draft = Order(
            version=3,
            chain_id=self.chain.node.network.chain_id,
            sender_public_key=keys.public_key,
            matcher_public_key=MATCHER.public_key,
            amount_asset=self.gold,
            price_asset=None,
            side=side,
            amount=amount,
            price=COIN // 100 * 10**6,
            timestamp=self.chain.now,
            expiration=self.chain.now + 1_000_000,
            matcher_fee=300_000,
        )
        return orders.sign(
            orders.build(msgspec.structs.replace(draft, **changes)), keys.private_key
        )

    def trade(
        self, buyer: Order, seller: Order, amount: int = 100, *, fee: int = 300_000
    ) -> AnyTransaction:
        # The price has 8 decimals here, in orders those of the pair.
        price = buyer.price // 10**6
        payload = exchange.Exchange(buyer, seller, amount, price, 300_000, 300_000)
        return self.chain.sign(exchange.TYPE, payload, 3, keys=MATCHER, fee=fee)

    async def ask(self, name: str, request: Message, answer: type[R]) -> R:
        found = await self.refused(name, request)
        assert found.code == "OK", found
        return answer.FromString(found.responses[0])

    async def refused(self, name: str, request: Message) -> Called:
        return await self.client.call(SERVICE + name, request.SerializeToString(), stream=False)

    def events(self) -> Stream:
        return self.client.stream(SERVICE + "GetUtxEvents", b"")


def compiled(source: str) -> bytes:
    return compile_source(source).script.source


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    settings = GrpcSettings(matcher_pools=frozenset((POOL.public_key,)))
    made.node.settings = msgspec.structs.replace(made.node.settings, grpc=settings)
    yield made
    made.node.close()


@asynccontextmanager
async def market_on(chain: PrivateChain) -> AsyncIterator[Market]:
    async with served(chain.node) as client:
        yield Market(chain, client)


def sent(transaction: AnyTransaction) -> pb.SignedExchangeTransaction:
    return pb.SignedExchangeTransaction.FromString(codec.encode_protobuf(transaction))
