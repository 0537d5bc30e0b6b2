"""Following the node: from notes of what happened to events for subscribers.

The process that serves gRPC holds the chain as it was when its subscribers were last told (a view),
and the forms that the last block has had. Notes say what happened since; a new view shows it. What
was taken off is read in the old view, what came in the new one, so nobody needs to keep anything,
and the node waits for nobody. What came and went in between was never seen, and is not told of.

What lives here: the notes, the two views, the order of events. What does not: what an event says
(``block_updates``), and who hears it (``subscriptions``).

Source: wavesplatform/Waves ``grpc-server/src/main/scala/com/wavesplatform/events/repo``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from enum import Enum
from typing import Final

import msgspec

from soliton.errors import SolitonError
from soliton.grpc_api.block_updates import (
    BlockSteps,
    block_rollback,
    key_block_update,
    micro_rollback,
    micro_update,
)
from soliton.grpc_api.link import APPENDED, EXTENDED, Asking, Form, Happened, Note, Notes
from soliton.grpc_api.views import View, Views
from soliton.node.blockchain import Blockchain
from soliton.storage.errors import StoreBusy

AGAIN_SECONDS: Final = 0.02
MOST_TRIES: Final = 500
"""How often notes and store may tell of different chains before it begins anew."""

_log = logging.getLogger(__name__)


class Kind(Enum):
    """What an event tells of."""

    BLOCK = "block"
    MICRO = "micro"
    BLOCK_BACK = "block back"
    MICRO_BACK = "micro back"


class Event(msgspec.Struct, frozen=True):
    """An update (``BlockchainUpdated``), and of what: ``name`` is the id of the form that came, or
    of the one that is gone if that is a single one.
    """

    kind: Kind
    height: int
    name: bytes
    data: bytes


class Place(msgspec.Struct):
    """A block of the chain as it was told: its height, and the forms that it has had."""

    height: int
    forms: list[Form]
    told: int = 0
    """How many of them were told."""


class Follower:
    """What has been told, and who is told next. Use from one event loop."""

    def __init__(
        self, views: Views, node: Asking, hear: Callable[[Event], Awaitable[None]]
    ) -> None:
        """``hear`` is called with each event, one after the other."""
        self._views = views
        self._node = node
        self._hear = hear
        self._last = -1
        self._task: asyncio.Task[None] | None = None
        self._view: View | None = None
        self.turn = asyncio.Lock()
        """Held while events are made: who comes meanwhile begins behind them."""
        self.place = Place(0, [])
        self.listened: Callable[[], bool] = lambda: True
        self.begins_anew: Callable[[], None] = lambda: None

    @property
    def chain(self) -> Blockchain:
        """The chain as it was told."""
        assert self._view is not None, "it has begun"
        return self._view.chain

    async def start(self) -> None:
        """Begin where the node is now."""
        await self._begin()
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        """Follow no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._view is not None:
            self._views.give_back(self._view)
            self._view = None

    def knows(self, block_id: bytes) -> int | None:
        """The height of the last block if it has had this id."""
        found = any(form.id == block_id for form in self.place.forms)
        return self.place.height if found else None

    async def _begin(self) -> None:
        """Take the chain as it is, without a word about how it came about."""
        answer = await self._node.ask(Happened(-1))
        while True:
            if not isinstance(answer, Notes):
                return
            view = self._views.take()
            height, forms = answer.height, answer.forms
            if _is_tip(view.chain, height, forms):
                break
            self._views.give_back(view)
            await asyncio.sleep(AGAIN_SECONDS)
            answer = await self._node.ask(Happened(-1))
        self._last = answer.last
        if not forms:
            forms = [_form_there(view.chain)]
        self._become(view, Place(height, forms, len(forms)))

    def _become(self, view: View, place: Place) -> None:
        if self._view is not None:
            self._views.give_back(self._view)
        self._view, self.place = view, place

    async def _follow(self) -> None:
        anew = False
        while True:
            try:
                if anew:
                    await asyncio.sleep(AGAIN_SECONDS)
                    async with self.turn:
                        # Those who listened come again, and find the chain as it is.
                        self.begins_anew()
                        await self._begin()
                    anew = False
                answer = await self._node.ask(Happened(self._last))
                if not isinstance(answer, Notes):
                    return
                await self._take(answer)
            except Exception:  # noqa: BLE001 - whatever it was, others are to be told what follows
                _log.exception("updates begin anew")
                anew = True

    async def _take(self, answer: Notes) -> None:
        notes = answer.notes
        for _ in range(MOST_TRIES):
            if answer.lost:
                break
            self._last = answer.last
            places = follow(self.place, notes)
            try:
                view = self._views.take()
            except StoreBusy:
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            if _is_tip(view.chain, places[-1].height, places[-1].forms):
                await self._tell(view, places)
                return
            self._views.give_back(view)
            # The store is ahead of the notes: those of what it shows come at once.
            more = await self._more()
            if more is not None:
                answer = more
                notes = notes + more.notes
        _log.warning("updates begin anew: what happened is not known any more")
        async with self.turn:
            self.begins_anew()
            await self._begin()

    async def _more(self) -> Notes | None:
        try:
            answer = await asyncio.wait_for(self._node.ask(Happened(self._last)), AGAIN_SECONDS)
        except TimeoutError:
            return None
        return answer if isinstance(answer, Notes) else None

    async def _tell(self, view: View, places: list[Place]) -> None:
        async with self.turn:
            try:
                if self.listened():
                    for event in events(self.chain, self.place, view.chain, places):
                        await self._hear(event)
            except SolitonError as error:
                _log.error("an update cannot be made: %s", error)
                self.begins_anew()
            finally:
                top = places[-1]
                self._become(view, Place(top.height, top.forms, len(top.forms)))


