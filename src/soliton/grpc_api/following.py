"""Following the node: from its notes to events for subscribers.

The gRPC process holds a snapshot of the chain as of the last event (a view), and the forms of its
last block. Notes describe what changed since; a new view has it. Removed blocks are read from the
old view, added ones from the new view, so nothing has to be kept and the node never waits. What was
added and removed between two views is not reported.

What lives here: the notes, the two views, the order of events. What does not: the content of events
(``block_updates``), and their subscribers (``updates``).

Source: wavesplatform/Waves ``grpc-server/src/main/scala/com/wavesplatform/events/repo``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from enum import Enum
from typing import Final

import msgspec

from soliton.chain.finalization import encoded_voting
from soliton.errors import SolitonError
from soliton.grpc_api.block_updates import (
    BlockSteps,
    block_rollback,
    key_block_update,
    micro_rollback,
    micro_update,
)
from soliton.grpc_api.link import APPENDED, EXTENDED, AwaitNotes, Form, NodeLink, Note, Notes
from soliton.grpc_api.views import View, Views
from soliton.node.blockchain import Blockchain
from soliton.storage.errors import StoreBusy

RETRY_SECONDS: Final = 0.02
MAX_TRIES: Final = 500
"""How often notes and store may disagree before following restarts."""

_log = logging.getLogger(__name__)


class Kind(Enum):
    """The kind of an event."""

    BLOCK = "block"
    MICRO = "micro"
    BLOCK_ROLLBACK = "block back"
    MICRO_ROLLBACK = "micro back"


class Event(msgspec.Struct, frozen=True):
    """An update (``BlockchainUpdated``). ``name`` is the id of the form that was added, or of the
    one that was removed if it is only one.
    """

    kind: Kind
    height: int
    name: bytes
    data: bytes


class Place(msgspec.Struct):
    """A block of the chain: its height, its forms, and the number of forms already reported."""

    height: int
    forms: list[Form]
    reported: int = 0


class Follower:
    """The state reported last, and the source of new events. Use from one event loop."""

    def __init__(
        self, views: Views, node: NodeLink, notify: Callable[[Event], Awaitable[None]]
    ) -> None:
        """``notify`` is awaited for each event, in order."""
        self._views = views
        self._node = node
        self._notify = notify
        self._last = -1
        self._task: asyncio.Task[None] | None = None
        self._view: View | None = None
        self.lock = asyncio.Lock()
        """CallState while events are made; later subscribers begin after them."""
        self.place = Place(0, [])
        self.has_subscribers: Callable[[], bool] = lambda: True
        self.on_restart: Callable[[], None] = lambda: None

    @property
    def chain(self) -> Blockchain:
        """The chain as of the last event."""
        assert self._view is not None, "following has started"
        return self._view.chain

    async def start(self) -> None:
        """Start at the node's present state."""
        await self._restart()
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._view is not None:
            self._views.release(self._view)
            self._view = None

    def height_of(self, block_id: bytes) -> int | None:
        """Return the height of the last block if one of its forms has this id."""
        found = any(form.id == block_id for form in self.place.forms)
        return self.place.height if found else None

    async def _restart(self) -> None:
        """Adopt the present chain without events."""
        answer = await self._node.ask(AwaitNotes(-1))
        while True:
            if not isinstance(answer, Notes):
                return
            view = self._views.acquire()
            height, forms = answer.height, answer.forms
            if _is_tip(view.chain, height, forms):
                break
            self._views.release(view)
            await asyncio.sleep(RETRY_SECONDS)
            answer = await self._node.ask(AwaitNotes(-1))
        self._last = answer.last
        if not forms:
            forms = [_form_there(view.chain)]
        self._switch(view, Place(height, forms, len(forms)))

    def _switch(self, view: View, place: Place) -> None:
        if self._view is not None:
            self._views.release(self._view)
        self._view, self.place = view, place

    async def _follow(self) -> None:
        anew = False
        while True:
            try:
                if anew:
                    await asyncio.sleep(RETRY_SECONDS)
                    async with self.lock:
                        # Subscribers reconnect, and get the present chain.
                        self.on_restart()
                        await self._restart()
                    anew = False
                answer = await self._node.ask(AwaitNotes(self._last))
                if not isinstance(answer, Notes):
                    return
                await self._process(answer)
            except Exception:  # noqa: BLE001 - the stream must survive any fault
                _log.exception("updates begin anew")
                anew = True

    async def _process(self, answer: Notes) -> None:
        notes = answer.notes
        for _ in range(MAX_TRIES):
            if answer.lost:
                break
            self._last = answer.last
            places = follow(self.place, notes)
            try:
                view = self._views.acquire()
            except StoreBusy:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if _is_tip(view.chain, places[-1].height, places[-1].forms):
                await self._publish(view, places)
                return
            self._views.release(view)
            # The store is ahead of the notes, which follow immediately.
            more = await self._poll()
            if more is not None:
                answer = more
                notes = notes + more.notes
        _log.warning("updates begin anew: the events in between are lost")
        async with self.lock:
            self.on_restart()
            await self._restart()

    async def _poll(self) -> Notes | None:
        try:
            answer = await asyncio.wait_for(self._node.ask(AwaitNotes(self._last)), RETRY_SECONDS)
        except TimeoutError:
            return None
        return answer if isinstance(answer, Notes) else None

    async def _publish(self, view: View, places: list[Place]) -> None:
        async with self.lock:
            try:
                if self.has_subscribers():
                    for event in events(self.chain, self.place, view.chain, places):
                        await self._notify(event)
            except SolitonError as error:
                _log.error("an update cannot be made: %s", error)
                self.on_restart()
            finally:
                top = places[-1]
                self._switch(view, Place(top.height, top.forms, len(top.forms)))


