"""Live with the Go node of the finality branch: committing, mining and endorsing together.

Short by default; ``SOLITON_JUDGE_BLOCKS=200`` makes the chains that long.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.chain.addresses import address_text
from tests.p2p.judges.chain import PART, PERIOD, PrivateChain, address
from tests.p2p.judges.generators import (
    Committing,
    Watching,
    conflicting_endorsement,
    send_endorsement,
)
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

FINALITY = 25
ACTIVATION = 15
"""Approved at height 10 by the votes of the second five blocks, active five blocks later."""
BLOCKS = int(os.environ.get("SOLITON_JUDGE_BLOCKS", "48"))
START_SECONDS = 20
"""All nodes run before the first block: blocks that make up for lost time leave none to commit."""
MAX_SECONDS = 60.0 + 12.0 * BLOCKS
PARTS = (PART * 6 // 5, PART * 6 // 5, PART * 3 // 5)
"""The accounts 0 and 1 have two thirds together, and without account 2."""


@contextlib.contextmanager
def committing(
    *nodes: NodeProcess, doors: tuple[Line, ...] = ()
) -> Iterator[tuple[Committing, list[Watching]]]:
    """Let the nodes run, each commit to each period, and watch what is final at each. The last one
    dials the others through ``doors``, if there are any.
    """
    watches = [Watching(each) for each in nodes]
    generators = Committing(ACTIVATION, *nodes)
    with running(*nodes), contextlib.ExitStack() as stack:
        first, *others = nodes
        first.start()
        for number, each in enumerate(others, 1):
            last = doors and each is nodes[-1]
            each.start(*(one.where for one in (doors if last else nodes[:number])))
        for thread in (generators, *watches):
            stack.enter_context(thread.beside())
        yield generators, watches


def grown(height: int, *nodes: NodeProcess) -> None:
    """Wait until all are at a height."""
    until(lambda: min(each.height() for each in nodes) >= height, f"height {height}", MAX_SECONDS)


def same_final(*nodes: NodeProcess) -> bool:
    """Whether the same height is final at all nodes."""
    return len({each.ask("/blocks/height/finalized")["height"] for each in nodes}) == 1


def final_everywhere(watches: list[Watching], height: int) -> tuple[int, int]:
    """Check that our nodes have shown at each height what the votings on the chain make final, and
    Go nodes no less; return how many were compared, and how many were greater at a Go node. It
    keeps what the votings of a fork have made final, which the reference does not.
    """
    ids = watches[0].node.ids(1, height)
    wanted = by_votings(watches[0].node, height)
    compared = kept = 0
    for at in range(2, height + 1):
        shown = [(each.node, each.final.get((at, ids[at - 2]))) for each in watches]
        ours = {final for node, final in shown if isinstance(node, Ours) and final is not None}
        others = {final for node, final in shown if isinstance(node, Go) and final is not None}
        assert ours <= {wanted[at]}, (at, shown, wanted[at])
        if ours and others:
            compared += 1
            kept += max(others) > wanted[at]
            assert min(others) >= wanted[at], (at, shown)
    print("final heights compared:", compared, "of", height, "greater at Go:", kept)
    return compared, kept


def by_votings(node: NodeProcess, height: int) -> list[int]:
    """What is final at each height by the headers alone."""
    final = [1] * (height + 2)
    for header in node.headers(1, height):
        at = header["height"]
        final[at + 1] = final[at]
        members = generators(node, at) if at >= ACTIVATION else []
        indexes = (header.get("finalizationVoting") or {}).get("endorserIndexes", [])
        votes = sum(
            each["balance"]
            for index, each in enumerate(members)
            if index in indexes or each["address"] == header["generator"]
        )
        if votes and 3 * votes >= 2 * sum(each["balance"] for each in members):
            final[at + 1] = max(at - 1, 1)
    return final


def votings(node: NodeProcess, height: int) -> dict[int, dict[str, Any]]:
    """The votings of a node's headers, by height."""
    found = {each["height"]: each.get("finalizationVoting") for each in node.headers(1, height)}
    return {at: each for at, each in found.items() if each}


def generators(node: NodeProcess, height: int) -> list[dict[str, Any]]:
    """The generators of a block as a node shows them."""
    found: list[dict[str, Any]] = node.ask(f"/generators/at/{height}")
    return [{key: value for key, value in each.items() if value is not None} for each in found]


def same_generators(height: int, *nodes: NodeProcess) -> None:
    """Check that all show the same generators at each height."""
    for at in range(ACTIVATION, height + 1):
        want = generators(nodes[0], at)
        for each in nodes[1:]:
            assert generators(each, at) == want, (at, each.log)


def nobody_is_blamed(*nodes: NodeProcess) -> None:
    """Check that no node has put another one aside."""
    for each in nodes:
        assert each.ask("/peers/blacklisted") == [], each.log
        assert each.ask("/peers/suspended") == [], each.log


