"""Routes under ``/devnet``, which only a private chain has: blocks, time, snapshots and state by
hand.

They want no API key: a devnet's is known to everybody. What lives here: arguments and answers. What
does not: what the calls do (``soliton.controls``), chains that no control reaches.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.lookup import address_argument, node_of, transaction_id
from soliton.api.rest import examples, recording
from soliton.api.rest.broadcasting import claimed_transaction
from soliton.api.route_table import json_body, row, table
from soliton.api.routes import Route
from soliton.api.translate import refusal
from soliton.chain.json_schemas import list_of, shape
from soliton.chain.transactions.model import AnyTransaction
from soliton.controls.clock import ClockState
from soliton.controls.control import ChainState, Controls
from soliton.controls.dump import dump, load
from soliton.controls.errors import ControlRefused
from soliton.controls.mining import MiningMode
from soliton.controls.reorganizing import MAX_REORG, Reorganized
from soliton.controls.snapshots import Taken
from soliton.crypto import base58
from soliton.errors import InputError, InvariantBroken
from soliton.ledger.editing import MAX_EDITS
from soliton.ledger.edits import Edit
from soliton.ride.recording import Recording
from soliton.storage.patience import once_from_here
from soliton.web.answers import Whole

TAG: Final = "devnet"
_MS: Final = 1_000
_MAX_HEX: Final = 18
_GZIP: Final = b"application/gzip"


class Tip(msgspec.Struct, frozen=True):
    """The last block."""

    height: int
    id: str
    timestamp: int


class ChainTime(msgspec.Struct, frozen=True):
    """What time it is on the chain, and how the clock goes."""

    time: int
    clock: ClockState


class Answered(msgspec.Struct, frozen=True):
    """Whether there was something to do."""

    done: bool


class Working(msgspec.Struct, frozen=True):
    """Whether something works."""

    working: bool


class Dropped(msgspec.Struct, frozen=True):
    """The transactions that have left the pool."""

    dropped: list[str]


class Loaded(msgspec.Struct, frozen=True):
    """The last block of the chain that was loaded."""

    height: int
    id: str


def controls_of(request: Request) -> Controls:
    """What the private chain is told by; what it is told is done once."""
    once_from_here()
    return _controls(request)


def _controls(request: Request) -> Controls:
    controls = request.context.controls
    if controls is None:
        raise InvariantBroken("a route of a devnet is served without one")
    return controls


def _tip(controls: Controls) -> Tip:
    block = controls.chain.last_block
    return Tip(controls.chain.height, base58.encode(block.id), block.header.timestamp)


def _told(request: Request, error: InputError) -> errors.ApiError:
    """What is wrong with a call: in words, or as the rules of the chain say it."""
    if isinstance(error, ControlRefused):
        return errors.invalid_request(str(error))
    return refusal(error, node_of(request).network.family)


def state(request: Request) -> ChainState:
    """Where the chain stands, and what was done to it."""
    return controls_of(request).state()


async def mine(request: Request) -> Tip:
    """Make blocks."""
    controls = controls_of(request)
    count = request.arguments.get("blocks", 1)
    interval = request.arguments.get("interval", 0)
    assert isinstance(count, int) and isinstance(interval, int)
    try:
        for _ in controls.mining_steps(count, interval):
            await asyncio.sleep(0)
    except InputError as error:
        raise _told(request, error) from error
    return _tip(controls)


def mining(request: Request) -> MiningMode:
    """Change when blocks are made."""
    every = request.arguments.get("every", 0)
    assert isinstance(every, int)
    try:
        return controls_of(request).set_mining(request.text("mode"), every / _MS)
    except InputError as error:
        raise _told(request, error) from error


def maker(request: Request) -> Working:
    """Let the market maker work, or rest."""
    is_on = request.arguments["on"] is True
    try:
        controls_of(request).switch_maker(is_on=is_on)
    except InputError as error:
        raise _told(request, error) from error
    return Working(is_on)


def clock(request: Request) -> ChainTime:
    """What time it is."""
    controls = controls_of(request)
    return ChainTime(controls.clock(), controls.clock.state)


def set_clock(request: Request) -> ChainTime:
    """Set, move, stop or start the clock."""
    controls, given = controls_of(request), request.arguments
    if len(given) != 1:
        raise errors.invalid_request("one of: travel, set, nextBlock, frozen")
    ((name, value),) = given.items()
    assert isinstance(value, int)
    try:
        match name:
            case "travel":
                controls.travel(value)
            case "set":
                controls.set_time(value)
            case "nextBlock":
                controls.set_next_block_time(value)
            case _:
                controls.freeze(frozen=bool(value))
    except InputError as error:
        raise _told(request, error) from error
    return clock(request)


def snapshot(request: Request) -> Taken:
    """Remember everything."""
    controls = controls_of(request)
    try:
        return controls.snapshots.shown(controls.snapshot())
    except InputError as error:
        raise _told(request, error) from error


def revert(request: Request) -> Answered:
    """Be again as at a snapshot."""
    number = snapshot_number(request.text("id"))
    try:
        return Answered(number is not None and controls_of(request).revert(number))
    except InputError as error:
        raise _told(request, error) from error


def forget(request: Request) -> Answered:
    """Let go of a snapshot."""
    number = snapshot_number(request.text("id"))
    return Answered(number is not None and controls_of(request).snapshots.forget(number))


def snapshot_number(text: str) -> int | None:
    """The number of a snapshot from its id."""
    try:
        return int(text, 16) if len(text) <= _MAX_HEX else None
    except ValueError:
        return None


def reorganize(request: Request) -> Reorganized:
    """Replace the last blocks by others."""
    body, node = request.json(), node_of(request)
    chosen = body.get("transactions", [])
    depth, keep = body.get("depth"), body.get("keep", True)
    is_list = isinstance(chosen, list) and all(isinstance(each, list) for each in chosen)
    if not is_list or not isinstance(keep, bool) or type(depth) is not int:
        raise errors.invalid_request(
            "`depth` is a number, `transactions` lists of transactions, `keep` true or false"
        )
    assert isinstance(chosen, list)
    read: list[list[AnyTransaction]] = []
    for each in chosen:
        if not all(isinstance(one, dict) for one in each):
            raise errors.invalid_request("a transaction is an object")
        read.append([claimed_transaction(one, node) for one in each])
    try:
        return controls_of(request).reorganize(depth, read, keep=keep)
    except InputError as error:
        raise _told(request, error) from error


def impersonate(request: Request) -> Answered:
    """Ask for no proofs of an account."""
    controls, address = controls_of(request), address_argument(request)
    new = address not in controls.chain.waived
    try:
        controls.impersonate(address)
    except InputError as error:
        raise _told(request, error) from error
    return Answered(new)


def stop_impersonating(request: Request) -> Answered:
    """Ask for its proofs again."""
    return Answered(controls_of(request).stop_impersonating(address_argument(request)))


def edit(request: Request) -> Tip:
    """Change the state."""
    controls = _controls(request)
    try:
        edits = msgspec.convert(request.json().get("edits"), list[Edit])
    except msgspec.ValidationError as error:
        raise errors.invalid_request(f"edits: {error}") from error
    try:
        controls.edit(edits)
    except InputError as error:
        raise _told(request, error) from error
    return _tip(controls)


def drop(request: Request) -> Dropped:
    """Take transactions out of the pool."""
    node = node_of(request)
    texts = request.query.get("id")
    ids = None if texts is None else {transaction_id(text, node) for text in texts}
    return Dropped([base58.encode(each) for each in controls_of(request).drop(ids)])


def reset(request: Request) -> Tip:
    """Begin anew."""
    controls = controls_of(request)
    controls.reset()
    return _tip(controls)


def dumped(request: Request) -> Whole:
    """The whole chain as a file."""
    try:
        return Whole(dump(controls_of(request)), _GZIP)
    except InputError as error:
        raise _told(request, error) from error


def loaded(request: Request) -> Loaded:
    """Be the chain of a file."""
    try:
        head = load(controls_of(request), request.body)
    except InputError as error:
        raise _told(request, error) from error
    return Loaded(head.height, head.block)


def record(request: Request) -> Recording:
    """What a transaction's scripts do, step by step."""
    return recording.record(request, _controls(request))


