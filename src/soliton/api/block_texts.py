"""Blocks as JSON text: large ones are rendered in time slices, and all are cached.

A block never changes under its id, so its text is cached without expiry. Clients poll the last
block, and rendering a full block takes long.

What lives here: rendering and caching. What does not: the JSON of headers and transactions
(``json_blocks``).
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, cast

import msgspec

from soliton.api.errors import BLOCK_DOES_NOT_EXIST
from soliton.api.json_blocks import application_status, header_json, transaction_json
from soliton.api.json_transactions import Members
from soliton.api.number_strings import with_strings
from soliton.api.plain_texts import plain_text
from soliton.api.time_slices import TimeSlices
from soliton.chain import blocks
from soliton.chain.transactions import codec
from soliton.node.blockchain import Blockchain

MAX_KEPT_BYTES: Final = 32 * 1024 * 1024
"""The size of the cache: about ten full blocks."""
FEW_TRANSACTIONS: Final = 32
"""Shorter blocks are rendered at once, which takes less than a time slice."""

_Key = tuple[bytes, bool]
encode_json = msgspec.json.Encoder().encode


class BlockTexts:
    """An LRU cache of rendered blocks."""

    __slots__ = ("_bytes", "_kept", "_under_way")

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, bytes] = OrderedDict()
        self._bytes = 0
        self._under_way: dict[_Key, asyncio.Task[bytes]] = {}

    def find(
        self, chain: Blockchain, height: int, slices: TimeSlices, *, strings: bool
    ) -> bytes | asyncio.Task[bytes]:
        """The text of the block at a height, with large numbers as ``strings`` or not.

        Returns a task for a large block that is not cached. Several requests may await the task, so
        they must shield it. Raises ``KeyError`` if there is no such block.
        """
        meta = chain.meta(height)
        key = meta.id, strings
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept
        # Read all of the block now: the chain may have another one at this height later.
        text, pieces = _Text(chain, height, strings=strings), _pieces(chain, height)
        if meta.transaction_count <= FEW_TRANSACTIONS:
            for piece in pieces:
                text.add(piece)
            return self._keep(key, text.whole())
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._make(key, text, pieces, slices))
            self._under_way[key] = task
            task.add_done_callback(lambda _task: self._under_way.pop(key))
        return task

    async def _make(
        self, key: _Key, text: _Text, pieces: Iterable[bytes], slices: TimeSlices
    ) -> bytes:
        until = 0.0
        for piece in pieces:
            if time.perf_counter() > until:
                until = await slices.take()
                text.add(piece, check=True)
            else:
                text.add(piece)
        whole = text.whole()
        # A block that has grown since has another id.
        return self._keep(key, whole) if text.is_of(key[0]) else whole

    def _keep(self, key: _Key, text: bytes) -> bytes:
        self._kept[key] = text
        self._bytes += len(text)
        while self._bytes > MAX_KEPT_BYTES:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
        return text


class _Text:
    """The text of a block under construction."""

    __slots__ = ("_chain", "_fee", "_head", "_height", "_is_legacy", "_items", "_strings")

    def __init__(self, chain: Blockchain, height: int, *, strings: bool) -> None:
        self._chain = chain
        self._height = height
        self._strings = strings
        self._head = header_json(chain, height)
        self._is_legacy = cast("int", self._head["version"]) < blocks.PROTOBUF_VERSION
        self._fee = 0
        self._items: list[bytes] = []

    def is_of(self, block_id: bytes) -> bool:
        """Whether the chain still has a block of this id at this height."""
        return self._chain.height >= self._height and (
            self._chain.meta(self._height).id == block_id
        )

    def _check(self, transaction_id: bytes) -> None:
        location = self._chain.store.transaction_location(transaction_id)
        if location is None or location.height != self._height:
            raise BLOCK_DOES_NOT_EXIST.error()

    def add(self, piece: bytes, *, check: bool = False) -> None:
        """Append the next transaction.

        With ``check`` raises ``ApiError`` if the block has been rolled back, because the outcome of
        its transactions is unknown then.
        """
        chain_id = self._chain.network.chain_id
        plain = None if self._is_legacy else plain_text(piece, chain_id)
        if plain is None:
            decode = codec.decode_legacy if self._is_legacy else codec.decode_trusted
            transaction = decode(piece, chain_id)
            if check:
                self._check(transaction.id)
            if transaction.fee_asset_id is None:
                self._fee += transaction.fee
            members = transaction_json(self._chain, transaction, self._head)
            self._items.append(self._encoded(members))
            return
        if check:
            self._check(plain.id)
        self._fee += plain.fee
        status = application_status(self._chain, plain.id)
        encoded = f'{plain.text},"applicationStatus":"{status}"}}'.encode()
        self._items.append(with_strings(encoded) if self._strings else encoded)

    def whole(self) -> bytes:
        """The text with all transactions."""
        head = self._encoded(self._head | {"fee": self._fee})
        return b'%s,"transactions":[%s]}' % (head[:-1], b",".join(self._items))

    def _encoded(self, members: Members) -> bytes:
        encoded = encode_json(members)
        return with_strings(encoded) if self._strings else encoded


def _pieces(chain: Blockchain, height: int) -> Iterable[bytes]:
    """The bytes of each transaction of a block."""
    data = chain.store.block_data(height)
    if data is None:
        raise KeyError(height)
    return blocks.transaction_pieces(data)
