"""``rest-api.minimum-peers``: transactions that could get lost are not accepted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from soliton.node.peering import NotEnoughPeers
from tests.p2p.world import join, peers, until


def test_a_transaction_is_accepted_once_there_are_enough_peers(tmp_path: Path) -> None:
    async def main() -> None:
        async with peers(tmp_path, 3, rest_api__minimum_peers=2) as (one, other, third):
            payment = one.transfer()
            for connected, peer in enumerate((other, third)):
                with pytest.raises(NotEnoughPeers) as refusal:
                    one.node.broadcast(payment)
                assert str(refusal.value) == (
                    f"There are not enough connections with peers ({connected}) to accept "
                    "transaction"
                )
                join(one, peer)
                await until(lambda: one.service.connections == connected + 1)  # noqa: B023
            assert one.node.broadcast(payment)

    asyncio.run(main())
