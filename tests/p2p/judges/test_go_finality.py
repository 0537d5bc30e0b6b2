"""Live with the Go node of the finality branch: committing, mining and endorsing together.

``SOLITON_JUDGE_GO`` is that node (``cmd/node`` of wavesplatform/gowaves, branch
``determenistic-finality-feature``). Chains are short by default: ``SOLITON_JUDGE_BLOCKS=200`` makes
them that long, and ``SOLITON_JUDGE_SECONDS`` (3, 6 or 10) is the time between their blocks.

Feature 25 is voted for and becomes active in mid-run; then all nodes commit to each period, mine,
and endorse each other's blocks. What must be equal at all nodes at all heights: ids, state hashes,
snapshot hashes, votings, generators with their balances and conflicts. Final heights are those that
the votings on the chain yield, at nodes of ours always; a Go node keeps what the votings of lost
microblocks have made final, which the Scala node does not, so that it may show more. Then one node
is killed, one is parted from the others, and one endorses a false final block: all is equal again,
and so is its penalty.

Not every block contains the endorsements of all: a microblock brings them, and the next key block
may come before it. Nodes of ours publish as few as suffice for two thirds, as the Scala node does,
and Go nodes all that they have. The table at the end shows for each kind of node how many of its
blocks made their parent final, and to how many all the endorsements came in time.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.chain.addresses import address_text
from tests.p2p.judges.chain import PART, PERIOD, PrivateChain, address
from tests.p2p.judges.generators import (
    Committing,
    Watching,
    endorsement,
    send_endorsements,
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
BLOCK_SECONDS = int(os.environ.get("SOLITON_JUDGE_SECONDS", "6"))
START_SECONDS = 45
"""All nodes run before the first block: blocks that make up for lost time leave none to commit."""
MAX_SECONDS = 120.0 + 4.0 * BLOCK_SECONDS * BLOCKS
LEAST_LEFT = 4
"""Who lies does so at least so many blocks before the period ends."""
PARTS = (PART * 6 // 5, PART * 6 // 5, PART * 3 // 5)
"""The accounts 0 and 1 have two thirds together, and without account 2."""


_ENDORSED = re.compile(r"(?P<counts>\d+ of \d+ )generators have endorsed block (?P<block>\w+)")


@contextlib.contextmanager
def committing(
    *nodes: NodeProcess, dials: tuple[tuple[str, ...], ...] = ()
) -> Iterator[tuple[Committing, list[Watching]]]:
    """Let the nodes run, each commit to each period, and watch what is final at each. ``dials`` has
    the addresses that each dials, by default those of the nodes before it.
    """
    watches = [Watching(each) for each in nodes]
    generators = Committing(ACTIVATION, *nodes)
    with running(*nodes), contextlib.ExitStack() as stack:
        for number, each in enumerate(nodes):
            each.start(*(dials[number] if dials else (one.where for one in nodes[:number])))
        for thread in (generators, *watches):
            stack.enter_context(thread.beside())
        yield generators, watches


@contextlib.contextmanager
def closing(*lines: Line) -> Iterator[None]:
    """Close lines at the end, whatever happens."""
    try:
        yield
    finally:
        for each in lines:
            each.close()


def left_of_period(height: int) -> int:
    """How many blocks come after that at a height in its period."""
    return (ACTIVATION - height) % PERIOD


def grown(height: int, *nodes: NodeProcess) -> None:
    """Wait until all are at a height."""
    until(lambda: min(each.height() for each in nodes) >= height, f"height {height}", MAX_SECONDS)


def final_everywhere(watches: list[Watching], height: int) -> tuple[int, int]:
    """Check that our nodes have shown at each height what the votings on the chain make final, and
    Go nodes no less; return how many were compared, and how many were greater at a Go node.

    A Go node keeps what the votings of a fork have made final, which the reference does not. And a
    block without a voting finalizes nothing for it, even if its generator has two thirds alone.
    """
    ids = watches[0].node.ids(1, height)
    wanted = by_votings(watches[0].node, height)
    least = by_votings(watches[0].node, height, alone=False)
    compared = kept = 0
    for at in range(2, height + 1):
        shown = [(each.node, each.final.get((at, ids[at - 2]))) for each in watches]
        ours = {final for node, final in shown if isinstance(node, Ours) and final is not None}
        others = {final for node, final in shown if isinstance(node, Go) and final is not None}
        assert ours <= {wanted[at]}, (at, shown, wanted[at])
        if ours and others:
            compared += 1
            kept += max(others) > wanted[at]
            assert min(others) >= least[at], (at, shown)
    print("final heights compared:", compared, "of", height, "greater at Go:", kept)
    return compared, kept


def by_votings(node: NodeProcess, height: int, *, alone: bool = True) -> list[int]:
    """What is final at each height by the headers; by those with votings only, if not ``alone``."""
    final = [1] * (height + 2)
    for header in node.headers(1, height):
        at = header["height"]
        final[at + 1] = final[at]
        members = generators(node, at) if at >= ACTIVATION else []
        voting = header.get("finalizationVoting")
        indexes = (voting or {}).get("endorserIndexes", [])
        votes = sum(
            each["balance"]
            for index, each in enumerate(members)
            if index in indexes or each["address"] == header["generator"]
        )
        enough = 3 * votes >= 2 * sum(each["balance"] for each in members)
        if votes and enough and (alone or voting):
            final[at + 1] = max(at - 1, 1)
    return final


def votes_of_all(nodes: tuple[NodeProcess, ...], height: int) -> dict[str, Counter[str]]:
    """Count the blocks of each kind of node: all, those with a voting, those that make their parent
    final, those to which the endorsements of all came in time, and those that contain them all.
    """
    found: dict[str, Counter[str]] = {}
    final = by_votings(nodes[0], height)
    kinds = {address_text(address(each.number)): each for each in nodes}
    for header in nodes[0].headers(ACTIVATION + PERIOD + 1, height):
        at, maker = header["height"], kinds[header["generator"]]
        others = {
            index
            for index, each in enumerate(generators(nodes[0], at))
            if each["balance"] and each["address"] != header["generator"]
        }
        indexes = set((header.get("finalizationVoting") or {}).get("endorserIndexes", ()))
        count = found.setdefault(maker.kind, Counter())
        count["blocks"] += 1
        count["with a voting"] += bool(indexes)
        count["final"] += final[at + 1] == at - 1
        count["all in it"] += indexes >= others
        count["all in time"] += indexes >= others or f"{len(others)} of {len(others)} " in (
            endorsed(maker).get(header["reference"], "")
        )
    return found


def endorsed(node: NodeProcess) -> dict[str, str]:
    """What a node of ours has logged of the endorsements of each block that came to it."""
    if isinstance(node, Go):
        return {}
    lines = _ENDORSED.finditer(node.log.read_text(errors="replace"))
    return {each["block"]: each["counts"] for each in lines}


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
    chain = PrivateChain(BLOCK_SECONDS, later=START_SECONDS)
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
        for kind, count in votes_of_all(nodes, height).items():
            print(kind, dict(count))
        compared, kept = final_everywhere(watches, height)
        assert compared > height * 3 // 4
        assert kept < compared


@pytest.mark.parametrize("kinds", ["ours-Go-ours", "Go-ours-Go"])
def test_one_is_killed_parted_and_lies(tmp_path: Path, kinds: str) -> None:
    """The third is killed and lies: the others finalize without it. The node of ours whose lines
    can be cut is parted.
    """
    chain = PrivateChain(BLOCK_SECONDS, parts=PARTS, later=START_SECONDS)
    nodes = first, second, third = tuple(
        # Nobody can dial who is hidden: its lines can be cut.
        Ours(chain, tmp_path / str(at), at, mines=True, votes=(FINALITY,), hidden=at > 0)
        if kind == "ours"
        else Go(chain, tmp_path / str(at), at, mines=True, votes=(FINALITY,))
        for at, kind in enumerate(kinds.split("-"))
    )
    parted = third if isinstance(third, Ours) else second
    lines = Line(1, first), Line(2, second)
    one, other = (each.where for each in lines)
    at_first = first.where, one
    dials = (), (at_first[parted is second],), (at_first[parted is third], other)
    with closing(*lines), committing(*nodes, dials=dials) as (threads, watches):
        grown(ACTIVATION + PERIOD + 3, *nodes)
        threads.stopped.add(third.number)
        third.stop(kill=True)
        goal = first.height() + 6
        grown(goal, first, second)
        third.forget()
        third.start(*dials[2])
        threads.stopped.clear()
        until(lambda: agree(*nodes) and third.height() >= goal, "one chain after a kill")
        killed = same_chain(*nodes)
        left = [each for each in nodes if each is not parted]
        # Within a period: a side that is alone for longer has generators of its own.
        until(lambda: left_of_period(first.height()) >= PERIOD - 2, "a period", MAX_SECONDS)
        for line in lines:
            line.cut()
        goal = first.height() + 3
        grown(goal, *left)
        until(lambda: parted.height() >= goal - 1, "blocks of its own", MAX_SECONDS)
        apart = first.height(), parted.height()
        assert first.ids(goal - 1, goal - 1) != parted.ids(goal - 1, goal - 1)
        for line in lines:
            line.mend()
        until(lambda: agree(*nodes) and parted.height() >= goal, "one chain after a partition")
        lying = Lying(first, second, third)
        until(lying.is_punished, "a punishment", MAX_SECONDS)
        goal = first.height() + 5
        grown(goal, *nodes)
        until(lambda: agree(*nodes), "one chain after a lie")
        height = same_chain(*nodes)
        same_generators(height, *nodes)
        blamed = {
            (each["address"], each["conflictHeight"])
            for at in range(ACTIVATION, height + 1)
            for each in generators(first, at)
            if "conflictHeight" in each
        }
        print(kinds, "killed", killed, "parted", apart, "blamed", blamed, "height", height)
        assert {name for name, _ in blamed} == {address_text(address(third.number))}
        for each in nodes:
            shown = votings(each, height)
            assert all(shown[at]["conflictEndorsements"] for _, at in blamed)
        for kind, count in votes_of_all(nodes, height).items():
            print(kind, dict(count))
        final_everywhere(watches, height)


class Lying:
    """The third of the generators endorses, beside the present parent, a final block that is none.

    It does so early in a block of another one, and brings the endorsement of the other along: a
    voting with a conflict and without votes has a height for the reference, and none for the Go
    node, so that each refuses that of the other.
    """

    def __init__(self, first: NodeProcess, second: NodeProcess, third: NodeProcess) -> None:
        self._honest = first, second
        self._liar = third
        self._name = address_text(address(third.number))
        self._told: dict[str, int] = {}

    def is_punished(self) -> bool:
        """Whether a block two below the last has the conflict; if not, lie in the last one, once: a
        key block may cut off the microblock with it.
        """
        first, last = self._honest[0], self._honest[0].ask("/blocks/headers/last")
        height = last["height"]
        for at in self._told.values():
            if at <= height - 2 and any(
                each["address"] == self._name and each.get("conflictHeight") == at
                for each in generators(first, at)
            ):
                return True
        if last["reference"] + last["generator"] in self._told or not self._may_lie(height):
            return False
        for maker, other in (self._honest, self._honest[::-1]):
            if last["generator"] != address_text(address(maker.number)):
                continue
            names = [each["address"] for each in generators(maker, height)]
            honest = names.index(address_text(address(other.number)))
            liar = names.index(self._name)
            endorsements = (
                endorsement(maker, honest, other),
                endorsement(maker, liar, self._liar, conflicts=True),
            )
            if maker.ask("/blocks/headers/last")["reference"] == last["reference"]:
                self._told[last["reference"] + last["generator"]] = height
                send_endorsements(maker, *endorsements)
        return False

    def _may_lie(self, height: int) -> bool:
        """Whether it has no conflict in this period, which goes on for a while."""
        shown = generators(self._honest[0], height)
        names = {each["address"] for each in shown if "conflictHeight" not in each}
        everybody = {address_text(address(each.number)) for each in (*self._honest, self._liar)}
        return names == everybody and left_of_period(height) >= LEAST_LEFT
