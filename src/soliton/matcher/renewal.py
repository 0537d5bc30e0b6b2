"""Renewing exchange transactions that are too late, with a new timestamp.

A transaction can be mined only near its timestamp: at most ``forward`` before it, and at most
``back`` after it. One that was not mined in that window (the node was down, a clock was wrong)
needs another timestamp, which makes it another transaction. Only one of them may be mined, or the
execution is settled twice. So:

1. The new timestamp is later by a whole number of windows. The same execution has the same series
   of timestamps on every matcher of the account, whichever renews it and however often.
2. It is made when no future block can contain the old transaction: the parent of the next block
   must not be later than the old timestamp by more than ``back``, and a block that can no longer be
   rolled back already is.
3. It is made only after a search of the chain for any transaction that settles the two orders with
   each other. Two orders match only once, since one of them is filled then. So any transaction
   found is this execution.

What lives here: that arithmetic, and the new transaction. What does not: when to renew
(``broadcasting``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.networks.model import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import TYPE, Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.keys import KeyPair
from soliton.matcher.node_client import OrderPair

FINAL_DEPTH: Final = 100
"""The network cannot roll back a block with so many blocks above it."""
YOUNGEST_FINAL: Final = 2
"""No block is final before it has so many blocks above it: the next one votes on it, and the votes
count from the one after that on.
"""


def final_height(height: int, reported: int) -> int:
    """The height of the highest block that no fork replaces if ``height`` is that of the last one,
    and the node reports this one as final; below 1 if there is none. By a report no block is final
    earlier than the rules allow, nor later than it is without votes.
    """
    return max(min(reported, height - YOUNGEST_FINAL), height - FINAL_DEPTH)


class Window(msgspec.Struct, frozen=True):
    """How far, in milliseconds, a transaction's timestamp may be behind the parent of its block,
    and ahead of its block.
    """

    back_ms: int
    forward_ms: int

    @property
    def length_ms(self) -> int:
        """The time between the first and the last moment at which a transaction can be mined."""
        return self.back_ms + self.forward_ms

    def is_over(self, timestamp: int, block_time: int) -> bool:
        """Whether a transaction with this timestamp can no longer be mined above such a block."""
        return timestamp + self.back_ms < block_time

    def next_time(self, timestamp: int, block_time: int) -> int:
        """The first timestamp of the series whose window is not over."""
        missing = block_time - self.back_ms - timestamp
        return timestamp + max(1, -(-missing // self.length_ms)) * self.length_ms

    def settled_since(self, timestamp: int) -> int:
        """The lower bound of a search: transactions with an earlier timestamp are in older blocks
        than any that settles an execution of ``timestamp``.
        """
        return timestamp - self.length_ms


def window_of(network: Network) -> Window:
    """The window of a network."""
    rules = network.functionality
    return Window(
        rules.max_transaction_time_back_offset_ms, rules.max_transaction_time_forward_offset_ms
    )


def order_ids(transaction: AnyTransaction) -> OrderPair:
    """The two orders that an exchange settles; empty for any other transaction."""
    body = transaction.payload
    if not isinstance(body, Exchange):
        return frozenset()
    return frozenset((body.order1.id, body.order2.id))


def expires(transaction: AnyTransaction) -> int:
    """The earlier expiration (ms) of an exchange's two orders."""
    body = transaction.payload
    assert isinstance(body, Exchange), "only exchanges are settled"
    return min(body.order1.expiration, body.order2.expiration)


def renewed(transaction: AnyTransaction, timestamp: int, account: KeyPair) -> AnyTransaction:
    """The same exchange with another timestamp, signed."""
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
