"""The smallest balance over a window that moves is that of the blocks in it, whatever was asked."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.chain.addresses import Address
from soliton.node.smallest_balances import SmallestBalances
from soliton.storage.keeping import EVERYTHING
from tests.amounts import examples

OWNER = Address(bytes(26))


class Blocks:
    """What one account has after each block, 0 before the first change of it."""

    kept = EVERYTHING

    def __init__(self, changes: dict[int, int]) -> None:
        self.changes = changes
        self.read: list[int] = []

    def balance_history(self, address: Address, top: int) -> Iterator[tuple[int, int, int]]:
        assert address == OWNER
        for height in sorted(self.changes, reverse=True):
            if height <= top:
                self.read.append(height)
                yield height, 0, self.changes[height]

    def after(self, height: int) -> int:
        return next((self.changes[at] for at in range(height, 0, -1) if at in self.changes), 0)

    def smallest(self, bottom: int, top: int) -> int:
        return min(map(self.after, range(bottom, top + 1)))


def test_what_was_there_before_a_rise_counts_no_more_when_the_rise_has_left_the_window() -> None:
    blocks = Blocks({1: 1_100, 2: 5_000, 4: 4_999})
    known = SmallestBalances(blocks)
    found = [known.smallest(OWNER, max(1, last - 4), last, last) for last in range(1, 12)]
    # Five blocks count: from the sixth on the first one does not.
    assert found == [1_100] * 5 + [4_999] * 6


HISTORY = st.dictionaries(st.integers(1, 30), st.integers(0, 6), max_size=20)


@settings(max_examples=examples(1_000), deadline=None)
@given(changes=HISTORY, depth=st.integers(1, 12), asked=st.sets(st.integers(1, 32)))
def test_as_block_by_block(changes: dict[int, int], depth: int, asked: set[int]) -> None:
    """Whoever asks on top of some blocks, in their order, hears what the blocks say."""
    blocks = Blocks(changes)
    known = SmallestBalances(blocks)
    for last in sorted(asked):
        bottom = max(1, last - depth + 1)
        # The last block may yet grow: what it says now is said anew.
        blocks.changes = {at: value for at, value in changes.items() if at <= last}
        assert known.smallest(OWNER, bottom, last, last) == blocks.smallest(bottom, last)
        blocks.changes = {**blocks.changes, last: 3}
        assert known.smallest(OWNER, bottom, last, last) == blocks.smallest(bottom, last)


@settings(max_examples=examples(200), deadline=None)
@given(changes=HISTORY, questions=st.lists(st.tuples(st.integers(1, 32), st.integers(1, 32))))
def test_in_any_order(changes: dict[int, int], questions: list[tuple[int, int]]) -> None:
    blocks = Blocks(changes)
    known = SmallestBalances(blocks)
    for one, other in questions:
        bottom, top = sorted((one, other))
        assert known.smallest(OWNER, bottom, top, 32) == blocks.smallest(bottom, top)


def test_what_is_known_is_not_read_again_by_whoever_learns_it() -> None:
    blocks = Blocks({height: 100 + height for height in range(1, 30)})
    first, second = SmallestBalances(blocks), SmallestBalances(blocks)
    assert first.smallest(OWNER, 1, 29, 29) == 101
    assert len(blocks.read) == 29
    second.copy_from(first)
    blocks.read.clear()
    assert second.smallest(OWNER, 5, 29, 29) == 105
    assert first.smallest(OWNER, 3, 29, 29) == 103, "each goes on by itself"
    assert len(blocks.read) < 6
