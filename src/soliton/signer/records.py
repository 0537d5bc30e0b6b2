"""The lines of the audit log, which is also what a signer remembers.

A line is a JSON object; ``before`` is the hash (BLAKE2b-256, in hexadecimal) of the line before it,
so that none can be changed, left out or put in without the rest telling. No line holds a password,
a private key or an API key.

What lives here: what a line holds, writing and reading one. What does not: files (``journal``), and
what follows from lines (``book``).
"""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Final

import msgspec

FIRST_BEFORE: Final = "0" * 64
"""What the first line of all has for the hash of the line before it."""


class Event(Enum):
    """What happened."""

    START = "start"
    CHECKPOINT = "checkpoint"
    POLICY = "policy"
    UNLOCK = "unlock"
    LOCK = "lock"
    WRONG_PASSWORD = "wrong-password"  # noqa: S105 - a name
    SIGN = "sign"
    REFUSE = "refuse"
    ASK = "ask"
    APPROVE = "approve"
    REJECT = "reject"


class MarkKind(Enum):
    """What a generator signs."""

    BLOCK = "block"
    MICROBLOCK = "microblock"


class Mark(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What was signed as a generator: with the public key ``key``, on a block's ``parent``; the
    ``form`` is the id of the block that comes of it, ``digest`` the hash of what was asked.

    Of a block there is what the signature belongs to, ``unsigned``, in base64.
    """

    kind: MarkKind
    key: str
    height: int
    parent: str
    form: str
    digest: str
    unsigned: str = ""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """One line. ``at`` is the wall clock in milliseconds, ``time`` that of the windows.

    ``lines`` are where the rules stand in their file, ``request`` is the idempotency id, ``digest``
    the hash of what was asked, ``pending`` the id of what waits for approval, ``told`` the
    sentences; ``stamps`` are the timestamps that were signed, ``last_stamp`` is the last that the
    signer has chosen.
    """

    number: int
    before: str
    at: int
    time: int
    event: Event
    caller: str = ""
    key: str = ""
    rule: str = ""
    lines: tuple[int, ...] = ()
    reason: str = ""
    request: str = ""
    digest: str = ""
    pending: str = ""
    policy: str = ""
    boot: str = ""
    since_boot: int = 0
    told: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    proofs: tuple[str, ...] = ()
    stamps: tuple[int, ...] = ()
    charges: tuple[tuple[str, int, int], ...] = ()
    asked: str = ""
    approvers: tuple[str, ...] = ()
    needed: int = 0
    expires: int = 0
    sends: bool = False
    windows: tuple[tuple[str, int, list[list[int]]], ...] = ()
    waiting: tuple[Entry, ...] = ()
    oldest: int = 0
    mark: Mark | None = None
    marks: tuple[Entry, ...] = ()
    last_stamp: int = 0


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Entry)

to_line = _ENCODER.encode
from_line = _DECODER.decode


def line_hash(line: bytes) -> str:
    """What the next line names this one by."""
    return hashlib.blake2b(line, digest_size=32).hexdigest()
