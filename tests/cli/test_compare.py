"""``soliton compare``: forks, states, growing blocks, nodes that move or say nothing."""

from __future__ import annotations

import json
import random
from contextlib import ExitStack
from typing import Any

import pytest

from soliton.cli.comparing import BlockName, ChainsMove, compare
from tests.cli.fake_nodes import GENERATOR, FakeNode, served
from tests.cli.here import Ended, run_here
from tests.ports import free_port

LONG = 4_000


class Listed:
    """A side that a test has written down."""

    def __init__(self, name: str, ids: list[str], states: dict[int, str] | None = None) -> None:
        self.name = name
        self.ids = ids
        self.states = dict.fromkeys(range(1, len(ids) + 1), "s") if states is None else states
        self.count = 0

    def height(self) -> int:
        return len(self.ids)

    def block(self, height: int) -> BlockName | None:
        self.count += 1
        if not 1 <= height <= len(self.ids):
            return None
        name = self.ids[height - 1]
        return BlockName(name, (height, name.partition("+")[0], ""), "g", height)

    def state_hash(self, height: int) -> str | None:
        self.count += 1
        return self.states.get(height)


def chain(length: int, fork: int | None = None, name: str = "x") -> list[str]:
    """Ids; from the height of a fork on they are others."""
    return [
        f"{name}{at}" if fork is not None and at >= fork else str(at) for at in range(1, length + 1)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_the_first_different_block(seed: int) -> None:
    chance = random.Random(seed)
    heights = [chance.randint(1, LONG) for _ in range(2)]
    fork = chance.choice([None, *(chance.randint(1, min(heights)) for _ in range(3))])
    first, second = Listed("A", chain(heights[0])), Listed("B", chain(heights[1], fork))
    found = compare(first, second)
    assert (found.first_height, found.second_height) == tuple(heights)
    if fork is None:
        assert found.difference is None and found.common_height == min(heights)
    else:
        assert found.difference is not None and found.difference.kind == "block"
        assert found.difference.height == fork
        assert found.common_height == fork - 1
        assert (found.difference.first.id, found.difference.second.id) == (str(fork), f"x{fork}")
    # Two bisections at most, whatever the length.
    assert first.count + second.count < 150


@pytest.mark.parametrize("seed", range(20))
def test_the_first_different_state(seed: int) -> None:
    """Hashes contain those before; a node may have those of the newest blocks only."""
    chance = random.Random(seed)
    height = chance.randint(20, LONG)
    wrong = chance.randint(10, height - 1)
    oldest = chance.randint(1, wrong)
    right = {at: f"s{at}" for at in range(1, height + 1)}
    other = {at: f"s{at}" if at < wrong else f"t{at}" for at in range(oldest, height + 1)}
    sides = Listed("A", chain(height), right), Listed("B", chain(height), other)
    found = compare(*sides, Listed("C", chain(height), other))
    assert found.difference is not None
    assert (found.difference.kind, found.difference.height) == ("state", wrong)
    assert found.difference.first.state_hash == f"s{wrong}"
    assert found.difference.right == "B"
    assert found.common_height == height


def test_a_last_block_that_grows_is_no_difference() -> None:
    grown = [*chain(9), "10+micro", "11"]
    found = compare(Listed("A", chain(10)), Listed("B", grown))
    assert found.is_equal and found.common_height == 10
    assert found.state_height == 9
    # In the middle of both chains the same ids would be different blocks.
    other = compare(Listed("A", chain(12)), Listed("B", [*chain(9), "10+micro", "x11"]))
    assert other.difference is not None and other.difference.height == 10


@pytest.mark.parametrize(
    ("third", "right"),
    [
        (chain(9), "A"),
        (chain(9, 5), "B"),
        (chain(9, 5, "y"), None),
        (chain(3), None),
    ],
)
def test_who_is_right(third: list[str], right: str | None) -> None:
    found = compare(Listed("A", chain(9)), Listed("B", chain(9, 5)), Listed("C", third))
    assert found.difference is not None and found.difference.right == right


def test_chains_that_move() -> None:
    class Moving(Listed):
        def block(self, height: int) -> BlockName | None:
            self.ids = chain(9, 5, chr(ord("a") + self.count % 20))
            return super().block(height)

    class Shrinking(Listed):
        def block(self, height: int) -> BlockName | None:
            found = super().block(height)
            self.ids = self.ids[: max(1, len(self.ids) - 2)]
            return found

    assert compare(Listed("A", chain(9)), Moving("B", chain(9, 5))).difference is not None
    with pytest.raises(ChainsMove):
        compare(Listed("A", chain(90)), Shrinking("B", chain(90, 50)))


def compared(*nodes: FakeNode, flags: tuple[str, ...] = ()) -> tuple[Ended, list[str]]:
    with ExitStack() as stack:
        urls = [stack.enter_context(served(node)) for node in nodes]
        return run_here("compare", *urls, *flags), urls


def test_equal_nodes() -> None:
    states = {at: f"s{at}" for at in range(1, 10)}
    done, (_, second) = compared(FakeNode(chain(9), states), FakeNode(chain(7), states))
    assert done.returncode == 0, done.stderr
    assert f"the chains are equal; {second} is 2 blocks behind" in done.stdout
    assert "states compared   up to height 6" in done.stdout


def test_a_fork_with_a_judge() -> None:
    nodes = FakeNode(chain(9)), FakeNode(chain(9, 5)), FakeNode(chain(20))
    done, (first, second, third) = compared(*nodes)
    assert done.returncode == 1
    assert "the first different block is at height 5" in done.stdout
    assert f"{third} agrees with {first}: {second} is on a fork of its own" in done.stdout
    assert "none: a node has no state hashes" in done.stdout
    done, (first, _) = compared(*nodes[:2], flags=("--json",))
    told: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 1 and told["equal"] is False
    assert told["difference"]["first"] == {"id": "5", "generator": GENERATOR, "timestamp": 300_000}
    assert told["difference"]["right"] is None


def test_nodes_that_say_nothing_or_nonsense() -> None:
    done, _ = compared(FakeNode(chain(3)), FakeNode(chain(3), answers={"/blocks/height": 500}))
    assert done.returncode == 2 and done.stderr.startswith("soliton: http://127.0.0.1:")
    wrong = {"/blocks/height": {"height": "many"}}
    assert compared(FakeNode(chain(3)), FakeNode(chain(3), answers=wrong))[0].returncode == 2
    url = f"http://127.0.0.1:{free_port()}"
    assert run_here("compare", url, url).returncode == 2
    assert run_here("compare", "nowhere", url).returncode == 1
