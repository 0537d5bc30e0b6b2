"""Answers that a client need not get again: those about the chain change with its last block.

What lives here: which routes these are, their ``ETag`` (the last block's id), comparing it with
what the client has. What does not: sending (``asgi``). Long answers that are read piece by piece
have no tag: the chain may go on while they are on their way.

Source: RFC 9110, sections 8.8.3 and 13.1.2.
"""

from __future__ import annotations

from typing import Final

from soliton.crypto import base58
from soliton.node.chain import Chain
from soliton.storage.layout import BlockMeta
from soliton.web.significands import Accepted

_OF_STATE: Final = (
    "/activation/",
    "/addresses/",
    "/alias/",
    "/assets/",
    "/blockchain/",
    "/blocks/",
    "/consensus/",
    "/debug/balances/",
    "/debug/stateHash/",
    "/eth/",
    "/leasing/",
    "/transactions/",
)
_NOT_OF_STATE: Final = (
    # The wallet, the clock, the pool, and what waits for the chain to change.
    "/addresses/seed/",
    "/addresses/seq/",
    "/blocks/heightByTimestamp/",
    "/blocks/wait/",
    "/transactions/status",
    "/transactions/unconfirmed",
    "/transactions/wait/",
)


def depends_on_chain_alone(path: str) -> bool:
    """Whether a ``GET`` of a route answers the same as long as the last block is the same."""
    return path.startswith(_OF_STATE) and not path.startswith(_NOT_OF_STATE)


class StateTags:
    """The tags of the present state, one for each form that numbers may have."""

    __slots__ = ("_meta", "_tags")

    def __init__(self) -> None:
        self._meta: BlockMeta | None = None
        self._tags: tuple[bytes, bytes] = (b"", b"")

    def tag(self, chain: Chain, wish: Accepted) -> bytes:
        """The tag of an answer about the chain as it is now."""
        # Not the block itself: a process that only reads would have to decode all of it.
        meta = chain.meta(chain.height)
        if meta is not self._meta:
            name = base58.encode(meta.id).encode()
            self._meta, self._tags = meta, (b'"%s"' % name, b'"%s.strings"' % name)
        return self._tags[wish is Accepted.STRINGS]


def is_known(header: bytes, tag: bytes) -> bool:
    """Whether ``If-None-Match`` names a tag."""
    if header == tag:
        return True
    parts = (part.strip().removeprefix(b"W/") for part in header.split(b","))
    return header.strip() == b"*" or any(part == tag for part in parts)
