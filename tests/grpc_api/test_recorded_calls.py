"""What the reference node answered to calls of ``waves.node.grpc``, asked again here."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from soliton.chain import blocks
from soliton.chain.proto.transaction_state_snapshot_pb2 import TransactionStateSnapshot
from soliton.grpc_api import accounts, assets, blockchain, transactions
from soliton.grpc_api import blocks as block_calls
from tests.api.chain import PrivateChain
from tests.grpc_api.serving import Called, Client, served
from tests.node import recorded
from tests.vectors import report

METHODS: dict[str, MethodDescriptor] = {
    f"{service.full_name}/{method.name}": method
    for service in (
        each.SERVICE for each in (accounts, assets, blockchain, block_calls, transactions)
    )
    for method in service.methods
}

_TEXT = "texts of scripts, in which the reference prints addresses of objects, not compared"
UNORDERED = {
    "waves.node.grpc.TransactionsApi/GetTransactionSnapshots": (
        "accounts and keys come in the order of a hash table of the reference's"
    ),
    "waves.node.grpc.AccountsApi/GetScript": _TEXT,
    "waves.node.grpc.AssetsApi/GetInfo": _TEXT,
    "waves.node.grpc.AssetsApi/GetNFTList": _TEXT,
}
"""Of which calls not everything is compared, and why."""


@pytest.fixture(scope="module")
def replayed(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateChain]:
    folder = shared / "golden" / "waves-r"
    made = PrivateChain(tmp_path_factory.mktemp("node"), config=folder / "network.conf")
    node = made.node
    for data in recorded.records(folder / "blocks-2-82.bin"):
        with node.writing():
            node.chain.append(blocks.decode(data, ord("R")))
            node.chain.flush()
        node.follow_chain()
    yield made
    node.close()


LAST_FEATURE = 23


def plain(method: MethodDescriptor, data: bytes) -> Any:
    """An answer as it is compared: without the texts of scripts, and without the features that
    came after the recorded version of the reference.
    """
    message: Any = GetMessageClass(method.output_type).FromString(data)
    _drop_texts(message)
    if method.name == "GetActivationStatus":
        known = [each for each in message.features if each.id <= LAST_FEATURE]
        del message.features[:]
        message.features.extend(known)
    return message.SerializeToString(deterministic=True)


def _drop_texts(message: Message) -> None:
    for field, value in message.ListFields():
        if field.name == "script_text":
            message.ClearField(field.name)
        elif isinstance(message, TransactionStateSnapshot) and field.is_repeated:
            for each in value:
                if isinstance(each, TransactionStateSnapshot.AccountData):
                    sort(each.entries)
            sort(value)
        elif isinstance(value, Message):
            _drop_texts(value)


def sort(values: Any) -> None:
    """Accounts and keys come in the order of a hash table of the reference's."""
    ordered = sorted(values, key=lambda each: each.SerializeToString(deterministic=True))
    del values[:]
    values.extend(ordered)


async def ask(client: Client, row: dict[str, Any]) -> Called:
    return await client.call(
        f"/{row['service']}/{row['method']}",
        base64.b64decode(row["request"]),
        stream=row["stream"],
    )


async def test_calls_are_answered_as_recorded(shared: Path, replayed: PrivateChain) -> None:
    rows = recorded.lines(shared / "golden" / "grpc-r" / "calls.jsonl.gz")
    equal: Counter[str] = Counter()
    wrong: list[tuple[object, ...]] = []
    async with served(replayed.node) as client:
        for number, row in enumerate(rows):
            name = f"{row['service']}/{row['method']}"
            found = await ask(client, row)
            fault = difference(row, found)
            if fault:
                wrong.append((number, name, row.get("note"), *fault))
            else:
                equal[name] += 1
    for name, count in equal.items():
        total = sum(f"{row['service']}/{row['method']}" == name for row in rows)
        report.compared(f"golden {name}", count, total, UNORDERED.get(name, ""))
    assert wrong == []


def difference(row: dict[str, Any], found: Called) -> tuple[object, ...]:
    """What is not as recorded."""
    method = METHODS[f"{row['service']}/{row['method']}"]
    # The reference walks on through heights that there are not; we end.
    code = "OK" if row["code"] == "OPEN" else row["code"]
    if found.code != code or found.details != row["details"]:
        return code, row["details"], found.code, found.details
    number, expected = (each.get("error-code") for each in (found.trailers, row["trailers"]))
    if number != expected:
        return expected, number
    told = [plain(method, base64.b64decode(each)) for each in row["responses"]]
    given = [plain(method, each) for each in found.responses]
    return () if given == told else ("other messages", len(told), len(given))
