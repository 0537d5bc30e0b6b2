"""The routes of a signer with stored keys.

What lives here: required scopes, bodies, and answers. What does not: the work (``pipeline``,
``approvals``, ``sending``, ``keyring``), and ``POST /data``, with a seed in each request (``app``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import msgspec

from soliton.keystore.keys import KeyProblem
from soliton.signer.answers import (
    check_query,
    fault_answer,
    internal_error,
    json_answer,
    method_not_allowed,
    refusal,
)
from soliton.signer.approvals import ApprovalQueue, Notify
from soliton.signer.audit_routes import PARAMETERS, AuditRoutes
from soliton.signer.boot_clock import boot_ms
from soliton.signer.callers import Caller, Callers
from soliton.signer.errors import (
    BUSY,
    KEY_STORE_TROUBLE,
    NO_SUCH_PATH,
    WRONG_POLICY,
    WRONG_SHAPE,
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
from soliton.signer.pipeline import Grant, Signed, SigningPipeline, journal_stopped, refused
from soliton.signer.policy import Policy, Refusal
from soliton.signer.policy_file import PolicyProblem
from soliton.signer.records import Entry, Event
from soliton.signer.sending import check_can_be_sent, send, wait
from soliton.signer.sign_request import SignRequest, read_json, read_sign_request
from soliton.web.answers import Answer, Awaited, Deferred, Whole
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
QUERIES: Final = {"/audit": tuple(each.name for each in PARAMETERS)}
"""The parameters of the query of the paths that have some."""
PENDING: Final = "/pending/"
UNLOCKED_SECONDS: Final = 60 * 60
MAX_NAMES: Final = 10_000

logger = logging.getLogger("soliton.signer")

ReadPolicy = Callable[[], Policy]
Generate = Callable[[str, dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]


class Denied(msgspec.Struct, frozen=True):
    """A refusal by the rules, with the line for the audit log."""

    entry: Entry
    reason: Refusal


class KeyRoutes:
    """The handlers. ``read_policy`` reloads the rules, ``notify`` receives pending requests."""

    def __init__(
        self,
        pipeline: SigningPipeline,
        callers: Callers,
        read_policy: ReadPolicy,
        requests_at_once: int,
        generating: Generating,
        notify: Notify | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.pending = ApprovalQueue(pipeline, notify)
        self._audit = AuditRoutes(pipeline, callers)
        self._callers = callers
        self._read_policy = read_policy
        self._most = requests_at_once
        self.running = 0
        """The number of requests that are being answered."""
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
        """Whether a path belongs to these routes."""
        return path in PATHS or path.startswith(PENDING)

    def respond(self, request: Request) -> Answer:
        """Return the answer to a request for one of these paths."""
        try:
            handler = self._handlers.get(request.path)
            if handler is None:
                check_query(request)
                return self._one_pending(request)
            method = PATHS[request.path]
            if request.method != method and not (method == "GET" and request.method == "HEAD"):
                return method_not_allowed(method)
            check_query(request, QUERIES.get(request.path, ()))
            return handler(request)
        except RequestRefused as error:
            return refusal(error.answer)
        except Exception as error:  # noqa: BLE001 - the last line of defence, as in ``app``
            return internal_error(error)

    # --- signing ----------------------------------------------------------------------------------

    def _sign(self, request: Request) -> Answer:
        caller = self._callers.caller_of(request, "sign")
        sign_request = read_sign_request(read_json(request.body))
        decision = self._authorize(caller, sign_request)
        if isinstance(decision, Whole):
            return decision
        if isinstance(decision, Grant):
            if decision.takes_time:
                return self._start(decision)
            self.pipeline.check_unlocked(decision)
            signed = self.pipeline.sign(decision)
            # Requests that arrive together share one sync of the disk.
            return Deferred(
                partial(self.pipeline.write_signed, decision, signed),
                partial(_signed, sign_request, signed),
                lets_next_begin=True,
            )
        return Deferred(
            partial(self.pipeline.write, decision.entry),
            partial(_refused, decision.reason),
            lets_next_begin=True,
        )

    def _authorize(self, caller: Caller, sign_request: SignRequest) -> Whole | Grant | Denied:
        """Return the earlier answer to the same request, or the decision of the rules."""
        pipeline = self.pipeline
        account = pipeline.account_of(sign_request)
        before = pipeline.answered_before(caller.name, sign_request, account)
        if before is not None:
            return json_answer(_shape(sign_request, before))
        waiting = self.pending.of_request(caller.name, sign_request)
        if waiting is not None:
            return json_answer(self.pending.shown(waiting, caller), 202)
        signables = pipeline.read(sign_request, account)
        grant = pipeline.authorize(caller.name, sign_request, account, signables, "")
        if isinstance(grant, Refusal):
            words = grant.words
            entry = pipeline.refusal_entry(caller.name, account, signables, words, grant)
            return Denied(entry, grant)
        return grant

    def _start(self, grant: Grant) -> Answer:
        mark = grant.caller, grant.request.id
        answer = self._awaited(_releasing(self.pipeline, grant, self._sign_later))
        if isinstance(answer, Awaited):
            # Reserve the id now: the coroutine starts in a later turn of the event loop.
            self.pipeline.acquire(*mark)
        else:
            self.pipeline.take_back(grant)
        return answer

    async def _sign_later(self, grant: Grant, *, sends: bool = False) -> Whole:
        """Sign a request that needs an approval, the node or a key store."""
        if grant.needs_approval:
            pending = await self.pending.submit(grant, sends=sends)
            requester = Caller(grant.caller, b"", frozenset())
            return json_answer(self.pending.shown(pending, requester), 202)
        return json_answer(_shape(grant.request, (await self._signed(grant)).answers))

    async def _signed(self, grant: Grant) -> Signed:
        self.pipeline.check_unlocked(grant)
        if grant.asks_node:
            await self.pipeline.check_with_node(grant)
            self.pipeline.check_unlocked(grant)
        signed = await self.pipeline.sign_anywhere(grant)
        await self.pipeline.written_signed(grant, signed)
        return signed

    def _sign_and_broadcast(self, request: Request) -> Answer:
        caller = self._callers.caller_of(request, "sign")
        sign_request = read_sign_request(read_json(request.body), sends=True)
        check_can_be_sent(sign_request)
        return self._awaited(self._send(caller, sign_request))

    async def _send(self, caller: Caller, sign_request: SignRequest) -> Whole:
        pipeline = self.pipeline
        account = pipeline.account_of(sign_request)
        answers = pipeline.answered_before(caller.name, sign_request, account)
        if answers is None:
            decision = self._authorize(caller, sign_request)
            if isinstance(decision, Whole):
                return decision
            if isinstance(decision, Denied):
                await pipeline.written(decision.entry)
                raise refused(decision.reason)
            if decision.needs_approval:
                return await self._sign_later(decision, sends=True)
            answers = (await self._signed(decision)).answers
        await send(pipeline.node, answers)
        shown = _shape(sign_request, answers)
        if sign_request.confirmations:
            shown["confirmed"] = await wait(
                pipeline.node, answers, sign_request.confirmations, sign_request.timeout
            )
        return json_answer(shown)

    def _generate(self, work: Generate, request: Request) -> Answer:
        caller = self._callers.caller_of(request, "sign")
        return self._awaited(_as_answer(work(caller.name, read_json(request.body))))

    # --- keys -------------------------------------------------------------------------------------

    def _keys(self, request: Request) -> Answer:
        self._callers.caller_of(request, "list")
        return json_answer({"keys": [_shown(each) for each in self.pipeline.keyring.accounts()]})

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
        pipeline = self.pipeline
        try:
            found = await pipeline.keyring.unlock(password, names, seconds)
        except RequestRefused as error:
            reason = str(error)
            await pipeline.written(
                pipeline.entry(Event.WRONG_PASSWORD, caller=caller.name, reason=reason)
            )
            raise
        sentences = tuple(each.name for each in found)
        reason = f"for {seconds} s"
        await pipeline.written(
            pipeline.entry(Event.UNLOCK, caller=caller.name, sentences=sentences, reason=reason)
        )
        return json_answer({"keys": [_shown(each) for each in found]})

    def _lock(self, request: Request) -> Answer:
        caller = self._callers.caller_of(request, "unlock")
        names = _names(read_json(request.body)) if request.body else ()
        found = self.pipeline.keyring.lock(names)
        entry = self.pipeline.entry(
            Event.LOCK, caller=caller.name, sentences=tuple(each.name for each in found)
        )
        # They are locked even if the line cannot be written.
        answer = json_answer({"keys": [_shown(each) for each in found]})
        return Deferred(partial(self.pipeline.write, entry), lambda _problem: answer)

    # --- approvals --------------------------------------------------------------------------------

    def _all_pending(self, request: Request) -> Answer:
        caller = self._one_of(request, "approve", "sign")
        return json_answer({"pending": self.pending.all_for(caller)})

    def _one_pending(self, request: Request) -> Answer:
        pending, _, verb = request.path.removeprefix(PENDING).partition("/")
        if verb not in ("", "approve", "refuse", "simulation"):
            return fault_answer(NO_SUCH_PATH)
        if verb in ("", "simulation"):
            if request.method not in ("GET", "HEAD"):
                return method_not_allowed("GET")
            caller = self._one_of(request, "approve", "sign")
            if not verb:
                return json_answer(self.pending.shown(pending, caller))
            return self._awaited(_as_answer(self.pending.simulated(pending, caller)))
        if request.method != "POST":
            return method_not_allowed("POST")
        caller = self._callers.caller_of(request, "approve")
        work = self.pending.approve if verb == "approve" else self.pending.reject
        return self._awaited(_as_answer(work(pending, caller)))

    def _one_of(self, request: Request, *scopes: str) -> Caller:
        """Return the caller if it has one of these scopes."""
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
        return json_answer(_policy_shown(self.pipeline))

    def _reload(self, request: Request) -> Answer:
        caller = self._callers.caller_of(request, "operate")
        expected_hash = read_json(request.body).get("policyHash")
        if not isinstance(expected_hash, str):
            raise RequestRefused(WRONG_SHAPE, "policyHash should be a text", "policyHash")
        return self._awaited(self._reloaded(caller, expected_hash))

    async def _reloaded(self, caller: Caller, expected_hash: str) -> Whole:
        pipeline = self.pipeline
        try:
            policy = self._read_policy()
            pipeline.keyring.refresh()
        except PolicyProblem as error:
            raise RequestRefused(WRONG_POLICY, str(error)) from None
        except KeyProblem as error:
            raise RequestRefused(KEY_STORE_TROUBLE, str(error)) from None
        if policy.hash != expected_hash:
            message = f"{policy.file} has the hash {policy.hash}"
            raise RequestRefused(WRONG_POLICY, message, "policyHash")
        await pipeline.written(pipeline.entry(Event.POLICY, caller=caller.name, policy=policy.hash))
        pipeline.policy, pipeline.rules_since = policy, pipeline.journal.head[0]
        logger.info("rules of %s loaded, %d of them", policy.file, len(policy.rules))
        return json_answer(_policy_shown(self.pipeline))

    # --- the log ----------------------------------------------------------------------------------

    def _recent(self, request: Request) -> Answer:
        self._callers.caller_of(request, "operate")
        return self._awaited(_as_answer(self._audit.recent(request)))

    def _verify(self, request: Request) -> Answer:
        self._callers.caller_of(request, "operate")
        return self._awaited(_as_answer(self._audit.verify()))

    # --- asynchronous requests --------------------------------------------------------------------

    def _awaited(self, work: Coroutine[Any, Any, Whole]) -> Answer:
        if self.running >= self._most:
            work.close()
            return fault_answer(BUSY, (b"retry-after", b"1"))
        return Awaited(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, Whole]) -> Whole:
        self.running += 1
        try:
            return await work
        except (RequestRefused, NodeRefused, NodeTrouble) as error:
            return refusal(error.answer)
        except Exception as error:  # noqa: BLE001 - as above
            return internal_error(error)
        finally:
            self.running -= 1


async def _releasing(
    pipeline: SigningPipeline,
    grant: Grant,
    work: Callable[[Grant], Coroutine[Any, Any, Whole]],
) -> Whole:
    try:
        return await work(grant)
    finally:
        pipeline.release(grant.caller, grant.request.id)


async def _as_answer(work: Coroutine[Any, Any, dict[str, Any]]) -> Whole:
    return json_answer(await work)


def _shape(sign_request: SignRequest, answers: list[dict[str, Any]]) -> dict[str, Any]:
    return {"signed": answers if sign_request.is_package else answers[0]}


def _signed(sign_request: SignRequest, signed: Signed, problem: OSError | None) -> Whole:
    if problem is not None:
        return refusal(journal_stopped(problem).answer)
    return json_answer(_shape(sign_request, signed.answers))


def _refused(reason: Refusal, problem: OSError | None) -> Whole:
    error = refused(reason) if problem is None else journal_stopped(problem)
    return refusal(error.answer)


def _policy_shown(pipeline: SigningPipeline) -> dict[str, Any]:
    policy = pipeline.policy
    rules = [{"name": rule.name, "line": rule.line} for rule in policy.rules]
    number, head = pipeline.journal.head
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
