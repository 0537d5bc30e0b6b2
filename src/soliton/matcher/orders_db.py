"""The orders database: finalized orders, their transactions, rates and pairs.

It is written behind the engine: changes go to the disk together with the offset of the last command
that caused them. Changes lost in a crash are recomputed from the journal, so the database needs no
log of its own.

========  ======================================  ==============================================
prefix    key                                     value
========  ======================================  ==============================================
``m``     a name                                  ``offset``: of the last command; ``owner``: the
                                                  matcher; ``genesis``: the chain's first block;
                                                  ``signed``: present if ``e`` is complete;
                                                  ``anchors``: ids of blocks that were seen
``i``     order id                                the finalised order, ``OrderInfo``
``h``     address                                 ids of its last finalised orders, oldest first
``p``     address, pair                           the same of one pair
``e``     ``signed_name`` of a wallet's order     id of the order
``t``     order id, offset, index                 id of an exchange transaction
``x``     transaction id                          the transaction
``s``     transaction id                          unless irreversibly mined: ``PendingRecord``
``u``     ids of a buying and a selling order     an execution that was given up: ``Unsettled``
``d``     pair, offset, index                     an execution, ``Trade``
``v``     pair, offset, index                     an execution that was taken back, ``Trade``
``n``     order id                                how often it has returned to its book
``f``     address                                 defaults of the account, ``Default``
``r``     asset                                   rate, eight bytes
``b``     pair                                    creation time of the book
========  ======================================  ==============================================

What lives here: keys and values. What does not: storing them (``key_values``), and when they are
written (``effects``).
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.matcher.defaults import Default
from soliton.matcher.errors import DatabaseProblem
from soliton.matcher.key_values import KeyValues, reading
from soliton.matcher.records import OrderInfo, Place, Trade, Unsettled
from soliton.matching.account_checks import signed_name
from soliton.matching.pairs import AssetPair, pair_end, pair_of, pair_to_bytes, read_pair

ID_BYTES: Final = 32
MAX_CACHED_LISTS: Final = 10_000
"""The size of the cache of lists of finalised orders."""
MAX_TRANSACTIONS_PER_ORDER: Final = 10_000
"""The maximum number of transactions returned for one order: the first ones."""

_INFO: Final = b"i"
_HISTORY: Final = b"h"
_PAIR_HISTORY: Final = b"p"
_SIGNED: Final = b"e"
_ORDER_TRANSACTION: Final = b"t"
_TRANSACTION: Final = b"x"
_PENDING: Final = b"s"
_UNSETTLED: Final = b"u"
_TRADE: Final = b"d"
_TAKEN_BACK: Final = b"v"
_RETURNS: Final = b"n"
_DEFAULT: Final = b"f"
_RATE: Final = b"r"
_BOOK: Final = b"b"
_OFFSET_KEY: Final = b"moffset"
_OWNER_KEY: Final = b"mowner"
_GENESIS_KEY: Final = b"mgenesis"
_SIGNED_KEY: Final = b"msigned"
_ANCHORS_KEY: Final = b"manchors"
_READ_TOGETHER: Final = (_PENDING, _UNSETTLED, _RATE, _BOOK)
_PLACE: Final = struct.Struct(">QH")
_FAR_PLACE: Final = struct.Struct(">QHI")
_LAST_SHORT_INDEX: Final = 0xFFFF
_RATE_VALUE: Final = struct.Struct(">d")

_encode = msgspec.msgpack.Encoder().encode
_decode_info = reading("an order", msgspec.msgpack.Decoder(OrderInfo).decode)
_decode_unsettled = reading(
    "an execution that was given up", msgspec.msgpack.Decoder(Unsettled).decode
)
_decode_default = reading("the defaults of an account", msgspec.msgpack.Decoder(Default).decode)
_decode_anchors = reading("blocks of the chain", msgspec.msgpack.Decoder(dict[int, bytes]).decode)
_decode_trade = reading("an execution", msgspec.msgpack.Decoder(Trade).decode)
_decode_offset = reading("the offset of the journal", struct.Struct(">q").unpack)
_decode_rate = reading("a rate", _RATE_VALUE.unpack)
_decode_text = reading("a fact about the database", bytes.decode)


class PendingRecord(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A transaction that must be settled: its timestamp (ms), and the height at which it was seen
    last (0: never). ``failure`` as in ``Inclusion``. ``rebuilt`` is true if it was made in a replay
    of the journal: an earlier run, or another matcher, may have sent another one for the execution.
    """

    created: int
    height: int = 0
    failure: str = ""
    rebuilt: bool = False
    fee: int = 0
    """In units of the native coin; records of older versions have none."""


