"""A private chain in this process: no port, no other process, and a clock that only tests move.

Requests go to the node's application itself, which answers most of them at once. What needs an
event loop gets one of its own, which runs as long as the answer takes.

What lives here: the chain and the way to it. What does not: fixtures (``plugin``), what can be
asked of any devnet (``chain``), and its matcher (``matching``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, TypeVar, cast

import msgspec

from soliton.api.app import build_app
from soliton.api.context import NO_LIMITS
from soliton.api.sources import Sources
from soliton.api.text_jobs import Refused, Work, answer, decode_result, encode_work
from soliton.api.texts import Texts
from soliton.cli.rest_api import api_context
from soliton.client.node import Node as ClientNode
from soliton.client.steps import Answer, Request
from soliton.controls.clock import DevClock
from soliton.controls.control import Controls
from soliton.controls.mining import INSTANT
from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import RICH_SEED, Funding, network_with
from soliton.devnet.options import API_KEY
from soliton.errors import InvariantBroken
from soliton.node.node import Node
from soliton.node.settings import api_key_hash_text, load_settings
from soliton.node.wallet import Wallet
from soliton.ride.errors import RideError
from soliton.testing.asking import asked, told
from soliton.testing.loops import Loop
from soliton.web.answers import Awaited, Deferred, Stream, Upgrade, Whole
from soliton.web.temporary import TemporaryPlace

T = TypeVar("T")

START_MS: Final = 1_735_689_600_000
"""What time it is when a chain begins: 1 January 2025."""
URL: Final = "http://soliton.in.this.process"
_WAITS: Final = ("/transactions/wait/", "/blocks/wait/")


class Moment(NamedTuple):
    """What a chain goes back to: a snapshot, the machine's time, how many accounts were made."""

    snapshot: int
    now: int
    made: int


class _OwnTexts(Texts):
    """Works on texts in this process: they are those of the tests."""

    async def do(self, work: Work[T], charge: Callable[[float], None]) -> T:
        """What a piece of work comes to; raises ``RideError``."""
        del charge
        result = decode_result(answer(encode_work(work)))
        if isinstance(result, Refused):
            raise RideError(result.message)
        return cast("T", result)


class LocalChain:
    """A node that makes a block for each transaction at once, and what it is told by."""

    def __init__(self, funding: Funding | None = None) -> None:
        """The same ``funding`` and the same calls give the same ids."""
        self.funding = funding or Funding()
        self.now = START_MS
        self.made = 0
        self.loop = Loop()
        self.sources = Sources()
        """Those of the scripts that were deployed here, for refusals to quote."""
        self._place = TemporaryPlace("soliton-test-")
        settings = load_settings(
            network="devnet",
            data_dir=self._place.path,
            overrides={
                "rest-api.api-key-hash": api_key_hash_text(API_KEY),
                "rest-api.max-block-age": 0,
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
        prepare()
        context = api_context(node, controls=self.controls)
        context = replace(context, limits=NO_LIMITS, texts=_OwnTexts(), sources=self.sources)
        self.app = build_app(context)

    @property
    def place(self) -> Path:
        """Where files may be, as long as this is there."""
        return self._place.path

    # --- its time, and going back -----------------------------------------------------------------

    def tick(self) -> int:
        """A millisecond later: what is made now is not what was made before."""
        self.now += 1
        return self.controls.clock()

    def mark(self) -> Moment:
        """Remember everything."""
        return Moment(self.controls.snapshots.take(), self.now, self.made)

    def leave(self, moment: Moment) -> None:
        """Be again as then, for the last time."""
        # Not by the names for users: a log that says this twice for each test says nothing.
        self.controls.snapshots.revert(moment.snapshot)
        self.controls.chain.allow_drift(self.controls.clock.drift)
        self.controls.snapshots.forget(moment.snapshot)
        self.now, self.made = moment.now, moment.made

    # --- requests ---------------------------------------------------------------------------------

    def exchange(self, request: Request) -> Answer:
        """The answer of the node's application, after which there is a block if blocks come at
        once.
        """
        answer = self._answered(request)
        if request.method != "GET":
            self.controls.mine_if_instant()
        return told(answer)

    def _answered(self, request: Request) -> Whole:
        given = self.app.respond(asked(self.app.request_class, request))
        if isinstance(given, Deferred | Awaited):
            given = self.loop.run(_awaited(given))
        if isinstance(given, Stream):
            if given.endless:
                raise InvariantBroken(f"{request.path} never ends: it wants a devnet with a port")
            return self.loop.run(_whole(given))
        if isinstance(given, Whole):
            return given
        raise InvariantBroken(f"{request.path} wants a connection: a devnet with a port")

    def close(self) -> None:
        """End it, and remove what it has written."""
        self.controls.snapshots.rest()
        self.loop.close()
        self.node.close()
        self._place.close()


async def _awaited(given: Deferred | Awaited) -> Whole | Stream | Upgrade:
    if isinstance(given, Awaited):
        return await given.work
    told: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    given.ask(told.set_result)
    answer: Whole = given.then(await told)
    return answer


async def _whole(given: Stream) -> Whole:
    body = b"".join([each async for each in given.chunks])
    return Whole(body, status=given.status, headers=given.headers)


class LocalNode(ClientNode):
    """The library's ``Node`` on a chain in this process."""

    def __init__(self, local: LocalChain) -> None:
        """Nothing is connected."""
        super().__init__(URL, api_key=API_KEY, chain_id=local.node.network.chain_id)
        self._local = local
        self._seconds = 0.0
        self._exchange = self._ask
        self._pause = self._skip
        self._core.now = lambda: self._seconds
        self._core.is_soliton = True

    def _ask(self, request: Request) -> Answer:
        if request.path.startswith(_WAITS):
            # What there is to wait for has happened already, or does not happen by itself.
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
