"""What the process that serves gRPC asks its node, and what the node answers.

The chain is read from the store that both see. What the node alone has goes through a channel: the
pool, sending, and what has happened last.

What lives here: questions and answers, both as values. What does not: either end
(``node_side``, ``worker``).
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from soliton.web.channel import ChannelSpec

MAX_WAITING: Final = 4_096
"""Questions of calls that the node has not answered to one service; more are refused."""
MAX_IDS: Final = 64
"""Transactions of the pool that the node is asked for at once: it does nothing else meanwhile."""
MAX_GROUP: Final = 64
MAX_GROUP_BYTES: Final = 512 * 1024


class Send(msgspec.Struct, frozen=True, gc=False, tag=1, array_like=True):
    """Put a transaction (``SignedTransaction``) into the pool, whose signature may be verified."""

    data: bytes
    verified: bool = False


class FindWaiting(msgspec.Struct, frozen=True, gc=False, tag=2, array_like=True):
    """The transactions of the pool with these ids, or the ids of those that an account has sent
    (its address).
    """

    sender: bytes
    ids: list[bytes]
    only_ids: bool = False


class Happened(msgspec.Struct, frozen=True, gc=False, tag=3, array_like=True):
    """What has happened behind the note with this number; waits until something has."""

    after: int


class PoolHappened(msgspec.Struct, frozen=True, gc=False, tag=4, array_like=True):
    """What has happened in the pool behind the note with this number; waits until something has."""

    after: int


class FindSteps(msgspec.Struct, frozen=True, gc=False, tag=5, array_like=True):
    """What the transactions of the pool with these ids change."""

    ids: list[bytes]


Question = Send | FindWaiting | Happened | PoolHappened | FindSteps


class Sent(msgspec.Struct, frozen=True, gc=False, tag=1, array_like=True):
    """What became of it: the number of a REST error (0: none), its words, and more about it."""

    error: int
    words: str = ""
    details: str = ""


class Waiting(msgspec.Struct, frozen=True, gc=False, tag=2, array_like=True):
    """``SignedTransaction`` of each, or its id."""

    found: list[bytes]


class Form(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A form of the last block: its id, how many transactions it has, the generator's signature and
    state hash of it, and the signature of the microblock that led to it.
    """

    id: bytes
    count: int
    signature: bytes
    state_hash: bytes
    micro_signature: bytes = b""


class Note(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A step of the chain: ``form`` is the last block now. ``kind`` is one of those below."""

    kind: int
    height: int
    form: Form


APPENDED: Final = 0
EXTENDED: Final = 1
ROLLED_BACK: Final = 2


class Notes(msgspec.Struct, frozen=True, gc=False, tag=3, array_like=True):
    """Notes up to number ``last``. Those of ``Happened`` that are too old are ``lost``: then, and
    at first, ``forms`` are all that the last block has had (at ``height``), the shortest first.
    """

    last: int
    notes: list[Note]
    lost: bool = False
    height: int = 0
    forms: list[Form] = []


class PoolNote(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A transaction has come into the pool, or has ``gone``; ``reason`` says why if no block has
    it.
    """

    id: bytes
    gone: bool = False
    reason: str | None = None


class PoolNotes(msgspec.Struct, frozen=True, gc=False, tag=4, array_like=True):
    """Notes up to number ``last``. Those of ``PoolHappened`` that are too old are ``lost``: then,
    and at first, ``ids`` are all that are in the pool, the oldest first.
    """

    last: int
    notes: list[PoolNote]
    lost: bool = False
    ids: list[bytes] = []


class Step(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A transaction of the pool (``SignedTransaction``): the accounts under which it is listed, by
    how much it changes balances and leases (in and out), and what it writes as data (typed bytes,
    none for what it deletes).
    """

    id: bytes
    data: bytes
    accounts: list[bytes]
    balances: list[tuple[bytes, bytes, int]]
    leases: list[tuple[bytes, int, int]]
    entries: list[tuple[bytes, str, bytes]]


class Steps(msgspec.Struct, frozen=True, gc=False, tag=5, array_like=True):
    """Those that are in the pool, in the order in which they were asked for."""

    found: list[Step]


class Unknown(msgspec.Struct, frozen=True, gc=False, tag=0, array_like=True):
    """Nobody answers any more."""


Answer = Sent | Waiting | Notes | PoolNotes | Steps | Unknown

SPEC: Final = ChannelSpec[Question, Answer](
    Question,
    Answer,
    Unknown(),
    MAX_WAITING,
    MAX_GROUP,
    MAX_GROUP_BYTES,
    lambda asked: len(asked.data) if isinstance(asked, Send) else 0,
)


class Asking(Protocol):
    """The way to the node."""

    async def ask(self, question: Question, /) -> Answer:
        """Its answer."""


class Limited:
    """The way to the node for calls of clients, of whom there may be any number."""

    def __init__(self, node: Asking) -> None:
        self._node = node
        self._waiting = 0

    async def ask(self, question: Question, /) -> Answer:
        """Its answer; ``Unknown`` where too many wait."""
        if self._waiting >= MAX_WAITING:
            return Unknown()
        self._waiting += 1
        try:
            return await self._node.ask(question)
        finally:
            self._waiting -= 1
