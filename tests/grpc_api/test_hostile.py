"""What no client of good will sends: each call gets a status that is foreseen, others go on."""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from soliton.chain.transactions import issue, lease
from soliton.grpc_api import link, transactions
from soliton.grpc_api.link import (
    MAX_IDS,
    AwaitPoolNotes,
    NodeRequest,
    NodeResponse,
    Unconfirmed,
    Unknown,
)
from soliton.grpc_api.node_side import NodeSide
from soliton.grpc_api.proto import transactions_api_pb2 as pb
from tests.api.chain import RICH, PrivateChain
from tests.grpc_api.serving import Client, served
from tests.node.chains import address_of, person

ROUNDS = 2_000 if os.environ.get("SOLITON_TESTS") == "long" else 12
SOCKETS = 500 if os.environ.get("SOLITON_TESTS") == "long" else 20
HEIGHT = "/waves.node.grpc.BlocksApi/GetCurrentHeight"
UNCONFIRMED = "/waves.node.grpc.TransactionsApi/GetUnconfirmed"
ID_BYTES = 32
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ALLOWED = {
    "OK",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "UNKNOWN",
    "INTERNAL",
    "UNIMPLEMENTED",
    "FAILED_PRECONDITION",
    "RESOURCE_EXHAUSTED",
    # Some calls wait for what comes.
    "DEADLINE_EXCEEDED",
}
DEADLINE = 0.2
NUMBERS = (0, 1, 2, -1, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63), 100)
SIZES = (0, 1, 20, 25, 26, 27, 32, 33, 64, 5_000)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    other = address_of(person("b"))
    gold = issue.Issue(b"Gold", b"", 10**6, 2, True, None)
    made.send(made.sign(issue.TYPE, gold, 3, fee=10**8))
    made.send(made.sign(lease.TYPE, lease.Lease(other, 5), 3))
    made.send(made.data(answer=42))
    made.mine()
    yield made
    made.node.close()


class Chance:
    """Made-up requests; values that mean something on the chain come up often."""

    def __init__(self, chain: PrivateChain, seed: int) -> None:
        self.chance = random.Random(seed)
        block = chain.node.chain.last_block
        self.known = [
            address_of(RICH),
            RICH.public_key,
            block.id,
            b"",
            *(each.id for each in block.transactions),
        ]

    def request(self, method: MethodDescriptor) -> bytes:
        chance = self.chance.random()
        if chance < 0.15:
            return self.chance.randbytes(self.chance.choice(SIZES))
        message = GetMessageClass(method.input_type)()
        self.fill(message, 0)
        data = message.SerializeToString()
        if chance < 0.3 and data:
            place = self.chance.randrange(len(data))
            return data[:place] + self.chance.randbytes(2) + data[place + 1 :]
        return data[: self.chance.randrange(len(data) + 1)] if chance < 0.4 else data

    def fill(self, message: Message, depth: int) -> None:
        for field in message.DESCRIPTOR.fields:
            if self.chance.random() < 0.3 or depth > 6:
                continue
            if not field.is_repeated and field.message_type is not None:
                self.fill(getattr(message, field.name), depth + 1)
                getattr(message, field.name).SetInParent()
            elif field.is_repeated:
                self.fill_list(getattr(message, field.name), field, depth)
            else:
                setattr(message, field.name, self.value(field))

    def fill_list(self, values: Any, field: Any, depth: int) -> None:
        for _ in range(self.chance.choice((0, 1, 2, 5))):
            if field.message_type is not None:
                self.fill(values.add(), depth + 1)
            else:
                values.append(self.value(field))

    def value(self, field: Any) -> Any:
        kind, number = field.cpp_type, self.chance.choice(NUMBERS)
        match kind:
            case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
                if self.chance.random() < 0.6:
                    return self.chance.choice(self.known)
                return self.chance.randbytes(self.chance.choice(SIZES))
            case FieldDescriptor.CPPTYPE_STRING:
                return self.chance.choice(("", "answer", "name", "\0", "ä" * 300, "a" * 5_000))
            case FieldDescriptor.CPPTYPE_BOOL:
                return self.chance.random() < 0.5
            case FieldDescriptor.CPPTYPE_INT32:
                return (number + 2**31) % 2**32 - 2**31
            case FieldDescriptor.CPPTYPE_UINT32:
                return number % 2**32
            case FieldDescriptor.CPPTYPE_UINT64:
                return number % 2**64
            case FieldDescriptor.CPPTYPE_ENUM:
                return number % 5
            case _:
                return number


def methods(client: Client) -> list[MethodDescriptor]:
    assert client.served_by is not None
    parts = client.served_by
    services = (*parts.node_parts(), *parts.updates_parts(), *parts.matcher_parts())
    return [method for service, _ in services for method in service.methods]


async def ask(client: Client, method: MethodDescriptor, data: bytes) -> str:
    path = f"/{method.containing_service.full_name}/{method.name}"
    call: Any
    try:
        if method.server_streaming:
            call = client.channel.unary_stream(path)(data, timeout=DEADLINE)
            async for _ in call:
                pass
        else:
            await client.channel.unary_unary(path)(data, timeout=DEADLINE)
    except aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