_decode_pending = reading("a transaction's state", msgspec.msgpack.Decoder(PendingRecord).decode)


class OrdersDatabase(KeyValues):
    """One matcher's database. Use from one event loop."""

    def __init__(
        self,
        directory: Path,
        owner: str,
        chain_id: int,
        max_finalized: int,
        *,
        durable: bool,
        before_write: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Open or create it in ``directory``; ``owner`` (the matcher's address) must be the same
        each time. ``max_finalized`` orders are listed per account, and per account and pair.
        Raises ``DatabaseProblem``.
        """
        super().__init__(directory, durable=durable, before_write=before_write)
        self._chain_id = chain_id
        self._kept = max_finalized * ID_BYTES
        self._lists: dict[bytes, bytes] = {}
        self.offset = -1
        """The last command whose effects are all here, in memory or on the disk; -1 if none."""
        try:
            marked = self._get(_OFFSET_KEY)
            if marked is not None:
                (self.offset,) = _decode_offset(marked)
            known = self._get(_OWNER_KEY)
            if known is None:
                self._fresh[_OWNER_KEY] = owner.encode()
            elif (found := _decode_text(known)) != owner:
                raise DatabaseProblem(
                    f"{directory} holds orders of the matcher {found}, not {owner}"
                )
            if self._get(_SIGNED_KEY) is None:
                self._note_signed()
                self._fresh[_SIGNED_KEY] = b""
        except BaseException:
            self._release()
            raise

    @staticmethod
    def group_of(key: bytes) -> bytes | None:
        """The prefix by which a key is found, ``None`` if it is only read alone."""
        kind = key[:1]
        if kind == _ORDER_TRANSACTION:
            return key[: 1 + ID_BYTES]
        if kind == _TRADE:
            return key[: pair_end(key, 1)]
        return kind if kind in _READ_TOGETHER else None

    def _note_signed(self) -> None:
        """Record the wallet-signed orders that were executed before such records existed: their
        signatures are public on the chain and could be reused. Raises ``DatabaseProblem``.
        """
        for _, data in self._stored(_TRANSACTION, _TRANSACTION):
            body = _decoded(data, self._chain_id).payload
            for order in (body.order1, body.order2) if isinstance(body, Exchange) else ():
                name = signed_name(order)
                if name is not None:
                    self._fresh[_SIGNED + name] = order.id

    def genesis(self) -> str | None:
        """The signature of the first block of the chain that the data belong to, if recorded."""
        found = self._get(_GENESIS_KEY)
        return None if found is None else _decode_text(found)

    def put_genesis(self, signature: str) -> None:
        """Record the chain."""
        self._fresh[_GENESIS_KEY] = signature.encode()

    def anchors(self) -> dict[int, bytes]:
        """The ids of some blocks of the chain that were seen, by height."""
        found = self._get(_ANCHORS_KEY)
        return {} if found is None else _decode_anchors(found)

    def put_anchors(self, anchors: dict[int, bytes]) -> None:
        """Record blocks that were seen, in place of those before."""
        self._fresh[_ANCHORS_KEY] = _encode(anchors)

    def mark(self, offset: int) -> None:
        """Complete the effects of the command at ``offset``."""
        self.keep_step()
        self.offset = offset
        self._fresh[_OFFSET_KEY] = offset.to_bytes(8, "big", signed=True)

    def drop_step(self) -> None:
        """Discard the changes of orders, executions and books since the last ``mark``."""
        super().drop_step()
        self._lists.clear()

    # --- orders -----------------------------------------------------------------------------------

    def finalize(self, info: OrderInfo) -> None:
        """Store an order in its final state. Idempotent."""
        if self.knows(info.id):
            return
        self._step[_INFO + info.id] = _encode(info)
        pair = pair_to_bytes(info.pair)
        if len(self._lists) > MAX_CACHED_LISTS:
            self._lists.clear()
        for key in (_HISTORY + info.owner, _PAIR_HISTORY + info.owner + pair):
            known = self._lists.get(key)
            ids = ((self._get(key) or b"") if known is None else known) + info.id
            self._step[key] = self._lists[key] = ids[-self._kept :] if self._kept else b""

    def reopen(self, order_id: bytes) -> None:
        """Remove the final state of an order, if it has one, and the order from the lists."""
        info = self.order(order_id)
        if info is None:
            return
        self._step[_INFO + order_id] = None
        for key in (
            _HISTORY + info.owner,
            _PAIR_HISTORY + info.owner + pair_to_bytes(info.pair),
        ):
            known = self._lists.get(key)
            ids = (self._get(key) or b"") if known is None else known
            pieces = (ids[at : at + ID_BYTES] for at in range(0, len(ids), ID_BYTES))
            self._step[key] = self._lists[key] = b"".join(
                each for each in pieces if each != order_id
            )

    def returns_of(self, order_id: bytes) -> int:
        """How often an order has returned to its book after an execution was taken back."""
        return int.from_bytes(self._get(_RETURNS + order_id) or b"", "big")

    def note_return(self, order_id: bytes) -> None:
        """Count a return of an order to its book."""
        self._step[_RETURNS + order_id] = (self.returns_of(order_id) + 1).to_bytes(4, "big")

    def order(self, order_id: bytes) -> OrderInfo | None:
        """A finalised order."""
        if len(order_id) != ID_BYTES:
            return None
        value = self._get(_INFO + order_id)
        return None if value is None else _decode_info(value)

    def knows(self, order_id: bytes) -> bool:
        """Whether an order is finalised."""
        return self._get(_INFO + order_id) is not None

    def put_signed(self, name: bytes, order_id: bytes) -> None:
        """Record a wallet-signed order; ``name`` is its ``signed_name``."""
        self._step[_SIGNED + name] = order_id

    def knows_signed(self, name: bytes) -> bool:
        """Whether an order with this ``signed_name`` was ever placed."""
        return self._get(_SIGNED + name) is not None

    def history(self, owner: Address, pair: AssetPair | None) -> list[OrderInfo]:
        """The last finalised orders of an account (of one pair), the oldest first."""
        if pair is None:
            ids = self._get(_HISTORY + owner) or b""
        else:
            ids = self._get(_PAIR_HISTORY + owner + pair_to_bytes(pair)) or b""
        pieces = (ids[start : start + ID_BYTES] for start in range(0, len(ids), ID_BYTES))
        return [info for order_id in pieces if (info := self.order(order_id)) is not None]

    # --- executions -------------------------------------------------------------------------------

    def put_trade(self, pair: AssetPair, trade: Trade) -> None:
        """Store an execution, and the transaction of its orders."""
        place = _place_key(trade.offset, trade.index)
        self._step[_TRADE + pair_to_bytes(pair) + place] = _encode(trade)
        if trade.transaction_id is not None:
            for order_id in (trade.taker_order_id, trade.maker_order_id):
                self._step[_ORDER_TRANSACTION + order_id + place] = trade.transaction_id

    def trade(
        self, pair: AssetPair, offset: int, index: int, *, taken_back: bool = False
    ) -> Trade | None:
        """The execution with an index among those of the command at an offset; or, if it was taken
        back, only with ``taken_back``.
        """
        prefix = _TAKEN_BACK if taken_back else _TRADE
        value = self._get(prefix + pair_to_bytes(pair) + _place_key(offset, index))
        return None if value is None else _decode_trade(value)

    def correct_trade(self, pair: AssetPair, trade: Trade, *, stands: bool) -> None:
        """Take an execution back, or count one again that was taken back."""
        key = pair_to_bytes(pair) + _place_key(trade.offset, trade.index)
        self._step[(_TAKEN_BACK if stands else _TRADE) + key] = None
        self._step[(_TRADE if stands else _TAKEN_BACK) + key] = _encode(trade)

    def trade_of(self, transaction: AnyTransaction) -> tuple[Trade, bool] | None:
        """The execution that a transaction settles, and whether it counts, or was taken back."""
        body = transaction.payload
        if not isinstance(body, Exchange):
            return None
        pair, place = pair_to_bytes(pair_of(body.order1)), self._place_of(transaction.id, body)
        for kind in (_TRADE, _TAKEN_BACK) if place is not None else ():
            value = self._get(kind + pair + (place or b""))
            if value is not None:
                return _decode_trade(value), kind == _TRADE
        return None

    def _place_of(self, transaction_id: bytes, body: Exchange) -> bytes | None:
        """The last part of the key of the execution that a transaction settles."""
        orders = body.order1, body.order2
        first, second = (self._rows(_ORDER_TRANSACTION + order.id) for order in orders)
        # One of the orders may have many executions: the other one's end the search.
        for rows in zip(first, second, strict=False):
            for key, found in rows:
                if found == transaction_id:
                    return key[1 + ID_BYTES :]
        return None

    def last_trade_besides(self, pair: AssetPair, place: Place) -> Trade | None:
        """The latest execution of a pair, not counting the one at a place."""
        for trade in reversed(self.trades(pair, 2)):
            if (trade.offset, trade.index) != place:
                return trade
        return None

    def trades(self, pair: AssetPair, limit: int, since: int | None = None) -> list[Trade]:
        """Executions of a pair, the oldest first: the last ones, or the first ones at or after a
        time in milliseconds.
        """
        if since is not None:
            return self._trades_from(pair, since, limit)
        rows = self._scan(_TRADE + pair_to_bytes(pair), limit=limit, backwards=True)
        return [_decode_trade(value) for _, value in rows]

    def trades_after(self, pair: AssetPair, place: Place | None, limit: int) -> list[Trade]:
        """The next executions of a pair after a place, or the first ones, the oldest first."""
        prefix = _TRADE + pair_to_bytes(pair)
        # The least key greater than the place's own.
        start = prefix if place is None else prefix + _place_key(*place) + b"\0"
        return [_decode_trade(value) for _, value in self._scan(prefix, start, limit=limit)]

    def _trades_from(self, pair: AssetPair, timestamp: int, limit: int) -> list[Trade]:
        prefix = _TRADE + pair_to_bytes(pair)
        low, high = 0, self.offset + 1
        # Timestamps ascend with offsets: a binary search for the first trade at or after the time.
        while low < high:
            middle = (low + high) // 2
            start = prefix + _PLACE.pack(middle, 0)
            rows = self._scan(prefix, start, limit=1)
            if not rows or _decode_trade(rows[0][1]).timestamp >= timestamp:
                high = middle
            else:
                low = _decode_trade(rows[0][1]).offset + 1
        start = prefix + _PLACE.pack(low, 0)
        rows = self._scan(prefix, start, limit=limit)
        return [_decode_trade(value) for _, value in rows]

    # --- transactions -----------------------------------------------------------------------------

    def put_transaction(self, transaction: AnyTransaction, *, rebuilt: bool = False) -> None:
        """Store a transaction that must be settled; ``rebuilt`` as in ``PendingRecord``."""
        record = PendingRecord(transaction.timestamp, rebuilt=rebuilt, fee=transaction.fee)
        self._fresh[_TRANSACTION + transaction.id] = codec.encode(transaction)
        self._fresh[_PENDING + transaction.id] = _encode(record)

    async def write_transaction(self, transaction_id: bytes) -> None:
        """Wait until a transaction, and the execution that it settles, are on the disk; raises
        ``DatabaseProblem`` or ``JournalProblem``.
        """
        while self.is_unwritten(_TRANSACTION + transaction_id):
            await self.flush()

    def transaction(self, transaction_id: bytes) -> AnyTransaction | None:
        """A transaction that was made here."""
        self.complete()
        data = self._get(_TRANSACTION + transaction_id)
        return None if data is None else _decoded(data, self._chain_id)

    def transactions_of(self, order_id: bytes) -> Iterator[AnyTransaction]:
        """The transactions of an order, the oldest first, each decoded when it is needed."""
        if len(order_id) != ID_BYTES:
            return iter(())
        rows = self._scan(_ORDER_TRANSACTION + order_id, limit=MAX_TRANSACTIONS_PER_ORDER)
        found = (self.transaction(transaction_id) for _, transaction_id in rows)
        return (transaction for transaction in found if transaction is not None)

    def pending(self) -> dict[bytes, PendingRecord]:
        """All transactions that are not irreversibly on the chain."""
        self.complete()
        rows = self._scan(_PENDING)
        return {key[len(_PENDING) :]: _decode_pending(value) for key, value in rows}

    def note_seen(self, transaction_id: bytes, record: PendingRecord) -> None:
        """Update the record of a transaction that is not irreversibly on the chain."""
        self._fresh[_PENDING + transaction_id] = _encode(record)

    def settle(self, transaction_id: bytes) -> None:
        """Remove a transaction from the pending ones: it is deep in the chain, or given up."""
        self._fresh[_PENDING + transaction_id] = None

    def watch_again(self, transaction_id: bytes, created: int) -> None:
        """Record that a transaction that was given up must be settled again."""
        if self._get(_PENDING + transaction_id) is None:
            self._fresh[_PENDING + transaction_id] = _encode(PendingRecord(created))

    def replace_transaction(self, old: AnyTransaction, new: AnyTransaction) -> None:
        """Replace the transaction of an execution by another one; ``note_seen`` where it is."""
        body = old.payload
        assert isinstance(body, Exchange), "only exchanges have trades"
        place = self._place_of(old.id, body)
        if place is not None:
            for order_id in (body.order1.id, body.order2.id):
                self._fresh[_ORDER_TRANSACTION + order_id + place] = new.id
            trade_key = _TRADE + pair_to_bytes(pair_of(body.order1)) + place
            value = self._get(trade_key)
            if value is not None:
                trade = _decode_trade(value)
                changed = msgspec.structs.replace(trade, transaction_id=new.id)
                self._fresh[trade_key] = _encode(changed)
        self.settle(old.id)
        self.put_transaction(new)

    # --- executions that were given up ------------------------------------------------------------

    def unsettled(self) -> list[Unsettled]:
        """All executions that were given up, also those that were taken back since."""
        return [_decode_unsettled(value) for _, value in self._scan(_UNSETTLED)]

    def put_unsettled(self, found: Unsettled, *, gone: bool = False) -> None:
        """Store an execution that is given up; or remove it (``gone``), if it was mined since."""
        key = _UNSETTLED + found.buy_order_id + found.sell_order_id
        self._fresh[key] = None if gone else _encode(found)
        if gone or found.is_taken_back:
            self.given_up.pop(key, None)
        else:
            self.given_up[key] = found

    @cached_property
    def given_up(self) -> dict[bytes, Unsettled]:
        """The executions that were given up and not taken back since: usually none. The others
        stay in the store, and anybody can cause some.
        """
        rows = ((key, _decode_unsettled(value)) for key, value in self._rows(_UNSETTLED))
        return {key: found for key, found in rows if not found.is_taken_back}

    # --- defaults of accounts ---------------------------------------------------------------------

    def default_of(self, owner: Address) -> Default | None:
        """The defaults of an account, ``None`` if there were none."""
        found = self._get(_DEFAULT + owner)
        return None if found is None else _decode_default(found)

    def put_default(self, owner: Address, default: Default) -> None:
        """Store the defaults of an account."""
        self._fresh[_DEFAULT + owner] = _encode(default)

    # --- rates and books --------------------------------------------------------------------------

    def rates(self) -> dict[AssetId | None, float]:
        """All rates except the native coin's."""
        rows = self._scan(_RATE)
        return {key[len(_RATE) :]: _decode_rate(value)[0] for key, value in rows}

    def put_rate(self, asset_id: AssetId, rate: float | None) -> None:
        """Store a rate, or delete it."""
        self._fresh[_RATE + asset_id] = None if rate is None else _RATE_VALUE.pack(rate)

    def books(self) -> dict[AssetPair, int]:
        """All pairs, with the creation time of their book in milliseconds."""
        rows = self._scan(_BOOK)
        return {read_pair(key, len(_BOOK))[0]: int.from_bytes(value, "big") for key, value in rows}

    def put_book(self, pair: AssetPair, created: int | None) -> None:
        """Store the creation time of a book, or delete the book."""
        value = None if created is None else created.to_bytes(8, "big")
        self._step[_BOOK + pair_to_bytes(pair)] = value


def _place_key(offset: int, index: int) -> bytes:
    """The last part of an execution's key. A command may have more executions than 16 bits can
    count: the further ones have longer keys, which sort after the others.
    """
    if index <= _LAST_SHORT_INDEX:
        return _PLACE.pack(offset, index)
    return _FAR_PLACE.pack(offset, _LAST_SHORT_INDEX, index)


def _decoded(data: bytes, chain_id: int) -> AnyTransaction:
    return reading("a transaction", partial(_decoded_transaction, chain_id))(data)


def _decoded_transaction(chain_id: int, data: bytes) -> AnyTransaction:
    # Both legacy versions start with the type or a zero, which no protobuf message does.
    if data[0] in (0, 7):
        return codec.decode_legacy(data, chain_id)
    return codec.decode_protobuf(data, chain_id)
