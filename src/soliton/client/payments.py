"""Payments on the chain as they come, and their loss by forks.

Blocks are read from a node, Soliton's or the reference's, in order and once each. A cursor names
the place after a payment, with the ids of some earlier blocks: a client that resumes on another
fork finds the last block that it has in common with it.

What lives here: payments, cursors, and reading blocks, as steps. What does not: the shapes of
payments (``soliton.chain.payments``), connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from soliton.chain.payments import NEEDS_OUTCOME, Paid, payments_in, proceeds_in
from soliton.chain.values import MAX_I64
from soliton.client.amounts import COIN_DECIMALS
from soliton.client.errors import NodeBroken, NodeTimeout, NodeUnreachable, NotFound
from soliton.client.making import Whom
from soliton.client.records import FINALIZED, Confirmations
from soliton.client.routes.accounts import address_by_alias
from soliton.client.routes.assets import asset
from soliton.client.routes.blocks import BLOCKS_PAGE, finalized_height, height
from soliton.client.routes.network import is_soliton
from soliton.client.sending import check_confirmations
from soliton.client.steps import (
    FIRST_PAUSE,
    MAX_PAUSE,
    Core,
    Pause,
    Request,
    Steps,
    call,
    get,
    post,
)
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.errors import InputError

Json = dict[str, Any]

MAX_TRANSACTIONS: Final = 10_000
"""Transactions of blocks that are requested together, unless one block has more."""
INFO_PAGE: Final = 100
"""Transactions whose outcome is requested together."""
POLL_SECONDS: Final = 1.0
WAIT_SECONDS: Final = 20
_MARGIN: Final = 15.0
MAX_ALIASES: Final = 100_000
"""Limit on the aliases that are remembered; an alias never changes."""
STEPS_BACK: Final = (1, 2, 4, 8, 16, 32, 64, 100)
"""Distances of the earlier blocks that a cursor names."""
MAX_CURSOR_CHARS: Final = 1_000
_NAME_CHARS: Final = 12
"""Characters of a block's id in a cursor."""
_CURSOR_PARTS: Final = 5
MAX_BROKEN: Final = 5
"""Limit on wrong answers in a row."""
_MAX_DIGITS: Final = 10


class Payment(msgspec.Struct, frozen=True, kw_only=True):
    """A payment in a block. ``amount`` is in the smallest unit of ``asset`` (``None``: the coin).

    ``kind`` is ``transfer``, ``mass-transfer``, ``call`` (attached to a call of the recipient's
    dApp), ``script`` (a transfer by a dApp), ``ethereum``, ``exchange`` (proceeds of an order,
    before the matcher's fee), ``payment`` or ``genesis``. Pass it, or its ``cursor``, as ``after``
    to resume after it.
    """

    kind: str
    amount: int
    asset: str | None
    sender: str | None
    recipient: str
    id: str
    """The transaction's id: one transaction may contain many payments."""
    type: int
    height: int
    block: str
    timestamp: int
    """The transaction's, in milliseconds."""
    attachment: bytes = b""
    position: int | None = None
    """The place in a mass transfer."""
    cursor: str


class PaymentsUndone(msgspec.Struct, frozen=True, kw_only=True):
    """A fork has replaced blocks: no payment above ``height`` counts any more. Those that are in
    the new blocks come again.
    """

    height: int
    cursor: str


PaymentEvent: TypeAlias = Payment | PaymentsUndone


class _Place(NamedTuple):
    """The place in a block after ``part`` payments of the transaction at ``offset``; -1 stands for
    the end of the block.
    """

    height: int
    offset: int = -1
    part: int = 0

    @property
    def is_in_block(self) -> bool:
        """Whether the rest of the block is still to be read."""
        return self.offset >= 0


class _ChainMoved(Exception):
    """The chain has changed while it was read."""