def remember_source(request: Request) -> Answered:
    """Keep a source, so that faults have its lines."""
    controls_of(request)
    return Answered(recording.remember(request))


_TIP: Final = {"height": 3, "id": examples.BLOCK_ID, "timestamp": 1795174397440}
_TIME: Final[dict[str, Any]] = {
    "time": 1795174397440,
    "clock": {"offset": 3_600_000},
}
_TAKEN: Final = {
    "id": "0x1",
    "height": 3,
    "block": examples.BLOCK_ID,
    "time": 1795174397440,
}
_MODE: Final = {"mode": "instant", "seconds": 10.0}
_STATE: Final = {
    "instance": "8d0c6b1cbd7c3d1f",
    "resets": 0,
    "height": 3,
    "time": 1795174397440,
    "clock": {},
    "mining": _MODE,
    "impersonated": [],
    "snapshots": [_TAKEN],
    "changedByHand": None,
    "matcher": "http://127.0.0.1:6886",
    "fork": None,
    "marketMaker": None,
}
_REORGANIZED: Final = {
    "height": 3,
    "removed": [examples.BLOCK_ID],
    "added": ["8Lw7gJgbAcBWoxXUX6MKPdqUhFLhF1xU6sXMWnvTGy3p"],
    "waiting": [],
}
_EDIT: Final = {"kind": "balance", "address": examples.ADDRESS, "amount": 10**8}
_ERRORS: Final = "CUSTOM_VALIDATION_ERROR"

