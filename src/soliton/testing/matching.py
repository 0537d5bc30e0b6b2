"""A matcher in this process on the tests' chain, without ports and other processes.

It is an ordinary matcher with a journal in memory. After a revert, the next request starts a new
matcher that replays the commands up to the snapshot.

What lives here: starting and stopping it, the library's ``Matcher`` on it, and its streams. What
does not: the matcher itself, the meaning of messages (``soliton.client.streams``), and the chain
(``local``).
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, Final, cast

from soliton.client.account import Account
from soliton.client.amounts import AssetLike
from soliton.client.matcher import Matcher as ClientMatcher
from soliton.client.steps import Answer
from soliton.client.steps import Request as ClientRequest
from soliton.client.streams import DEFAULT_DEPTH, PATH, MatcherStream, Update
from soliton.crypto import curve25519
from soliton.crypto.hashes import secure_hash
from soliton.crypto.keys import KeyPair
from soliton.devnet.matcher_journal import AT_THE_BEGINNING, Mark, MemoryJournal
from soliton.devnet.matcher_node import LocalNode
from soliton.devnet.options import API_KEY
from soliton.errors import InvariantBroken
from soliton.matcher.rest.app import build_app
from soliton.matcher.rest.application import Application
from soliton.matcher.service import Matcher
from soliton.matcher.settings import MatcherSettings, NodeAccess, RestApi
from soliton.matcher.stores import open_snapshots
from soliton.matcher.time_slices import end_all
from soliton.matcher.trading_settings import TradingSettings
from soliton.matching.placement import PlacementSettings
from soliton.parallel.signatures import OnSignature, SignatureChecker
from soliton.testing.local import LocalChain, client_answer, service_request
from soliton.testing.loops import QuietLoop
from soliton.web.answers import Awaited, Upgrade, Whole
from soliton.web.request import Request
from soliton.web.websocket import WebSocket, WebSocketClosed

URL: Final = "http://matcher.in.this.process"
_AGES_MS: Final = 10**15
"""Windows for signatures and silence: the chain's clock is not that of the tests."""
_MS: Final = 1_000
QUIET_SECONDS: Final = 1.0
"""A stream is over after this much of the matcher's time without an update; changes are buffered
for a tenth of that.
"""
_LOCAL: Final = "127.0.0.1"


class _Signatures(SignatureChecker):
    """Checks and signs synchronously; signatures are deterministic, and so are blocks."""

    def __init__(self) -> None:
        super().__init__(beside=False)

    def sign(
        self, private_key: bytes, message: bytes, point: bytes, on_signature: OnSignature
    ) -> None:
        """As ``SignatureChecker.sign``, but synchronous."""
        nonce = hashlib.sha512(private_key + message).digest()
        on_signature(curve25519.sign(private_key, message, nonce, point))


