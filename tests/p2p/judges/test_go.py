"""Live with the Go node: syncing from it, syncing it, mining in turns, and after a partition."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.p2p.judges.chain import PrivateChain
from tests.p2p.judges.programs import (
    GO,
    Go,
    Line,
    NodeProcess,
    Ours,
    agree,
    running,
    same_chain,
    until,
)

pytestmark = pytest.mark.skipif(not GO, reason="SOLITON_JUDGE_GO names no Go node")


def test_each_syncs_from_the_other(tmp_path: Path) -> None:
    chain = PrivateChain()
    ours = Ours(chain, tmp_path / "ours", 0, mines=True, more=(1, 2))
    go = Go(chain, tmp_path / "go", 1, mines=False)
    fresh = Ours(chain, tmp_path / "fresh", 2, mines=False)
    with running(ours, go, fresh):
        ours.start()
        early = [ours.broadcast(chain.transfer(0, amount)) for amount in range(1, 40)]
        until(lambda: ours.height() >= 8 and all(map(ours.has, early)), "a chain")
        go.start(ours.where)
        until(lambda: go.height() >= 8, "the chain at the Go node")
        late = [ours.broadcast(chain.transfer(1)), go.broadcast(chain.transfer(2))]
        until(lambda: all(map(ours.has, late)) and all(map(go.has, late)), "transactions of both")
        fresh.start(go.where)
        height = ours.height() + 3
        until(lambda: agree(ours, go, fresh) and fresh.height() >= height, "one chain")
        assert same_chain(ours, go, fresh) >= height - 2
        # A key block may have cut off the microblock that they were in: then they come again.
        until(lambda: all(map(fresh.has, early + late)), "their transactions")


def test_three_corners_mine_in_turns(tmp_path: Path) -> None:
    chain = PrivateChain()
    nodes: tuple[NodeProcess, ...] = (
        Ours(chain, tmp_path / "ours", 0, mines=True),
        Go(chain, tmp_path / "one", 1, mines=True),
        Go(chain, tmp_path / "two", 2, mines=True),
    )
    with running(*nodes):
        nodes[0].start()
        nodes[1].start(nodes[0].where)
        nodes[2].start(nodes[0].where, nodes[1].where)
        sent: list[str] = []
        for goal in range(10, 101, 10):
            until(lambda goal=goal: nodes[0].height() >= goal, f"height {goal}")  # type: ignore[misc]
            sent += [each.broadcast(chain.transfer(each.number, goal)) for each in nodes]
        until(lambda: all(all(map(each.has, sent)) for each in nodes), "transactions everywhere")
        until(lambda: agree(*nodes), "one chain")
        height = same_chain(*nodes)
        makers = [each["generator"] for each in nodes[0].headers(2, height)]
        print(height, {each: makers.count(each) for each in makers})
        assert len(set(makers)) == 3


@pytest.mark.parametrize("winner", ["ours", "Go"])
def test_a_partition_heals(tmp_path: Path, winner: str) -> None:
    chain = PrivateChain()
    more = (2,) if winner == "ours" else ()
    # Who is dialled directly is not parted from the others.
    ours = Ours(chain, tmp_path / "ours", 0, mines=True, more=more, hidden=True)
    go = Go(chain, tmp_path / "go", 1, mines=True)
    helper = Go(chain, tmp_path / "helper", 2, mines=True)
    nodes = (ours, go) if winner == "ours" else (ours, go, helper)
    line = Line(1, go)
    with running(*nodes):
        go.start()
        if helper in nodes:
            helper.start(go.where)
        ours.start(line.where)
        until(lambda: ours.height() >= 5 and agree(*nodes), "a common chain")
        line.cut()
        common = ours.height()
        # The Go node forgets what its lost blocks had; ours brings it back.
        go.broadcast(chain.transfer(1))
        lost = ours.broadcast(chain.transfer(0))

        def apart() -> bool:
            best, other = (ours, go) if winner == "ours" else (go, ours)
            both = min(best.height(), other.height()) >= common + 10
            return both and best.score() > other.score() * 1.05

        until(apart, "ten blocks on each side")
        parted = ours.height(), go.height()
        assert ours.ids(common + 3, common + 3) != go.ids(common + 3, common + 3)
        line.mend()
        until(lambda: agree(*nodes) and ours.height() > max(parted), "one chain again")
        until(lambda: all(each.has(lost) for each in nodes), "what our node had")
        print(common, parted, same_chain(*nodes))
    line.close()


def test_light_nodes_of_both_kinds_follow(tmp_path: Path) -> None:
    chain = PrivateChain()
    ours = Ours(chain, tmp_path / "ours", 0, mines=True, more=(1, 2))
    go = Go(chain, tmp_path / "go", 1, mines=False)
    light_go = Go(chain, tmp_path / "light go", 2, mines=False, light=True)
    light = Ours(chain, tmp_path / "light", 3, mines=False, light=True)
    nodes = (ours, go, light_go, light)
    with running(*nodes):
        ours.start()
        early = [ours.broadcast(chain.transfer(0, amount)) for amount in range(1, 40)]
        until(lambda: ours.height() >= 8 and all(map(ours.has, early)), "a chain")
        go.start(ours.where)
        light_go.start(ours.where)
        until(lambda: min(go.height(), light_go.height()) >= 8, "the chain at Go nodes")
        light.start(go.where)
        until(lambda: agree(*nodes), "one chain")
        late = [each.broadcast(chain.transfer(1, 50)) for each in (ours, go)]
        until(lambda: all(all(map(each.has, late)) for each in nodes), "further transactions")
        until(lambda: agree(*nodes), "one chain")
        print(same_chain(*nodes))
        assert all(map(light.has, early))