async def test_made_up_requests(chain: PrivateChain, caplog: pytest.LogCaptureFixture) -> None:
    chance = Chance(chain, 1)
    seen: dict[str, set[str]] = {}
    async with served(chain.node) as client:
        with caplog.at_level(logging.ERROR):
            for _ in range(ROUNDS):
                every = [(each, chance.request(each)) for each in methods(client)]
                codes = await asyncio.gather(*(ask(client, *each) for each in every))
                for (method, data), code in zip(every, codes, strict=True):
                    assert code in ALLOWED, (method.full_name, data.hex())
                    seen.setdefault(method.full_name, set()).add(code)
        told = [each.getMessage() for each in caplog.records]
        assert "a call failed" not in told, "an error of ours, and none of the client's"
        assert (await client.call(HEIGHT, b"", stream=False)).responses == [b"\x08\x02"]
    assert len(seen) == 40
    # The rest takes any message there is.
    assert sum(bool(codes - {"OK", "DEADLINE_EXCEEDED"}) for codes in seen.values()) > 20


async def test_the_pool_is_asked_for_little_at_a_time(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One transaction may be asked for a hundred thousand times in a request; the node, which does
    nothing else meanwhile, makes it once.
    """
    sizes: list[int] = []
    respond = NodeSide.respond

    def counted(
        side: NodeSide, question: NodeRequest
    ) -> NodeResponse | Coroutine[Any, Any, NodeResponse]:
        answer = respond(side, question)
        if isinstance(answer, Unconfirmed) and answer.found and len(answer.found[0]) > ID_BYTES:
            sizes.append(len(answer.found))
        return answer

    monkeypatch.setattr(NodeSide, "respond", counted)
    sent = [chain.send(chain.transfer(amount=each + 1)).id for each in range(MAX_IDS + 6)]
    often = [*sent, bytes(ID_BYTES), *sent[:1] * 1_000]
    async with served(chain.node) as client:
        for request, expected in (
            (pb.TransactionsRequest(transaction_ids=often), [*sent, *sent[:1] * 1_000]),
            (pb.TransactionsRequest(sender=address_of(RICH)), sent),
        ):
            sizes.clear()
            called = await client.call(UNCONFIRMED, request.SerializeToString(), stream=True)
            found = [pb.TransactionResponse.FromString(each).id for each in called.responses]
            assert sorted(found) == sorted(expected) and found[-1000:] == expected[-1000:]
            assert max(sizes) == MAX_IDS
            assert sum(sizes) < 2 * MAX_IDS + 1_000 // MAX_IDS


class Silent:
    """A node that does not answer."""

    async def ask(self, question: NodeRequest) -> NodeResponse:
        del question
        await asyncio.Event().wait()
        raise AssertionError("nothing sets it")


async def test_questions_that_the_node_does_not_answer_have_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "MAX_WAITING", 2)
    node = link.Limited(Silent())
    waiting = [asyncio.create_task(node.ask(AwaitPoolNotes(1))) for _ in range(2)]
    await asyncio.sleep(0)
    assert await node.ask(AwaitPoolNotes(1)) == Unknown()
    waiting[0].cancel()
    await asyncio.gather(waiting[0], return_exceptions=True)
    again = asyncio.create_task(node.ask(AwaitPoolNotes(1)))
    await asyncio.sleep(0)
    assert not again.done()
    for each in (again, waiting[1]):
        each.cancel()


async def test_what_is_no_http(chain: PrivateChain) -> None:
    """Bytes of all kinds at the port; connections that say nothing stay beside."""
    chance = random.Random(2)
    async with served(chain.node) as client:
        silent = [await asyncio.open_connection("127.0.0.1", client.port) for _ in range(20)]
        for number in range(SOCKETS):
            _, writer = await asyncio.open_connection("127.0.0.1", client.port)
            data = chance.randbytes(chance.randrange(1, 2_000))
            if number % 3 == 1:
                data = PREFACE + data
            elif number % 3 == 2:
                data = PREFACE + frames(chance)
            writer.write(data)
            if number % 2:
                # The other end may be gone before all of it is.
                await asyncio.wait([asyncio.ensure_future(writer.drain())], timeout=1)
            writer.close()
        assert (await client.call(HEIGHT, b"", stream=False)).responses == [b"\x08\x02"]
        for _, writer in silent:
            writer.close()


def frames(chance: random.Random) -> bytes:
    """Frames of HTTP/2 with heads that are right and bodies that are not."""
    made = b"\0\0\0\4\0\0\0\0\0"
    for _ in range(chance.randrange(1, 20)):
        body = chance.randbytes(chance.randrange(60))
        head = len(body).to_bytes(3, "big") + bytes((chance.randrange(12), chance.randrange(64)))
        made += head + chance.choice((0, 1, 3, 5, 2**31 - 1)).to_bytes(4, "big") + body
    return made


def test_a_missing_transaction_is_a_step(chain: PrivateChain) -> None:
    """A request can name a hundred thousand transactions that do not exist: other calls get their
    turn between them.
    """
    ids = [each.to_bytes(ID_BYTES, "big") for each in range(3)]
    request = pb.TransactionsRequest(transaction_ids=ids)
    snapshots = pb.TransactionSnapshotsRequest(transaction_ids=ids)
    blockchain = chain.node.chain
    steps = [None] * len(ids)
    assert list(transactions.get_transactions(blockchain, request)) == steps
    assert list(transactions.get_state_changes(blockchain, request)) == steps
    assert list(transactions.get_transaction_snapshots(blockchain, snapshots)) == steps
