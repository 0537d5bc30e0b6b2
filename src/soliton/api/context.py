"""What the REST API needs from the program around it.

What lives here: the record that an application is built with and that every handler sees as
``request.context``. What does not: making the parts (the node's composition root does).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from soliton.api.block_texts import BlockTexts
from soliton.api.event_stream_registry import EventStreams
from soliton.api.sources import Sources
from soliton.api.texts import Texts
from soliton.api.thread_pool import ThreadPool
from soliton.api.time_slices import TimeSlices
from soliton.api.traffic import Traffic
from soliton.api.waiting import Waiting
from soliton.controls.control import Controls
from soliton.node.node import Node, system_clock
from soliton.node.rest_settings import ApiLimits
from soliton.parallel.signatures import SignatureChecker
from soliton.web.cors import Cors


def no_api_key(_key: str) -> bool:
    """The key check of a node without a valid ``api-key-hash``: every key is wrong."""
    return False


def no_scopes(_key: str) -> frozenset[str]:
    """The keys of a node without named ones."""
    return frozenset()


def nothing_to_refresh() -> None:
    """For a node that writes itself."""


EXPOSED_HEADERS = ("ETag", "Link", "Retry-After", "X-Hint")
"""Headers of our own that pages of other origins may read."""
OPEN = Cors(exposed=EXPOSED_HEADERS)
"""All of them may read, and none may send an API key."""
NO_LIMITS = ApiLimits(client_percent=0)
"""No client has a limit of its own on its requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiContext:
    """Settings and services of one API; the clock and the randomness are injected."""

    title: str
    version: str
    check_api_key: Callable[[str], bool] = no_api_key
    scopes_of_key: Callable[[str], frozenset[str]] = no_scopes
    """What other keys are good for."""
    limits: ApiLimits = NO_LIMITS
    """What one client may take."""
    is_api_key_hash: Callable[[str], bool] = no_api_key
    """Whether a text is the hash of the key that is in the settings."""
    cors: Cors = OPEN
    """Which pages of other origins may read the answers."""
    clock: Callable[[], int] = system_clock
    """Milliseconds of the machine's clock."""
    network_clock: Callable[[], int] = system_clock
    """Milliseconds of the clock that blocks are made with, corrected by NTP where that is on."""
    random_bytes: Callable[[int], bytes] = secrets.token_bytes
    refresh: Callable[[], None] = nothing_to_refresh
    """Called before each request, so that it sees what another process has written."""
    controls: Controls | None = None
    """What a private chain is told by, in the process that has it."""
    obeys: bool = False
    """Whether it is a private chain that is told by somebody, in this process or another."""
    no_controls: str = ""
    """Why the controls that others like it have are refused here; without it there are none."""
    node: Node | None = None
    """The node that most routes ask; an API without one has the routes under ``/utils`` only."""
    signatures: SignatureChecker | None = None
    """Who checks signatures on another core, if somebody does."""
    sources: Sources = field(default_factory=Sources)
    """What a private chain has compiled."""
    workers: ThreadPool = field(default_factory=ThreadPool)
    """Threads for what takes long."""
    texts: Texts = field(default_factory=Texts)
    """Processes for the texts of strangers."""
    time_slices: TimeSlices = field(default_factory=TimeSlices)
    """Who has long work to do takes turns."""
    block_texts: BlockTexts = field(default_factory=BlockTexts)
    """Blocks as they are sent."""
    event_streams: EventStreams = field(default_factory=EventStreams)
    """What the clients of the event streams share."""
    traffic: Traffic = field(default_factory=Traffic)
    """What the API has been asked, and what its clients have taken."""
    client_header: bytes | None = None
    """The header in which whoever passes requests on says whose they are."""
    waiting: Waiting = field(default_factory=Waiting)
    """Requests that wait for something to happen."""
