"""The routes of a signing service: one function for each request and its response.

What lives here: signing, approvals, keys, policy and the audit log, as steps. What does not:
connections, and accounts with a private key of their own (``account``).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from soliton.client.account import Account
from soliton.client.delivery import deliver, is_uncertain, nothing_to_ask
from soliton.client.errors import (
    ApprovalNeeded,
    ClientError,
    NodeBroken,
    NodeRefused,
    ScriptFailed,
    StillWaiting,
)
from soliton.client.order import Order
from soliton.client.records import SUCCEEDED, Confirmations
from soliton.client.routes.network import chain_id_in
from soliton.client.sending import check_confirmations
from soliton.client.steps import (
    JSON,
    Answer,
    Core,
    Pause,
    Request,
    Steps,
    call,
    decoded,
    key_headers,
    query,
    refused,
    segment,
)
from soliton.client.transaction import Transaction
from soliton.errors import InputError

T = TypeVar("T")
Json = dict[str, Any]
Signable = Transaction | Order | Mapping[str, Any]
"""A transaction or an order without proofs, or an item of the service's interface, such as
``{"auth": {"host": "a.example", "data": "once"}}``.
"""

POLL_SECONDS: Final = 1.0
WAIT_SECONDS: Final = 3_600.0
SENDING_SECONDS: Final = 60.0
_NEEDS_APPROVAL: Final = 202
_LATE_STATUS: Final = 504
_NOT_CONFIRMED: Final = 7034
_ID_TAKEN: Final = 7029
_WITHOUT_EFFECT: Final = frozenset((7012, 7022, 7027, 7032, 7035, 7037, 7038))
"""The service's errors of status 429 or 5xx that say that nothing was done."""


class Key(msgspec.Struct, frozen=True, rename="camel"):
    """A key of the service; ``unlocked_for`` is in seconds; ``stored`` tells whether an external
    store, such as an HSM, signs with it.
    """

    name: str
    address: str
    public_key: str
    locked: bool
    unlocked_for: int = 0
    stored: bool = False


class Pending(msgspec.Struct, frozen=True, rename="camel"):
    """A request that needs or needed approval: ``state`` is ``waiting``, ``signed``, ``refused`` or
    ``expired``. ``told`` has a sentence for each item, ``asked`` the items; ``asked_at`` and
    ``expires_in`` are in milliseconds. Sums, windows and the present decision of the policy are
    filled in only by ``pending`` of one id.
    """

    id: str = msgspec.field(name="pending")
    state: str
    caller: str = ""
    key: str = ""
    rule: str = ""
    told: list[str] = []
    ids: list[str] = []
    asked: list[Json] = []
    approved: list[str] = []
    approvers: list[str] = []
    needed: int = 0
    asked_at: int = 0
    expires_in: int = 0
    refused_by: str | None = None
    totals: list[Json] = []
    decided: list[Json] = []
    windows: list[Json] = []
    refusal: Json | None = None
    broadcast: Json | None = None
    signed: Any = None


class Caller(msgspec.Struct, frozen=True):
    """The caller and its permissions; ``rate`` is in requests per second, 0 for no limit."""

    name: str
    may: list[str]
    rate: int = 0


class _Keys(msgspec.Struct):
    keys: list[Key]


class _AllPending(msgspec.Struct):
    pending: list[Pending]


class _Simulated(msgspec.Struct):
    simulated: list[Json]


class _Signed(msgspec.Struct):
    signed: Any


class _Executed(msgspec.Struct, rename="camel"):
    id: str
    application_status: str


class _Confirmed(msgspec.Struct):
    confirmed: list[_Executed]


def _request(
    core: Core, method: str, path: str, body: object = None, seconds: float | None = None
) -> Request:
    headers = key_headers(core)
    data = b""
    if body is not None:
        data, headers = msgspec.json.encode(body), headers + JSON
    return Request(method, path, data, headers, repeatable=method == "GET", seconds=seconds)


