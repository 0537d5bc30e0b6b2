"""Settings and services of the REST API.

What lives here: the record that an application is built with, which handlers see as
``request.context``. What does not: making the services (the node's composition root does).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import msgspec

from soliton.api.block_texts import BlockTexts
from soliton.api.downloads import Downloads
from soliton.api.event_stream_registry import EventStreams
from soliton.api.sources import Sources
from soliton.api.texts import Texts
from soliton.api.thread_pool import ThreadPool
from soliton.api.time_slices import TimeSlices
from soliton.api.waiting import Waiting
from soliton.controls.control import Controls
from soliton.node.node import Node, system_clock
from soliton.node.rest_settings import ApiLimits
from soliton.parallel.signatures import SignatureChecker
from soliton.web.cors import Cors
from soliton.web.traffic import Traffic

EXPOSED_HEADERS = ("ETag", "Link", "Retry-After", "X-Hint")
"""Response headers that pages of other origins may read."""
OPEN = Cors(exposed=EXPOSED_HEADERS)
"""Pages of any origin may read, and none may send an API key."""
NO_LIMITS = ApiLimits(client_percent=0)
"""No limit on the requests of a single client."""


class ApiContext(msgspec.Struct, frozen=True, kw_only=True):
    """Settings and services of one API, with clock and randomness as arguments."""

    title: str
    version: str
    check_api_key: Callable[[str], bool] = lambda _key: False
    """Without a configured ``api-key-hash`` every key is wrong."""
    scopes_of_key: Callable[[str], frozenset[str]] = lambda _key: frozenset()
    """Returns the scopes of a named key."""
    limits: ApiLimits = NO_LIMITS
    is_api_key_hash: Callable[[str], bool] = lambda _text: False
    """Whether a text is the configured hash, which users confuse with the key."""
    cors: Cors = OPEN
    """Which pages of other origins may read the answers."""
    clock: Callable[[], int] = system_clock
    """Milliseconds of the machine's clock."""
    network_clock: Callable[[], int] = system_clock
    """Milliseconds of the clock for block timestamps, corrected by NTP if that is enabled."""
    random_bytes: Callable[[int], bytes] = secrets.token_bytes
    refresh: Callable[[], None] = lambda: None
    """Called before each request, so that it sees what another process has written."""
    controls: Controls | None = None
    """The controls of a private chain, in the process that has them."""
    obeys: bool = False
    """Whether the chain has controls, in this process or another."""
    no_controls: str = ""
    """Why this chain has no controls; if empty, the control routes do not exist."""
    node: Node | None = None
    """An API without a node has only the routes under ``/utils``."""
    signatures: SignatureChecker | None = None
    """Checks signatures on another core, if set."""
    sources: Sources = msgspec.field(default_factory=Sources)
    """Scripts that a private chain has compiled."""
    workers: ThreadPool = msgspec.field(default_factory=ThreadPool)
    """Threads for long work."""
    downloads: Downloads = msgspec.field(default_factory=Downloads)
    """Files that are being sent."""
    texts: Texts = msgspec.field(default_factory=Texts)
    """Worker processes that parse untrusted text."""
    time_slices: TimeSlices = msgspec.field(default_factory=TimeSlices)
    """Cooperative scheduling of long answers on the event loop."""
    block_texts: BlockTexts = msgspec.field(default_factory=BlockTexts)
    """A cache of blocks as JSON."""
    event_streams: EventStreams = msgspec.field(default_factory=EventStreams)
    """State shared by the clients of the event streams."""
    traffic: Traffic = msgspec.field(default_factory=Traffic)
    """Counters of requests and of the clients' use."""
    client_header: bytes | None = None
    """The header in which a proxy names the client."""
    waiting: Waiting = msgspec.field(default_factory=Waiting)
    """Requests that wait for an event."""
