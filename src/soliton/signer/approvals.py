"""Requests that need approval: submitted, approved or refused, and finally signed.

What lives here: the queue of pending requests, the approvers' decisions, and the JSON of a pending
request. What does not: sums and forecasts (``preview``), signing (``pipeline``), and HTTP
(``key_routes``).

The rules are evaluated twice: on submission, and after the last approval. Amounts count from the
second time on.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Final

from soliton.crypto import base58
from soliton.signer.callers import Caller
from soliton.signer.errors import (
    ID_TAKEN,
    NO_CALLER,
    NO_PENDING,
    NOT_WAITING,
    TOO_MANY_KEPT,
    NodeRefused,
    NodeTrouble,
    RequestRefused,
)
from soliton.signer.pipeline import Grant, SigningPipeline, finished, refused
from soliton.signer.policy import Approvals, Refusal
from soliton.signer.preview import judgement, simulation, totals
from soliton.signer.records import Entry, Event
from soliton.signer.sending import send
from soliton.signer.sign_request import SignRequest, read_json, read_sign_request, to_text
from soliton.signer.signable import Signable
from soliton.signer.state import PendingRequest

ID_BYTES: Final = 16

Notify = Callable[[dict[str, Any]], None]


class ApprovalQueue:
    """Pending requests, and those decided lately."""

    def __init__(self, pipeline: SigningPipeline, notify: Notify | None = None) -> None:
        """``notify`` receives each new pending request, and each decision."""
        self._pipeline = pipeline
        self._notifier = notify
        self._deciding: set[str] = set()

    def of_request(self, caller: str, request: SignRequest) -> str | None:
        """Return the id of the pending request with the same idempotency id, if there is one;
        raises ``RequestRefused`` if that was another request.
        """
        if not request.id:
            return None
        for pending, record in self._pipeline.state.waiting.items():
            if (record.ask.caller, record.ask.request) == (caller, request.id):
                if record.ask.digest != request.digest:
                    raise RequestRefused(ID_TAKEN, "this id was used for another request", "id")
                return pending
        return None

    async def submit(self, grant: Grant, *, sends: bool) -> str:
        """Write the request to the audit log and return its id. With ``sends`` it is broadcast
        after signing. Raises ``RequestRefused``.
        """
        pipeline = self._pipeline
        # Amounts count when it is signed.
        pipeline.take_back(grant)
        request_json = to_text(grant.request.raw).decode()
        approvals = _approvals_of(grant)
        if not pipeline.state.has_room_for(request_json):
            raise RequestRefused(TOO_MANY_KEPT, "too much waits for approval")
        pending = base58.encode(secrets.token_bytes(ID_BYTES))
        entry = pipeline.entry(
            Event.ASK,
            caller=grant.caller,
            key=grant.account.name,
            rule=grant.rule_names,
            lines=grant.rule_lines,
            request=grant.request.id,
            digest=grant.request.digest,
            pending=pending,
            sentences=pipeline.sentences(grant.signables),
            ids=tuple(each.id for each in grant.signables),
            stamps=tuple(each.timestamp for each in grant.signables),
            last_stamp=pipeline.state.last_stamp,
            request_json=request_json,
            sends=sends,
            approvers=tuple(sorted({name for each in approvals for name in each.of})),
            needed=max(each.needed for each in approvals),
            expires=pipeline.state.clock.now() + min(each.within_ms for each in approvals),
        )
        with pipeline.reserved(grant.caller, grant.request.id):
            await pipeline.written(entry)
        self._notify(pipeline.state.waiting[pending])
        return pending

    def notify_all(self) -> None:
        """Notify of all pending requests, after a restart: earlier messages may be lost."""
        now = self._pipeline.state.clock.now()
        for record in self._pipeline.state.waiting.values():
            if record.state(now) == "waiting":
                self._notify(record)

    def _notify(self, record: PendingRequest) -> None:
        if self._notifier is None:
            return
        try:
            sums = totals(self._read(record)[1], self._pipeline.policy.decimals)
        except RequestRefused:
            # The key has been removed.
            sums = []
        self._notifier(
            self._summary(record) | {"approvers": list(record.ask.approvers), "totals": sums}
        )

    def find(self, pending: str) -> PendingRequest:
        """Return the pending request with this id; raises ``RequestRefused``."""
        found = self._pipeline.state.waiting.get(pending)
        if found is None:
            raise RequestRefused(NO_PENDING, "nothing with this id waits for approval, or did")
        return found

    def shown(self, pending: str, caller: Caller) -> dict[str, Any]:
        """Return a pending request as its requester or an approver sees it; only the requester
        gets the signed result. Raises ``RequestRefused``.
        """
        record = self.find(pending)
        if caller.name != record.ask.caller and caller.name not in record.ask.approvers:
            raise RequestRefused(NO_PENDING, "nothing with this id waits for approval, or did")
        return self._shown(record, caller) | self._details(record)

    def _details(self, record: PendingRequest) -> dict[str, Any]:
        """Return what an approver needs: sums, and what the rules say now."""
        details: dict[str, Any] = {"approvers": list(record.ask.approvers)}
        try:
            account, (request, signables) = (
                self._pipeline.keyring.find(record.ask.key),
                self._read(record),
            )
        except RequestRefused as error:
            # The key has been removed.
            return details | {"refusal": {"message": str(error)}}
        details["totals"] = totals(signables, self._pipeline.policy.decimals)
        if record.state(self._pipeline.state.clock.now()) == "waiting":
            details |= judgement(self._pipeline, record.ask, request, account, signables)
        return details

    async def simulated(self, pending: str, caller: Caller) -> dict[str, Any]:
        """Return the node's simulation; raises ``RequestRefused`` and ``NodeTrouble``."""
        self.shown(pending, caller)
        request, signables = self._read(self.find(pending))
        return {
            "pending": pending,
            "simulated": await simulation(self._pipeline, request, signables),
        }

    def _read(self, record: PendingRequest) -> tuple[SignRequest, tuple[Signable, ...]]:
        request = read_sign_request(read_json(record.ask.request_json.encode()), sends=True)
        account = self._pipeline.keyring.find(record.ask.key)
        return request, self._pipeline.read(request, account, record.ask.stamps)

    def all_for(self, caller: Caller) -> list[dict[str, Any]]:
        """Return all requests that the caller has submitted or may approve, the oldest first."""
        self._pipeline.state.forget()
        return [
            self._shown(record, caller)
            for record in self._pipeline.state.waiting.values()
            if caller.name == record.ask.caller or caller.name in record.ask.approvers
        ]

    def _shown(self, record: PendingRequest, caller: Caller) -> dict[str, Any]:
        request = read_sign_request(read_json(record.ask.request_json.encode()), sends=True)
        shown = self._summary(record)
        shown["asked"] = [{item.kind.value: item.value} for item in request.items]
        if record.signed is not None and caller.name == record.ask.caller:
            answers = self._signed(record, record.signed)
            shown["signed"] = answers if request.is_package else answers[0]
        return shown

    def _summary(self, record: PendingRequest) -> dict[str, Any]:
        now, ask = self._pipeline.state.clock.now(), record.ask
        shown: dict[str, Any] = {
            "pending": ask.pending,
            "state": record.state(now),
            "caller": ask.caller,
            "key": ask.key,
            "rule": ask.rule,
            "told": list(ask.sentences),
            "ids": list(ask.ids),
            "approved": record.approved,
            "needed": ask.needed,
            "askedAt": ask.at,
            "expiresIn": max(0, ask.expires - now),
        }
        if record.rejected:
            shown["refusedBy"] = record.rejected
        if record.sent is not None:
            shown["broadcast"] = record.sent
        return shown

    def _signed(self, record: PendingRequest, signed: Entry) -> list[dict[str, Any]]:
        return finished(self._read(record)[1], signed.proofs)

    async def approve(self, pending: str, caller: Caller) -> dict[str, Any]:
        """Approve, and sign if this was the last approval needed. Raises ``RequestRefused``."""
        record = self._waiting(pending, caller)
        if caller.name not in record.approved:
            entry = self._pipeline.entry(Event.APPROVE, caller=caller.name, pending=pending)
            await self._pipeline.written(entry)
        if len(record.approved) >= record.ask.needed and pending not in self._deciding:
            self._deciding.add(pending)
            try:
                if record.state(self._pipeline.state.clock.now()) == "waiting":
                    await self._sign(record)
                    await self._send(record)
                    self._notify(record)
            finally:
                self._deciding.discard(pending)
        return self._shown(record, caller)

    async def _send(self, record: PendingRequest) -> None:
        """Broadcast the signed result if the request says so. The requester sees the outcome, and
        can send it again.
        """
        if record.signed is None or not record.ask.sends:
            return
        answers = self._signed(record, record.signed)
        try:
            await send(self._pipeline.node, answers)
            record.sent = {"accepted": len(answers)}
        except (NodeRefused, NodeTrouble) as error:
            body = error.answer.json()
            record.sent = {name: body[name] for name in ("accepted", "error", "message")}

    async def reject(self, pending: str, caller: Caller) -> dict[str, Any]:
        """Refuse, finally; raises ``RequestRefused``."""
        record = self._waiting(pending, caller)
        entry = self._pipeline.entry(Event.REJECT, caller=caller.name, pending=pending)
        # An approval that is being written finds it decided.
        self._deciding.add(pending)
        try:
            await self._pipeline.written(entry)
        finally:
            self._deciding.discard(pending)
        self._notify(record)
        return self._shown(record, caller)

    def _waiting(self, pending: str, caller: Caller) -> PendingRequest:
        record = self.find(pending)
        if caller.name not in record.ask.approvers or caller.name == record.ask.caller:
            raise RequestRefused(NO_CALLER, "the rule does not let this caller approve it")
        state = record.state(self._pipeline.state.clock.now())
        if pending in self._deciding:
            raise RequestRefused(NOT_WAITING, "it is being decided", state=state)
        if state != "waiting":
            raise RequestRefused(NOT_WAITING, f"it is {state}", state=state)
        return record

    async def _sign(self, record: PendingRequest) -> None:
        pipeline, ask = self._pipeline, record.ask
        account = pipeline.keyring.find(ask.key)
        request, signables = self._read(record)
        grant = pipeline.authorize(ask.caller, request, account, signables, ask.pending)
        if isinstance(grant, Refusal):
            entry = pipeline.refusal_entry(ask.caller, account, signables, grant.words, grant)
            await pipeline.written(entry)
            raise refused(grant)
        missing = [each for each in _approvals_of(grant) if not _is_approved(each, record.approved)]
        if missing:
            pipeline.take_back(grant)
            words = f"the rules want {missing[0].needed} of {', '.join(sorted(missing[0].of))} now"
            raise RequestRefused(NOT_WAITING, words, state="waiting")
        pipeline.check_unlocked(grant)
        if grant.asks_node:
            await pipeline.check_with_node(grant)
            # Meanwhile the key may have been locked, or the request refused.
            pipeline.check_unlocked(grant)
            if record.state(pipeline.state.clock.now()) != "waiting":
                pipeline.take_back(grant)
                return
        signed = await pipeline.sign_anywhere(grant)
        await pipeline.written_signed(grant, signed)


def _approvals_of(grant: Grant) -> list[Approvals]:
    return [rule.approvals for rule in grant.rules if rule.approvals is not None]


def _is_approved(approvals: Approvals, by: list[str]) -> bool:
    return len(approvals.of & set(by)) >= approvals.needed
