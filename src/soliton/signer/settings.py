"""The settings of a signer, and its limits.

What lives here: the records. What does not: reading them from files (``node.settings``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.networks import Network
from soliton.signer.callers import Caller
from soliton.web.clock import wall_clock
from soliton.web.server import ServerLimits


class Limits(msgspec.Struct, frozen=True):
    """Limits on requests; each has its own error."""

    body_bytes: int = 1024 * 1024
    """The largest transaction (150 KiB) written as arrays of bytes fits, with room for spaces."""
    body_seconds: float = 10.0
    """The time that a body may take to arrive."""
    seed_characters: int = 2_048
    requests_at_once: int = 64
    """Each may hold a body and a connection to the node; further ones get 503 to retry."""
    connect_seconds: float = 3.0
    """The time for a connection to the node."""
    node_seconds: float = 15.0
    """The time for the node's whole answer; a node ends its own requests after 20."""
    node_answer_bytes: int = 1024 * 1024
    keep_alive_seconds: float = 15.0
    """How long an idle connection to the node is kept: less than a node's own timeout."""


PREFLIGHT_SECONDS: Final = 600
"""How long browsers cache a preflight response: otherwise each request of a page becomes two."""
SERVER_LIMITS: Final = ServerLimits(connections=256, head_bytes=16 * 1024, keep_alive_seconds=15)
"""A signer has few clients, each with a seed."""


class StoreSettings(msgspec.Struct, frozen=True):
    """A key in an external store. ``where`` is a module or an address, ``within`` a token or a
    mount, ``secret_file`` holds the PIN or the access token.
    """

    name: str
    kind: str
    where: str
    within: str
    key: str
    secret_file: Path


class WebhookSettings(msgspec.Struct, frozen=True):
    """The receiver of notifications of pending requests, and the file of the shared secret."""

    url: str
    secret_file: Path


class FetchedSettings(msgspec.Struct, frozen=True):
    """A key whose secret is fetched at the start.

    ``kind`` is ``environment`` (``where``: a variable), ``command`` or ``vault-kv`` (``where``: an
    address, ``within``: a mount). ``secret`` is the kind of secret, as in key files, and
    ``public_key`` (base58) the public key that it must have.
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


class KeySettings(msgspec.Struct, frozen=True):
    """The directories of keys and of the audit log, the policy file and its pinned hash, the
    callers, allowed ``Host`` names besides those of this machine, and allowed CORS ``origins``.

    With ``durable`` off the audit log survives a crash of the process, but not of the machine.
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


class SignerSettings(msgspec.Struct, frozen=True):
    """The node, the network, and the limits.

    ``cors`` lets pages of any origin call ``POST /data``, as demo applications do. ``clock``
    returns milliseconds. ``keys`` are the settings of stored keys, if there are any.
    """

    node_url: str
    network: Network
    limits: Limits = Limits()
    cors: bool = True
    clock: Callable[[], int] = wall_clock
    keys: KeySettings | None = None
