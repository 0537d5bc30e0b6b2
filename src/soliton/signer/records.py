"""The records of the audit log, from which the signer also restores its state.

A line is a JSON object. ``before`` is the hash (BLAKE2b-256, in hexadecimal) of the previous line:
a hash chain, in which a changed, removed or inserted line is detected. No line contains a password,
a private key or an API key.

What lives here: the fields of a line, encoding and decoding. What does not: files (``journal``),
and the state (``state``).
"""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Final

import msgspec

FIRST_BEFORE: Final = "0" * 64
"""The previous hash in the very first line."""


class Event(Enum):
    """The kinds of lines."""

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
    """The kinds of things that a generator signs."""

    BLOCK = "block"
    MICROBLOCK = "microblock"


class Mark(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A block or microblock signed with the public key ``key`` on the block ``parent``. ``form`` is
    the id of the resulting block, ``digest`` the hash of the request.

    ``unsigned`` is the block without its signature, in base64.
    """

    kind: MarkKind
    key: str
    height: int
    parent: str
    form: str
    digest: str
    unsigned: str = ""


class OldParents(msgspec.Struct, frozen=True, gc=False):
    """The parents of a key's older blocks: for each, in base64, 16 bytes of its hash and 6 of the
    time of its line.
    """

    key: str
    records: str


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """One line. ``at`` is the wall clock in milliseconds, ``time`` the clock of the windows.

    ``lines`` are the lines of the rules in their file, ``request`` is the idempotency id,
    ``digest`` the hash of the request, ``pending`` the id of a pending request. ``stamps`` are the
    signed timestamps, ``last_stamp`` is the last one that the signer has chosen.
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
    sentences: tuple[str, ...] = msgspec.field(default=(), name="told")
    ids: tuple[str, ...] = ()
    proofs: tuple[str, ...] = ()
    stamps: tuple[int, ...] = ()
    charges: tuple[tuple[str, int, int], ...] = ()
    request_json: str = msgspec.field(default="", name="asked")
    approvers: tuple[str, ...] = ()
    needed: int = 0
    expires: int = 0
    sends: bool = False
    windows: tuple[tuple[str, int, list[list[int]]], ...] = ()
    waiting: tuple[Entry, ...] = ()
    oldest: int = 0
    mark: Mark | None = None
    signed_blocks: tuple[Entry, ...] = msgspec.field(default=(), name="marks")
    old_parents: tuple[OldParents, ...] = ()
    last_stamp: int = 0


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Entry)

to_line = _ENCODER.encode
from_line = _DECODER.decode


def line_hash(line: bytes) -> str:
    """Return the hash of a line, which the next line contains."""
    return hashlib.blake2b(line, digest_size=32).hexdigest()
