"""Broadcasting transactions and waiting for their confirmation.

A fee or a timestamp that the library chose is corrected from the node's refusal: a node rejects a
fee that is too low, or a timestamp too far off, and says so; the transaction is then signed again
and resent, if that fee and that time are within limits. What a node may have accepted is never
resent before its status has been queried.

What lives here: both, as steps. What does not: transactions (``transaction``) and connections.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from soliton.client.amounts import Amount, units
from soliton.client.delivery import deliver
from soliton.client.errors import (
    ClockTooFar,
    FeeTooHigh,
    NodeBroken,
    NodeRefused,
    NotFound,
    OtherChain,
    ScriptFailed,
    StillWaiting,
    TransactionLost,
    refusal,
    script_refusal,
)
from soliton.client.records import (
    FINALIZED,
    SUCCEEDED,
    Confirmations,
    Mined,
    Status,
    Validation,
)
from soliton.client.routes.blocks import finalized_height
from soliton.client.routes.network import is_soliton, time
from soliton.client.routes.transactions import (
    least_fee,
    status,
    transaction,
    unconfirmed_transaction,
    validate,
)
from soliton.client.steps import (
    JSON,
    Answer,
    Core,
    Pause,
    Request,
    Steps,
    ask,
    check_same,
    decoded,
    query,
    refused,
    segment,
)
from soliton.client.transaction import Transaction, clock
from soliton.crypto import base58
from soliton.errors import InputError

MAX_RENEWALS: Final = 3
"""Limit on corrections: one of the timestamp, one of the fee for scripts, one for what they do."""
LONGEST_WAIT: Final = 60
FIRST_POLL: Final = 0.1
LAST_POLL: Final = 1.0
GONE_SECONDS: Final = 20.0
"""A transaction unknown to the node for this long is lost."""
_MARGIN: Final = 15.0
_IS_THERE: Final = "already in the state"
_MISTIMING: Final = 303
_INVOKE: Final = 16
_ETHEREUM: Final = 18
_LEAST: Final = re.compile(r"minimal value of ([0-9]{1,19}) ")
_OR: Final = re.compile(r" or ([0-9]{1,19}) ([1-9A-HJ-NP-Za-km-z]{32,44})")


def send(core: Core, sent: Transaction, max_fee: Amount | None = None) -> Steps[Transaction]:
    """Broadcast a transaction and return it as accepted, with corrected fee and timestamp."""
    _check_chain(core, sent)
    correction = _Correction(core, sent, max_fee)
    sent = yield from correction.before(sent)
    while True:
        try:
            yield from broadcast(core, sent)
        except NodeRefused as error:
            if not error.is_certain:
                # A corrected version would be a second transaction, and the first may arrive.
                raise
            renewed = yield from correction.after(sent, error)
            if renewed is None:
                raise
            sent = renewed
        else:
            return sent


def dry_run(
    core: Core, sent: Transaction, max_fee: Amount | None = None
) -> Steps[tuple[Transaction, Validation]]:
    """Validate a signed transaction as ``send`` would send it, with a corrected fee, and send
    nothing. Returns it with the node's verdict. Raises ``FeeTooHigh``, or ``NodeRefused`` if the
    node does not validate for everybody.
    """
    _check_chain(core, sent)
    correction = _Correction(core, sent, max_fee)
    sent = yield from correction.before(sent)
    while True:
        found = yield from validate(core, sent)
        if found.valid:
            return sent, found
        renewed = yield from correction.after(sent, NodeRefused(0, found.error or ""))
        if renewed is None:
            return sent, found
        sent = renewed


def _check_chain(core: Core, sent: Transaction) -> None:
    if core.chain_id is not None and sent.chain_id != core.chain_id:
        raise OtherChain(f"a transaction of chain {sent.chain_id} for a node of {core.chain_id}")


class _Correction:
    """The corrections of one transaction. What the node says of a fee and of the time decides only
    within limits, and no more than ``MAX_RENEWALS`` other versions are signed.
    """

    def __init__(self, core: Core, sent: Transaction, max_fee: Amount | None) -> None:
        self._core = core
        if max_fee is not None:
            self._limit: int | None = units(max_fee, sent.fee_asset)
        elif sent.fee_asset is None and core.max_fee is not None:
            self._limit = core.max_fee
        else:
            self._limit = sent.max_fee
        self._left = MAX_RENEWALS
        self._may_set_time = True

    def before(self, sent: Transaction) -> Steps[Transaction]:
        """Correct what is known to be wrong before the transaction is sent."""
        core = self._core
        if not sent.can_be_renewed:
            return sent
        if core.clock_offset and "timestamp" in sent.chosen:
            stamp = core.clock.next(sent.timestamp + core.clock_offset)
            sent = sent.renewed(timestamp=stamp, is_choice=True)
        if sent.fee_asset is not None and "fee" in sent.chosen:
            fee = yield from self._asked_fee(sent)
            sent = sent.renewed(fee=self._checked_fee(sent, fee), is_choice=True)
        return sent

    def after(self, sent: Transaction, error: NodeRefused) -> Steps[Transaction | None]:
        """The corrected transaction, or ``None`` if the library may not correct it. Raises
        ``FeeTooHigh`` or ``ClockTooFar``.
        """
        if not sent.can_be_renewed or not self._left:
            return None
        self._left -= 1
        if error.code == _MISTIMING and "timestamp" in sent.chosen and self._may_set_time:
            self._may_set_time = False
            return sent.renewed(timestamp=(yield from self._node_time()), is_choice=True)
        if "fee" in sent.chosen and _LEAST.search(error.message):
            fee = _named_fee(sent, error.message)
            if fee is None:
                fee = yield from self._asked_fee(sent)
            if fee > sent.fee:
                return sent.renewed(fee=self._checked_fee(sent, fee), is_choice=True)
        return None

    def _node_time(self) -> Steps[int]:
        core = self._core
        now = yield from time(core)
        offset = now - clock.next()
        if abs(offset) > core.max_clock_offset:
            raise ClockTooFar(offset, core.max_clock_offset)
        core.clock_offset = offset
        return core.clock.next(now)

    def _asked_fee(self, sent: Transaction) -> Steps[int]:
        fee = yield from least_fee(self._core, sent)
        if fee.fee_asset_id != sent.fee_asset:
            raise NodeBroken("invalid response from the node: a fee in another asset")
        return fee.fee_amount

    def _checked_fee(self, sent: Transaction, fee: int) -> int:
        if self._limit is None or fee > self._limit:
            raise FeeTooHigh(fee, self._limit, sent.fee_asset)
        return fee


def _named_fee(sent: Transaction, message: str) -> int | None:
    """The fee that a refusal names, in the asset that the transaction pays with."""
    if sent.fee_asset is None:
        found = _LEAST.search(message)
        return None if found is None else int(found[1])
    other = _OR.search(message)
    return int(other[1]) if other is not None and other[2] == sent.fee_asset else None


def broadcast(core: Core, sent: Transaction | Mapping[str, Any]) -> Steps[str]:
    """Broadcast a transaction, or the JSON object of one, unchanged, and return its id. Raises
    ``NodeRefused``, or ``OutcomeUnknown`` if it cannot be known whether it arrived.
    """
    if isinstance(sent, Transaction):
        fields, name = sent.to_json(), sent.id
    else:
        fields, name = dict(sent), str(sent.get("id") or "")
    is_ethereum = fields.get("type") == _ETHEREUM

    def read(answer: Answer) -> str:
        return _accepted(answer, name, is_ethereum=is_ethereum)

    def settle(refused: NodeRefused | None) -> Steps[str | None]:
        if not name:
            raise NodeBroken("a transaction without an id has no status")
        if refused is not None and _IS_THERE in refused.message:
            return name
        found = yield from _status(core, name)
        return None if found.status == "not_found" else name

    shown = name or "a transaction without an id"
    return deliver(core, _request_of(fields), shown, read, settle)


def _request_of(fields: Mapping[str, Any]) -> Request:
    """The request of a broadcast: Ethereum transactions go to the wallets' JSON-RPC endpoint."""
    path, body = "/transactions/broadcast", fields
    if fields.get("type") == _ETHEREUM:
        path, params = "/eth", [fields.get("bytes")]
        body = {"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": params}
    elif fields.get("type") == _INVOKE:
        path += query(trace=True)
    return Request("POST", path, msgspec.json.encode(body), JSON, repeatable=False)


