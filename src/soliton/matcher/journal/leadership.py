"""Leadership of a shared journal: terms, determined by the content of the journal alone.

Several matchers read one ordered log, and reach the same verdict on every entry. A matcher begins a
term by writing a claim for the next number. The claim names the last valid entry that its author
has read, and is valid if that is still the last one, so that no other process wrote in between. (A
claim ordered by an operator is valid without this condition.) From then on entries of former terms
are void for all readers, no matter how late a deposed master's bytes arrive or what its clock says.
A master that is silent for a lease is deposed by the next claim, so it writes heartbeats ("beats").
Beats also carry its name, for later readers.

An entry, all integers big-endian:

    kind 1 | term 8 | then, of a
    command: timestamp 8 | payload
    claim:   last valid offset 8, signed | ordered 1 | identity 32 | author 16 | rules 32 | name
    beat:    rules 32 | name
    resignation: nothing

A name is UTF-8. ``rules`` is the hash of the trading rules, which must be the same for all matchers
that share a log. Claims and beats of former versions have separate kinds, and no rules.

What lives here: entries as bytes, and the verdicts. What does not: when to claim (``candidate``),
and the log itself (``kafka``).
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Final

import msgspec

from soliton.matcher.journal.errors import WrongJournal

MAX_NAME_BYTES: Final = 256
AUTHOR_BYTES: Final = 16
NOBODY: Final = -1
"""The last valid offset of a log without valid entries."""

_HEAD: Final = struct.Struct(">BQ")
_TIMESTAMP: Final = struct.Struct(">Q")
_CLAIM: Final = struct.Struct(">q?32s16s")
RULES_BYTES: Final = 32
_COMMAND_KIND, _PLAIN_CLAIM_KIND, _PLAIN_BEAT_KIND, _RESIGNATION_KIND = 1, 2, 3, 4
_CLAIM_KIND, _BEAT_KIND = 5, 6


class Command(msgspec.Struct, frozen=True):
    """A command that the master of ``term`` wrote."""

    term: int
    timestamp: int
    payload: bytes


class Claim(msgspec.Struct, frozen=True):
    """A matcher claims to be the master of ``term``.

    ``after`` is the offset of the last valid entry that it has read; ``ordered`` is true if an
    operator ordered the claim, which is then valid regardless of later entries. ``author`` is
    random for each run of the program; ``name`` is the matcher's name in its settings.
    """

    term: int
    after: int
    ordered: bool
    identity: bytes
    author: bytes
    name: str
    rules: bytes = b""


class Beat(msgspec.Struct, frozen=True):
    """A heartbeat of the master of ``term``, with its name."""

    term: int
    name: str
    rules: bytes = b""


class Resignation(msgspec.Struct, frozen=True):
    """The master of ``term`` stops; another one may claim immediately."""

    term: int


Entry = Command | Claim | Beat | Resignation


def encode_command(term: int, timestamp: int, payload: bytes) -> bytes:
    """A command as an entry."""
    return _HEAD.pack(_COMMAND_KIND, term) + _TIMESTAMP.pack(timestamp) + payload


def encode(entry: Entry) -> bytes:
    """Any entry as bytes."""
    match entry:
        case Command(term, timestamp, payload):
            return encode_command(term, timestamp, payload)
        case Claim():
            body = _CLAIM.pack(entry.after, entry.ordered, entry.identity, entry.author)
            kind = _CLAIM_KIND if entry.rules else _PLAIN_CLAIM_KIND
            return _HEAD.pack(kind, entry.term) + body + entry.rules + entry.name.encode()
        case Beat(term, name, rules):
            kind = _BEAT_KIND if rules else _PLAIN_BEAT_KIND
            return _HEAD.pack(kind, term) + rules + name.encode()
        case Resignation(term):
            return _HEAD.pack(_RESIGNATION_KIND, term)


def decode(data: bytes) -> Entry:
    """The entry encoded in bytes. Raises ``WrongJournal`` if there is none."""
    kind, term, rest = 0, 0, b""
    try:
        kind, term = _HEAD.unpack_from(data)
        rest = data[_HEAD.size :]
        if kind == _COMMAND_KIND:
            return Command(term, _TIMESTAMP.unpack_from(rest)[0], rest[_TIMESTAMP.size :])
        if kind in (_CLAIM_KIND, _PLAIN_CLAIM_KIND):
            after, ordered, identity, author = _CLAIM.unpack_from(rest)
            rules, name = _rules_and_name(rest[_CLAIM.size :], plain=kind == _PLAIN_CLAIM_KIND)
            return Claim(term, after, ordered, identity, author, name, rules)
        if kind in (_BEAT_KIND, _PLAIN_BEAT_KIND):
            rules, name = _rules_and_name(rest, plain=kind == _PLAIN_BEAT_KIND)
            return Beat(term, name, rules)
    except (struct.error, ValueError):
        kind = 0
    if kind == _RESIGNATION_KIND and not rest:
        return Resignation(term)
    raise WrongJournal("the topic holds something else than the journal of a matcher")


def _rules_and_name(data: bytes, *, plain: bool) -> tuple[bytes, str]:
    """The end of a claim or a beat. Raises ``ValueError``."""
    rules, name = (b"", data) if plain else (data[:RULES_BYTES], data[RULES_BYTES:])
    if len(name) > MAX_NAME_BYTES or (not plain and len(rules) < RULES_BYTES):
        raise ValueError("too long or too short for an entry")
    return rules, name.decode()


class Verdict(Enum):
    """The meaning of an entry at its position."""

    COMMAND = "a valid command"
    TERM_BEGAN = "a valid claim"
    OTHER = "a beat or a resignation of the master"
    VOID = "invalid: its author was not the master, or another claim was earlier"


class Terms:
    """The state of the terms while entries are evaluated in order."""

    def __init__(self, identity: bytes) -> None:
        """Start before the first entry of the log that belongs to ``identity``."""
        self._identity = identity
        self.term = 0
        """The number of the term; 0 before the first."""
        self.master: Claim | None = None
        """The master's claim, if it was read."""
        self.name: str | None = None
        """The master's name, if known."""
        self.vacant = True
        """Whether there is no master: before the first term, and after a resignation."""
        self.last_valid = NOBODY
        """The offset of the last entry that was not void."""
        self.timestamp = 0
        """The timestamp of the last command."""

    def resume(self, offset: int, entry: Command) -> None:
        """Start at an entry that is known to be a valid command."""
        self.term, self.last_valid, self.timestamp = entry.term, offset, entry.timestamp
        self.vacant = False

    def take(self, offset: int, entry: Entry) -> Verdict:
        """Evaluate the next entry. Raises ``WrongJournal`` for a claim of another identity."""
        if isinstance(entry, Claim):
            if entry.identity != self._identity:
                raise WrongJournal("the topic belongs to another matcher or another network")
            beaten = not entry.ordered and entry.after != self.last_valid
            if beaten or entry.term != self.term + 1:
                return Verdict.VOID
            self.last_valid = offset
            self.term, self.master, self.vacant = entry.term, entry, False
            self.name = entry.name
            return Verdict.TERM_BEGAN
        if entry.term != self.term:
            return Verdict.VOID
        self.last_valid = offset
        if isinstance(entry, Command):
            self.timestamp = entry.timestamp
            return Verdict.COMMAND
        if isinstance(entry, Beat):
            self.name = entry.name
        else:
            self.master, self.name, self.vacant = None, None, True
        return Verdict.OTHER
