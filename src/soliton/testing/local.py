"""A private chain in this process: without ports and other processes, and with a clock that only
tests move.

Requests go directly to the node's application, which answers most of them synchronously. For other
answers an event loop runs until they are complete.

What lives here: the chain and its transport. What does not: fixtures (``plugin``), the controls of
any devnet (``chain``), and its matcher (``matching``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar, cast

import msgspec

from soliton.api.app import build_app
from soliton.api.context import NO_LIMITS
from soliton.api.sources import Sources
from soliton.api.text_jobs import Refused, Work, answer, decode_result, encode_work
from soliton.api.texts import Texts
from soliton.chain.values import MAX_I64
from soliton.cli.rest_api import api_context
from soliton.client.node import Node as ClientNode
from soliton.client.steps import Answer, Request
from soliton.controls.clock import DevClock
from soliton.controls.control import Controls
from soliton.controls.mining import INSTANT
from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import RICH_SEED, Funding, network_with
from soliton.devnet.matcher_journal import Mark
from soliton.devnet.options import API_KEY
from soliton.errors import InvariantBroken
from soliton.node.node import Node
from soliton.node.settings import api_key_hash_text, load_settings
from soliton.node.wallet import Wallet
from soliton.ride.errors import RideError
from soliton.testing.loops import Loop
from soliton.web.answers import Awaited, Deferred, Stream, Upgrade, Whole
from soliton.web.request import Request as ServiceRequest
from soliton.web.temporary import TemporaryPlace

T = TypeVar("T")
Served = TypeVar("Served", bound=ServiceRequest)

START_MS: Final = 1_735_689_600_000
"""The time at the start of a chain: 1 January 2025."""
URL: Final = "http://soliton.in.this.process"
ANY_CLOCK: Final = 1e12
"""Tests move the time of their chains at will; seconds."""
_LOCAL: Final = "127.0.0.1"
_WAITS: Final = ("/transactions/wait/", "/blocks/wait/")


class Moment(NamedTuple):
    """A state of the chain: a snapshot, the time, and the number of new accounts."""

    snapshot: int
    now: int
    made: int


class _OwnTexts(Texts):
    """Runs jobs in this process, because the texts of tests are trusted."""

    async def do(self, work: Work[T], charge: Callable[[float], None]) -> T:
        """Return the result of a job; raises ``RideError``."""
        del charge
        result = decode_result(answer(encode_work(work)))
        if isinstance(result, Refused):
            raise RideError(result.message)
        return cast("T", result)


class LocalChain:
    """A node with instant mining, and its controls."""

    def __init__(self, funding: Funding | None = None) -> None:
        """Deterministic: the same ``funding`` and the same calls give the same ids."""
        self.funding = funding or Funding()
        self.now = START_MS
        self.made = 0
        self.loop = Loop()
        self.sources = Sources()
        """The sources of deployed scripts, which errors quote."""
        self._place = TemporaryPlace("soliton-test-")
        settings = load_settings(
            network="devnet",
            data_dir=self._place.path,
            overrides={
                "rest-api.api-key-hash": api_key_hash_text(API_KEY),
                "rest-api.max-block-age": 0,
                "miner.commit-to-generation": True,
            },
        )
        network = network_with(settings.network, self.funding)
        settings = msgspec.structs.replace(settings, network=network)
        phrases = [each.encode() for each in self.funding.phrases()]
        clock, account = DevClock(lambda: self.now), key_pair(RICH_SEED)
        wallet = Wallet.in_memory(RICH_SEED.encode(), phrases)
        node = Node(settings, wallet, clock=clock, durable=False)
        self.node = node

        def prepare() -> None:
            node.mine(account)

        self.controls = Controls(node, account, clock, mode=INSTANT, prepare=prepare)
        # Votes would make blocks final, which tests replace.
        node.committer.only_with_others = True
        prepare()
        context = api_context(node, controls=self.controls)
        context = msgspec.structs.replace(
            context, limits=NO_LIMITS, texts=_OwnTexts(), sources=self.sources
        )
        self.app = build_app(context)

    @property
    def place(self) -> Path:
        """A directory for files, which ``close`` removes."""
        return self._place.path

    # --- time and snapshots -----------------------------------------------------------------------

    def tick(self) -> int:
        """Advance the time by a millisecond, so that equal transactions get different ids."""
        self.now += 1
        return self.controls.clock()

    def mark(self) -> Moment:
        """Take a snapshot."""
        return Moment(self.controls.snapshots.take(), self.now, self.made)

    def restore(self, moment: Moment) -> None:
        """Move the chain to a snapshot, which may be older or newer than its state."""
        # Not through ``Controls``, which would log it for each test.
        self.controls.snapshots.revert(moment.snapshot)
        self.controls.chain.allow_drift(self.controls.clock.drift)
        self.now, self.made = moment.now, moment.made

    def forget(self, moment: Moment) -> None:
        """Delete a snapshot."""
        self.controls.snapshots.forget(moment.snapshot)

    def token(self) -> object:
        """A value that differs where the chain, its controls, or its matcher have changed."""
        controls, chain = self.controls, self.controls.chain
        companion = controls.snapshots.companion
        mark = None if companion is None else companion.mark()
        return (
            chain.last_block.id,
            tuple(each.id for each in self.node.pool.transactions()),
            (controls.clock.state, controls.mining.mode, chain.waived, self.now, self.made),
            (mark.length, dict(mark.rates)) if isinstance(mark, Mark) else (0, {}),
        )

    # --- requests ---------------------------------------------------------------------------------

    def exchange(self, request: Request) -> Answer:
        """The response of the node's application. In instant mode the pool is mined after it."""
        response = self._respond(request)
        if request.method != "GET":
            self.controls.mine_if_instant()
        return client_answer(response)

    def _respond(self, request: Request) -> Whole:
        response = self.app.respond(service_request(self.app.request_class, request))
        if isinstance(response, Deferred | Awaited):
            response = self.loop.run(_awaited(response))
        if isinstance(response, Stream):
            if response.endless:
                raise InvariantBroken(f"{request.path} never ends: it wants a devnet with a port")
            return self.loop.run(_whole(response))
        if isinstance(response, Whole):
            return response
        raise InvariantBroken(f"{request.path} wants a connection: a devnet with a port")

    def close(self) -> None:
        """Close the node, and remove its files."""
        self.controls.snapshots.pause()
        self.loop.close()
        self.node.close()
        self._place.close()