def _act(
    core: Core,
    request: Request,
    name: str,
    read: Callable[[Answer], T],
    settle: Callable[[NodeRefused | None], Steps[T | None]] = nothing_to_ask,
) -> Steps[T]:
    """Send a request that changes something, as ``deliver``."""
    return deliver(core, request, name, read, settle, _is_uncertain)


def _is_uncertain(error: NodeRefused) -> bool:
    """Whether the request may have had an effect: not if the service has said that it had none."""
    return is_uncertain(error) and error.code not in _WITHOUT_EFFECT


# --- signing --------------------------------------------------------------------------------------


def sign(
    core: Core,
    thing: Signable,
    *,
    key: str = "",
    id: str | None = None,  # noqa: A002 - its name in the interface
    proof_at: int | None = None,
) -> Steps[Any]:
    """Have the service sign a transaction, an order or another item, and return the signed
    ``Transaction``, ``Order`` or the service's JSON.

    ``key`` is a name, an address or a public key; by default the item names its sender. An ``id``
    makes the request idempotent. ``proof_at`` is the index among several proofs. Raises
    ``ApprovalNeeded`` if others have to approve, ``NodeRefused`` with the deciding rule and its
    line in ``details``.
    """
    body = {**_envelope(key, id), **_item(thing, proof_at)}
    request, name = _request(core, "POST", "/sign", body), _name_of(thing, id)
    signed = yield from _act(core, request, name, lambda answer: _signed(answer, [thing]))
    return _one(thing, signed[0])


def sign_all(
    core: Core,
    things: Iterable[Signable],
    *,
    key: str = "",
    id: str | None = None,  # noqa: A002 - as above
) -> Steps[list[Any]]:
    """Sign up to 256 items, all or none; otherwise as ``sign``."""
    items = list(things)
    body = {**_envelope(key, id), "package": [_item(each, None) for each in items]}
    request, name = _request(core, "POST", "/sign", body), id or "a package"
    signed = yield from _act(core, request, name, lambda answer: _signed(answer, items))
    return [_one(thing, each) for thing, each in zip(items, signed, strict=True)]


def sign_and_broadcast(
    core: Core,
    transaction: Transaction | Mapping[str, Any],
    *,
    key: str = "",
    id: str | None = None,  # noqa: A002 - as above
    confirmations: Confirmations = 0,
    timeout: float = SENDING_SECONDS,
) -> Steps[Any]:
    """Have the service sign a transaction and broadcast it through its node. With
    ``confirmations``, return once that many blocks, its own included, confirm it, or with
    ``confirmations="finalized"`` once its block is final, within ``timeout`` seconds. Without an
    ``id`` the request gets one, so that it is never signed twice.

    Raises the errors of ``sign``; ``ScriptFailed`` if its script has failed in the block;
    ``StillWaiting`` without the confirmations; ``OutcomeUnknown`` if it may have been broadcast. A
    transaction that needs approval is broadcast after the last one.
    """
    check_confirmations(confirmations)
    request_id = id or f"soliton-{secrets.token_hex(16)}"
    waiting = {"confirmations": confirmations, "timeout": int(timeout)} if confirmations else {}
    body = {**_envelope(key, request_id), **_item(transaction, None), **waiting}
    request = _request(core, "POST", "/sign-and-broadcast", body, timeout + SENDING_SECONDS)

    def read(answer: Answer) -> tuple[Any, list[_Executed]]:
        if answer.status == _LATE_STATUS and refused(answer).code == _NOT_CONFIRMED:
            raise StillWaiting(f"{name} is sent: {refused(answer).message}")
        (signed,) = _signed(answer, [transaction])
        return signed, decoded(answer, _Confirmed).confirmed if confirmations else []

    def settle(refused: NodeRefused | None) -> Steps[None]:
        if refused is not None and refused.code == _ID_TAKEN:
            raise refused
        return (yield from nothing_to_ask(refused))

    name = _name_of(transaction, request_id)
    found, executed = yield from _act(core, request, name, read, settle)
    signed = _one(transaction, found)
    if confirmations:
        _check_executed(signed, executed)
    return signed


