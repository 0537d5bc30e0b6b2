"""A new time for an exchange transaction whose own is over, so that it is settled all the same.

A transaction can be mined only near its timestamp: at most ``forward`` before it, and at most
``back`` after it. One that did not come onto the chain in that window (the node was away, a
clock was wrong) needs another timestamp, and is another transaction then. Both must never be
mined, or the execution is settled twice. So:

1. The new timestamp is later by a whole number of windows. The same execution has the same series
   of timestamps on every matcher of the account, whoever renews it, and however often.
2. It is made when no block to come can hold the old one: the block before the next one must not be
   later than the old timestamp by more than ``back``, and a block that cannot be taken off any more
   already is.
3. And only after the chain was searched for any transaction that settles the two orders with each
   other. Two orders meet once: then one of them is done. So whatever is found is this execution.

What lives here: that arithmetic, and the new transaction. What does not: when it is asked for
(``settlement``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.networks.model import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import TYPE, Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.keys import KeyPair

FINAL_DEPTH: Final = 100
"""A block under so many others cannot be taken off by the network."""


class Window(msgspec.Struct, frozen=True):
    """How far, in milliseconds, a transaction's timestamp may be behind the block before its own,
    and ahead of its own block.
    """

    back_ms: int
    forward_ms: int

    @property
    def length_ms(self) -> int:
        """From the first to the last moment at which a transaction can be mined."""
        return self.back_ms + self.forward_ms

    def is_over(self, timestamp: int, block_time: int) -> bool:
        """Whether nothing with this timestamp can be mined above a block of this time."""
        return timestamp + self.back_ms < block_time

    def next_time(self, timestamp: int, block_time: int) -> int:
        """The first timestamp of the series whose window is not over."""
        missing = block_time - self.back_ms - timestamp
        return timestamp + max(1, -(-missing // self.length_ms)) * self.length_ms

    def settled_since(self, timestamp: int) -> int:
        """A transaction with a timestamp below this is in an older block than any that settles an
        execution of ``timestamp``.
        """
        return timestamp - self.length_ms


def window_of(network: Network) -> Window:
    """The window of a network."""
    rules = network.functionality
    return Window(
        rules.max_transaction_time_back_offset_ms, rules.max_transaction_time_forward_offset_ms
    )


def order_ids(transaction: AnyTransaction) -> frozenset[bytes]:
    """The two orders that an exchange settles; empty for any other transaction."""
    body = transaction.payload
    if not isinstance(body, Exchange):
        return frozenset()
    return frozenset((body.order1.id, body.order2.id))


def expires(transaction: AnyTransaction) -> int:
    """Until when (ms) both orders of an exchange may be settled."""
    body = transaction.payload
    assert isinstance(body, Exchange), "only exchanges are settled"
    return min(body.order1.expiration, body.order2.expiration)


def renewed(transaction: AnyTransaction, timestamp: int, account: KeyPair) -> AnyTransaction:
    """The same exchange at another time, signed."""
    draft = codec.build(
        TYPE,
        transaction.payload,
        version=transaction.version,
        chain_id=transaction.chain_id,
        sender_public_key=transaction.sender_public_key,
        fee=transaction.fee,
        timestamp=timestamp,
    )
    return codec.sign(draft, account.private_key)