async def _awaited(response: Deferred | Awaited) -> Whole | Stream | Upgrade:
    if isinstance(response, Awaited):
        return await response.work
    outcome: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    response.ask(outcome.set_result)
    finished: Whole = response.then(await outcome)
    return finished


async def _whole(stream: Stream) -> Whole:
    body = b"".join([each async for each in stream.chunks])
    return Whole(body, status=stream.status, headers=stream.headers)


def service_request(kind: type[Served], request: Request) -> Served:
    """A request of the library as one of a service's own class."""
    path, _, query = request.path.partition("?")
    headers = {name.lower().encode(): text.encode() for name, text in request.headers}
    if request.body:
        headers[b"content-length"] = b"%d" % len(request.body)
    return kind(request.method, path, query.encode(), headers, request.body, _LOCAL)


def client_answer(answer: Whole) -> Answer:
    """A service's response as the library expects it."""
    headers = dict(answer.headers)
    headers[b"content-type"] = answer.content_type
    return Answer(answer.status, answer.body, headers)


class LocalNode(ClientNode):
    """The library's ``Node`` on a chain in this process."""

    def __init__(self, local: LocalChain) -> None:
        """Opens no connection."""
        super().__init__(
            URL,
            api_key=API_KEY,
            chain_id=local.node.network.chain_id,
            max_fee=MAX_I64,
            max_clock_offset=ANY_CLOCK,
        )
        self._local = local
        self._seconds = 0.0
        self._exchange = self._ask
        self._pause = self._skip
        self._core.now = lambda: self._seconds
        self._core.is_soliton = True

    def _ask(self, request: Request) -> Answer:
        if request.path.startswith(_WAITS):
            # Nothing happens by itself in this process, so waiting is pointless.
            path, _, query = request.path.partition("?")
            fields = [each for each in query.split("&") if each and not each.startswith("timeout=")]
            seconds = query.partition("timeout=")[2].partition("&")[0]
            self._skip(float(seconds or 0))
            request = msgspec.structs.replace(
                request, path=f"{path}?{'&'.join([*fields, 'timeout=0'])}"
            )
        return self._local.exchange(request)

    def _skip(self, seconds: float) -> None:
        self._seconds += seconds