def _check_executed(signed: Transaction | Mapping[str, Any], executed: Sequence[_Executed]) -> None:
    """Raise ``ScriptFailed`` for a transaction that is in a block and was not executed there."""
    name = signed.id if isinstance(signed, Transaction) else str(signed.get("id"))
    if [each.id for each in executed] != [name]:
        raise NodeBroken(f"the signer confirms another transaction than {name}")
    status = executed[0].application_status
    if status != SUCCEEDED:
        failure = ScriptFailed(
            0,
            f"{name} is in a block and was not executed: {status}",
            status=200,
            details={"applicationStatus": status},
        )
        failure.id = name
        raise failure


def _name_of(thing: Signable, request_id: str | None) -> str:
    if isinstance(thing, Transaction | Order):
        return thing.id
    return request_id or "a request without an id"


def sign_message(core: Core, text: str, *, key: str) -> Steps[Json]:
    """Sign a text in a form that no transaction has; the result has ``binary``, ``publicKey`` and
    ``signature``.
    """
    return sign(core, {"customData": {"version": 1, "text": text}}, key=key)


def _envelope(key: str, id_: str | None) -> Json:
    return {**({"key": key} if key else {}), **({"id": id_} if id_ else {})}


def _item(thing: Signable, proof_at: int | None) -> Json:
    place = {} if proof_at is None else {"proofAt": proof_at}
    if isinstance(thing, Transaction):
        return {"transaction": thing.to_json(), **place}
    if isinstance(thing, Order):
        return {"order": _unsigned(thing), **place}
    return {**thing, **place}


def _unsigned(order: Order) -> Json:
    return {name: value for name, value in order.to_json().items() if name != "signature"}


def _signed(answer: Answer, things: list[Signable]) -> list[Any]:
    if answer.status == _NEEDS_APPROVAL:
        pending = decoded(answer, Pending)
        if pending.state != "signed":
            _needs_approval(pending)
        signed = pending.signed
    else:
        signed = decoded(answer, _Signed).signed
    found = signed if isinstance(signed, list) else [signed]
    if len(found) != len(things):
        raise NodeBroken("the signer returned another number of items")
    return found


def _needs_approval(pending: Pending) -> NoReturn:
    raise ApprovalNeeded(pending.id, "; ".join(pending.told))


def _one(thing: Signable, signed: Any) -> Any:  # noqa: ANN401 - of the same kind as the thing
    found: Transaction | Order
    try:
        if isinstance(thing, Transaction):
            found = Transaction.from_json(signed, thing.chain_id)
        elif isinstance(thing, Order):
            found = Order.from_json(signed, thing.inner.chain_id)
        else:
            return signed
    except InputError as error:
        raise NodeBroken(f"invalid response from the signer: {error}") from error
    if found.body != thing.body:
        raise NodeBroken(f"the signer returned another {type(thing).__name__.lower()}: {found.id}")
    return found


# --- approvals ------------------------------------------------------------------------------------


def all_pending(core: Core) -> Steps[list[Pending]]:
    """The requests that the caller has made or may approve, the oldest first."""
    answer = yield from call(core, _request(core, "GET", "/pending"))
    return decoded(answer, _AllPending).pending


def pending(core: Core, id: str) -> Steps[Pending]:  # noqa: A002 - as above
    """One request, with its sums, windows before and after, and the deciding rules."""
    answer = yield from call(core, _request(core, "GET", f"/pending/{segment(id)}"))
    return decoded(answer, Pending)


def simulation(core: Core, id: str) -> Steps[list[Json]]:  # noqa: A002 - as above
    """The simulated effect of each item on the node's state: ``valid``, ``told``, ``balances``."""
    answer = yield from call(core, _request(core, "GET", f"/pending/{segment(id)}/simulation"))
    return decoded(answer, _Simulated).simulated


def approve(core: Core, id: str) -> Steps[Pending]:  # noqa: A002 - as above
    """Approve a request; the last approval that is needed signs it."""
    return _decide(core, id, "approve")


def refuse(core: Core, id: str) -> Steps[Pending]:  # noqa: A002 - as above
    """Refuse a request, for good."""
    return _decide(core, id, "refuse")


