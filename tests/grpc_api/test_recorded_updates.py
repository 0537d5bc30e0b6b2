"""What the reference node answered to calls of ``BlockchainUpdatesApi``, asked again here."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from soliton.grpc_api import updates
from soliton.grpc_api.proto.events_pb2 import StateUpdate
from tests.api.chain import PrivateChain
from tests.grpc_api.serving import Called, served
from tests.grpc_api.test_recorded_calls import replayed, sort
from tests.node import recorded
from tests.vectors import report

__all__ = ["replayed"]

SERVICE = updates.SERVICE.full_name


def plain(message: Message) -> bytes:
    """An update as it is compared: lists that come in the order of a hash table are sorted."""
    _settle(message)
    return message.SerializeToString(deterministic=True)


def _settle(message: Message) -> None:
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for each in value if field.is_repeated else (value,):
            _settle(each)
        if isinstance(message, StateUpdate) and field.is_repeated:
            sort(value)
        if field.name == "referenced_assets":
            # Of a block that was made of microblocks the reference names them once for each.
            sort(value)
            once = list(dict.fromkeys(each.SerializeToString() for each in value))
            del value[:]
            value.extend(map(StateUpdate.AssetInfo.FromString, once))


async def test_updates_are_as_recorded(shared: Path, replayed: PrivateChain) -> None:
    rows = recorded.lines(shared / "golden" / "grpc-r" / "updates.jsonl.gz")
    equal: Counter[str] = Counter()
    wrong: list[tuple[object, ...]] = []
    async with served(replayed.node) as client:
        for number, row in enumerate(rows):
            path, data = f"/{SERVICE}/{row['method']}", base64.b64decode(row["request"])
            # Of an open stream it is enough to wait for what was recorded, and a moment more.
            found = await client.call(
                path,
                data,
                stream=row["stream"],
                expected=len(row["responses"]) if row["code"] == "OPEN" else None,
            )
            fault = difference(row, found)
            if fault:
                wrong.append((number, row["method"], data, *fault))
            else:
                equal[row["method"]] += 1
    for name, count in equal.items():
        total = sum(row["method"] == name for row in rows)
        report.compared(f"golden {SERVICE}/{name}", count, total, "accounts in any order")
    assert wrong == []


def difference(
    row: dict[str, Any], found: Called, wrong_supply: Collection[bytes] = ()
) -> tuple[object, ...]:
    """What is not as recorded; of key blocks with these VRFs the supply is not compared."""
    if found.code != row["code"]:
        return row["code"], found.code, found.details
    if row["code"] != "INTERNAL" and found.details != row["details"]:
        return row["details"], found.details
    method = updates.SERVICE.methods_by_name[row["method"]]
    kind = GetMessageClass(method.output_type)
    told = [kind.FromString(base64.b64decode(each)) for each in row["responses"]]
    given = [kind.FromString(each) for each in found.responses]
    for message in (*told, *given):
        held: Any = message
        for update in held.updates if hasattr(held, "updates") else [held.update]:
            if update.append.block.vrf in wrong_supply:
                update.append.block.ClearField("updated_waves_amount")
    same = list(map(plain, given)) == list(map(plain, told))
    return () if same else ("other messages", len(told), len(given))