def follow(place: Place, notes: list[Note]) -> list[Place]:
    """Apply notes to the chain: return its top as places, the lowest of which has been reported at
    least in part; ``reported`` of a place counts its forms that were reported.
    """
    stack = [Place(place.height, list(place.forms), place.reported)]
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
                # An older block, reported long ago, is the last one again.
                stack.append(Place(note.height, [note.form], 1))
                continue
            top = stack[-1]
            ids = [form.id for form in top.forms]
            if note.form.id in ids:
                del top.forms[ids.index(note.form.id) + 1 :]
                top.reported = min(top.reported, len(top.forms))
    return stack


def events(old: Blockchain, last: Place, new: Blockchain, places: list[Place]) -> Iterator[Event]:
    """Yield the events from the chain reported last to a newer one, as the reference does."""
    bottom = places[0]
    yield from _removed(old, last, bottom)
    for place in places:
        if place.reported == len(place.forms):
            continue
        steps = BlockSteps(new, place.height).read()
        for number in range(place.reported, len(place.forms)):
            form = place.forms[number]
            if number == 0:
                data = key_block_update(steps, form)
                yield Event(Kind.BLOCK, place.height, form.id, data)
            else:
                data = micro_update(steps, place.forms[number - 1], form)
                yield Event(Kind.MICRO, place.height, form.id, data)


def _removed(old: Blockchain, last: Place, bottom: Place) -> Iterator[Event]:
    """Yield the removals, the newest first."""
    height, forms = last.height, last.forms
    if bottom.height == height and bottom.reported:
        if bottom.reported < last.reported:
            # One event for everything after the form that is left.
            steps, kept = BlockSteps(old, height).read(), forms[bottom.reported - 1]
            made = micro_rollback(steps, kept.id, kept.count, forms[-1].count)
            name = forms[-1].id if bottom.reported == last.reported - 1 else b""
            yield Event(Kind.MICRO_ROLLBACK, height, name, made.SerializeToString())
        return
    lowest = bottom.height if bottom.reported else bottom.height - 1
    for at in range(height, lowest, -1):
        steps = BlockSteps(old, at).read()
        form = forms[0] if at == height else _form_at(old, at)
        if at == height:
            for number in range(len(forms) - 1, 0, -1):
                gone, left = forms[number], forms[number - 1]
                made = micro_rollback(steps, gone.id, left.count, gone.count)
                yield Event(Kind.MICRO_ROLLBACK, at, gone.id, made.SerializeToString())
        made = block_rollback(steps, form, form.count)
        yield Event(Kind.BLOCK_ROLLBACK, at - 1, form.id, made.SerializeToString())


def _form_at(chain: Blockchain, height: int) -> Form:
    block = chain.block_at(height)
    header = block.header
    count = len(block.transactions)
    return Form(
        chain.meta(height).id,
        count,
        block.signature,
        header.state_hash or b"",
        voting=encoded_voting(header.finalization_voting),
    )


def _form_there(chain: Blockchain) -> Form:
    return _form_at(chain, chain.height)


def _is_tip(chain: Blockchain, height: int, forms: list[Form]) -> bool:
    if chain.height != height:
        return False
    return not forms or chain.meta(height).id == forms[-1].id
