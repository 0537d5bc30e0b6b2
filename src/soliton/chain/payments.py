"""Payments in the JSON of transactions, whatever their shape.

A payment reaches an account by a transfer, an entry of a mass transfer, a payment attached to a
call of its dApp, a transfer that a script makes, also in nested calls, or a transaction of Ethereum
that does one of these. The proceeds of orders are separate: they come in exchange for something.

What lives here: finding payments in what nodes show. What does not: reading blocks
(``soliton.client``, ``soliton.export``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

Members = Mapping[str, Any]

SUCCEEDED: Final = "succeeded"
ALIAS_PREFIX: Final = "alias:"
NEEDS_OUTCOME: Final = frozenset((16, 18))
"""Types whose payments are complete only with the outcome of the transaction."""
_GENESIS, _PAYMENT, _TRANSFER, _EXCHANGE, _MASS_TRANSFER = 1, 2, 4, 7, 11
_FIXED_PRICE_VERSION: Final = 3
_PRICE_DECIMALS: Final = 8

AddressOf = Callable[[str], str]
"""Returns the address of an alias, given by its name alone."""
DecimalsOf = Callable[[str | None], int]
"""Returns the decimals of an asset, or of the coin (``None``)."""


class Paid(NamedTuple):
    """A payment: amounts are in the smallest unit, ``asset`` is ``None`` for the coin.

    ``kind`` is ``genesis``, ``payment`` (type 2), ``transfer``, ``mass-transfer``, ``ethereum``,
    ``call`` (attached to a call), ``script`` (made by a dApp) or ``exchange``. ``attachment`` is
    in base58, ``position`` the place in a mass transfer.
    """

    sender: str | None
    recipient: str
    asset: str | None
    amount: int
    kind: str
    attachment: str | None = None
    position: int | None = None


def payments_in(members: Members, address_of: AddressOf) -> Iterator[Paid]:
    """Yield the payments of a transaction in the order of their execution; none if it was not
    executed. Raises ``LookupError`` for members that a transaction of its type has to have.
    """
    if members.get("applicationStatus", SUCCEEDED) != SUCCEEDED:
        return
    type_id, payload = members["type"], members.get("payload")
    sender = members.get("sender")
    if type_id in (_GENESIS, _PAYMENT):
        kind = "genesis" if type_id == _GENESIS else "payment"
        yield Paid(sender, members["recipient"], None, members["amount"], kind)
    elif type_id == _TRANSFER:
        to, memo = address_in(members["recipient"], address_of), members.get("attachment")
        yield Paid(sender, to, members["assetId"], members["amount"], "transfer", memo)
    elif type_id == _MASS_TRANSFER:
        asset, memo = members["assetId"], members.get("attachment")
        for at, each in enumerate(members["transfers"]):
            to = address_in(each["recipient"], address_of)
            yield Paid(sender, to, asset, each["amount"], "mass-transfer", memo, at)
    elif payload is not None and payload["type"] == "transfer":
        to = address_in(payload["recipient"], address_of)
        yield Paid(sender, to, payload["asset"], payload["amount"], "ethereum")
    else:
        called = members if payload is None else payload
        if "dApp" in called:
            yield from _paid_by_call(sender, called, address_of)


def _paid_by_call(sender: str | None, outermost: Members, address_of: AddressOf) -> Iterator[Paid]:
    """Yield the payments of a call, the script's transfers, and those of nested calls."""
    waiting = [(sender, outermost)]
    while waiting:
        caller, call = waiting.pop()
        d_app = address_in(call["dApp"], address_of)
        payments = call["payment"] if "payment" in call else call.get("payments")
        for each in payments or ():
            yield Paid(caller, d_app, each["assetId"], each["amount"], "call")
        changes = call.get("stateChanges") or {}
        for each in changes.get("transfers", ()):
            yield Paid(d_app, each["address"], each["asset"], each["amount"], "script")
        waiting += [(d_app, each) for each in reversed(changes.get("invokes", ()))]


def proceeds_in(members: Members, decimals_of: DecimalsOf) -> Iterator[Paid]:
    """Yield what the owners of the orders of an exchange receive, before the matcher's fees; none
    for other types. ``decimals_of`` is called for exchanges of version 3 only, whose price does not
    depend on the decimals of the assets.

    Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/diffs/
    ExchangeTransactionDiff.scala``.
    """
    if members["type"] != _EXCHANGE or members.get("applicationStatus", SUCCEEDED) != SUCCEEDED:
        return
    orders = members["order1"], members["order2"]
    buy, sell = orders if orders[0]["orderType"] == "buy" else orders[::-1]
    pair, amount = buy["assetPair"], members["amount"]
    asset, price_asset = pair["amountAsset"], pair["priceAsset"]
    scale = _PRICE_DECIMALS
    if members["version"] >= _FIXED_PRICE_VERSION:
        scale += decimals_of(asset) - decimals_of(price_asset)
    cost = amount * members["price"]
    cost = cost // 10**scale if scale >= 0 else cost * 10**-scale
    yield Paid(sell["sender"], buy["sender"], asset, amount, "exchange")
    yield Paid(buy["sender"], sell["sender"], price_asset, cost, "exchange")


def address_in(recipient: str, address_of: AddressOf) -> str:
    """Return the address of a recipient, which may be an alias."""
    if recipient.startswith(ALIAS_PREFIX):
        return address_of(recipient.rpartition(":")[2])
    return recipient
