"""Entity tags: answers about the chain change only with its last block.

What lives here: the ``ETag`` (the last block's id), and comparing it with the client's. What does
not: which routes have one (``routes.Reads``), sending (``application``). Streamed answers have no
tag, because the chain may advance while they are read.

Source: RFC 9110, sections 8.8.3 and 13.1.2.
"""

from __future__ import annotations

from soliton.crypto import base58
from soliton.ledger.environment import BlockMeta
from soliton.node.blockchain import Blockchain
from soliton.web.number_strings import Accepted


class StateTags:
    """The tags of the current state, one for each form of numbers."""

    __slots__ = ("_meta", "_tags")

    def __init__(self) -> None:
        self._meta: BlockMeta | None = None
        self._tags: tuple[bytes, bytes] = (b"", b"")

    def tag(self, chain: Blockchain, accepts: Accepted) -> bytes:
        """The tag of an answer about the current state."""
        # Not the last block, which a worker process would have to decode.
        meta = chain.meta(chain.height)
        if meta is not self._meta:
            name = base58.encode(meta.id).encode()
            self._meta, self._tags = meta, (b'"%s"' % name, b'"%s.strings"' % name)
        return self._tags[accepts is Accepted.STRINGS]


def is_known(header: bytes, tag: bytes) -> bool:
    """Whether ``If-None-Match`` contains a tag."""
    if header == tag:
        return True
    parts = (part.strip().removeprefix(b"W/") for part in header.split(b","))
    return header.strip() == b"*" or any(part == tag for part in parts)
