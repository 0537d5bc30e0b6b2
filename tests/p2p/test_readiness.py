"""What operators see of a node that is behind its peers: ``/readyz`` and ``/metrics``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from soliton.api.app import build_app
from soliton.consensus import pos
from soliton.wire import messages
from soliton.wire.messages import Message
from tests.api.chain import context_of
from tests.api.client import call
from tests.p2p.test_live import spoil
from tests.p2p.test_signed_first import Stranger
from tests.p2p.world import Peer, agree, join, network, peers, until


class Quiet(Stranger):
    """Somebody who answers nothing until he is told to."""

    def _answer(self, message: Message) -> None:
        pass


async def ready(peer: Peer) -> tuple[int, Any]:
    answer = await call(build_app(context_of(peer.node)), "GET /readyz")
    return answer.status, answer.json()


async def figure(peer: Peer, name: str) -> float:
    answer = await call(build_app(context_of(peer.node)), "GET /metrics")
    lines = answer.body.decode().splitlines()
    (found,) = [line for line in lines if line.rpartition(" ")[0] == f"soliton_p2p_{name}"]
    return float(found.rpartition(" ")[2])


def claims(peer: Peer, blocks: int) -> Message:
    """A score that is so many blocks above that of a node."""
    chain = peer.node.chain
    own = int.from_bytes(chain.meta(chain.height).score, "big")
    return messages.Score(own + blocks * pos.block_score(chain.last_block.header.base_target))


def test_a_node_is_ready_only_near_its_best_peer(tmp_path: Path) -> None:
    async def run() -> None:
        async with peers(tmp_path, 1, network()) as (one,):
            one.mine()
            stranger = Quiet(one)
            async with stranger.talking():
                assert (await ready(one))[0] == 200
                stranger.say(claims(one, 3))
                await until(lambda: one.service.lag() == 3, "the score")
                assert (await ready(one))[0] == 200
                stranger.say(claims(one, 4))
                await until(lambda: one.service.lag() == 4, "another score")
                status, answer = await ready(one)
                assert (status, answer["status"], answer["lag"]) == (503, "unready", 4)
                (reason,) = answer["reasons"]
                assert reason.startswith("the best peer is about 4 blocks ahead, and rest-api.max")
                assert await figure(one, 'height{whose="best peer"}') == one.node.chain.height + 4
                assert await figure(one, "lag_blocks") == 4
                # A claim that comes to nothing does not count, nor when it is said again.
                stranger.say(messages.BlockIds((one.node.chain.meta(1).id,)))
                await until(lambda: one.service.lag() == 0, "that it is not believed")
                stranger.say(claims(one, 1_000))
                peer = next(iter(one.service.core.book.connections))
                await until(lambda: one.service.core.scores.score_of(peer) is not None)
                assert (await ready(one))[0] == 200

    asyncio.run(run())


def test_the_lag_can_be_chosen(tmp_path: Path) -> None:
    async def run() -> None:
        async with peers(tmp_path, 1, network(), rest_api__max_lag=0) as (one,):
            one.mine()
            stranger = Quiet(one)
            async with stranger.talking():
                stranger.say(claims(one, 50))
                await until(lambda: one.service.lag() == 50, "the score")
                assert (await ready(one))[0] == 200

    asyncio.run(run())


def test_figures_of_syncing_and_of_chains_that_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with peers(tmp_path, 3, network()) as (one, old, liar):
            for _ in range(20):
                old.mine()
            join(one, old)
            await until(lambda: agree(one, old), "the chain")
            assert await figure(one, "blocks_received_total") == 20
            assert 0 < await figure(one, "sync_blocks_per_second") <= 20
            assert await figure(one, "faulty_forks") == 0
            join(liar, old)
            await until(lambda: agree(liar, old), "the chain once more")
            for link in list(liar.service._links.values()):
                link.transport.abort()
            for _ in range(3):
                liar.mine()
            spoil(liar.node, height=22)
            join(one, liar)
            await until(lambda: bool(one.service.blacklisted()), "the blame")
            assert await figure(one, "faulty_forks") == 1

    asyncio.run(run())