class PaymentStream:
    """The state of a stream of payments over any number of requests."""

    def __init__(
        self,
        to: Whom | Iterable[Whom] | None = None,
        *,
        confirmations: Confirmations = 1,
        after: str | PaymentEvent | None = None,
        since: int | None = None,
        exchanges: bool = False,
    ) -> None:
        check_confirmations(confirmations)
        if confirmations == 0:
            raise InputError(
                "confirmations is a number from 1 on, or 'finalized': the last block still grows"
            )
        if after is not None and since is not None:
            raise InputError("after names a place, so that since has no meaning")
        self._to = None if to is None else frozenset(map(_address, _accounts(to)))
        self._confirmations = confirmations
        self._exchanges = exchanges
        self._since = since
        self._place: _Place | None = None
        self._has_looked_back = False
        self._ids: dict[int, str] = {}
        self._aliases: dict[str, str] = {}
        self._decimals: dict[str, int] = {}
        self._pause, self._broken = FIRST_PAUSE, 0
        if after is not None:
            cursor = after if isinstance(after, str) else after.cursor
            self._place, self._ids = _read_cursor(cursor)

    def batch(self, core: Core) -> Steps[list[PaymentEvent]]:
        """Return the next events: none if there are none yet, after a pause. A node that does not
        answer is asked again; one whose answers are wrong ``MAX_BROKEN`` times in a row raises
        ``NodeBroken``.
        """
        try:
            found = yield from self._checked(core)
        except _ChainMoved:
            yield Pause(FIRST_PAUSE)
            return []
        except (NodeUnreachable, NodeTimeout, NodeBroken) as error:
            self._broken += isinstance(error, NodeBroken)
            if self._broken > MAX_BROKEN:
                raise
            pause, self._pause = self._pause, min(2 * self._pause, MAX_PAUSE)
            yield Pause(pause)
            return []
        self._pause, self._broken = FIRST_PAUSE, 0
        return found

    def _checked(self, core: Core) -> Steps[list[PaymentEvent]]:
        try:
            return (yield from self._batch(core))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise NodeBroken(f"invalid response from the node: {error!r:.200}") from error

    def _batch(self, core: Core) -> Steps[list[PaymentEvent]]:
        top = yield from height(core)
        if self._confirmations == FINALIZED:
            last = min(top, (yield from finalized_height(core)))
        else:
            assert isinstance(self._confirmations, int)
            last = top - self._confirmations
        if self._place is None:
            first = last + 1 if self._since is None else self._since
            self._place = _Place(max(first, 1) - 1)
        undone = yield from self._go_back(core, top)
        place = self._place
        if undone is not None or not self._has_looked_back:
            yield from self._look_back(core, min(place.height, top))
            self._has_looked_back = True
        if undone is not None:
            return [msgspec.structs.replace(undone, cursor=self._cursor(place))]
        # A block of which a part was reported is read again.
        first = place.height if place.is_in_block else place.height + 1
        if first > last:
            yield from self._wait(core, top)
            return []
        return (yield from self._read(core, first, last))

    def _look_back(self, core: Core, at: int) -> Steps[None]:
        """Remember the ids of a block and of those below, for cursors."""
        if at >= 1:
            path = f"/blocks/headers/seq/{max(1, at - BLOCKS_PAGE + 1)}/{at}"
            for header in (yield from get(core, path, list[Json])):
                self._ids[header["height"]] = _id_of(header)

    def _wait(self, core: Core, top: int) -> Steps[None]:
        """Wait for a block above the last one, for a while."""
        if not (yield from is_soliton(core)):
            yield Pause(POLL_SECONDS)
            return
        path = f"/blocks/wait/{top + 1}?timeout={WAIT_SECONDS}"
        answer = yield from call(core, Request("GET", path, seconds=WAIT_SECONDS + _MARGIN))
        if answer.status not in (200, 404):
            yield Pause(POLL_SECONDS)

    # --- forks ------------------------------------------------------------------------------------

    def _go_back(self, core: Core, top: int) -> Steps[PaymentsUndone | None]:
        """Return to the last block that the chain still has; raises ``InputError``."""
        place = self._place
        assert place is not None
        known = self._ids.get(place.height)
        if known is None or place.height > top:
            # Nothing was read, or the node is behind.
            return None
        if (yield from self._is_there(core, place.height, known)):
            return None
        for at in sorted(self._ids, reverse=True):
            if at < place.height and (yield from self._is_there(core, at, self._ids[at])):
                break
        else:
            raise InputError("the cursor belongs to no block of this chain, nor do those below it")
        self._ids = {each: name for each, name in self._ids.items() if each <= at}
        self._place = _Place(at)
        return PaymentsUndone(height=at, cursor=self._cursor(self._place))

    def _is_there(self, core: Core, at: int, name: str) -> Steps[bool]:
        try:
            header = yield from get(core, f"/blocks/headers/at/{at}", Json)
        except NotFound:
            return False
        return _id_of(header).startswith(name)

    def _cursor(self, place: _Place) -> str:
        """The text of a place: height, part, and beginnings of the ids of blocks."""
        name = self._ids.get(place.height, "")[:_NAME_CHARS]
        tail = _tail(self._ids, place.height)
        return f"{place.height}.{place.offset}.{place.part}.{name}.{tail}"

    # --- blocks -----------------------------------------------------------------------------------

    def _read(self, core: Core, first: int, last: int) -> Steps[list[PaymentEvent]]:
        last = min(last, first + BLOCKS_PAGE - 1)
        headers = yield from get(core, f"/blocks/headers/seq/{first}/{last}", list[Json])
        count = chosen = 0
        for header in headers:
            count += header["transactionCount"]
            if chosen and count > MAX_TRANSACTIONS:
                break
            chosen += 1
        if not chosen:
            raise _ChainMoved
        path = f"/blocks/seq/{first}/{first + chosen - 1}"
        blocks = yield from get(core, path, list[Json])
        found: list[PaymentEvent] = []
        ids = dict(self._ids)
        below = ids.get(first - 1)
        for expected, block in enumerate(blocks, first):
            if block["height"] != expected:
                raise NodeBroken("invalid response from the node: it is about another block")
            if below is not None and not str(block["reference"]).startswith(below):
                raise _ChainMoved
            below = _id_of(block)
            known = ids.get(expected)
            if known is not None and not below.startswith(known):
                raise _ChainMoved
            ids[expected] = below
            found += yield from self._payments(core, block, ids)
        if found:
            # What was read of transactions apart from their blocks may be of another fork.
            at = blocks[-1]["height"]
            if not (yield from self._is_there(core, at, _id_of(blocks[-1]))):
                raise _ChainMoved
        if blocks:
            self._place = _Place(blocks[-1]["height"])
            oldest = self._place.height - max(STEPS_BACK) - BLOCKS_PAGE
            self._ids = {at: name for at, name in ids.items() if at > oldest}
        return found

    def _payments(
        self, core: Core, block: Json, ids: Mapping[int, str]
    ) -> Steps[list[PaymentEvent]]:
        at, transactions = block["height"], block["transactions"]
        name = ids[at]
        partial = [each["id"] for each in transactions if each["type"] in NEEDS_OUTCOME]
        complete = yield from _outcomes(core, partial)
        place = self._place
        is_begun = place is not None and place.height == at and place.is_in_block
        reported = place[1:] if place is not None and is_begun else (-1, 0)
        tail = _tail(ids, at)
        found: list[PaymentEvent] = []
        for index, each in enumerate(transactions):
            members = complete.get(each["id"], each)
            for part, paid in enumerate((yield from self._paid(core, members)), 1):
                if (index, part) <= reported or not self._wants(paid):
                    continue
                cursor = f"{at}.{index}.{part}.{name[:_NAME_CHARS]}.{tail}"
                found.append(_payment(paid, members, at, name, cursor))
        return found

    def _wants(self, paid: Paid) -> bool:
        return self._to is None or paid.recipient in self._to

    def _paid(self, core: Core, members: Json) -> Steps[list[Paid]]:
        """The payments of a transaction; aliases and decimals are requested where needed."""
        while True:
            try:
                found = list(payments_in(members, self._address_of))
                if self._exchanges:
                    found += proceeds_in(members, self._decimals_of)
            except _UnknownAlias as unknown:
                if len(self._aliases) >= MAX_ALIASES:
                    self._aliases.clear()
                self._aliases[unknown.name] = yield from address_by_alias(core, unknown.name)
            except _UnknownAsset as unknown_asset:
                details = yield from asset(core, unknown_asset.name)
                self._decimals[unknown_asset.name] = details.decimals
            else:
                return found

    def _address_of(self, alias: str) -> str:
        address = self._aliases.get(alias)
        if address is None:
            raise _UnknownAlias(alias)
        return address

    def _decimals_of(self, name: str | None) -> int:
        if name is None:
            return COIN_DECIMALS
        decimals = self._decimals.get(name)
        if decimals is None:
            raise _UnknownAsset(name)
        return decimals


