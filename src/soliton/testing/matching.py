"""A matcher in the process of the tests, on their chain: no port, no other process.

It is a matcher as any other one; its journal is in memory. Going back means: a new one is begun
from the commands up to then, when the next test asks it something.

What lives here: its life, and the library's ``Matcher`` on it. What does not: the matcher, and the
chain (``local``).
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any, Final

from soliton.client.account import Account
from soliton.client.amounts import AssetLike
from soliton.client.matcher import Matcher as ClientMatcher
from soliton.client.steps import Answer, Request
from soliton.client.streams import DEFAULT_DEPTH, MatcherStream, Update
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
from soliton.testing.asking import asked, told
from soliton.testing.local import LocalChain
from soliton.testing.loops import QuietLoop
from soliton.testing.streaming import updates
from soliton.web.answers import Awaited, Whole
from soliton.web.request import Request as Asked

URL: Final = "http://matcher.in.this.process"
_AGES_MS: Final = 10**15
"""The chain's time is not that of whoever signs a question, and nobody is silent here."""
_MS: Final = 1_000


class _Signatures(SignatureChecker):
    """Checks and signs at once, and with no chance in what it signs: the same blocks come of it."""

    def __init__(self) -> None:
        super().__init__(beside=False)

    def sign(
        self, private_key: bytes, message: bytes, point: bytes, on_signature: OnSignature
    ) -> None:
        """As ``SignatureChecker.sign``, here and now."""
        chance = hashlib.sha512(private_key + message).digest()
        on_signature(curve25519.sign(private_key, message, chance, point))


class Running:
    """One life of the matcher, in a loop of its own."""

    def __init__(self, local: LocalChain, settings: MatcherSettings, mark: Mark) -> None:
        settings.directory.mkdir(parents=True)
        self._directory = settings.directory
        self._clock = local.node.clock
        self._heard = self._clock()
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
        """Hear what has happened on the chain, and do what follows from it."""
        now = self._clock()
        self.loop.pass_by((now - self._heard) / _MS)
        self._heard = now
        self.loop.settle()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Go on with something until the end."""
        task = self.loop.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def end(self) -> None:
        """End it; what is kept elsewhere stays."""
        self.interface.close()
        self.loop.finish(self.matcher.stop())
        self.loop.finish(end_all([*self._under_way]))
        self.loop.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class Matching:
    """The matcher of a chain in this process. It is there when it is first asked something."""

    def __init__(self, local: LocalChain, account: KeyPair) -> None:
        """It makes exchanges with this account."""
        self._local, self._account = local, account
        self._mark = AT_THE_BEGINNING._replace(kept=[])
        self._running: Running | None = None
        self._lives = 0

    def mark(self) -> Mark:
        """Remember everything."""
        rates = self._mark.rates
        if self._running is not None:
            rates = self._running.matcher.database.rates()
        return Mark(self._mark.kept, len(self._mark.kept), rates)

    def leave(self, mark: object) -> None:
        """Be again as at a mark, or as at the beginning; the chain is so already."""
        then = mark if isinstance(mark, Mark) else AT_THE_BEGINNING
        self._mark = then._replace(kept=then.records())

    def settled(self) -> Running:
        """The one that lives, after all that has happened."""
        running = self._need()
        self._settle(running)
        return running

    def exchange(self, request: Request) -> Answer:
        """Its answer, after which everything that follows has happened, on the chain too."""
        running = self.settled()
        given = running.interface.gate.respond(asked(Asked, request))
        if isinstance(given, Awaited):
            given = running.loop.finish(given.work)
        if not isinstance(given, Whole):
            raise InvariantBroken(f"{request.path} wants a connection: a matcher with a port")
        self._settle(running)
        return told(given)

    def _settle(self, running: Running) -> None:
        chain, height = self._local.node.chain, -1
        while height != chain.height:
            height = chain.height
            running.settle()
            self._local.controls.mine_if_instant()

    def _need(self) -> Running:
        if self._running is not None and self._running.local.is_lost:
            self.rest()
        if self._running is None:
            self._lives += 1
            self._running = Running(self._local, self._settings(), self._mark)
        return self._running

    def _settings(self) -> MatcherSettings:
        node, key = self._local.node, self._account.public_key
        return MatcherSettings(
            network=node.network,
            directory=self._local.place / f"matcher-{self._lives}",
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

    def rest(self) -> None:
        """End it; the next question begins it again, from its commands."""
        running, self._running = self._running, None
        if running is not None:
            self._mark = self._mark._replace(rates=running.matcher.database.rates())
            running.end()


class LocalMatcher(ClientMatcher):
    """The library's ``Matcher`` on a chain in this process."""

    def __init__(self, matching: Matching) -> None:
        """Nothing is connected."""
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
        """As ``Matcher.stream``. Nobody else is in this process: where nothing more comes of what
        was done, asking for more raises ``InvariantBroken``.
        """
        stream = MatcherStream(books, account=account, token=token, rates=rates, depth=depth)
        return updates(self._matching.settled, stream)


def _no_pause(seconds: float) -> None:
    del seconds
