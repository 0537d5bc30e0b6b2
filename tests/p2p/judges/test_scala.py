"""Live with the Scala node: syncing both ways, light nodes, three corners with the Go node, and
after a partition.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.p2p.judges.chain import PrivateChain
from tests.p2p.judges.programs import (
    GO,
    SCALA,
    Go,
    Line,
    NodeProcess,
    Ours,
    Scala,
    agree,
    running,
    same_chain,
    until,
)

pytestmark = pytest.mark.skipif(not SCALA, reason="SOLITON_JUDGE_SCALA names no Scala node")


def test_each_syncs_from_the_other_full_and_light(tmp_path: Path) -> None:
    chain = PrivateChain()
    ours = Ours(chain, tmp_path / "ours", 0, mines=True, more=(1, 2))
    scala = Scala(chain, tmp_path / "scala", 1, mines=False)
    light_scala = Scala(chain, tmp_path / "light scala", 3, mines=False, light=True)
    fresh = Ours(chain, tmp_path / "fresh", 2, mines=False)
    light = Ours(chain, tmp_path / "light", 4, mines=False, light=True)
    nodes = (ours, scala, light_scala, fresh, light)
    with running(*nodes):
        ours.start()
        early = [ours.broadcast(chain.transfer(0, amount)) for amount in range(1, 40)]
        until(lambda: ours.height() >= 8 and all(map(ours.has, early)), "a chain")
        scala.start(ours.where)
        light_scala.start(ours.where)
        until(lambda: min(scala.height(), light_scala.height()) >= 8, "the chain at Scala nodes")
        late = [each.broadcast(chain.transfer(1, 50)) for each in (ours, scala)]
        until(lambda: all(all(map(each.has, late)) for each in nodes[:3]), "transactions of both")
        fresh.start(scala.where)
        light.start(scala.where)
        height = ours.height() + 3
        until(lambda: agree(*nodes) and fresh.height() >= height, "one chain")
        later = [each.broadcast(chain.transfer(2, 60)) for each in (ours, scala)]
        until(lambda: all(all(map(each.has, later)) for each in nodes), "further transactions")
        until(lambda: agree(*nodes), "one chain")
        print(same_chain(*nodes))
        assert all(map(light.has, early + late))


@pytest.mark.skipif(not GO, reason="SOLITON_JUDGE_GO names no Go node")
def test_three_corners_mine_in_turns(tmp_path: Path) -> None:
    chain = PrivateChain()
    nodes: tuple[NodeProcess, ...] = (
        Ours(chain, tmp_path / "ours", 0, mines=True),
        Go(chain, tmp_path / "go", 1, mines=True),
        Scala(chain, tmp_path / "scala", 2, mines=True),
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


@pytest.mark.parametrize("winner", ["ours", "Scala"])
def test_a_partition_heals(tmp_path: Path, winner: str) -> None:
    chain = PrivateChain()
    more = (2,) if winner == "ours" else ()
    # Who is dialled directly is not parted from the others.
    ours = Ours(chain, tmp_path / "ours", 0, mines=True, more=more, hidden=True)
    scala = Scala(chain, tmp_path / "scala", 1, mines=True, more=(2,) if winner == "Scala" else ())
    line = Line(2, scala)
    with running(ours, scala):
        scala.start()
        ours.start(line.where)
        until(lambda: ours.height() >= 5 and agree(ours, scala), "a common chain")
        line.cut()
        common = ours.height()
        lost = [each.broadcast(chain.transfer(each.number)) for each in (ours, scala)]

        def apart() -> bool:
            best, other = (ours, scala) if winner == "ours" else (scala, ours)
            both = min(best.height(), other.height()) >= common + 10
            return both and best.score() > other.score() * 1.05

        until(apart, "ten blocks on each side")
        parted = ours.height(), scala.height()
        assert ours.ids(common + 3, common + 3) != scala.ids(common + 3, common + 3)
        line.mend()
        until(lambda: agree(ours, scala) and ours.height() > max(parted), "one chain again")
        until(lambda: all(all(map(each.has, lost)) for each in (ours, scala)), "what was dropped")
        print(common, parted, same_chain(ours, scala))
    line.close()
