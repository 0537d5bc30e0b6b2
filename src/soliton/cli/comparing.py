"""Comparing two chains: their first different block, and their first different state.

Blocks refer to their parents, and state hashes contain those before, so that everything above a
difference differs as well: bisection finds it with a few dozen requests. The last block of a node
still grows, and its id with it; another form of it is no difference.

What lives here: the comparison, and chains of nodes and stores. What does not: options and output
(``compare``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

import msgspec

from soliton.client.errors import ClientError, NodeRefused, NotFound
from soliton.client.node import Node
from soliton.client.records import BlockHeader
from soliton.errors import EnvironmentProblem

GENESIS: Final = 1
_SERVER_ERROR: Final = 500
MAX_ATTEMPTS: Final = 3
"""A chain that changes during the comparison is compared again, so often."""


class NoAnswer(EnvironmentProblem):
    """A node gives no usable answer; the message names it."""


class ChainsMove(EnvironmentProblem):
    """The chains change faster than they can be compared."""


class BlockName(NamedTuple):
    """A block: its id, what it keeps while it grows, its generator and its time in ms."""

    id: str
    key: tuple[int, str, str]
    generator: str
    timestamp: int


class Side(Protocol):
    """A chain that is compared."""

    name: str

    def height(self) -> int:
        """Return the present height."""

    def block(self, height: int) -> BlockName | None:
        """Return the block at a height, ``None`` if there is none."""

    def state_hash(self, height: int) -> str | None:
        """Return the state hash after a block, ``None`` if it is not available."""


class NodeSide:
    """The chain of a node over its REST API."""

    def __init__(self, node: Node) -> None:
        self.name = node.url
        self.node = node

    def height(self) -> int:
        """See ``Side``."""
        with self._named():
            return self.node.height()

    def block(self, height: int) -> BlockName | None:
        """See ``Side``."""
        try:
            with self._named():
                return _name(self.node.header_at(height))
        except NotFound:
            return None

    def state_hash(self, height: int) -> str | None:
        """See ``Side``; a node may need its API key, or store none."""
        try:
            with self._named():
                found = self.node.state_hash(height).get("stateHash")
        except NodeRefused:
            return None
        if not isinstance(found, str):
            raise NoAnswer(f"{self.name}: invalid response: a state hash that is no text")
        return found

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except NodeRefused as error:
            if error.status < _SERVER_ERROR:
                raise
            raise NoAnswer(f"{self.name}: {error}") from error
        except ClientError as error:
            raise NoAnswer(f"{self.name}: {error}") from error


def _name(header: BlockHeader) -> BlockName:
    key = header.timestamp, header.reference, header.consensus.generation_signature
    return BlockName(header.id or header.signature, key, header.generator, header.timestamp)


class Shown(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One side of a difference: the block, and the state hash where that differs."""

    id: str
    generator: str
    timestamp: int
    state_hash: str | None = None


class Difference(msgspec.Struct, frozen=True, rename="camel"):
    """The first difference. ``kind`` is ``block`` or ``state``. ``right`` names the side with which
    a third one agrees, ``None`` without one or if it agrees with neither.
    """

    kind: str
    height: int
    first: Shown
    second: Shown
    right: str | None = None


class Comparison(msgspec.Struct, frozen=True, rename="camel"):
    """The outcome. ``common_height`` is that of the last equal block, 0 if there is none;
    ``state_height`` that up to which state hashes were compared, ``None`` if a side has none.
    """

    first: str
    second: str
    first_height: int
    second_height: int
    common_height: int
    state_height: int | None
    difference: Difference | None

    @property
    def is_equal(self) -> bool:
        """Whether there is no difference; one of the sides may be behind."""
        return self.difference is None


def compare(first: Side, second: Side, third: Side | None = None) -> Comparison:
    """Compare two chains; a ``third`` tells who is right. Raises ``NoAnswer`` if a node does not
    answer, ``ChainsMove``.
    """
    for _ in range(MAX_ATTEMPTS):
        found = _Attempt(first, second, third).run()
        if found is not None:
            return found
    raise ChainsMove("the chains change while they are compared: try again")


