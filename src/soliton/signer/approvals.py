"""Requests that need the approval of others: asked, approved or refused, signed in the end.

What lives here: what waits, who has said what about it, and what each is shown. What does not: sums
and forecasts (``outlook``), how it is signed (``desk``), and HTTP (``key_routes``).

The rules are asked twice: when somebody asks, and when the last approval has come. Amounts count
from the second time on.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any, Final

from soliton.crypto import base58
from soliton.signer.asked import Asked
from soliton.signer.book import Waiting
from soliton.signer.callers import Caller
from soliton.signer.desk import Desk, Judged, Signed, raise_stopped, refused
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
from soliton.signer.outlook import judgement, simulation, totals
from soliton.signer.policy import Approvals, Refusal
from soliton.signer.records import Entry, Event
from soliton.signer.sending import send
from soliton.signer.wanted import Wanted, read_json, read_wanted, to_text

ID_BYTES: Final = 16

Tell = Callable[[dict[str, Any]], None]


class Pending:
    """All that waits, or did lately."""

    def __init__(self, desk: Desk, tell: Tell | None = None) -> None:
        """``tell`` tells others what waits, and what became of it."""
        self._desk = desk
        self._tell = tell
        self._in_work: set[str] = set()

    def of_request(self, caller: str, wanted: Wanted) -> str | None:
        """The id of what the same request has led to before; raises ``RequestRefused``."""
        if not wanted.id:
            return None
        for pending, it in self._desk.book.waiting.items():
            if (it.ask.caller, it.ask.request) == (caller, wanted.id):
                if it.ask.digest != wanted.digest:
                    raise RequestRefused(ID_TAKEN, "this id was used for another request", "id")
                return pending
        return None

    async def ask(self, judged: Judged, *, sends: bool) -> str:
        """Write down that this is asked for; its id. What ``sends`` is broadcast when it is signed.
        Raises ``RequestRefused``.
        """
        desk = self._desk
        # It is only asked for; it counts when it is signed.
        desk.take_back(judged)
        asked = to_text(judged.wanted.raw).decode()
        if not desk.book.has_room_for(asked):
            raise RequestRefused(TOO_MANY_KEPT, "too much waits for approval")
        within = min(each.within_ms for each in _approvals_of(judged))
        needed = max(each.needed for each in _approvals_of(judged))
        pending = base58.encode(secrets.token_bytes(ID_BYTES))
        entry = desk.entry(
            Event.ASK,
            caller=judged.caller,
            key=judged.account.name,
            rule=judged.rule_names,
            lines=judged.rule_lines,
            request=judged.wanted.id,
            digest=judged.wanted.digest,
            pending=pending,
            told=desk.told(judged.asked),
            ids=tuple(each.id for each in judged.asked),
            stamps=tuple(each.timestamp for each in judged.asked),
            last_stamp=desk.book.last_stamp,
            asked=asked,
            sends=sends,
            approvers=tuple(sorted(frozenset[str]().union(*(e.of for e in _approvals_of(judged))))),
            needed=needed,
            expires=desk.book.clock.now() + within,
        )
        with desk.in_work(judged.caller, judged.wanted.id):
            await desk.written(entry)
        self._told(desk.book.waiting[pending])
        return pending

    def tell_again(self) -> None:
        """Tell of all that still waits: nobody knows whether that was heard before."""
        now = self._desk.book.clock.now()
        for it in self._desk.book.waiting.values():
            if it.state(now) == "waiting":
                self._told(it)

    def _told(self, it: Waiting) -> None:
        if self._tell is None:
            return
        try:
            sums = totals(self._read(it)[1], self._desk.policy.decimals)
        except RequestRefused:
            # The key is gone meanwhile.
            sums = []
        self._tell(self._summary(it) | {"approvers": list(it.ask.approvers), "totals": sums})

    def find(self, pending: str) -> Waiting:
        """What waits under an id; raises ``RequestRefused``."""
        found = self._desk.book.waiting.get(pending)
        if found is None:
            raise RequestRefused(NO_PENDING, "nothing with this id waits for approval, or did")
        return found

    def shown(self, pending: str, caller: Caller) -> dict[str, Any]:
        """What a caller sees of it; raises ``RequestRefused``. Who asked gets what was signed."""
        it = self.find(pending)
        if caller.name != it.ask.caller and caller.name not in it.ask.approvers:
            raise RequestRefused(NO_PENDING, "nothing with this id waits for approval, or did")
        return self._shown(it, caller) | self._details(it)

    def _details(self, it: Waiting) -> dict[str, Any]:
        """What somebody needs to know who decides: sums, and what the rules say now."""
        details: dict[str, Any] = {"approvers": list(it.ask.approvers)}
        try:
            account, (wanted, asked) = self._desk.keyring.find(it.ask.key), self._read(it)
        except RequestRefused as error:
            # The key is gone meanwhile.
            return details | {"refusal": {"message": str(error)}}
        details["totals"] = totals(asked, self._desk.policy.decimals)
        if it.state(self._desk.book.clock.now()) == "waiting":
            details |= judgement(self._desk, it.ask, wanted, account, asked)
        return details

    async def simulated(self, pending: str, caller: Caller) -> dict[str, Any]:
        """What the node says that it would do; raises ``RequestRefused`` and ``NodeTrouble``."""
        self.shown(pending, caller)
        wanted, asked = self._read(self.find(pending))
        return {"pending": pending, "simulated": await simulation(self._desk, wanted, asked)}

    def _read(self, it: Waiting) -> tuple[Wanted, tuple[Asked, ...]]:
        wanted = read_wanted(read_json(it.ask.asked.encode()), sends=True)
        account = self._desk.keyring.find(it.ask.key)
        return wanted, self._desk.read(wanted, account, it.ask.stamps)

    def all_for(self, caller: Caller) -> list[dict[str, Any]]:
        """All that the caller has asked for or may approve, the oldest first."""
        self._desk.book.forget()
        return [
            self._shown(it, caller)
            for it in self._desk.book.waiting.values()
            if caller.name == it.ask.caller or caller.name in it.ask.approvers
        ]

    def _shown(self, it: Waiting, caller: Caller) -> dict[str, Any]:
        wanted = read_wanted(read_json(it.ask.asked.encode()), sends=True)
        shown = self._summary(it)
        shown["asked"] = [{item.kind.value: item.value} for item in wanted.items]
        if it.signed is not None and caller.name == it.ask.caller:
            answers = self._answers(it, it.signed)
            shown["signed"] = answers if wanted.is_package else answers[0]
        return shown

    def _summary(self, it: Waiting) -> dict[str, Any]:
        now, ask = self._desk.book.clock.now(), it.ask
        shown: dict[str, Any] = {
            "pending": ask.pending,
            "state": it.state(now),
            "caller": ask.caller,
            "key": ask.key,
            "rule": ask.rule,
            "told": list(ask.told),
            "ids": list(ask.ids),
            "approved": it.approved,
            "needed": ask.needed,
            "askedAt": ask.at,
            "expiresIn": max(0, ask.expires - now),
        }
        if it.rejected:
            shown["refusedBy"] = it.rejected
        if it.sent is not None:
            shown["broadcast"] = it.sent
        return shown

    def _answers(self, it: Waiting, signed: Entry) -> list[dict[str, Any]]:
        _, asked = self._read(it)
        return _finished(asked, signed.proofs)

    async def approve(self, pending: str, caller: Caller) -> dict[str, Any]:
        """Approve; sign if that was the last one that it took. Raises ``RequestRefused``."""
        it = self._waiting(pending, caller)
        if caller.name not in it.approved:
            entry = self._desk.entry(Event.APPROVE, caller=caller.name, pending=pending)
            await self._desk.written(entry)
        if len(it.approved) >= it.ask.needed and pending not in self._in_work:
            self._in_work.add(pending)
            try:
                if it.state(self._desk.book.clock.now()) == "waiting":
                    await self._sign(it)
                    await self._send(it)
                    self._told(it)
            finally:
                self._in_work.discard(pending)
        return self._shown(it, caller)

    async def _send(self, it: Waiting) -> None:
        """Broadcast what is signed, if that was asked for. Who asked is told what became of it, and
        can send it again.
        """
        if it.signed is None or not it.ask.sends:
            return
        answers = self._answers(it, it.signed)
        try:
            await send(self._desk.node, answers)
            it.sent = {"accepted": len(answers)}
        except (NodeRefused, NodeTrouble) as error:
            told = error.answer.json()
            it.sent = {name: told[name] for name in ("accepted", "error", "message")}

    async def reject(self, pending: str, caller: Caller) -> dict[str, Any]:
        """Refuse, for good; raises ``RequestRefused``."""
        it = self._waiting(pending, caller)
        entry = self._desk.entry(Event.REJECT, caller=caller.name, pending=pending)
        # Whose approval is just written finds it decided.
        self._in_work.add(pending)
        try:
            await self._desk.written(entry)
        finally:
            self._in_work.discard(pending)
        self._told(it)
        return self._shown(it, caller)

    def _waiting(self, pending: str, caller: Caller) -> Waiting:
        it = self.find(pending)
        if caller.name not in it.ask.approvers or caller.name == it.ask.caller:
            raise RequestRefused(NO_CALLER, "the rule does not let this caller approve it")
        state = it.state(self._desk.book.clock.now())
        if pending in self._in_work:
            raise RequestRefused(NOT_WAITING, "it is being decided", state=state)
        if state != "waiting":
            raise RequestRefused(NOT_WAITING, f"it is {state}", state=state)
        return it

    async def _sign(self, it: Waiting) -> None:
        desk, ask = self._desk, it.ask
        wanted = read_wanted(read_json(ask.asked.encode()), sends=True)
        account = desk.keyring.find(ask.key)
        asked = desk.read(wanted, account, ask.stamps)
        judged = desk.judge(ask.caller, wanted, account, asked, ask.pending)
        if isinstance(judged, Refusal):
            entry = desk.refusal_entry(ask.caller, account, asked, judged.words, judged)
            await desk.written(entry)
            raise refused(judged)
        missing = [each for each in _approvals_of(judged) if not _is_approved(each, it.approved)]
        if missing:
            desk.take_back(judged)
            words = f"the rules want {missing[0].needed} of {', '.join(sorted(missing[0].of))} now"
            raise RequestRefused(NOT_WAITING, words, state="waiting")
        desk.check_unlocked(judged)
        if judged.asks_node:
            await desk.check_with_node(judged)
            # What takes time may have let the key be locked, or the request be refused.
            desk.check_unlocked(judged)
            if it.state(desk.book.clock.now()) != "waiting":
                desk.take_back(judged)
                return
        signed = await desk.sign_anywhere(judged)
        raise_stopped(await signed_line(desk, judged, signed))


async def signed_line(desk: Desk, judged: Judged, signed: Signed) -> OSError | None:
    """Write the line of what was signed, and wait for it."""
    future: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
    desk.write_signed(judged, signed, future.set_result)
    return await asyncio.shield(future)


def _approvals_of(judged: Judged) -> list[Approvals]:
    return [rule.approvals for rule in judged.rules if rule.approvals is not None]


def _is_approved(approvals: Approvals, by: list[str]) -> bool:
    return len(approvals.of & set(by)) >= approvals.needed


def _finished(asked: tuple[Asked, ...], proofs: tuple[str, ...]) -> list[dict[str, Any]]:
    return [each.finish(base58.decode(proof)) for each, proof in zip(asked, proofs, strict=True)]
