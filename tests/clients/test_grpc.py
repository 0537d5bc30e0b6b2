"""gRPC asked by JavaScript, with the messages of the ecosystem's package: every call once."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from soliton.chain.orders import Side
from soliton.chain.transactions import codec
from soliton.grpc_api.proto import waves_blockchain_api_pb2 as pb
from tests.api.chain import PrivateChain
from tests.clients.scripts import HERE, NEEDS_NODE, run_script
from tests.grpc_api.market import ALICE, BOB, Market
from tests.grpc_api.test_process import a_chain, process_of
from tests.node.chains import address_of

REPOSITORY = Path(__file__).resolve().parents[2]

pytestmark = [
    *NEEDS_NODE,
    pytest.mark.skipif(
        not (HERE / "node_modules" / "@grpc" / "grpc-js").is_dir(),
        reason="@grpc/grpc-js is not in tests/clients/node_modules (`make clients` installs it)",
    ),
]


def filled(directory: Path) -> PrivateChain:
    """Three blocks, the second one with a transfer and a data transaction."""
    chain = a_chain(directory, updates_port=0)
    chain.send(chain.transfer())
    chain.send(chain.data(answer=42))
    chain.mine()
    chain.mine()
    return chain


async def test_every_call_by_grpc_js(tmp_path: Path) -> None:
    chain = filled(tmp_path)
    transaction = chain.transfer()
    sent = base64.b64encode(codec.encode_protobuf(transaction)).decode()
    async with process_of(chain) as (service, _):
        ports = (str(service.settings.port), str(service.settings.updates_port))
        told: Any = await asyncio.to_thread(run_script, "grpc.js", *ports, sent)
        assert transaction.id in chain.node.pool
    assert told["height"] == {"value": 3}
    assert told["block"] == [2, 2]
    assert told["range"] == [1, 2]
    assert told["balances"] == ["waves"]
    assert told["data"] == [["answer", "42"]]
    assert told["alias"]["code"] == 3 and told["asset"]["code"] == 5 and told["sign"] == 12
    assert told["script"] == {} and told["leases"] == told["nfts"] == told["changes"] == []
    assert told["activation"] > 20 and told["target"] is True and told["score"] is True
    assert told["transactions"] == [["2", "SUCCEEDED"]] * 2
    assert told["snapshots"] == 2
    assert told["statuses"] == ["CONFIRMED", "CONFIRMED", "NOT_EXISTS"]
    assert told["sent"] is True and told["unconfirmed"] == 1
    assert told["update"] == 2 and told["updates"] == [1, 2] and told["events"] == [1, 2, 3]


async def test_every_call_of_the_matcher_s_extension_by_grpc_js(tmp_path: Path) -> None:
    chain = a_chain(tmp_path, matcher_port=0)
    async with process_of(chain) as (service, client):
        market = Market(chain, client)
        trade = market.trade(market.order(ALICE, Side.BUY), market.order(BOB, Side.SELL))
        request = pb.CheckedBroadcastRequest()
        request.transaction.ParseFromString(codec.encode_protobuf(trade))
        sent = base64.b64encode(request.SerializeToString()).decode()
        where = (str(service.settings.matcher_port), str(REPOSITORY / "src"))
        arguments = (*where, address_of(ALICE).hex(), sent)
        told: Any = await asyncio.to_thread(run_script, "grpc_matcher.js", *arguments)
    assert told.pop("called") == []
    assert told == {
        "pool": 0,
        "block": 3,
        "feature": True,
        "description": None,
        "asset script": False,
        "asset answer": None,
        "script": False,
        "answer": None,
        "forged": False,
        "leased": "0",
        "balances": [2, 1, True],
        "many": ["0", "0"],
        "checked": False,
        "sent": True,
        "again": False,
        "event": "100",
        "status": "UNCONFIRMED",
        "refused": 3,
    }