@pytest.mark.parametrize("kinds", ["ours-Go-Go", "Go-ours-ours"])
def test_three_corners_finalize(tmp_path: Path, kinds: str) -> None:
    chain = PrivateChain(later=START_SECONDS)
    nodes = tuple(
        (Ours if kind == "ours" else Go)(
            chain, tmp_path / str(number), number, mines=True, votes=(FINALITY,)
        )
        for number, kind in enumerate(kinds.split("-"))
    )
    with committing(*nodes) as (_, watches):
        grown(BLOCKS, *nodes)
        until(lambda: agree(*nodes), "one chain")
        height = same_chain(*nodes)
        nobody_is_blamed(*nodes)
        same_generators(height, *nodes)
        found = votings(nodes[0], height)
        assert all(votings(each, height).keys() == found.keys() for each in nodes)
        makers = {each["height"]: each["generator"] for each in nodes[0].headers(1, height)}
        endorsers: dict[str, int] = {}
        for at, voting in found.items():
            assert not voting.get("conflictEndorsements")
            for index in voting["endorserIndexes"]:
                name = generators(nodes[0], at)[index]["address"]
                endorsers[name] = endorsers.get(name, 0) + 1
        print(kinds, height, "blocks with votings:", len(found), "endorsers:", endorsers)
        assert set(endorsers) == {address_text(address(each)) for each in range(3)}
        starts = range(ACTIVATION + PERIOD + 1, height - PERIOD + 2, PERIOD)
        committed = [len(generators(nodes[0], start)) for start in starts]
        # The Go node forgets a commitment that a lost block had: it can then come too late.
        print("committed to each period:", committed)
        assert min(committed) > 0
        assert sum(committed) > 3 * len(committed) * 3 // 4
        late = [makers[at] for at in range(ACTIVATION + PERIOD + 1, height + 1)]
        print({each: late.count(each) for each in late})
        assert set(late) == set(endorsers)
        compared, kept = final_everywhere(watches, height)
        assert compared > height * 3 // 4
        assert kept < compared


@pytest.mark.parametrize("kinds", ["ours-Go-ours", "Go-ours-Go"])
def test_one_is_killed_parted_and_lies(tmp_path: Path, kinds: str) -> None:
    """The third, which the others do not need; they go on to finalize."""
    chain = PrivateChain(parts=PARTS, later=START_SECONDS)
    one, other, last = kinds.split("-")
    first: NodeProcess = (Ours if one == "ours" else Go)(
        chain, tmp_path / "0", 0, mines=True, votes=(FINALITY,)
    )
    second: NodeProcess = (Ours if other == "ours" else Go)(
        chain, tmp_path / "1", 1, mines=True, votes=(FINALITY,)
    )
    third: NodeProcess
    if last == "ours":
        # Nobody can dial it: its lines can be cut.
        third = Ours(chain, tmp_path / "2", 2, mines=True, votes=(FINALITY,), hidden=True)
    else:
        third = Go(chain, tmp_path / "2", 2, mines=True, votes=(FINALITY,))
    nodes = first, second, third
    doors = (Line(1, first), Line(2, second))
    with committing(*nodes, doors=doors) as (threads, watches):
        grown(ACTIVATION + PERIOD + 3, *nodes)
        threads.stopped.add(third.number)
        third.stop(kill=True)
        goal = first.height() + 6
        grown(goal, first, second)
        third.forget()
        third.start(*(each.where for each in doors))
        threads.stopped.clear()
        until(lambda: agree(*nodes) and third.height() >= goal, "one chain after a kill")
        killed = same_chain(*nodes)
        parted = 0, 0
        if last == "ours":
            for line in doors:
                line.cut()
            goal = first.height() + 6
            grown(goal, first, second)
            until(lambda: third.height() > killed + 2, "blocks of its own", MAX_SECONDS)
            parted = first.height(), third.height()
            for line in doors:
                line.mend()
            until(lambda: agree(*nodes) and third.height() >= goal, "one chain after a partition")
        name = address_text(address(third.number))

        def conflicts(first_height: int, last_height: int) -> set[int]:
            return {
                each["conflictHeight"]
                for at in range(max(ACTIVATION, first_height), last_height + 1)
                for each in generators(first, at)
                if each["address"] == name and "conflictHeight" in each
            }

        def is_punished() -> bool:
            height = first.height()
            names = [each["address"] for each in generators(first, height)]
            # The next key block may have cut off the microblock with it.
            if conflicts(height - PERIOD, height - 2):
                return True
            # It conflicts only in a block of another one, in the same period.
            last = first.ask("/blocks/headers/last")
            if name not in names or last["generator"] == name or conflicts(height, height):
                return False
            index = names.index(name)
            # A voting with a conflict and without votes has a height for the reference, and none
            # for the Go node: each refuses that of the other.
            voting = last.get("finalizationVoting") or {}
            if not set(voting.get("endorserIndexes", ())) - {index} or not same_final(*nodes):
                return False
            for each in (first, second):
                send_endorsement(each, conflicting_endorsement(each, index, third))
            return False

        until(is_punished, "a punishment")
        goal = first.height() + 5
        grown(goal, *nodes)
        until(lambda: agree(*nodes), "one chain after a lie")
        height = same_chain(*nodes)
        same_generators(height, *nodes)
        punished = conflicts(ACTIVATION, height)
        print(kinds, "killed", killed, "parted", parted, "punished", punished, "height", height)
        assert punished
        for each in nodes:
            shown = votings(each, height)
            assert all(shown[at]["conflictEndorsements"] for at in punished)
        others = {
            each["address"]
            for at in range(ACTIVATION, height + 1)
            for each in generators(first, at)
            if "conflictHeight" in each
        }
        assert others == {name}
        final_everywhere(watches, height)
    for line in doors:
        line.close()