ROUTES: Final = table(TAG, f"""
blocks | natural | How many, by default 1 | 10
interval | natural_long | Milliseconds between them, by default what the clock says | 1000
mode | text! | `instant`, `interval` or `manual` | instant
every | natural_long | Milliseconds: between blocks, or without a transaction | 10000
travel | natural_long | Milliseconds that pass at once | 3600000
set | natural_long | The time that it is now, in milliseconds since 1970 | 1895174397440
nextBlock | natural_long | The time of the next block, from which on time goes on | 1895174397440
on | boolean! | Whether it works | false
frozen | boolean | Let the clock stand still, or go on | true
id.taken | text | Id of a snapshot | 0x1
id.pool | text* | Ids of transactions in base58; without any, all | {examples.TRANSACTION_ID}
""",
    row("GET /devnet", state, "Where the chain stands, its snapshots, and what was done to it",
        ChainState, _STATE),
    row("POST /devnet/mine?blocks&interval", mine,
        "Make blocks; the first one takes what is in the pool", Tip, _TIP, _ERRORS),
    row("POST /devnet/mining?mode&every", mining, "Change when blocks are made", MiningMode,
        _MODE, _ERRORS),
    row("POST /devnet/maker?on", maker,
        "Let the market maker of the scenario work, or rest; what is in the books stays", Working,
        {"working": False}, _ERRORS),
    row("GET /devnet/clock", clock, "What time it is on the chain", ChainTime, _TIME),
    row("POST /devnet/clock?travel&set&nextBlock&frozen", set_clock,
        "Move, set, stop or start the clock: one of them", ChainTime, _TIME, _ERRORS),
    row("POST /devnet/snapshots", snapshot,
        "Remember everything: blocks, state, pool, clock, mining", Taken, _TAKEN, _ERRORS),
    row("POST /devnet/snapshots/{id.taken}/revert", revert,
        "Be again as at a snapshot, backward or forward, as often as wanted; false for one that "
        "nobody knows", Answered, {"done": True}, _ERRORS),
    row("DELETE /devnet/snapshots/{id.taken}", forget, "Let go of a snapshot", Answered,
        {"done": True}),
    row("POST /devnet/reorg", reorganize,
        "Replace the last blocks by as many others, which hold chosen transactions", Reorganized,
        _REORGANIZED, _ERRORS,
        body=json_body(
            f"How many blocks, at most {MAX_REORG}; signed transactions for each of the new ones, "
            "the lowest first; and whether those of the old ones wait again, which they do",
            {"depth": 1, "transactions": [[]], "keep": True},
            shape("depth: integer, transactions?, keep?: boolean",
                transactions=list_of(list_of({"type": "object"}))))),
    row("POST /devnet/impersonated/{address}", impersonate,
        "Ask for no proofs of an account from now on", Answered, {"done": True},
        "INVALID_ADDRESS"),
    row("DELETE /devnet/impersonated/{address}", stop_impersonating,
        "Ask for its proofs again", Answered, {"done": True}, "INVALID_ADDRESS"),
    row("POST /devnet/edits", edit,
        "Change balances, data, scripts, aliases and leases by hand, with a block of its own", Tip,
        _TIP, f"{_ERRORS} INVALID_ADDRESS",
        body=json_body(f"At most {MAX_EDITS} changes, in their order", {"edits": [_EDIT]},
            shape("edits: object[]"))),
    row("POST /devnet/drop?id.pool", drop, "Take transactions out of the pool", Dropped,
        {"dropped": [examples.TRANSACTION_ID]}, "INVALID_TRANSACTION_ID"),
    row("POST /devnet/reset", reset,
        "Begin anew, as the devnet did; snapshots are forgotten", Tip, _TIP),
    row("POST /devnet/record", record,
        "What the scripts of a transaction do, step by step, in terms of their sources; of one of "
        "the past on the chain as it was", recording.SCHEMA, recording.EXAMPLE,
        f"{_ERRORS} INVALID_TRANSACTION_ID INVALID_ADDRESS UNSUPPORTED_TRANSACTION_TYPE WRONG_JSON "
        "WRONG_JSON_DATA", body=recording.BODY),
    row("POST /devnet/sources", remember_source,
        "Keep the source of a script, so that its faults and steps have the lines of it; false for "
        "a source of something else", Answered, {"done": True}, f"{_ERRORS} WRONG_JSON",
        body=recording.SOURCE_BODY),
    row("GET /devnet/state", dumped, "The whole chain as a file, for another devnet to load",
        {"type": "string", "format": "binary"}, "", content_type="application/gzip"),
    row("POST /devnet/state", loaded,
        "Be the chain of such a file, which is the body; on an error nothing has changed", Loaded,
        {"height": 3, "id": examples.BLOCK_ID}, _ERRORS),
)  # fmt: skip


def refused(reason: str) -> tuple[Route, ...]:
    """Routes that say for each path why it does nothing here; they are in no document."""

    def refuse(_request: Request) -> object:
        raise errors.NO_CONTROLS.error(reason=reason)

    return tuple(
        replace(
            each,
            handler=refuse,
            # Whatever is sent, the answer is the same.
            parameters=tuple(one for one in each.parameters if f"{{{one.name}}}" in each.path),
            body=None,
            errors=(errors.NO_CONTROLS,),
            documented=False,
        )
        for each in ROUTES
    )