def follow(place: Place, notes: list[Note]) -> list[Place]:
    """The chain after some notes: the places above the highest one that is as it was told, and
    below them what is left of that. ``told`` of a place counts those of its forms that were told.
    """
    stack = [Place(place.height, list(place.forms), place.told)]
    for note in notes:
        top = stack[-1]
        if note.kind == APPENDED:
            stack.append(Place(note.height, [note.form]))
        elif note.kind == EXTENDED:
            top.forms.append(note.form)
        else:
            while stack and stack[-1].height > note.height:
                stack.pop()
            if not stack or stack[-1].height < note.height:
                # A block that was told long ago is the last one again.
                stack.append(Place(note.height, [note.form], 1))
                continue
            top = stack[-1]
            ids = [form.id for form in top.forms]
            if note.form.id in ids:
                del top.forms[ids.index(note.form.id) + 1 :]
                top.told = min(top.told, len(top.forms))
    return stack


def events(old: Blockchain, told: Place, new: Blockchain, places: list[Place]) -> Iterator[Event]:
    """What leads from the chain that was told to one after some notes, as the reference says it."""
    bottom = places[0]
    yield from _removed(old, told, bottom)
    for place in places:
        if place.told == len(place.forms):
            continue
        steps = BlockSteps(new, place.height).read()
        for number in range(place.told, len(place.forms)):
            form = place.forms[number]
            if number == 0:
                data = key_block_update(steps, form)
                yield Event(Kind.BLOCK, place.height, form.id, data)
            else:
                data = micro_update(steps, place.forms[number - 1], form)
                yield Event(Kind.MICRO, place.height, form.id, data)


def _removed(old: Blockchain, told: Place, bottom: Place) -> Iterator[Event]:
    """What is gone of the chain that was told, the newest first."""
    height, forms = told.height, told.forms
    if bottom.height == height and bottom.told:
        if bottom.told < told.told:
            # One event for all that came behind the form that is left.
            steps, kept = BlockSteps(old, height).read(), forms[bottom.told - 1]
            made = micro_rollback(steps, kept.id, kept.count, forms[-1].count)
            name = forms[-1].id if bottom.told == told.told - 1 else b""
            yield Event(Kind.MICRO_BACK, height, name, made.SerializeToString())
        return
    lowest = bottom.height if bottom.told else bottom.height - 1
    for at in range(height, lowest, -1):
        steps = BlockSteps(old, at).read()
        form = forms[0] if at == height else _form_at(old, at)
        if at == height:
            for number in range(len(forms) - 1, 0, -1):
                gone, left = forms[number], forms[number - 1]
                made = micro_rollback(steps, gone.id, left.count, gone.count)
                yield Event(Kind.MICRO_BACK, at, gone.id, made.SerializeToString())
        made = block_rollback(steps, form, form.count)
        yield Event(Kind.BLOCK_BACK, at - 1, form.id, made.SerializeToString())


def _form_at(chain: Blockchain, height: int) -> Form:
    block = chain.block_at(height)
    header = block.header
    count = len(block.transactions)
    return Form(chain.meta(height).id, count, block.signature, header.state_hash or b"")


def _form_there(chain: Blockchain) -> Form:
    return _form_at(chain, chain.height)


def _is_tip(chain: Blockchain, height: int, forms: list[Form]) -> bool:
    if chain.height != height:
        return False
    return not forms or chain.meta(height).id == forms[-1].id
