"""What can be set about a signer, and the limits that it keeps.

What lives here: the records. What does not: reading them from files (``node.settings``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from soliton.chain.networks import Network
from soliton.signer.callers import Caller
from soliton.web.clock import wall_clock
from soliton.web.server import ServerLimits


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a request may take; everything beyond is refused by name."""

    body_bytes: int = 1024 * 1024
    """The largest transaction (150 KiB) written as arrays of bytes fits, with room for spaces."""
    body_seconds: float = 10.0
    """The time that a body may take to arrive."""
    seed_characters: int = 2_048
    requests_at_once: int = 64
    """Each may hold a body and a connection to the node; the next ones are told to come back."""
    connect_seconds: float = 3.0
    """The time for a connection to the node."""
    node_seconds: float = 15.0
    """The time for the node's whole answer; a node ends its own requests after 20."""
    node_answer_bytes: int = 1024 * 1024
    keep_alive_seconds: float = 15.0
    """How long an idle connection to the node is kept: less than nodes keep theirs."""


PREFLIGHT_SECONDS: Final = 600
"""How long browsers need not ask again what a page may send: else each of its requests is two."""
SERVER_LIMITS: Final = ServerLimits(connections=256, head_bytes=16 * 1024, keep_alive_seconds=15)
"""A signer has few clients, each with a seed."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """A key that a store keeps, under the name that it has here; ``where`` is a module or an
    address, ``within`` a token or a mount, ``secret_file`` has the PIN or the token.
    """

    name: str
    kind: str
    where: str
    within: str
    key: str
    secret_file: Path


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Who is told what waits for approval, and the file of the secret that signs it."""

    url: str
    secret_file: Path


@dataclass(frozen=True, slots=True)
class FetchedSettings:
    """A key whose secret is brought here at the start, under the name that it has here.

    ``kind`` is ``environment`` (``where``: a variable), ``command`` or ``vault-kv`` (``where``: an
    address, ``within``: a mount); ``secret`` is the kind of secret, as in key files, and
    ``public_key`` (base58) what it has to be the secret of.
    """

    name: str
    kind: str
    secret: str
    public_key: str
    where: str = ""
    command: tuple[str, ...] = ()
    within: str = ""
    path: str = ""
    field: str = ""
    token_file: str = ""


@dataclass(frozen=True, slots=True)
class KeySettings:
    """Where keys, rules and the audit log are, the hash that the rules must have, who may call, and
    under which names of the host beside those of this machine. Pages of ``origins`` may call, too.

    With ``durable`` off a line of the audit log survives the end of the process before its
    signature leaves, and not that of the machine.
    """

    directory: Path
    policy_file: Path
    policy_hash: str
    state_directory: Path
    callers: tuple[Caller, ...] = ()
    hosts: tuple[str, ...] = ()
    durable: bool = True
    stores: tuple[StoreSettings, ...] = ()
    webhook: WebhookSettings | None = None
    origins: tuple[str, ...] = ()
    fetched: tuple[FetchedSettings, ...] = ()


@dataclass(frozen=True, slots=True)
class SignerSettings:
    """Where the node is, which network's fees are paid, and what browsers may do.

    ``cors`` lets pages of any origin call the service, as demo applications do. ``clock`` gives
    milliseconds. ``keys`` are those of a signer that keeps some.
    """

    node_url: str
    network: Network
    limits: Limits = Limits()
    cors: bool = True
    clock: Callable[[], int] = wall_clock
    keys: KeySettings | None = None
