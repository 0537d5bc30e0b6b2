"""A node on a private chain for the tests of the REST API: its clock moves by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec

from soliton.api.app import build_app
from soliton.api.application import Application
from soliton.api.context import ApiContext
from soliton.api.texts import Texts
from soliton.api.thread_pool import ThreadPool
from soliton.chain.addresses import Address, address_text, from_public_key, parse_address
from soliton.chain.transactions import codec
from soliton.chain.transactions.data import TYPE as DATA_TYPE
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import TYPE as TRANSFER_TYPE
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import DataEntry
from soliton.crypto.keys import KeyPair, key_pair
from soliton.node.node import Node
from soliton.node.settings import Settings, load_settings
from soliton.node.wallet import Wallet
from soliton.parallel.signatures import SignatureChecker
from tests.api.client import KEY, Answer, call

SEED = "waves private node seed with waves tokens"
RICH = key_pair(SEED)
RICH_ADDRESS = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
OTHER = key_pair("another account of the tests")
OTHER_ADDRESS = address_text(from_public_key(OTHER.public_key, ord("R")))
START = 1_795_174_397_440
NO_RANDOMNESS = bytes(64)
JSON = {"content-type": "application/json"}
WITH_KEY = {"x-api-key": KEY}
AMOUNT = 100_000_000
FEE = 100_000
PATIENCE_SECONDS = 120.0


class PrivateChain:
    """A node with its application; `tick` lets time pass, `mine` makes a block of the pool."""

    def __init__(
        self,
        directory: Path,
        network: str = "devnet",
        config: Path | None = None,
        family: str | None = None,
        functionality: dict[str, object] | None = None,
        supported: tuple[int, ...] = (),
        **utx: object,
    ) -> None:
        self.now = START
        settings = load_settings(config, None if config else network, data_dir=directory)
        if family is not None:
            speaking = msgspec.structs.replace(settings.network, family=family)
            settings = msgspec.structs.replace(settings, network=speaking)
        if functionality is not None:
            changed = msgspec.structs.replace(settings.network.functionality, **functionality)
            network_then = msgspec.structs.replace(settings.network, functionality=changed)
            settings = msgspec.structs.replace(settings, network=network_then)
        if supported:
            features = msgspec.structs.replace(settings.features, supported=supported)
            settings = msgspec.structs.replace(settings, features=features)
        pool = msgspec.structs.replace(settings.utx, **utx)
        settings = msgspec.structs.replace(settings, utx=pool)
        self.node = make_node(settings, self)
        self.app: Application = build_app(context_of(self.node))

    def tick(self, milliseconds: int = 1) -> int:
        self.now += milliseconds
        return self.now

    def mine(self) -> None:
        self.tick()
        self.node.mine(RICH)

    def send(self, transaction: AnyTransaction) -> AnyTransaction:
        self.node.broadcast(transaction)
        return transaction

    def transfer(self, **changes: object) -> AnyTransaction:
        values: dict[str, object] = {"to": OTHER_ADDRESS, "amount": AMOUNT, "attachment": b""}
        values |= {name: changes.pop(name) for name in list(changes) if name in values}
        to = parse_address(str(values["to"]), self.node.network.chain_id)
        amount, attachment = values["amount"], values["attachment"]
        assert isinstance(amount, int) and isinstance(attachment, bytes)
        return self.sign(TRANSFER_TYPE, Transfer(to, None, amount, attachment), 3, **changes)

    def data(self, **entries: int | bool | str | bytes | None) -> AnyTransaction:
        found = tuple(DataEntry(key, value) for key, value in entries.items())
        return self.sign(DATA_TYPE, Data(found), 2)

    def sign(
        self, kind: object, payload: object, version: int, **changes: object
    ) -> AnyTransaction:
        keys = changes.pop("keys", RICH)
        assert isinstance(keys, KeyPair)
        values: dict[str, object] = {
            "version": version,
            "chain_id": self.node.network.chain_id,
            "sender_public_key": keys.public_key,
            "fee": FEE,
            "timestamp": self.tick(),
        }
        draft = codec.build(kind, payload, **(values | changes))  # type: ignore[arg-type]
        return codec.sign(draft, keys.private_key, NO_RANDOMNESS)

    async def get(self, target: str, **headers: str) -> Answer:
        return await call(self.app, f"GET {target}", headers=headers)

    async def post(
        self, target: str, body: object, headers: dict[str, str] | None = None
    ) -> Answer:
        encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return await call(self.app, f"POST {target}", encoded, JSON | (headers or {}))

    async def broadcast(self, transaction: AnyTransaction) -> Answer:
        return await self.post("/transactions/broadcast", codec.to_json(transaction))


def make_node(settings: Settings, chain: PrivateChain) -> Node:
    wallet = Wallet.open(None, None, SEED.encode())
    return Node(settings, wallet, clock=lambda: chain.now, durable=False)


def context_of(node: Node) -> ApiContext:
    return ApiContext(
        title="Test Node",
        version="1.0",
        check_api_key=lambda key: key == KEY,
        clock=node.clock,
        network_clock=node.clock,
        node=node,
        # As in a program, but for the other process: its verdicts come in the loop's next turn.
        signatures=SignatureChecker(beside=False),
        # How long work takes is the machine's affair here.
        workers=ThreadPool(seconds=PATIENCE_SECONDS),
        texts=Texts(seconds=PATIENCE_SECONDS),
    )


def address_of(keys: KeyPair, chain: PrivateChain) -> Address:
    return from_public_key(keys.public_key, chain.node.network.chain_id)