def _accepted(answer: Answer, name: str, *, is_ethereum: bool) -> str:
    """The id in the response of a node that has accepted a transaction. Raises ``NodeRefused``, or
    ``NodeBroken`` for a response that comes from a proxy, or is about another transaction.
    """
    if answer.status != HTTPStatus.OK:
        raise refused(answer)
    fields = decoded(answer, dict[str, Any])
    error = fields.get("error") if is_ethereum else None
    if isinstance(error, dict):
        raise _ethereum_refusal(error)
    if name and fields.get("id", name) != name and not is_ethereum:
        raise NodeBroken("invalid response from the node: it is about another transaction")
    return name or _id_in(fields)


def _ethereum_refusal(error: dict[str, Any]) -> NodeRefused:
    data, message = error.get("data"), str(error.get("message", ""))
    if isinstance(data, dict) and type(data.get("error")) is int:
        return refusal(400, {"message": message, **data}, message)
    return refusal(400, {"error": error.get("code", 0), "message": message}, message)


def _id_in(fields: dict[str, Any]) -> str:
    if "result" not in fields:
        return str(fields["id"])
    try:
        return base58.encode(bytes.fromhex(str(fields["result"]).removeprefix("0x")))
    except ValueError as error:
        raise NodeBroken(f"invalid response from the node: {error}") from error


