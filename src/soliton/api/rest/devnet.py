"""Routes under ``/devnet``, which only a private chain has: control of blocks, time, snapshots and
state.

They require no API key, because that of a devnet is public. What lives here: arguments and
responses. What does not: the controls (``soliton.controls``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import wraps
from string import hexdigits
from typing import Any, Final, TypeVar

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
from soliton.storage.retrying import disable_retry
from soliton.web.answers import Whole
from soliton.web.cors import MAX_ORIGIN_BYTES, is_page_here
from soliton.web.parameters import TEXT, Kind
from soliton.web.request import header_text

T = TypeVar("T")

TAG: Final = "devnet"
_MS: Final = 1_000
_MAX_HEX: Final = 16
_GZIP: Final = b"application/gzip"


class Tip(msgspec.Struct, frozen=True):
    """The last block."""

    height: int
    id: str
    timestamp: int


class ChainTime(msgspec.Struct, frozen=True):
    """The time of the chain in milliseconds, and the state of its clock."""

    time: int
    clock: ClockState


class Answered(msgspec.Struct, frozen=True):
    """Whether the call had an effect."""

    done: bool


class Working(msgspec.Struct, frozen=True):
    """Whether the market maker works."""

    working: bool


class Dropped(msgspec.Struct, frozen=True):
    """The transactions that have left the pool."""

    dropped: list[str]


class Loaded(msgspec.Struct, frozen=True):
    """The last block of the chain that was loaded."""

    height: int
    id: str


def controls_of(request: Request) -> Controls:
    """The controls of the private chain. From here on the request is not retried."""
    disable_retry()
    return _controls(request)


def _controls(request: Request) -> Controls:
    controls = request.context.controls
    if controls is None:
        raise InvariantBroken("a route of a devnet is served without one")
    check_page(request, controls)
    return controls


def check_page(request: Request, controls: Controls) -> None:
    """Refuse pages of foreign origins: the controls need no key, and any page could use them."""
    headers = request.headers
    origin = headers.get(b"origin")
    if not is_page_here(origin, headers.get(b"host", b""), controls.pages):
        shown = header_text((origin or b"")[:MAX_ORIGIN_BYTES])
        raise errors.FOREIGN_ORIGIN.error(origin=shown)


def _tip(controls: Controls) -> Tip:
    block = controls.chain.last_block
    return Tip(controls.chain.height, base58.encode(block.id), block.header.timestamp)


def _refusal(request: Request, error: InputError) -> errors.ApiError:
    """An error of a control, or of the chain's rules, as an error of the API."""
    if isinstance(error, ControlRefused):
        return errors.invalid_request(str(error))
    return refusal(error, node_of(request).network.family)


def _refusing(handler: Callable[[Request], T]) -> Callable[[Request], T]:
    """Translate the errors of a handler's controls."""

    @wraps(handler)
    def refusing(request: Request) -> T:
        try:
            return handler(request)
        except InputError as error:
            raise _refusal(request, error) from error

    return refusing


def state(request: Request) -> ChainState:
    """The state of the chain and of its controls."""
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
        raise _refusal(request, error) from error
    return _tip(controls)


@_refusing
def mining(request: Request) -> MiningMode:
    """Set the mining mode."""
    every = request.arguments.get("every", 0)
    assert isinstance(every, int)
    return controls_of(request).set_mining(request.text("mode"), every / _MS)


@_refusing
def maker(request: Request) -> Working:
    """Switch the market maker on or off."""
    is_on = request.arguments["on"] is True
    controls_of(request).switch_maker(is_on=is_on)
    return Working(is_on)


def clock(request: Request) -> ChainTime:
    """The time of the chain."""
    controls = controls_of(request)
    return ChainTime(controls.clock(), controls.clock.state)


@_refusing
def set_clock(request: Request) -> ChainTime:
    """Set, move, stop or start the clock."""
    controls, given = controls_of(request), request.arguments
    if len(given) != 1:
        raise errors.invalid_request("one of: travel, set, nextBlock, frozen")
    ((name, value),) = given.items()
    assert isinstance(value, int)
    match name:
        case "travel":
            controls.travel(value)
        case "set":
            controls.set_time(value)
        case "nextBlock":
            controls.set_next_block_time(value)
        case _:
            controls.freeze(frozen=bool(value))
    return clock(request)


@_refusing
def snapshot(request: Request) -> Taken:
    """Take a snapshot of the whole chain."""
    controls = controls_of(request)
    return controls.snapshots.shown(controls.snapshot())