class _Attempt:
    """One comparison, with what was read."""

    def __init__(self, first: Side, second: Side, third: Side | None) -> None:
        self._sides = first, second
        self._third = third
        self._heights = first.height(), second.height()

    def run(self) -> Comparison | None:
        """Return the outcome, ``None`` if the chains have changed meanwhile."""
        top = min(self._heights)
        common = self._last_equal(top)
        if common is None:
            return None
        difference = state_height = None
        if common < top:
            difference = self._block_difference(common + 1)
            if difference is None or not (common == 0 or self._same(common)):
                return None
        if common:
            # The state after a last block is not final: it may grow.
            known = min(common, *(height - 1 for height in self._heights))
            state_height, at = self._states(known)
            if at is not None:
                difference = self._state_difference(at)
                if difference is None:
                    return None
        first, second = self._sides
        return Comparison(first.name, second.name, *self._heights, common, state_height, difference)

    def _same(self, height: int) -> bool | None:
        """Whether both have the same block, ``None`` if one has none any more."""
        ours, theirs = (side.block(height) for side in self._sides)
        if ours is None or theirs is None:
            return None
        return ours.id == theirs.id or (height in self._heights and ours.key == theirs.key)

    def _last_equal(self, top: int) -> int | None:
        """The last height with the same block, 0 without one."""
        return _last(self._same, top)

    def _block_difference(self, height: int) -> Difference | None:
        ours, theirs = (side.block(height) for side in self._sides)
        if ours is None or theirs is None or ours.id == theirs.id:
            return None
        judge = None if self._third is None else self._third.block(height)
        right = None if judge is None else self._right(judge.id, ours.id, theirs.id)
        return Difference("block", height, _shown(ours), _shown(theirs), right)

    def _right(self, judged: str, ours: str, theirs: str) -> str | None:
        first, second = self._sides
        return {ours: first.name, theirs: second.name}.get(judged)

    def _states(self, top: int) -> tuple[int | None, int | None]:
        """The height up to which states were compared, and the first one with a difference."""
        if top < GENESIS or (equal := self._same_state(top)) is None:
            return None, None
        if equal:
            return top, None
        last = _last(self._same_state, top)
        return (top, None) if last is None else (top, last + 1)

    def _same_state(self, height: int) -> bool | None:
        ours, theirs = (side.state_hash(height) for side in self._sides)
        return None if ours is None or theirs is None else ours == theirs

    def _state_difference(self, height: int) -> Difference | None:
        blocks = [side.block(height) for side in self._sides]
        hashes = [side.state_hash(height) for side in self._sides]
        ours, theirs = blocks
        if ours is None or theirs is None or None in hashes:
            return None
        judge = None if self._third is None else self._third.state_hash(height)
        right = None if judge is None else self._right(judge, str(hashes[0]), str(hashes[1]))
        return Difference(
            "state", height, _shown(ours, hashes[0]), _shown(theirs, hashes[1]), right
        )


def _last(same: Callable[[int], bool | None], top: int) -> int | None:
    """The last height up to ``top`` at which two chains are the same, 0 for none: first with
    growing steps, since forks are short, then by bisection. ``None`` if ``top`` itself is unknown.
    Below, what is unknown counts as the same: a node may store no state hashes of older blocks.
    """
    found = same(top)
    if found is None or found:
        return None if found is None else top
    differs, step = top, 1
    while True:
        height = max(GENESIS, differs - step)
        if height == differs:
            return 0
        if same(height) is not False:
            break
        differs, step = height, 2 * step
    while differs - height > 1:
        middle = (height + differs) // 2
        if same(middle) is not False:
            height = middle
        else:
            differs = middle
    return height


def _shown(block: BlockName, state_hash: str | None = None) -> Shown:
    return Shown(block.id, block.generator, block.timestamp, state_hash)


def node_side(url: str, api_key: str | None, timeout: float) -> NodeSide:
    """Return the side of a node; raises ``InputError`` for an invalid URL."""
    return NodeSide(Node(url, api_key=api_key, timeout=timeout, retries=1))