def _status(core: Core, name: str) -> Steps[Status]:
    """The status of a transaction; nodes of the oldest generation have no route for it."""
    try:
        return (yield from status(core, name))
    except NotFound:
        pass
    try:
        found = yield from transaction(core, name)
    except NotFound:
        try:
            yield from unconfirmed_transaction(core, name)
        except NotFound:
            return Status(name, "not_found")
        return Status(name, "unconfirmed")
    return Status(name, "confirmed", found.height, application_status=found.application_status)


def wait(
    core: Core, transaction_id: str, timeout: float = 60, confirmations: Confirmations = 0
) -> Steps[Mined]:
    """Wait until a transaction is in a block with ``confirmations`` blocks above it, or, with
    ``confirmations="finalized"``, in a final block (``finalized_height``). ``timeout`` is in
    seconds: a block is final two blocks later at best, and 100 where the network has no finality.

    Raises ``ScriptFailed`` if its script has failed in the block, ``TransactionLost`` if the node
    has dropped it, ``StillWaiting`` at the timeout.
    """
    check_confirmations(confirmations)
    ends = core.now() + timeout
    waits = yield from is_soliton(core)
    pause, missing_since = FIRST_POLL, None
    while True:
        left = ends - core.now()
        seconds = min(int(left), LONGEST_WAIT)
        if waits and seconds >= 1:
            path = f"/transactions/wait/{segment(transaction_id)}" + query(
                timeout=seconds, confirmations=confirmations or None
            )
            found = yield from ask(core, Request("GET", path, seconds=seconds + _MARGIN), Status)
            check_same("a transaction", found.id, transaction_id)
        elif confirmations == FINALIZED:
            # In this order: what is final stays where it is.
            final = yield from finalized_height(core)
            found = yield from _status(core, transaction_id)
            is_final = found.height is not None and found.height <= final
            found = msgspec.structs.replace(found, finalized=is_final)
        else:
            found = yield from _status(core, transaction_id)
        if found.status == "confirmed" and _is_enough(found, confirmations):
            return (yield from _mined(core, found))
        if found.status == "not_found":
            if found.reason is not None:
                raise TransactionLost(transaction_id, found.reason)
            missing_since = core.now() if missing_since is None else missing_since
            if core.now() - missing_since > GONE_SECONDS:
                raise TransactionLost(transaction_id)
        else:
            missing_since = None
        left = ends - core.now()
        if left <= 0:
            raise StillWaiting(f"{transaction_id} is {found.status} after {timeout} s")
        if not waits or seconds < 1 or found.status == "not_found":
            yield Pause(min(pause, left))
            pause = min(2 * pause, LAST_POLL)


def check_confirmations(confirmations: object) -> None:
    """Raise ``InputError`` unless it is a number from 0 on or ``"finalized"``."""
    if confirmations == FINALIZED:
        return
    if not isinstance(confirmations, int) or confirmations < 0:
        raise InputError(f"confirmations: {confirmations!r} is no number from 0 on, or 'finalized'")


def _is_enough(found: Status, confirmations: Confirmations) -> bool:
    if isinstance(confirmations, int):
        return (found.confirmations or 0) >= confirmations
    return found.finalized is True


def _mined(core: Core, found: Status) -> Steps[Mined]:
    if found.application_status not in (None, SUCCEEDED):
        # A transaction in a block was not necessarily executed: it may have failed, or be elided.
        info = yield from transaction(core, found.id)
        failure = (info.state_changes or {}).get("error") or {}
        code = failure.get("code")
        error = script_refusal(
            code if type(code) is int else 0,
            str(failure.get("text") or f"the transaction is {found.application_status}"),
            status=200,
            details=info.json,
            kind=ScriptFailed,
        )
        assert isinstance(error, ScriptFailed)
        error.id = found.id
        raise error
    if found.height is None:
        raise NodeBroken("invalid response from the node: a confirmed transaction without a height")
    return Mined(
        id=found.id,
        height=found.height,
        confirmations=found.confirmations or 0,
        application_status=found.application_status or SUCCEEDED,
        spent_complexity=found.spent_complexity,
    )