@_refusing
def revert(request: Request) -> Answered:
    """Revert to a snapshot."""
    return Answered(controls_of(request).revert(_snapshot(request)))


def forget(request: Request) -> Answered:
    """Delete a snapshot."""
    return Answered(controls_of(request).snapshots.forget(_snapshot(request)))


def _snapshot(request: Request) -> int:
    number = request.arguments["id"]
    assert isinstance(number, int)
    return number


def snapshot_number(text: str) -> int | None:
    """The number of a snapshot in its id; ``None`` if the id is malformed."""
    digits = text.removeprefix("0x")
    if not 0 < len(digits) <= _MAX_HEX or not set(digits) <= set(hexdigits):
        return None
    return int(digits, 16)


def only_members(body: Mapping[str, object], *known: str) -> None:
    """Refuse members of a body that have no meaning."""
    for name in body:
        if name not in known:
            raise errors.invalid_request(f"no member is called {name!r}: {', '.join(known)}")


@_refusing
def reorganize(request: Request) -> Reorganized:
    """Replace the last blocks."""
    body, node = request.json(), node_of(request)
    only_members(body, "depth", "transactions", "keep")
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
    return controls_of(request).reorganize(depth, read, keep=keep)


@_refusing
def impersonate(request: Request) -> Answered:
    """Accept transactions of an account without proofs."""
    controls, address = controls_of(request), address_argument(request)
    new = address not in controls.chain.waived
    controls.impersonate(address)
    return Answered(new)


def stop_impersonating(request: Request) -> Answered:
    """Require the proofs of an account again."""
    return Answered(controls_of(request).stop_impersonating(address_argument(request)))


@_refusing
def edit(request: Request) -> Tip:
    """Edit the state."""
    controls = _controls(request)
    only_members(request.json(), "edits")
    try:
        edits = msgspec.convert(request.json().get("edits"), list[Edit])
    except msgspec.ValidationError as error:
        raise errors.invalid_request(f"edits: {error}") from error
    controls.edit(edits)
    return _tip(controls)


def drop(request: Request) -> Dropped:
    """Remove transactions from the pool."""
    node = node_of(request)
    texts = request.query.get("id")
    ids = None if texts is None else {transaction_id(text, node) for text in texts}
    return Dropped([base58.encode(each) for each in controls_of(request).drop(ids)])


def reset(request: Request) -> Tip:
    """Reset the chain to its initial state."""
    controls = controls_of(request)
    controls.reset()
    return _tip(controls)


@_refusing
def dumped(request: Request) -> Whole:
    """The whole chain as a file."""
    return Whole(dump(controls_of(request)), _GZIP)


@_refusing
def loaded(request: Request) -> Loaded:
    """Load the chain from a file."""
    head = load(controls_of(request), request.body)
    return Loaded(head.height, head.block)


def record(request: Request) -> Recording:
    """Record the steps of a transaction's scripts."""
    return recording.record(request, _controls(request))


def remember_source(request: Request) -> Answered:
    """Remember a source for line numbers in errors."""
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
_SNAPSHOT: Final = Kind("snapshot", {"type": "string"}, snapshot_number, "an id such as 0x1")

