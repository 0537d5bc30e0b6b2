"""The routes of a signer that keeps keys.

What lives here: who may ask for what, bodies, and answers. What does not: what is done (``desk``,
``approvals``, ``sending``, ``keyring``), and ``POST /data``, which has a seed in each request
(``app``).
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import msgspec

from soliton.keystore.keys import KeyProblem
from soliton.signer.approvals import Pending, Tell, signed_line
from soliton.signer.audit_routes import AuditRoutes
from soliton.signer.boot_clock import boot_ms
from soliton.signer.callers import Caller, Callers
from soliton.signer.desk import Desk, Judged, Signed, raise_stopped, refused
from soliton.signer.errors import (
    BUSY,
    INTERNAL,
    KEY_STORE_TROUBLE,
    NO_SUCH_METHOD,
    NO_SUCH_PATH,
    WRONG_POLICY,
    WRONG_SHAPE,
    ErrorAnswer,
    NodeRefused,
    NodeTrouble,
    RequestRefused,
)
from soliton.signer.generating import Generating
from soliton.signer.keyring import (
    MAX_NAME_CHARACTERS,
    MAX_PASSWORD_CHARACTERS,
    MAX_UNLOCKED_SECONDS,
    Account,
)
from soliton.signer.policy import Policy, Refusal
from soliton.signer.policy_file import PolicyProblem
from soliton.signer.records import Entry, Event
from soliton.signer.sending import check_can_be_sent, send, wait
from soliton.signer.wanted import Wanted, read_json, read_wanted
from soliton.web.answers import APPLICATION_JSON, Answer, Awaited, Deferred, Whole
from soliton.web.request import Request

PATHS: Final = {
    "/sign": "POST",
    "/sign-and-broadcast": "POST",
    "/keys": "GET",
    "/keys/unlock": "POST",
    "/keys/lock": "POST",
    "/pending": "GET",
    "/policy": "GET",
    "/policy/reload": "POST",
    "/caller": "GET",
    "/audit": "GET",
    "/audit/verify": "POST",
    "/generator/vrf": "POST",
    "/generator/block": "POST",
    "/generator/microblock": "POST",
}
PENDING: Final = "/pending/"
UNLOCKED_SECONDS: Final = 60 * 60
MAX_NAMES: Final = 10_000

_encode: Final = msgspec.json.Encoder().encode
logger = logging.getLogger("soliton.signer")

ReadPolicy = Callable[[], Policy]
Generate = Callable[[str, dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]


class Denied(msgspec.Struct, frozen=True):
    """What the rules refuse: the line to be written, and the refusal."""

    entry: Entry
    reason: Refusal


class KeyRoutes:
    """The routes; ``read_policy`` reads the rules again, ``tell`` tells others what waits."""

    def __init__(
        self,
        desk: Desk,
        callers: Callers,
        read_policy: ReadPolicy,
        requests_at_once: int,
        generating: Generating,
        tell: Tell | None = None,
    ) -> None:
        self.desk = desk
        self.pending = Pending(desk, tell)
        self._audit = AuditRoutes(desk, callers)
        self._callers = callers
        self._read_policy = read_policy
        self._most = requests_at_once
        self._running = 0
        self._handlers: dict[str, Callable[[Request], Answer]] = {
            "/sign": self._sign,
            "/sign-and-broadcast": self._sign_and_broadcast,
            "/keys": self._keys,
            "/keys/unlock": self._unlock,
            "/keys/lock": self._lock,
            "/pending": self._all_pending,
            "/policy": self._policy,
            "/policy/reload": self._reload,
            "/caller": lambda request: json_answer(self._audit.caller(request)),
            "/audit": self._recent,
            "/audit/verify": self._verify,
            "/generator/vrf": partial(self._generate, generating.prove),
            "/generator/block": partial(self._generate, generating.block),
            "/generator/microblock": partial(self._generate, generating.microblock),
        }

    def takes(self, path: str) -> bool:
        """Whether a path is one of these."""
        return path in PATHS or path.startswith(PENDING)

    def respond(self, request: Request) -> Answer:
        """The answer to a request for one of these paths."""
        try:
            handler = self._handlers.get(request.path)
            if handler is None:
                return self._one_pending(request)
            method = PATHS[request.path]
            if request.method != method and not (method == "GET" and request.method == "HEAD"):
                return _no_method(method)
            return handler(request)
        except RequestRefused as error:
            return refusal(error.answer)
        except Exception as error:  # noqa: BLE001 - as in ``app``: no words of others are logged
            return _own_fault(error)

    # --- signing ----------------------------------------------------------------------------------

    def _sign(self, request: Request) -> Answer:
        caller = self._callers.caller_of(request, "sign")
        wanted = read_wanted(read_json(request.body))
        begun = self._begin(caller, wanted)
        if isinstance(begun, Whole):
            return begun
        if isinstance(begun, Judged):
            if begun.takes_time:
                return self._begun(begun)
            self.desk.check_unlocked(begun)
            signed = self.desk.sign(begun)
            # Those who wait for the disk at a time wait for one write of it.
            return Deferred(
                partial(self.desk.write_signed, begun, signed),
                partial(_signed, wanted, signed),
                lets_next_begin=True,
            )
        return Deferred(
            partial(self.desk.write, begun.entry),
            partial(_refused, begun.reason),
            lets_next_begin=True,
        )

    def _begin(self, caller: Caller, wanted: Wanted) -> Whole | Judged | Denied:
        """What was answered before, or what the rules say."""
        desk = self.desk
        account = desk.account_of(wanted)
        before = desk.answered_before(caller.name, wanted, account)
        if before is not None:
            return json_answer(_shape(wanted, before))
        waiting = self.pending.of_request(caller.name, wanted)
        if waiting is not None:
            return json_answer(self.pending.shown(waiting, caller), 202)
        asked = desk.read(wanted, account)
        judged = desk.judge(caller.name, wanted, account, asked, "")
        if isinstance(judged, Refusal):
            words = judged.words
            return Denied(desk.refusal_entry(caller.name, account, asked, words, judged), judged)
        return judged

    def _begun(self, judged: Judged) -> Answer:
        mark = judged.caller, judged.wanted.id
        answer = self._awaited(_held(self.desk, judged, self._sign_later))
        if isinstance(answer, Awaited):
            # From now on: the work itself begins after what else comes in this turn.
            self.desk.hold(*mark)
        else:
            self.desk.take_back(judged)
        return answer

    async def _sign_later(self, judged: Judged, *, sends: bool = False) -> Whole:
        """Sign what needs an approval, or an answer of the node."""
        if judged.needs_approval:
            pending = await self.pending.ask(judged, sends=sends)
            wanted_by = Caller(judged.caller, b"", frozenset())
            return json_answer(self.pending.shown(pending, wanted_by), 202)
        return json_answer(_shape(judged.wanted, (await self._signed(judged)).answers))

    async def _signed(self, judged: Judged) -> Signed:
        self.desk.check_unlocked(judged)
        if judged.asks_node:
            await self.desk.check_with_node(judged)
            self.desk.check_unlocked(judged)
        signed = await self.desk.sign_anywhere(judged)
        raise_stopped(await signed_line(self.desk, judged, signed))
        return signed

    def _sign_and_broadcast(self, request: Request) -> Answer:
        caller = self._callers.caller_of(request, "sign")
        wanted = read_wanted(read_json(request.body), sends=True)
        check_can_be_sent(wanted)
        return self._awaited(self._send(caller, wanted))

    async def _send(self, caller: Caller, wanted: Wanted) -> Whole:
        desk = self.desk
        account = desk.account_of(wanted)
        answers = desk.answered_before(caller.name, wanted, account)
        if answers is None:
            begun = self._begin(caller, wanted)
            if isinstance(begun, Whole):
                return begun
            if isinstance(begun, Denied):
                await desk.written(begun.entry)
                raise refused(begun.reason)
            if begun.needs_approval:
                return await self._sign_later(begun, sends=True)
            answers = (await self._signed(begun)).answers
        await send(desk.node, answers)
        shown = _shape(wanted, answers)
        if wanted.confirmations:
            shown["confirmed"] = await wait(
                desk.node, answers, wanted.confirmations, wanted.timeout
            )
        return json_answer(shown)

    def _generate(self, work: Generate, request: Request) -> Answer:
        caller = self._callers.caller_of(request, "sign")
        return self._awaited(_as_answer(work(caller.name, read_json(request.body))))

    # --- keys -------------------------------------------------------------------------------------

    def _keys(self, request: Request) -> Answer:
        self._callers.caller_of(request, "list")
        return json_answer({"keys": [_shown(each) for each in self.desk.keyring.accounts()]})

    def _unlock(self, request: Request) -> Answer:
        caller = self._callers.caller_of(request, "unlock")
        value = read_json(request.body)
        password, seconds = value.get("password"), value.get("seconds", UNLOCKED_SECONDS)
        if not isinstance(password, str) or not 0 < len(password) <= MAX_PASSWORD_CHARACTERS:
            raise RequestRefused(WRONG_SHAPE, "password should be a text", "password")
        if type(seconds) is not int or not 0 < seconds <= MAX_UNLOCKED_SECONDS:
            message = f"seconds should be from 1 to {MAX_UNLOCKED_SECONDS}"
            raise RequestRefused(WRONG_SHAPE, message, "seconds")
        return self._awaited(self._unlocked(caller, password, _names(value), seconds))

    async def _unlocked(
        self, caller: Caller, password: str, names: tuple[str, ...], seconds: int
    ) -> Whole:
        desk = self.desk
        try:
            found = await desk.keyring.unlock(password, names, seconds)
        except RequestRefused as error:
            reason = str(error)
            await desk.written(desk.entry(Event.WRONG_PASSWORD, caller=caller.name, reason=reason))
            raise
        told = tuple(each.name for each in found)
        reason = f"for {seconds} s"
        await desk.written(desk.entry(Event.UNLOCK, caller=caller.name, told=told, reason=reason))
        return json_answer({"keys": [_shown(each) for each in found]})

    def _lock(self, request: Request) -> Answer:
        caller = self._callers.caller_of(request, "unlock")
        names = _names(read_json(request.body)) if request.body else ()
        found = self.desk.keyring.lock(names)
        entry = self.desk.entry(
            Event.LOCK, caller=caller.name, told=tuple(each.name for each in found)
        )
        # They are locked, whatever becomes of the line.
        answer = json_answer({"keys": [_shown(each) for each in found]})
        return Deferred(partial(self.desk.write, entry), lambda _problem: answer)

    # --- approvals --------------------------------------------------------------------------------

    def _all_pending(self, request: Request) -> Answer:
        caller = self._one_of(request, "approve", "sign")
        return json_answer({"pending": self.pending.all_for(caller)})

    def _one_pending(self, request: Request) -> Answer:
        pending, _, verb = request.path.removeprefix(PENDING).partition("/")
        if verb not in ("", "approve", "refuse", "simulation"):
            return refusal(
                ErrorAnswer(NO_SUCH_PATH.status, NO_SUCH_PATH.code, NO_SUCH_PATH.meaning)
            )
        if not verb:
            if request.method not in ("GET", "HEAD"):
                return _no_method("GET")
            return json_answer(
                self.pending.shown(pending, self._one_of(request, "approve", "sign"))
            )
        if verb == "simulation":
            if request.method not in ("GET", "HEAD"):
                return _no_method("GET")
            caller = self._one_of(request, "approve", "sign")
            return self._awaited(_as_answer(self.pending.simulated(pending, caller)))
        if request.method != "POST":
            return _no_method("POST")
        caller = self._callers.caller_of(request, "approve")
        work = self.pending.approve if verb == "approve" else self.pending.reject
        return self._awaited(_as_answer(work(pending, caller)))

    def _one_of(self, request: Request, *scopes: str) -> Caller:
        """The caller, who may do one of these."""
        *first, last = scopes
        for scope in first:
            try:
                return self._callers.caller_of(request, scope)
            except RequestRefused:
                continue
        return self._callers.caller_of(request, last)

    # --- rules ------------------------------------------------------------------------------------

    def _policy(self, request: Request) -> Answer:
        self._callers.caller_of(request, "operate")
        return json_answer(_policy_shown(self.desk))

    def _reload(self, request: Request) -> Answer:
        caller = self._callers.caller_of(request, "operate")
        wanted = read_json(request.body).get("policyHash")
        if not isinstance(wanted, str):
            raise RequestRefused(WRONG_SHAPE, "policyHash should be a text", "policyHash")
        return self._awaited(self._reloaded(caller, wanted))

    async def _reloaded(self, caller: Caller, wanted: str) -> Whole:
        desk = self.desk
        try:
            policy = self._read_policy()
            desk.keyring.refresh()
        except PolicyProblem as error:
            raise RequestRefused(WRONG_POLICY, str(error)) from None
        except KeyProblem as error:
            raise RequestRefused(KEY_STORE_TROUBLE, str(error)) from None
        if policy.hash != wanted:
            message = f"{policy.file} has the hash {policy.hash}"
            raise RequestRefused(WRONG_POLICY, message, "policyHash")
        await desk.written(desk.entry(Event.POLICY, caller=caller.name, policy=policy.hash))
        desk.policy, desk.rules_since = policy, desk.journal.head[0]
        logger.info("rules of %s loaded, %d of them", policy.file, len(policy.rules))
        return json_answer(_policy_shown(self.desk))

    # --- the log ----------------------------------------------------------------------------------

    def _recent(self, request: Request) -> Answer:
        self._callers.caller_of(request, "operate")
        return self._awaited(_as_answer(self._audit.recent(request)))

    def _verify(self, request: Request) -> Answer:
        self._callers.caller_of(request, "operate")
        return self._awaited(_as_answer(self._audit.verify()))

    # --- work that takes time ---------------------------------------------------------------------

    def _awaited(self, work: Coroutine[Any, Any, Whole]) -> Answer:
        if self._running >= self._most:
            work.close()
            answer = ErrorAnswer(BUSY.status, BUSY.code, BUSY.meaning)
            return Whole(_encode(answer.json()), APPLICATION_JSON, 503, ((b"retry-after", b"1"),))
        return Awaited(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, Whole]) -> Whole:
        self._running += 1
        try:
            return await work
        except (RequestRefused, NodeRefused, NodeTrouble) as error:
            return refusal(error.answer)
        except Exception as error:  # noqa: BLE001 - as above
            return _own_fault(error)
        finally:
            self._running -= 1


async def _held(
    desk: Desk, judged: Judged, work: Callable[[Judged], Coroutine[Any, Any, Whole]]
) -> Whole:
    try:
        return await work(judged)
    finally:
        desk.let_go(judged.caller, judged.wanted.id)


async def _as_answer(work: Coroutine[Any, Any, dict[str, Any]]) -> Whole:
    return json_answer(await work)


def _shape(wanted: Wanted, answers: list[dict[str, Any]]) -> dict[str, Any]:
    return {"signed": answers if wanted.is_package else answers[0]}


def _signed(wanted: Wanted, signed: Signed, problem: OSError | None) -> Whole:
    try:
        raise_stopped(problem)
    except RequestRefused as error:
        return refusal(error.answer)
    return json_answer(_shape(wanted, signed.answers))


def _refused(reason: Refusal, problem: OSError | None) -> Whole:
    try:
        raise_stopped(problem)
    except RequestRefused as error:
        return refusal(error.answer)
    return refusal(refused(reason).answer)


def _policy_shown(desk: Desk) -> dict[str, Any]:
    policy = desk.policy
    rules = [{"name": rule.name, "line": rule.line} for rule in policy.rules]
    number, head = desk.journal.head
    audit = {"lines": number, "head": head}
    shown = {"file": policy.file, "hash": policy.hash, "rules": rules, "audit": audit}
    return {**shown, "source": policy.source}


def _shown(account: Account) -> dict[str, Any]:
    left = account.left_ms(boot_ms())
    return {
        "name": account.name,
        "address": account.address,
        "publicKey": account.text,
        "locked": account.is_locked(boot_ms()),
        "unlockedFor": -(-left // 1_000),
        "stored": account.store is not None,
    }


def _names(value: dict[str, Any]) -> tuple[str, ...]:
    names = value.get("keys", [])
    fine = isinstance(names, list) and len(names) <= MAX_NAMES
    if not fine or not all(
        isinstance(each, str) and len(each) <= MAX_NAME_CHARACTERS for each in names
    ):
        raise RequestRefused(WRONG_SHAPE, "keys should be a list of names", "keys")
    return tuple(names)


def json_answer(value: object, status: int = 200) -> Whole:
    """A value as an answer."""
    return Whole(_encode(value), APPLICATION_JSON, status)


def refusal(answer: ErrorAnswer) -> Whole:
    """A refusal as an answer."""
    after = answer.more.get("after")
    headers = ((b"retry-after", str(after).encode()),) if isinstance(after, int) else ()
    return Whole(_encode(answer.json()), APPLICATION_JSON, answer.status, headers)


def _no_method(method: str) -> Whole:
    answer = ErrorAnswer(NO_SUCH_METHOD.status, NO_SUCH_METHOD.code, NO_SUCH_METHOD.meaning)
    headers = ((b"allow", method.encode()),)
    return Whole(_encode(answer.json()), APPLICATION_JSON, answer.status, headers)


def _own_fault(error: Exception) -> Whole:
    place = traceback.extract_tb(error.__traceback__)[-1]
    logger.error("%s at %s:%s", type(error).__name__, place.filename, place.lineno)
    return refusal(ErrorAnswer(INTERNAL.status, INTERNAL.code, INTERNAL.meaning))