class Running:
    """A running matcher with its own event loop."""

    def __init__(self, local: LocalChain, settings: MatcherSettings, mark: Mark) -> None:
        settings.directory.mkdir(parents=True)
        self._directory = settings.directory
        self._clock = local.node.clock
        self._settled_at = self._clock()
        self.loop = QuietLoop()
        self._under_way: set[asyncio.Task[None]] = set()
        self.loop.finish(self._begin(local, settings, mark))

    async def _begin(self, local: LocalChain, settings: MatcherSettings, mark: Mark) -> None:
        signatures = _Signatures()
        journal = MemoryJournal(local.node.clock, mark.kept)
        self.local = LocalNode(local.node, signatures)
        self.matcher = Matcher(
            settings,
            self.local,
            journal,
            open_snapshots(settings),
            durable=False,
            signatures=signatures,
        )
        self.interface: Application = build_app(self.matcher)
        await self.matcher.start()
        await self.matcher.working()
        for asset, rate in mark.rates.items():
            self.matcher.rates.put(asset, rate)

    def settle(self) -> None:
        """Handle all events of the chain."""
        now = self._clock()
        self.loop.pass_by((now - self._settled_at) / _MS)
        self._settled_at = now
        self.loop.settle()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a task until the matcher ends."""
        task = self.loop.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def end(self) -> None:
        """Stop the matcher and remove its directory."""
        self.interface.close()
        self.loop.finish(self.matcher.stop())
        self.loop.finish(end_all([*self._under_way]))
        self.loop.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class Matching:
    """The matcher of a chain in this process, which starts at the first request."""

    def __init__(self, local: LocalChain, account: KeyPair) -> None:
        """``account`` signs the exchange transactions."""
        self._local, self._account = local, account
        self._mark = AT_THE_BEGINNING._replace(kept=[])
        self._running: Running | None = None
        self._starts = 0

    def mark(self) -> Mark:
        """Take a snapshot."""
        rates = self._mark.rates
        if self._running is not None:
            rates = self._running.matcher.database.rates()
        return Mark(self._mark.kept, len(self._mark.kept), rates)

    def restore(self, mark: object) -> None:
        """Restore a snapshot, or the initial state, after the chain was reverted."""
        then = mark if isinstance(mark, Mark) else AT_THE_BEGINNING
        self._mark = then._replace(kept=then.records())

    def settled(self) -> Running:
        """The running matcher after all events of the chain."""
        running = self._need()
        self._settle(running)
        return running

    def exchange(self, request: ClientRequest) -> Answer:
        """The response to a request, after all of its consequences, also on the chain."""
        running = self.settled()
        response = running.interface.gate.respond(service_request(Request, request))
        if isinstance(response, Awaited):
            response = running.loop.finish(response.work)
        if not isinstance(response, Whole):
            raise InvariantBroken(f"{request.path} wants a connection: a matcher with a port")
        self._settle(running)
        return client_answer(response)

    def _settle(self, running: Running) -> None:
        chain, height = self._local.node.chain, -1
        while height != chain.height:
            height = chain.height
            running.settle()
            self._local.controls.mine_if_instant()

    def _need(self) -> Running:
        if self._running is not None and self._running.local.is_lost:
            self.pause()
        if self._running is None:
            self._starts += 1
            self._running = Running(self._local, self._settings(), self._mark)
        return self._running

    def _settings(self) -> MatcherSettings:
        node, key = self._local.node, self._account.public_key
        return MatcherSettings(
            network=node.network,
            directory=self._local.place / f"matcher-{self._starts}",
            account=self._account,
            id="test",
            rest_api=RestApi(
                api_key_hashes=(secure_hash(API_KEY.encode()),),
                signature_window_ms=_AGES_MS,
                cancel_all_window_ms=_AGES_MS,
            ),
            node=NodeAccess(max_silence_ms=_AGES_MS),
            trading=TradingSettings(placement=PlacementSettings(key)),
            clock=node.clock,
        )

    def pause(self) -> None:
        """Stop the matcher; the next request starts it again from its commands."""
        running, self._running = self._running, None
        if running is not None:
            self._mark = self._mark._replace(rates=running.matcher.database.rates())
            running.end()


class _Socket:
    """A WebSocket in memory. The matcher uses ``receive``, ``send`` and ``close``."""

    def __init__(self) -> None:
        self._to_matcher: asyncio.Queue[str | None] = asyncio.Queue()
        self._to_client: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._is_closed = False

    async def receive(self) -> str:
        """As ``WebSocket``."""
        message = await self._to_matcher.get()
        if message is None:
            self._to_matcher.put_nowait(None)
            raise WebSocketClosed
        return message

    async def send(self, data: bytes, *, is_text: bool = True) -> None:
        """As ``WebSocket``."""
        del is_text
        if self._is_closed:
            raise WebSocketClosed
        self._to_client.put_nowait(data)

    def close(self, code: int = 1000, reason: str = "") -> None:
        """As ``WebSocket``."""
        del code, reason
        self._is_closed = True
        self._to_matcher.put_nowait(None)
        self._to_client.put_nowait(None)

    def client_send(self, message: str) -> None:
        """Send a message of the client."""
        self._to_matcher.put_nowait(message)

    async def client_receive(self) -> bytes | None:
        """The next message to the client; ``None`` at the end."""
        return await self._to_client.get()


def _updates(settled: Callable[[], Running], stream: MatcherStream) -> Iterator[Update]:
    """Yield the updates of a stream, which reconnects when the matcher is restarted. ``settled``
    returns the running matcher after all events. Raises ``InvariantBroken`` when there is no
    further update, because nothing happens by itself in this process.
    """
    running: Running | None = None
    socket = _Socket()
    try:
        while True:
            now = settled()
            if now is not running:
                running, socket = now, _Socket()
                _connect(running, socket)
                for message in stream.opening():
                    socket.client_send(message)
            update = _next(running, socket, stream)
            if update is not None:
                yield update
    finally:
        socket.close()


def _connect(running: Running, socket: _Socket) -> None:
    request = Request("GET", PATH, b"", {}, b"", _LOCAL)
    request.is_websocket = True
    response = running.interface.gate.respond(request)
    if isinstance(response, Awaited):
        response = running.loop.finish(response.work)
    if not isinstance(response, Upgrade):
        raise InvariantBroken(f"the matcher takes no stream: {response}")
    running.begin(response.run(cast("WebSocket", socket)))


def _next(running: Running, socket: _Socket, stream: MatcherStream) -> Update | None:
    """The next update; ``None`` at the end of the connection."""
    until = running.loop.time() + QUIET_SECONDS
    while (message := running.loop.finish(socket.client_receive())) is not None:
        update, reply = stream.received(message)
        if reply is not None:
            socket.client_send(reply)
        if update is not None:
            return update
        if running.loop.time() > until:
            raise InvariantBroken("the stream has no further updates: nothing happens by itself")
    return None


class LocalMatcher(ClientMatcher):
    """The library's ``Matcher`` on a chain in this process."""

    def __init__(self, matching: Matching) -> None:
        """Opens no connection."""
        super().__init__(URL)
        self._matching = matching
        self._exchange = matching.exchange
        self._pause = _no_pause

    def stream(
        self,
        books: Iterable[tuple[AssetLike, AssetLike]] = (),
        *,
        account: Account | None = None,
        token: str | None = None,
        rates: bool = False,
        depth: int = DEFAULT_DEPTH,
    ) -> Iterator[Update]:
        """As ``Matcher.stream``. The iterator raises ``InvariantBroken`` when there is no further
        update, because nothing happens by itself in this process.
        """
        stream = MatcherStream(books, account=account, token=token, rates=rates, depth=depth)
        return _updates(self._matching.settled, stream)


def _no_pause(seconds: float) -> None:
    del seconds
