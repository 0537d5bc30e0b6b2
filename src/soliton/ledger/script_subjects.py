"""The subjects of verifiers and asset scripts: transactions, orders and calls.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/smart/RealTransactionWrapper.scala``.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from soliton.chain.orders import Order
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.ride.bindings import (
    Call,
    Envelope,
    View,
    call_of,
    envelope_of,
    invoke_object,
    order_object,
    transaction_object,
)
from soliton.ride.environment import Payment
from soliton.ride.values import Value


class Subject(msgspec.Struct, frozen=True):
    """The subject of a script. ``make`` returns the object that the script sees; ``payments`` are
    those of a call, whose number some versions limit.
    """

    id: bytes
    make: Callable[[View], Value]
    payments: tuple[Payment, ...] = ()


def subject_of(subject: AnyTransaction | Order) -> Subject:
    """Return a transaction (other than an Ethereum one) or an order as a subject."""
    if isinstance(subject, Order):
        order = subject
        return Subject(b"", lambda view: order_object(order, view))
    transaction = subject
    if isinstance(transaction.payload, InvokeScript):
        call = call_of(transaction.payload, transaction.fee_asset_id)
        return call_subject(envelope_of(transaction), call)
    return Subject(transaction.id, lambda view: transaction_object(transaction, view))


def call_subject(envelope: Envelope, call: Call) -> Subject:
    """Return a call of a dApp as a subject."""
    return Subject(envelope.id, lambda view: invoke_object(envelope, call, view), call.payments)
