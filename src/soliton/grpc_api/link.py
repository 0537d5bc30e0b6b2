"""Requests of the gRPC process to its node, and the node's responses.

Both read the chain from the same store. What only the node has goes through a channel: the pool,
broadcasting, and the notes of the latest events.

What lives here: requests and responses as values. What does not: the two ends (``node_side``, the
services).
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from soliton.web.channel import ChannelSpec

MAX_WAITING: Final = 4_096
"""Limit on the pending requests of one service to the node; more are refused."""
MAX_IDS: Final = 64
"""Limit on the pool's transactions in one request, which blocks the node's event loop."""
MAX_GROUP: Final = 64
MAX_GROUP_BYTES: Final = 512 * 1024


class Send(msgspec.Struct, frozen=True, gc=False, tag=1, array_like=True):
    """Add a transaction (``SignedTransaction``) to the pool; ``verified`` if its signature is."""

    data: bytes
    verified: bool = False


class FindUnconfirmed(msgspec.Struct, frozen=True, gc=False, tag=2, array_like=True):
    """Return the pool's transactions with these ids, or the ids of those sent by an address."""

    sender: bytes
    ids: list[bytes]
    only_ids: bool = False


class AwaitNotes(msgspec.Struct, frozen=True, gc=False, tag=3, array_like=True):
    """Return the notes after number ``after``, as soon as there is one."""

    after: int


class AwaitPoolNotes(msgspec.Struct, frozen=True, gc=False, tag=4, array_like=True):
    """Return the notes about the pool after number ``after``, as soon as there is one."""

    after: int


class FindSteps(msgspec.Struct, frozen=True, gc=False, tag=5, array_like=True):
    """Return the state changes of the pool's transactions with these ids."""

    ids: list[bytes]


NodeRequest = Send | FindUnconfirmed | AwaitNotes | AwaitPoolNotes | FindSteps


class Sent(msgspec.Struct, frozen=True, gc=False, tag=1, array_like=True):
    """The result of ``Send``: a REST error's number (0: none), its message, and details."""

    error: int
    text: str = ""
    details: str = ""


class Unconfirmed(msgspec.Struct, frozen=True, gc=False, tag=2, array_like=True):
    """The transactions as ``SignedTransaction``, or their ids."""

    found: list[bytes]


class Form(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A form of the last block: its id, its number of transactions, the generator's signature and
    the state hash in it, the signature of the microblock that made it, and the encoded voting of
    the whole form, if it has one.
    """

    id: bytes
    count: int
    signature: bytes
    state_hash: bytes
    micro_signature: bytes = b""
    voting: bytes = b""


class Note(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A change of the chain: ``form`` is now the last block; ``kind`` is one of those below."""

    kind: int
    height: int
    form: Form


APPENDED: Final = 0
EXTENDED: Final = 1
ROLLED_BACK: Final = 2


class Notes(msgspec.Struct, frozen=True, gc=False, tag=3, array_like=True):
    """The notes up to number ``last``. If ``lost``, older notes were dropped: then, as for the
    first request, ``forms`` are those of the last block (at ``height``), the shortest first.
    """

    last: int
    notes: list[Note]
    lost: bool = False
    height: int = 0
    forms: list[Form] = []


class PoolNote(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A transaction was added to the pool, or is ``gone``; ``reason`` is the error unless it went
    into a block.
    """

    id: bytes
    gone: bool = False
    reason: str | None = None


class PoolNotes(msgspec.Struct, frozen=True, gc=False, tag=4, array_like=True):
    """The notes up to number ``last``. If ``lost``, older notes were dropped: then, as for the
    first request, ``ids`` are those of the whole pool, the oldest first.
    """

    last: int
    notes: list[PoolNote]
    lost: bool = False
    ids: list[bytes] = []


class Step(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A transaction of the pool (``SignedTransaction``): the accounts that list it, its changes of
    balances and of leases (in and out), and the data entries that it writes (typed bytes, empty for
    a deletion).
    """

    id: bytes
    data: bytes
    accounts: list[bytes]
    balances: list[tuple[bytes, bytes, int]]
    leases: list[tuple[bytes, int, int]]
    entries: list[tuple[bytes, str, bytes]]


class Steps(msgspec.Struct, frozen=True, gc=False, tag=5, array_like=True):
    """The transactions that are in the pool, in the order of the request."""

    found: list[Step]


class Unknown(msgspec.Struct, frozen=True, gc=False, tag=0, array_like=True):
    """The node is gone."""


NodeResponse = Sent | Unconfirmed | Notes | PoolNotes | Steps | Unknown

SPEC: Final = ChannelSpec[NodeRequest, NodeResponse](
    NodeRequest,
    NodeResponse,
    Unknown(),
    MAX_WAITING,
    MAX_GROUP,
    MAX_GROUP_BYTES,
    lambda request: len(request.data) if isinstance(request, Send) else 0,
)


class NodeLink(Protocol):
    """The channel to the node."""

    async def ask(self, request: NodeRequest, /) -> NodeResponse:
        """Send a request and return the response."""


class Limited:
    """A channel to the node with a limit on pending requests, for the calls of clients."""

    def __init__(self, node: NodeLink) -> None:
        self._node = node
        self._waiting = 0

    async def ask(self, request: NodeRequest, /) -> NodeResponse:
        """Send a request and return the response, ``Unknown`` if too many are pending."""
        if self._waiting >= MAX_WAITING:
            return Unknown()
        self._waiting += 1
        try:
            return await self._node.ask(request)
        finally:
            self._waiting -= 1