_ROWS: Final = table(TAG, f"""
blocks | natural | Number of blocks, by default 1 | 10
interval | natural_long | Milliseconds between their timestamps, by default as the clock | 1000
mode | text! | `instant`, `interval` or `manual` | instant
every | natural_long | Milliseconds: between blocks, or without a transaction | 10000
travel | natural_long | Milliseconds to move the clock forward | 3600000
set | natural_long | The current time, in milliseconds since 1970 | 1895174397440
nextBlock | natural_long | The time of the next block; the clock continues from it | 1895174397440
on | boolean! | Whether it works | false
frozen | boolean | Stop the clock, or start it again | true
id.taken | snapshot | Id of a snapshot | 0x1
id.pool | text* | Ids of transactions in base58; all if there is none | {examples.TRANSACTION_ID}
""",
    row("GET /devnet", state, "The state of the chain, its snapshots and its controls",
        ChainState, _STATE),
    row("POST /devnet/mine?blocks&interval", mine,
        "Make blocks; the first one contains the transactions of the pool", Tip, _TIP, _ERRORS),
    row("POST /devnet/mining?mode&every", mining, "Set the mining mode", MiningMode,
        _MODE, _ERRORS),
    row("POST /devnet/maker?on", maker,
        "Switch the market maker of the scenario on or off; its orders stay in the books", Working,
        {"working": False}, _ERRORS),
    row("GET /devnet/clock", clock, "The time of the chain", ChainTime, _TIME),
    row("POST /devnet/clock?travel&set&nextBlock&frozen", set_clock,
        "Move, set, stop or start the clock (exactly one of these)", ChainTime, _TIME, _ERRORS),
    row("POST /devnet/snapshots", snapshot,
        "Take a snapshot: blocks, state, pool, clock, mining", Taken, _TAKEN, _ERRORS),
    row("POST /devnet/snapshots/{id.taken}/revert", revert,
        "Revert to a snapshot, earlier or later, any number of times; false if there is no such "
        "snapshot", Answered, {"done": True}, _ERRORS),
    row("DELETE /devnet/snapshots/{id.taken}", forget, "Delete a snapshot", Answered,
        {"done": True}),
    row("POST /devnet/reorg", reorganize,
        "Replace the last blocks by as many others with chosen transactions", Reorganized,
        _REORGANIZED, _ERRORS,
        body=json_body(
            f"The number of blocks, at most {MAX_REORG}; signed transactions for each new block, "
            "the lowest first; whether those of the old blocks return to the pool (default true)",
            {"depth": 1, "transactions": [[]], "keep": True},
            shape("depth: integer, transactions?, keep?: boolean",
                transactions=list_of(list_of({"type": "object"}))))),
    row("POST /devnet/impersonated/{address}", impersonate,
        "Accept transactions of an account without proofs", Answered, {"done": True},
        "INVALID_ADDRESS"),
    row("DELETE /devnet/impersonated/{address}", stop_impersonating,
        "Require the proofs of an account again", Answered, {"done": True}, "INVALID_ADDRESS"),
    row("POST /devnet/edits", edit,
        "Edit balances, data, scripts, aliases and leases, in a block of its own", Tip,
        _TIP, f"{_ERRORS} INVALID_ADDRESS",
        body=json_body(f"At most {MAX_EDITS} edits, in order", {"edits": [_EDIT]},
            shape("edits: object[]"))),
    row("POST /devnet/drop?id.pool", drop, "Remove transactions from the pool", Dropped,
        {"dropped": [examples.TRANSACTION_ID]}, "INVALID_TRANSACTION_ID"),
    row("POST /devnet/reset", reset,
        "Reset the chain to its initial state; snapshots are deleted", Tip, _TIP),
    row("POST /devnet/record", record,
        "The steps of a transaction's scripts, with positions in their sources; a confirmed "
        "transaction is replayed on the state before it", recording.SCHEMA, recording.EXAMPLE,
        f"{_ERRORS} INVALID_TRANSACTION_ID INVALID_ADDRESS UNSUPPORTED_TRANSACTION_TYPE WRONG_JSON "
        "WRONG_JSON_DATA", body=recording.BODY),
    row("POST /devnet/sources", remember_source,
        "Remember the source of a script, for line numbers in its errors and steps; false if the "
        "source does not compile to the script", Answered, {"done": True}, f"{_ERRORS} WRONG_JSON",
        body=recording.SOURCE_BODY),
    row("GET /devnet/state", dumped, "The whole chain as a file, for another devnet to load",
        {"type": "string", "format": "binary"}, "", content_type="application/gzip"),
    row("POST /devnet/state", loaded,
        "Load the chain from such a file, which is the body; an error changes nothing", Loaded,
        {"height": 3, "id": examples.BLOCK_ID}, _ERRORS),
    kinds=(_SNAPSHOT,), own=True,
)  # fmt: skip

ROUTES: Final = tuple(
    msgspec.structs.replace(each, errors=(*each.errors, errors.FOREIGN_ORIGIN)) for each in _ROWS
)


def refused(reason: str) -> tuple[Route, ...]:
    """Undocumented routes that answer each path with the reason why there are no controls."""

    def refuse(_request: Request) -> object:
        raise errors.NO_CONTROLS.error(reason=reason)

    return tuple(
        msgspec.structs.replace(
            each,
            handler=refuse,
            # The answer does not depend on the query and the body, nor on a value in the path.
            parameters=tuple(
                msgspec.structs.replace(one, kind=TEXT)
                for one in each.parameters
                if f"{{{one.name}}}" in each.path
            ),
            body=None,
            errors=(errors.NO_CONTROLS,),
            documented=False,
            own=False,
        )
        for each in ROUTES
    )
