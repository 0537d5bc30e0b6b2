"""Transactions that a client sends again: ``utx-synchronizer.allow-tx-rebroadcasting``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.api.app import build_app
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from tests.api.chain import JSON, context_of
from tests.api.client import call
from tests.p2p.world import Peer, join, peers, until


async def send(peer: Peer, transaction: AnyTransaction) -> None:
    body = msgspec.json.encode(codec.to_json(transaction))
    answer = await call(
        build_app(context_of(peer.node)), "POST /transactions/broadcast", body, JSON
    )
    assert answer.status == 200


@pytest.mark.parametrize("again", [True, False])
def test_what_was_accepted_without_peers_reaches_them_when_it_is_sent_again(
    tmp_path: Path, again: bool
) -> None:
    options: dict[str, Any] = {"synchronization__utx_synchronizer__allow_tx_rebroadcasting": again}

    async def main() -> None:
        async with peers(tmp_path, 2, **options) as (one, other):
            first, second = one.transfer(1), one.transfer(2)
            await send(one, first)
            join(one, other)
            await until(lambda: one.service.connections == other.service.connections == 1)
            await send(one, first)
            # What is new goes out after what is sent again.
            await send(one, second)
            await until(lambda: second.id in other.node.pool)
            assert (first.id in other.node.pool) is again

    asyncio.run(main())
