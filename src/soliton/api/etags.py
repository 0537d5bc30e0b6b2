"""Answers that a client need not get again: those about the chain change with its last block.

What lives here: their ``ETag`` (the last block's id), comparing it with what the client has. What
does not: which routes these are (``routes.Reads``), sending (``application``). Long answers
that are read piece by piece have no tag: the chain may go on while they are on their way.

Source: RFC 9110, sections 8.8.3 and 13.1.2.
"""

from __future__ import annotations

from soliton.crypto import base58
from soliton.ledger.environment import BlockMeta
from soliton.node.blockchain import Blockchain
from soliton.web.number_strings import Accepted


class StateTags:
    """The tags of the present state, one for each form that numbers may have."""

    __slots__ = ("_meta", "_tags")

    def __init__(self) -> None:
        self._meta: BlockMeta | None = None
        self._tags: tuple[bytes, bytes] = (b"", b"")

    def tag(self, chain: Blockchain, wish: Accepted) -> bytes:
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
