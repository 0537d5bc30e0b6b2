"""The chain of another node as the base layer of a store, read as needed and cached on disk.

What lives here: the request for each kind of record, and what is not available. What does not: the
requests (``state``, ``history``), the node's later changes (``since``), the cache and the reader
threads (``reading``), opening a fork (``beginning``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from soliton.chain import blocks
from soliton.chain.addresses import ADDRESS_LENGTH, Address
from soliton.chain.networks.model import Network
from soliton.crypto import base58
from soliton.devnet.fork.history import PAGE, History, RemoteBlock, calling_id, location_in
from soliton.devnet.fork.reading import Readers, RecordCache
from soliton.devnet.fork.remote import Remote
from soliton.devnet.fork.since import Since
from soliton.devnet.fork.state import GENERATING, I64, RemoteState
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.state import ASSET_BALANCES, LEASES, NO_LEASES, WAVES
from soliton.storage import layout
from soliton.storage.below import Items
from soliton.storage.errors import NotBelow
from soliton.storage.retrying import read_remote

T = TypeVar("T")

_LISTED: Final = b"?"
_OWNER: Final = 1 + ADDRESS_LENGTH
_ASSET_OWNER: Final = 1 + 32 + ADDRESS_LENGTH


class Fork:
    """The chain of a node up to a height, as a base layer of ``soliton.storage.below``."""

    def __init__(
        self, remote: Remote, network: Network, top: RemoteBlock, since: Since, directory: Path
    ) -> None:
        """``top`` is its last block; ``directory`` is the cache for that block."""
        self.height = top.height
        self.url = remote.url
        self.block = base58.encode(top.block.id)
        self.network = network
        self._remote, self._since = remote, since
        estimation = RuleBook(network).at(top.height).estimation
        self._state = RemoteState(remote, network.chain_id, estimation)
        self._history = History(remote, network.chain_id)
        # One thread at a time checks what the node has changed.
        self._lock = threading.Lock()
        self._readers = Readers(remote.name)
        self.is_shared = False
        """Whether the event loop that reads has other work: then threads read, and it retries."""
        self._tip = top.height.to_bytes(4, "big")
        self._past: dict[bytes, Callable[[bytes], bytes | None]] = {
            layout.BLOCK: lambda rest: self._block(rest, layout.BLOCK),
            layout.META: lambda rest: self._block(rest, layout.META),
            layout.BLOCK_HEIGHT: self._height_of,
            layout.TRANSACTION: self._place,
            layout.SNAPSHOT: self._written,
            layout.CALL: self._called,
        }
        self._cache = RecordCache(directory)
        self._keep_block(top)

    @property
    def questions(self) -> int:
        """The number of requests to the node."""
        return self._remote.questions

    def get(self, key: bytes, /) -> bytes | None:
        """Return the value of a key. Raises ``BelowProblem`` and ``NotBelow``."""
        kind = key[:1]
        if key == layout.TIP:
            return self._tip
        if kind not in self._state.entries and kind not in self._past:
            return None
        cached = self._cache.get(key)
        return self._in_thread(key, partial(self._read, key)) if cached is None else cached[0]

    def _in_thread(self, name: bytes, read: Callable[[], T]) -> T:
        if not self.is_shared:
            return read()
        return read_remote(name, read, self._readers.submit, self._remote.name)

    def _read(self, key: bytes) -> bytes | None:
        cached = self._cache.get(key)
        if cached is not None:
            # Another thread has read it meanwhile.
            return cached[0]
        past = self._past.get(key[:1])
        if past is None:
            return self._now(key, self._state.entries[key[:1]](key[1:]))
        found = past(key[1:])
        # A missing entry may exist later, but above the height of the fork.
        self._cache.put({key: found})
        return found

    def _now(self, key: bytes, records: dict[bytes, bytes | None]) -> bytes | None:
        """Cache the node's records, if they are still those of the fork's height."""
        at_height = self._state.at_height.get(key[:1])
        with self._lock:
            self._since.refresh()
            changed = self._since.has_changed
            if at_height is None or not changed(key):
                self._since.check(key)
                cached = {at: each for at, each in records.items() if at == key or not changed(at)}
                self._cache.put(cached)
                return records[key]
        # Nodes know the past of balances only.
        records = at_height(key[1:], self.height)
        self._cache.put(records)
        return records[key]

    def close(self) -> None:
        """Close the connections and the cache."""
        self._remote.close()
        self._cache.close()

    # --- lists ------------------------------------------------------------------------------------

    def scan(self, prefix: bytes, start: bytes, /) -> Items:
        """Return the keys and values under a prefix, in key order, from ``start`` on."""
        return iter([each for each in self._all(prefix) if each[0] >= start])

    def scan_back(self, prefix: bytes, before: bytes, /) -> Items:
        """Return the same in descending order, from below ``prefix + before`` on, or the last."""
        # A generator: what is not available raises only when it is reached.
        if prefix[:1] == layout.ADDRESS_TRANSACTION:
            yield from self._transactions(prefix, before)
            return
        found = self._all(prefix, before)
        end = prefix + (before or b"\xff" * 64)
        yield from (each for each in reversed(found) if each[0] < end)

    def _all(self, prefix: bytes, before: bytes = b"") -> list[tuple[bytes, bytes]]:
        kind = prefix[:1]
        if kind == layout.HISTORY:
            return self._balance_history(prefix, before)
        if kind == layout.ASSET_HISTORY:
            return self._asset_history(prefix, before)
        if kind not in self._state.lists or len(prefix) != _OWNER:
            return []
        if self._cache.get(_LISTED + prefix) is None:
            self._in_thread(_LISTED + prefix, partial(self._list, prefix))
        return self._cache.under(prefix)

    def _list(self, prefix: bytes) -> None:
        found = self._state.lists[prefix[:1]](Address(prefix[1:]))
        records: dict[bytes, bytes | None] = dict(found)
        with self._lock:
            self._since.refresh()
            self._since.check(prefix)
            self._cache.put({_LISTED + prefix: b"", **records})

    def _transactions(self, prefix: bytes, before: bytes) -> Items:
        """Yield an account's transactions, the newest first; each is located when it is reached."""
        address, after = Address(prefix[1:_OWNER]), b""
        while True:
            page = self._in_thread(
                prefix + after, partial(self._history.transactions_of, address, after)
            )
            for name in page:
                location = self.get(layout.TRANSACTION + name)
                if location is not None:
                    place = layout.decode_location(location)
                    at = layout.place_key(place.height, place.index)
                    if not before or at < before:
                        yield prefix + at, name
            if len(page) < PAGE:
                return
            after = page[-1]

    def _balance_history(self, prefix: bytes, before: bytes) -> list[tuple[bytes, bytes]]:
        """Return the balance at the height of the fork, and below it the generating balance, the
        minimum of all relevant ones.
        """
        if len(prefix) < _OWNER:
            raise self._unavailable("who had how much of the coin")
        if before and int.from_bytes(before[:4], "big") <= self.height:
            raise self._unavailable(f"earlier balances of {base58.encode(prefix[1:_OWNER])}")
        address = prefix[1:_OWNER]
        balance = self.get(layout.ROWS[WAVES].prefix + address) or bytes(8)
        leases = self.get(layout.ROWS[LEASES].prefix + address) or bytes(16)
        smallest = self.get(GENERATING + address) or bytes(8)
        own = int.from_bytes(balance, "big"), layout.ROWS[LEASES].decode(leases)
        if own == (0, NO_LEASES):
            return []
        least = layout.encode_history(I64.unpack(smallest)[0], NO_LEASES, 0)
        found = {prefix + (1).to_bytes(4, "big"): least}
        found[prefix + self._tip] = layout.encode_history(*own, 0)
        return sorted(found.items())

    def _asset_history(self, prefix: bytes, before: bytes) -> list[tuple[bytes, bytes]]:
        if len(prefix) < _ASSET_OWNER:
            raise self._unavailable(f"who has {base58.encode(prefix[1:33])}")
        if before and int.from_bytes(before[:4], "big") <= self.height:
            raise self._unavailable(f"earlier balances of {base58.encode(prefix[33:])}")
        asset_id, address = prefix[1:33], prefix[33:_ASSET_OWNER]
        found = self.get(layout.ROWS[ASSET_BALANCES].prefix + address + asset_id)
        return [] if found is None else [(prefix + self._tip, found)]

    # --- blocks and transactions ------------------------------------------------------------------

    def _block(self, rest: bytes, kind: bytes) -> bytes | None:
        height = int.from_bytes(rest, "big")
        if not 0 < height < self.height:
            return None
        found = self._history.block(height)
        above = self._cache.get(layout.height_key(layout.BLOCK, height + 1))
        if above is not None and above[0] is not None:
            header, _ = blocks.decode_header(above[0], self.network.chain_id)
            if header.reference != found.block.id:
                path = f"/blocks/at/{height}"
                raise self._remote.trouble(path, "the block is not the one below the next")
        return self._keep_block(found)[kind]

    def _keep_block(self, found: RemoteBlock) -> dict[bytes, bytes]:
        meta = layout.encode(self._history.meta(found, self.network))
        made = {layout.BLOCK: found.block.data, layout.META: meta}
        self._cache.put({layout.height_key(kind, found.height): made[kind] for kind in made})
        return made

    def _height_of(self, block_id: bytes) -> bytes | None:
        found = self._history.height_of(block_id)
        return None if found is None or found > self.height else found.to_bytes(4, "big")

    def _place(self, transaction_id: bytes) -> bytes | None:
        place = self._history.place(transaction_id, self.height)
        if place is None:
            return None
        data = self.get(layout.height_key(layout.BLOCK, place.height)) or b""
        found = location_in(data, self.network.chain_id, transaction_id, place)
        if place.call is not None:
            # The same response has the dApp's result.
            key = layout.CALL + layout.place_key(found.height, found.index)
            self._cache.put({key: layout.encode(place.call)})
        return layout.encode_location(found)

    def _written(self, rest: bytes) -> bytes | None:
        height = int.from_bytes(rest[:4], "big")
        if height > self.height:
            return None
        raise self._unavailable(f"what the transactions of block {height} wrote")

    def _called(self, rest: bytes) -> bytes | None:
        height, index = int.from_bytes(rest[:4], "big"), int.from_bytes(rest[4:], "big")
        data = None if height > self.height else self.get(layout.height_key(layout.BLOCK, height))
        transaction_id = None if data is None else calling_id(data, self.network.chain_id, index)
        if transaction_id is None:
            return None
        self._place(transaction_id)
        cached = self._cache.get(layout.CALL + rest)
        return None if cached is None else cached[0]

    def _unavailable(self, what: str) -> NotBelow:
        return NotBelow(
            f"{what}: a fork knows nothing of that up to height {self.height}, where it begins; "
            f"ask {self.url}"
        )
