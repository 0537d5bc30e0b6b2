"""Where a request becomes signatures: read, judged by the rules, signed, written down, answered.

The order is what matters. An amount counts before anything is signed; the line of the audit log is
on the disk before the signature leaves; what is refused is written down, too.

What lives here: that way, for one thing or a package of which all or none is signed, and ids under
which a request is signed once. What does not: approvals (``approvals``), sending (``sending``),
HTTP (``key_routes``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from soliton.chain.addresses import Alias, address_text, recipient_text
from soliton.crypto import base58
from soliton.signer.asked import Asked, Reading, read_asked, with_numbers
from soliton.signer.book import Book, Used
from soliton.signer.boot_clock import boot_ms
from soliton.signer.errors import (
    ID_TAKEN,
    JOURNAL_STOPPED,
    LOCKED,
    NO_KEY,
    REFUSED,
    SIMULATION_FAILED,
    TOO_MANY_KEPT,
    Fault,
    NodeTrouble,
    RequestRefused,
)
from soliton.signer.journal import Journal
from soliton.signer.keyring import Account, Keyring
from soliton.signer.measures import Kind, sentence
from soliton.signer.node_client import NodeClient
from soliton.signer.policy import Policy, Question, Refusal, Rule
from soliton.signer.records import Entry, Event
from soliton.signer.wanted import Item, Wanted, whose
from soliton.signer.windows import Charge

MAX_REASON: Final = 2_000


class Judged(NamedTuple):
    """A request that the rules allow: what is to be signed, by whose rule, and what it counts since
    when.
    """

    caller: str
    wanted: Wanted
    account: Account
    asked: tuple[Asked, ...]
    rules: tuple[Rule, ...]
    charges: tuple[Charge, ...]
    time: int
    pending: str = ""

    @property
    def asks_node(self) -> bool:
        """Whether the node has to be asked first."""
        return any(rule.simulate for rule in self.rules) or any(self.pinned())

    @property
    def takes_time(self) -> bool:
        """Whether others have to be asked before there is a signature."""
        return self.needs_approval or self.asks_node or self.account.store is not None

    @property
    def rule_names(self) -> str:
        """The rules, each once."""
        return ", ".join(dict.fromkeys(rule.name for rule in self.rules))

    @property
    def rule_lines(self) -> tuple[int, ...]:
        """Where they stand in their file."""
        return tuple(dict.fromkeys(rule.line for rule in self.rules))

    @property
    def needs_approval(self) -> bool:
        """Whether a rule wants others to approve."""
        return any(rule.approvals is not None for rule in self.rules)

    def pinned(self) -> list[tuple[Alias, str]]:
        """Aliases among the recipients, and the address that each must stand for."""
        return [
            (each, address_text(rule.pins[each]))
            for asked, rule in zip(self.asked, self.rules, strict=True)
            for each in asked.measures.recipients
            if isinstance(each, Alias) and each in rule.pins
        ]


class Signed(NamedTuple):
    """What is signed, and the line that tells of it."""

    answers: list[dict[str, Any]]
    entry: Entry


class Desk:
    """The way of all requests. ``clock`` is the wall clock in milliseconds."""

    def __init__(
        self,
        keyring: Keyring,
        policy: Policy,
        journal: Journal,
        book: Book,
        node: NodeClient,
        chain_id: int,
        clock: Callable[[], int],
    ) -> None:
        self.keyring = keyring
        self.policy = policy
        self.journal = journal
        self.book = book
        self.node = node
        self.clock = clock
        self.rules_since = journal.head[0]
        """The number of the line from which on these rules are in force."""
        self._chain_id = chain_id
        self._in_work: Counter[tuple[str, str]] = Counter()
        """Ids of requests that are not answered yet, and by how much of their work each is held."""

    # --- judging ----------------------------------------------------------------------------------

    def account_of(self, wanted: Wanted) -> Account:
        """Whose key it is; raises ``RequestRefused``."""
        text = wanted.key or whose(wanted.items[0])
        if not text:
            raise RequestRefused(NO_KEY, "key is missing, and nothing says whose it is", "key")
        return self.keyring.find(text)

    def read(
        self, wanted: Wanted, account: Account, stamps: tuple[int, ...] = ()
    ) -> tuple[Asked, ...]:
        """What is asked for; raises ``RequestRefused``. ``stamps`` are the times of before."""
        decimals = self.policy.decimals
        found = []
        for index, item in enumerate(wanted.items):
            stamp = stamps[index] if stamps else self.book.next_stamp(self.clock())
            reading = Reading(account.public_key, self._chain_id, stamp, item.proof_at, decimals)
            found.append(read_asked(item.kind, item.value, reading))
        return tuple(found)

    def judge(
        self, caller: str, wanted: Wanted, account: Account, asked: tuple[Asked, ...], pending: str
    ) -> Judged | Refusal:
        """Ask the rules, and count what they allow."""
        now, wall = self.book.clock.now(), self.clock()
        rules: list[Rule] = []
        charges: list[Charge] = []
        windows = self.book.windows
        for each in asked:
            question = Question(
                each.measures, account.name, account.public_key, caller, self._chain_id, wall
            )
            decided = self.policy.decide(question, windows, now)
            if isinstance(decided, Refusal):
                windows.take_back(charges, now)
                return decided
            windows.charge(decided.charges, now)
            charges += decided.charges
            rules.append(decided.rule)
        return Judged(
            caller, wanted, account, asked, tuple(rules), tuple(charges), now, pending=pending
        )

    def take_back(self, judged: Judged) -> None:
        """Count no more what will not be signed."""
        self.book.windows.take_back(judged.charges, judged.time)

    def told(self, asked: tuple[Asked, ...]) -> tuple[str, ...]:
        """Sentences for people."""
        return tuple(sentence(each.measures, self.policy.decimals) for each in asked)

    # --- ids --------------------------------------------------------------------------------------

    def answered_before(
        self, caller: str, wanted: Wanted, account: Account
    ) -> list[dict[str, Any]] | None:
        """What was signed under this id already; raises ``RequestRefused`` for another request."""
        if not wanted.id:
            return None
        used = self.book.used.get((caller, wanted.id))
        if used is None:
            if (caller, wanted.id) in self._in_work:
                raise RequestRefused(ID_TAKEN, "a request with this id is in work", "id")
            if not self.book.has_room_for_ids:
                raise RequestRefused(TOO_MANY_KEPT, "too many ids were used within a day", "id")
            return None
        if used.digest != wanted.digest:
            raise RequestRefused(ID_TAKEN, "this id was used for another request", "id")
        return self._again(wanted, account, used)

    def _again(self, wanted: Wanted, account: Account, used: Used) -> list[dict[str, Any]]:
        asked = self.read(wanted, account, used.stamps)
        proofs = map(base58.decode, used.proofs)
        return [each.finish(proof) for each, proof in zip(asked, proofs, strict=True)]

    @contextlib.contextmanager
    def in_work(self, caller: str, id_: str) -> Iterator[None]:
        """Let nobody else begin with this id meanwhile."""
        self.hold(caller, id_)
        try:
            yield
        finally:
            self.let_go(caller, id_)

    def hold(self, caller: str, id_: str) -> None:
        """The same until ``let_go``."""
        if id_:
            self._in_work[caller, id_] += 1

    def let_go(self, caller: str, id_: str) -> None:
        """The end of a ``hold``."""
        if id_:
            self._in_work[caller, id_] -= 1
            if not self._in_work[caller, id_]:
                del self._in_work[caller, id_]

    # --- signing ----------------------------------------------------------------------------------

    def check_unlocked(self, judged: Judged) -> None:
        """Raise ``RequestRefused``, and count nothing, when the key is locked."""
        if judged.account.is_locked(boot_ms()):
            self.take_back(judged)
            raise RequestRefused(LOCKED, f"the key {judged.account.name} is locked")

    def sign(self, judged: Judged) -> Signed:
        """Sign all of it. Nothing of it may leave before the line is written."""
        now = boot_ms()
        return self._signed(judged, [judged.account.sign(it.body, now) for it in judged.asked])

    async def sign_anywhere(self, judged: Judged) -> Signed:
        """Sign all of it, here or in the key's store. Raises ``RequestRefused``; then nothing
        counts.
        """
        store = judged.account.store
        if store is None:
            return self.sign(judged)
        bodies = [each.body for each in judged.asked]
        try:
            with self.in_work(judged.caller, judged.wanted.id):
                signatures = await asyncio.to_thread(store.sign, bodies)
        except (RequestRefused, asyncio.CancelledError):
            self.take_back(judged)
            raise
        return self._signed(judged, signatures)

    def _signed(self, judged: Judged, signatures: list[bytes]) -> Signed:
        answers = [
            each.finish(signature) for each, signature in zip(judged.asked, signatures, strict=True)
        ]
        entry = Entry(
            *(0, "", self.clock(), judged.time, Event.SIGN),
            caller=judged.caller,
            key=judged.account.name,
            rule=judged.rule_names,
            lines=judged.rule_lines,
            request=judged.wanted.id,
            digest=judged.wanted.digest,
            pending=judged.pending,
            told=self.told(judged.asked),
            ids=tuple(each.id for each in judged.asked),
            proofs=tuple(map(base58.encode, signatures)),
            stamps=tuple(each.timestamp for each in judged.asked),
            charges=judged.charges,
            last_stamp=self.book.last_stamp,
        )
        return Signed(answers, entry)

    def write_signed(
        self, judged: Judged, signed: Signed, done: Callable[[OSError | None], None]
    ) -> None:
        """Write the line, and tell when it is there or why it is not."""
        mark = judged.caller, judged.wanted.id
        self.hold(*mark)

        def after(problem: OSError | None) -> None:
            self.let_go(*mark)
            if problem is not None:
                self.take_back(judged)
            done(problem)

        self.write(signed.entry, after)

    async def check_with_node(self, judged: Judged) -> None:
        """Let the node say whether it would fail, and whose an alias is. Raises ``RequestRefused``
        or ``NodeTrouble``; then nothing counts.
        """
        try:
            with self.in_work(judged.caller, judged.wanted.id):
                fault = await self._fault(judged)
        except (NodeTrouble, RequestRefused, asyncio.CancelledError):
            self.take_back(judged)
            raise
        if fault is not None:
            self.take_back(judged)
            entry = self.refusal_entry(judged.caller, judged.account, judged.asked, fault[1])
            await self.written(entry)
            raise RequestRefused(*fault)

    async def _fault(self, judged: Judged) -> tuple[Fault, str] | None:
        for alias, address in judged.pinned():
            found = await self.node.address_of(alias.name)
            if found != address:
                told = recipient_text(alias)
                return REFUSED, f"{told} is not the account that the rule has pinned for it"
        items = zip(judged.wanted.items, judged.asked, judged.rules, strict=True)
        for item, asked, rule in items:
            if rule.simulate and item.kind is Kind.TRANSACTION:
                words = await self.node.fault_of(unsigned(item, asked))
                if words is not None:
                    return SIMULATION_FAILED, f"the node says that it would fail: {words}"
        return None

    # --- lines ------------------------------------------------------------------------------------

    def entry(self, event: Event, **members: Any) -> Entry:  # noqa: ANN401 - those of an entry
        """A line of now."""
        return Entry(0, "", self.clock(), self.book.clock.now(), event, **members)

    def refusal_entry(
        self,
        caller: str,
        account: Account,
        asked: tuple[Asked, ...],
        reason: str,
        refusal: Refusal | None = None,
    ) -> Entry:
        """The line of a refusal."""
        return self.entry(
            Event.REFUSE,
            caller=caller,
            key=account.name,
            rule="" if refusal is None else refusal.rule,
            lines=(refusal.line,) if refusal is not None and refusal.line else (),
            reason=reason[:MAX_REASON],
            told=self.told(asked),
            ids=tuple(each.id for each in asked),
        )

    def write(self, entry: Entry, done: Callable[[OSError | None], None]) -> None:
        """Write a line, take it into what is remembered, and tell; a full file is ended first."""
        if self.journal.is_full:
            self.journal.append(self.book.checkpoint(self.clock()), _nobody_waits)
        number = self.book.expect(entry, self.journal.segment)

        def after(problem: OSError | None) -> None:
            self.book.settle(number, is_written=problem is None)
            done(problem)

        self.journal.append(entry, after)

    async def written(self, entry: Entry) -> None:
        """Write a line and wait until it is there; raises ``RequestRefused``."""
        future: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
        self.write(entry, lambda problem: _set(future, problem))
        raise_stopped(await future)


def unsigned(item: Item, asked: Asked) -> dict[str, Any]:
    """A transaction as a node is asked about it before it is signed."""
    sender = base58.encode(asked.measures.sender)
    filled = {"senderPublicKey": sender, "timestamp": asked.timestamp, "proofs": []}
    return {**with_numbers(item.value), **filled}


def _nobody_waits(_problem: OSError | None) -> None:
    """The line after it has the same trouble, and somebody waits for that."""


def _set(future: asyncio.Future[OSError | None], problem: OSError | None) -> None:
    if not future.done():
        future.set_result(problem)


def raise_stopped(problem: OSError | None) -> None:
    """Raise ``RequestRefused`` where a line could not be written."""
    if problem is not None:
        message = f"the audit log cannot be written: {problem.strerror}"
        raise RequestRefused(JOURNAL_STOPPED, message)


def refused(refusal: Refusal) -> RequestRefused:
    """What the caller is told of a refusal of the rules."""
    error = RequestRefused(REFUSED, refusal.words)
    if refusal.rule:
        more = {"rule": refusal.rule, "line": refusal.line, "condition": refusal.condition}
        error.answer.more.update(more)
    return error
