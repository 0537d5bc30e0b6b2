"""The signing pipeline: read a request, evaluate the rules, sign, write the audit log, answer.

The order matters. An amount counts before anything is signed. The line of the audit log is on the
disk before the signature is returned. Refusals are logged, too.

What lives here: these steps, for one item or a package (signed as a whole or not at all), and
idempotency ids. What does not: approvals (``approvals``), broadcasting (``sending``), HTTP
(``key_routes``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from soliton.chain.addresses import Alias, address_text, recipient_text
from soliton.crypto import base58
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
from soliton.signer.sign_request import Item, SignRequest, whose
from soliton.signer.signable import ReadContext, Signable, read_signable, with_numbers
from soliton.signer.state import SignerState, Used
from soliton.signer.windows import Charge

MAX_REASON: Final = 2_000


class Grant(NamedTuple):
    """A request that the rules allow: the things to sign, the rule for each, the charges to windows
    and the time at which they were made.
    """

    caller: str
    request: SignRequest
    account: Account
    signables: tuple[Signable, ...]
    rules: tuple[Rule, ...]
    charges: tuple[Charge, ...]
    time: int
    pending: str = ""

    @property
    def asks_node(self) -> bool:
        """Whether the node has to be queried before signing."""
        return any(rule.simulate for rule in self.rules) or any(self.pinned())

    @property
    def takes_time(self) -> bool:
        """Whether signing has to wait for approvals, the node or a key store."""
        return self.needs_approval or self.asks_node or self.account.store is not None

    @property
    def rule_names(self) -> str:
        """The names of the rules, without duplicates."""
        return ", ".join(dict.fromkeys(rule.name for rule in self.rules))

    @property
    def rule_lines(self) -> tuple[int, ...]:
        """The lines of the rules in the policy file."""
        return tuple(dict.fromkeys(rule.line for rule in self.rules))

    @property
    def needs_approval(self) -> bool:
        """Whether a rule requires approvals."""
        return any(rule.approvals is not None for rule in self.rules)

    def pinned(self) -> list[tuple[Alias, str]]:
        """Return aliases among the recipients, each with the address that the rule pins."""
        return [
            (each, address_text(rule.pins[each]))
            for signables, rule in zip(self.signables, self.rules, strict=True)
            for each in signables.measures.recipients
            if isinstance(each, Alias) and each in rule.pins
        ]


class Signed(NamedTuple):
    """The signed results, and their line of the audit log."""

    answers: list[dict[str, Any]]
    entry: Entry


class SigningPipeline:
    """The steps of signing. ``clock`` is the wall clock in milliseconds."""

    def __init__(
        self,
        keyring: Keyring,
        policy: Policy,
        journal: Journal,
        state: SignerState,
        node: NodeClient,
        chain_id: int,
        clock: Callable[[], int],
    ) -> None:
        self.keyring = keyring
        self.policy = policy
        self.journal = journal
        self.state = state
        self.node = node
        self.clock = clock
        self.rules_since = journal.head[0]
        """The number of the line from which these rules are in force."""
        self._chain_id = chain_id
        self._reserved: Counter[tuple[str, str]] = Counter()
        """Reference counts of the idempotency ids of requests in progress."""

    # --- authorization ----------------------------------------------------------------------------

    def account_of(self, request: SignRequest) -> Account:
        """Return the account whose key signs; raises ``RequestRefused``."""
        text = request.key or whose(request.items[0])
        if not text:
            raise RequestRefused(NO_KEY, "key is missing, and nothing says whose it is", "key")
        return self.keyring.find(text)

    def read(
        self, request: SignRequest, account: Account, stamps: tuple[int, ...] = ()
    ) -> tuple[Signable, ...]:
        """Read the things to sign; raises ``RequestRefused``. ``stamps`` are the timestamps of an
        earlier reading.
        """
        decimals = self.policy.decimals
        found = []
        for index, item in enumerate(request.items):
            stamp = stamps[index] if stamps else self.state.next_stamp(self.clock())
            context = ReadContext(
                account.public_key, self._chain_id, stamp, item.proof_at, decimals
            )
            found.append(read_signable(item.kind, item.value, context))
        return tuple(found)

    def authorize(
        self,
        caller: str,
        request: SignRequest,
        account: Account,
        signables: tuple[Signable, ...],
        pending: str,
    ) -> Grant | Refusal:
        """Evaluate the rules, and charge what they allow to the windows."""
        now, wall = self.state.clock.now(), self.clock()
        rules: list[Rule] = []
        charges: list[Charge] = []
        windows = self.state.windows
        for each in signables:
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
        return Grant(
            caller, request, account, signables, tuple(rules), tuple(charges), now, pending=pending
        )

    def take_back(self, grant: Grant) -> None:
        """Undo the charges of what will not be signed."""
        self.state.windows.take_back(grant.charges, grant.time)

    def sentences(self, signables: tuple[Signable, ...]) -> tuple[str, ...]:
        """Return descriptions for people."""
        return tuple(sentence(each.measures, self.policy.decimals) for each in signables)

    # --- ids --------------------------------------------------------------------------------------

    def answered_before(
        self, caller: str, request: SignRequest, account: Account
    ) -> list[dict[str, Any]] | None:
        """Return what was already signed under this idempotency id; raises ``RequestRefused`` if
        that was another request.
        """
        if not request.id:
            return None
        used = self.state.used.get((caller, request.id))
        if used is None:
            if (caller, request.id) in self._reserved:
                raise RequestRefused(ID_TAKEN, "a request with this id is in work", "id")
            if not self.state.has_room_for_ids:
                raise RequestRefused(TOO_MANY_KEPT, "too many ids were used within a day", "id")
            return None
        if used.digest != request.digest:
            raise RequestRefused(ID_TAKEN, "this id was used for another request", "id")
        return self._repeat(request, account, used)

    def _repeat(self, request: SignRequest, account: Account, used: Used) -> list[dict[str, Any]]:
        return finished(self.read(request, account, used.stamps), used.proofs)

    @contextlib.contextmanager
    def reserved(self, caller: str, id_: str) -> Iterator[None]:
        """Reserve an id within a ``with`` block."""
        self.acquire(caller, id_)
        try:
            yield
        finally:
            self.release(caller, id_)

    def acquire(self, caller: str, id_: str) -> None:
        """Reserve an id until ``release``: other requests with it are refused."""
        if id_:
            self._reserved[caller, id_] += 1

    def release(self, caller: str, id_: str) -> None:
        """Undo one ``acquire``."""
        if id_:
            self._reserved[caller, id_] -= 1
            if not self._reserved[caller, id_]:
                del self._reserved[caller, id_]

    # --- signing ----------------------------------------------------------------------------------

    def check_unlocked(self, grant: Grant) -> None:
        """Raise ``RequestRefused``, and undo the charges, when the key is locked."""
        if grant.account.is_locked(boot_ms()):
            self.take_back(grant)
            raise RequestRefused(LOCKED, f"the key {grant.account.name} is locked")

    def sign(self, grant: Grant) -> Signed:
        """Sign with a key in memory. Nothing may be returned before the line is written."""
        now = boot_ms()
        return self._signed(grant, [grant.account.sign(it.body, now) for it in grant.signables])

    async def sign_anywhere(self, grant: Grant) -> Signed:
        """Sign with a key in memory or in a store. Raises ``RequestRefused`` after undoing the
        charges.
        """
        store = grant.account.store
        if store is None:
            return self.sign(grant)
        bodies = [each.body for each in grant.signables]
        try:
            with self.reserved(grant.caller, grant.request.id):
                signatures = await asyncio.to_thread(store.sign, bodies)
        except (RequestRefused, asyncio.CancelledError):
            self.take_back(grant)
            raise
        return self._signed(grant, signatures)

    def _signed(self, grant: Grant, signatures: list[bytes]) -> Signed:
        answers = [
            each.finish(signature)
            for each, signature in zip(grant.signables, signatures, strict=True)
        ]
        entry = Entry(
            *(0, "", self.clock(), grant.time, Event.SIGN),
            caller=grant.caller,
            key=grant.account.name,
            rule=grant.rule_names,
            lines=grant.rule_lines,
            request=grant.request.id,
            digest=grant.request.digest,
            pending=grant.pending,
            sentences=self.sentences(grant.signables),
            ids=tuple(each.id for each in grant.signables),
            proofs=tuple(map(base58.encode, signatures)),
            stamps=tuple(each.timestamp for each in grant.signables),
            charges=grant.charges,
            last_stamp=self.state.last_stamp,
        )
        return Signed(answers, entry)

    def write_signed(
        self, grant: Grant, signed: Signed, done: Callable[[OSError | None], None]
    ) -> None:
        """Write the line, and call ``done`` once it is synced, or with the error."""
        mark = grant.caller, grant.request.id
        self.acquire(*mark)

        def after(problem: OSError | None) -> None:
            self.release(*mark)
            if problem is not None:
                self.take_back(grant)
            done(problem)

        self.write(signed.entry, after)

    async def written_signed(self, grant: Grant, signed: Signed) -> None:
        """Write the line and wait until it is synced; raises ``RequestRefused``. Cancelling the
        caller does not cancel the write.
        """
        future: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
        self.write_signed(grant, signed, future.set_result)
        problem = await asyncio.shield(future)
        if problem is not None:
            raise journal_stopped(problem)

    async def check_with_node(self, grant: Grant) -> None:
        """Have the node simulate it, and resolve pinned aliases. Raises ``RequestRefused`` or
        ``NodeTrouble`` after undoing the charges.
        """
        try:
            with self.reserved(grant.caller, grant.request.id):
                fault = await self._fault(grant)
        except (NodeTrouble, RequestRefused, asyncio.CancelledError):
            self.take_back(grant)
            raise
        if fault is not None:
            self.take_back(grant)
            entry = self.refusal_entry(grant.caller, grant.account, grant.signables, fault[1])
            await self.written(entry)
            raise RequestRefused(*fault)

    async def _fault(self, grant: Grant) -> tuple[Fault, str] | None:
        for alias, address in grant.pinned():
            found = await self.node.address_of(alias.name)
            if found != address:
                name = recipient_text(alias)
                return REFUSED, f"{name} is not the account that the rule has pinned for it"
        items = zip(grant.request.items, grant.signables, grant.rules, strict=True)
        for item, signables, rule in items:
            if rule.simulate and item.kind is Kind.TRANSACTION:
                words = await self.node.fault_of(unsigned(item, signables))
                if words is not None:
                    return SIMULATION_FAILED, f"the node says that it would fail: {words}"
        return None

    # --- lines ------------------------------------------------------------------------------------

    def entry(self, event: Event, **members: Any) -> Entry:  # noqa: ANN401 - those of an entry
        """Return a line with the current time."""
        return Entry(0, "", self.clock(), self.state.clock.now(), event, **members)

    def refusal_entry(
        self,
        caller: str,
        account: Account,
        signables: tuple[Signable, ...],
        reason: str,
        refusal: Refusal | None = None,
    ) -> Entry:
        """Return the line of a refusal."""
        return self.entry(
            Event.REFUSE,
            caller=caller,
            key=account.name,
            rule="" if refusal is None else refusal.rule,
            lines=(refusal.line,) if refusal is not None and refusal.line else (),
            reason=reason[:MAX_REASON],
            sentences=self.sentences(signables),
            ids=tuple(each.id for each in signables),
        )

    def write(self, entry: Entry, done: Callable[[OSError | None], None]) -> None:
        """Write a line, apply it to the state, and call ``done``; rotates a full file first."""
        if self.journal.is_full:
            self.journal.append(self.state.checkpoint(self.clock()), _ignore_outcome)
        number = self.state.expect(entry, self.journal.segment)

        def after(problem: OSError | None) -> None:
            self.state.settle(number, is_written=problem is None)
            done(problem)

        self.journal.append(entry, after)

    async def written(self, entry: Entry) -> None:
        """Write a line and wait until it is synced; raises ``RequestRefused``."""
        future: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
        self.write(entry, lambda problem: _set(future, problem))
        problem = await future
        if problem is not None:
            raise journal_stopped(problem)


def unsigned(item: Item, signables: Signable) -> dict[str, Any]:
    """Return the JSON of an unsigned transaction, for the node's simulation."""
    sender = base58.encode(signables.measures.sender)
    filled = {"senderPublicKey": sender, "timestamp": signables.timestamp, "proofs": []}
    return {**with_numbers(item.value), **filled}


def finished(signables: tuple[Signable, ...], proofs: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the signed results, from signatures in base58."""
    return [
        each.finish(base58.decode(proof)) for each, proof in zip(signables, proofs, strict=True)
    ]


def _ignore_outcome(_problem: OSError | None) -> None:
    """The line after a checkpoint fails with it, and its waiter gets the error."""


def _set(future: asyncio.Future[OSError | None], problem: OSError | None) -> None:
    if not future.done():
        future.set_result(problem)


def journal_stopped(problem: OSError) -> RequestRefused:
    """Return the error for a line that could not be written."""
    message = f"the audit log cannot be written: {problem.strerror}"
    return RequestRefused(JOURNAL_STOPPED, message)


def refused(refusal: Refusal) -> RequestRefused:
    """Return the error for a refusal by the rules."""
    error = RequestRefused(REFUSED, refusal.words)
    if refusal.rule:
        more = {"rule": refusal.rule, "line": refusal.line, "condition": refusal.condition}
        error.answer.more.update(more)
    return error