class _Unknown(Exception):
    """Something has to be requested first."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _UnknownAlias(_Unknown):
    """The address of an alias."""


class _UnknownAsset(_Unknown):
    """The decimals of an asset."""


def _outcomes(core: Core, ids: list[str]) -> Steps[dict[str, Json]]:
    """The transactions with these ids as the chain has executed them."""
    found: dict[str, Json] = {}
    for start in range(0, len(ids), INFO_PAGE):
        asked = ids[start : start + INFO_PAGE]
        try:
            rows = yield from post(core, "/transactions/info", {"ids": asked}, list[Json])
        except NotFound:
            raise _ChainMoved from None
        if [each.get("id") for each in rows] != asked:
            raise NodeBroken("invalid response from the node: it is about other transactions")
        found |= zip(asked, rows, strict=True)
    return found


def _payment(paid: Paid, members: Json, at: int, name: str, cursor: str) -> Payment:
    amount = paid.amount
    if type(amount) is not int or not 0 <= amount <= MAX_I64:
        raise NodeBroken(f"invalid response from the node: {amount!r:.40} is not an amount")
    return Payment(
        kind=paid.kind,
        amount=amount,
        asset=paid.asset,
        sender=paid.sender,
        recipient=paid.recipient,
        id=members["id"],
        type=members["type"],
        height=at,
        block=name,
        timestamp=members["timestamp"],
        attachment=_attachment(paid.attachment),
        position=paid.position,
        cursor=cursor,
    )


def _attachment(text: object) -> bytes:
    if not isinstance(text, str):
        return b""
    try:
        return base58.decode(text)
    except Base58Error as error:
        raise NodeBroken(f"invalid response from the node: {error}") from error


def _tail(ids: Mapping[int, str], at: int) -> str:
    """The beginnings of the ids of earlier blocks, down to the first, as far as they are known."""
    return "-".join(ids.get(max(1, at - step), "")[:_NAME_CHARS] for step in STEPS_BACK)


def _id_of(block: Json) -> str:
    """The id of a block or header; nodes of the oldest generation have its signature only."""
    return str(block.get("id") or block["signature"])


def _accounts(to: Whom | Iterable[Whom]) -> Iterator[Whom]:
    if isinstance(to, str) or hasattr(to, "address"):
        yield to  # type: ignore[misc]
    else:
        yield from to


def _address(account: Whom) -> str:
    return account if isinstance(account, str) else account.address


def _read_cursor(text: str) -> tuple[_Place, dict[int, str]]:
    parts = text.split(".")
    names = parts[4].split("-") if len(parts) == _CURSOR_PARTS else []
    # The index of the end of a block is -1.
    numbers = [parts[0], *(each.removeprefix("-") for each in parts[1:3])]
    if (
        len(text) > MAX_CURSOR_CHARS
        or len(names) != len(STEPS_BACK)
        or not all(
            each.isascii() and each.isdecimal() and len(each) <= _MAX_DIGITS for each in numbers
        )
    ):
        raise InputError(f"{text[:80]!r} is no cursor of a payment")
    at, index, part = map(int, parts[:3])
    found = {at: parts[3], **{max(1, at - s): n for s, n in zip(STEPS_BACK, names, strict=True)}}
    return _Place(at, index, part), {each: name for each, name in found.items() if name}