def _decide(core: Core, id_: str, verb: str) -> Steps[Pending]:
    def settle(_refused: NodeRefused | None) -> Steps[Pending | None]:
        found = yield from pending(core, id_)
        return None if found.state == "waiting" else found

    request = _request(core, "POST", f"/pending/{segment(id_)}/{verb}")
    return _act(core, request, id_, lambda answer: decoded(answer, Pending), settle)


def approved(
    core: Core,
    id: str,  # noqa: A002 - as above
    *,
    seconds: float = WAIT_SECONDS,
) -> Steps[Pending]:
    """Wait until a request is signed; ``signed`` then has the result for its maker. Raises
    ``ClientError`` if it is refused or expires, ``StillWaiting`` after ``seconds``.
    """
    end = core.now() + seconds
    while True:
        found = yield from pending(core, id)
        if found.state == "signed":
            return found
        if found.state == "refused":
            raise ClientError(f"{found.refused_by} has refused it")
        if found.state == "expired":
            raise ClientError("the time for approval is over")
        if core.now() >= end:
            raise StillWaiting(f"{id} waits for {found.needed - len(found.approved)} approvals")
        yield Pause(POLL_SECONDS)


# --- keys -----------------------------------------------------------------------------------------


def keys(core: Core) -> Steps[list[Key]]:
    """All keys of the service."""
    answer = yield from call(core, _request(core, "GET", "/keys"))
    return decoded(answer, _Keys).keys


def account(core: Core, name: str) -> Steps[Account]:
    """The account of a key by its name, address or public key. It makes transactions and orders,
    but cannot sign them. Raises ``ClientError`` if there is no such key.
    """
    for key in (yield from keys(core)):
        if name in (key.name, key.address, key.public_key):
            try:
                found = Account.from_public_key(key.public_key, chain_id_in(key.address))
            except InputError as error:
                raise NodeBroken(f"invalid response from the signer: {error}") from error
            if found.address != key.address:
                raise NodeBroken(f"the signer's address {key.address} is not that of its key")
            return found
    raise ClientError("the signer has no such key")


def unlock(
    core: Core, password: str, *, names: Iterable[str] = (), seconds: int = 3_600
) -> Steps[list[Key]]:
    """Unlock keys for ``seconds``; without ``names``, all keys that the password opens."""
    body: Json = {"password": password, "seconds": seconds}
    chosen = list(names)
    if chosen:
        body["keys"] = chosen
    request = _request(core, "POST", "/keys/unlock", body)
    return _act(core, request, "the keys", lambda answer: decoded(answer, _Keys).keys)


def lock(core: Core, *, names: Iterable[str] = ()) -> Steps[list[Key]]:
    """Lock keys; without ``names``, all."""
    body = {"keys": list(names)}
    request = _request(core, "POST", "/keys/lock", body)
    return _act(core, request, "the keys", lambda answer: decoded(answer, _Keys).keys)


# --- the service ----------------------------------------------------------------------------------


def caller(core: Core) -> Steps[Caller]:
    """The caller that the API key belongs to."""
    answer = yield from call(core, _request(core, "GET", "/caller"))
    return decoded(answer, Caller)


def policy(core: Core) -> Steps[Json]:
    """The policy in force: ``file``, ``hash``, ``rules``, ``source``."""
    answer = yield from call(core, _request(core, "GET", "/policy"))
    return decoded(answer, Json)


def audit(core: Core, *, before: int | None = None, limit: int = 50) -> Steps[Json]:
    """The last lines of the audit log, the newest first, and the result of its last check."""
    path = f"/audit{query(before=before, limit=limit)}"
    answer = yield from call(core, _request(core, "GET", path))
    return decoded(answer, Json)


def verify_audit(core: Core) -> Steps[Json]:
    """Have the service check its whole audit log: ``sound``, ``lines``, ``head``."""
    answer = yield from call(core, _request(core, "POST", "/audit/verify", {}, SENDING_SECONDS))
    return decoded(answer, Json)
