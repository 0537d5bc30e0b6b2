"""Isolation: what a fixture, a test or an example did to the chain is reverted when it ends.

A stack of layers: each fixture that has changed the chain, each test and each example of hypothesis
has one, with the state of the chain from before it. When it ends, the chain returns to that state.
Two rules keep a fixture and its effects together:

- A fixture of a wide scope that is set up late, after fixtures of narrower scopes have changed the
  chain, runs below them: on the state from before the narrower ones, which end and are set up again
  when the next test requests them. Where that is impossible, because a test or a narrower fixture
  is under way and requests it, it runs on top.
- With a layer end all layers above it, whatever their scope. The next test that requests one of
  these fixtures sets it up again.

What lives here: the layers, and the one kit of a process. What does not: pytest's hooks
(``plugin``), the state of a chain (``kit``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from soliton.testing.chain import State
    from soliton.testing.kit import Kit

T = TypeVar("T")


class Layer:
    """What one fixture, test or example did to the chain.

    ``depth`` is that of the scope's node in pytest's tree (a session has the smallest). ``finish``
    ends a fixture with this ``name`` and ``parameter``; frames of nodes, tests and examples have
    none.
    """

    def __init__(
        self,
        depth: int,
        name: str = "",
        finish: Callable[[], object] | None = None,
        parameter: object = None,
    ) -> None:
        self.depth, self.name, self.finish, self.parameter = depth, name, finish, parameter
        self.before: State | None = None
        self.frames: list[Layer] = []
        """Frames that were above it when it began to end."""
        self.is_shared = False
        """Whether it has effects of a test that stay, which setting it up again does not bring
        back."""


class Frames:
    """The layers of one process, on its kit."""

    def __init__(self) -> None:
        self.kit: Kit | None = None
        self.make: Callable[[], Kit] | None = None
        """Creates the kit."""
        self.in_test = False
        """Whether the fixtures of a test, or the test itself, are under way."""
        self._layers: list[Layer] = []
        self._under_way: list[int] = []
        """The depths of the fixtures that are being set up."""

    def need(self) -> Kit:
        """The kit, created at the first call."""
        if self.kit is None:
            if self.make is None:
                raise RuntimeError("there is no test kit outside of pytest's run")
            self.kit = self.make()
            for layer in self._layers:
                layer.before = self.kit.state()
        return self.kit

    def close(self) -> None:
        """Close the kit, if there is one."""
        kit, self.kit = self.kit, None
        for layer in self._layers:
            layer.before = None
        if kit is not None:
            kit.close()

    # --- frames -----------------------------------------------------------------------------------

    @contextmanager
    def frame(self, depth: int | None = None) -> Iterator[None]:
        """Revert the chain at the end of the ``with`` block, if it has controls.

        The frame of a node has its ``depth``, that of an example is the deepest.
        """
        if depth is None:
            depth = self._layers[-1].depth + 1 if self._layers else 0
        layer = Layer(depth)
        self._push(layer)
        try:
            yield
        finally:
            self._leave(layer)

    @contextmanager
    def test(self, depth: int, *, shared: bool) -> Iterator[None]:
        """Around a test and its fixtures. What a ``shared`` test did stays until the layer below
        it ends.
        """
        self.in_test = True
        try:
            if not shared:
                with self.frame(depth):
                    yield
                return
            token, layer = self._token(), self._layers[-1] if self._layers else None
            yield
            if layer is not None and self._token() != token:
                layer.is_shared = True
        finally:
            self.in_test = False

    # --- fixtures ---------------------------------------------------------------------------------

    def set_up(
        self, layer: Layer, add_finalizer: Callable[[Callable[[], object]], object]
    ) -> Generator[None, T, T]:
        """Around the setup of a fixture whose scope is wider than a test: yields once, to run it.

        ``add_finalizer`` registers a finalizer of the fixture.
        """
        above = self._narrower(layer.depth)
        present = self._go_below(above) if above else None
        self._push(layer)
        token = self._token()
        # Finalizers run in the opposite order: this one after the fixture's own.
        add_finalizer(lambda: self._leave(layer))
        self._under_way.append(layer.depth)
        try:
            return (yield)
        finally:
            self._under_way.pop()
            add_finalizer(lambda: self._begin_end(layer))
            changed = self._token() != token
            if not changed:
                self._drop(layer)
            if present is not None:
                self._put_back(layer, above, present, changed=changed)

    def end_others(self, is_other: Callable[[Layer], bool]) -> None:
        """End the fixtures that the next test requests with another parameter, before it has
        requested those above them.
        """
        for layer in list(self._layers):
            if layer in self._layers and layer.finish is not None and is_other(layer):
                layer.finish()

    def _narrower(self, depth: int) -> list[Layer]:
        """The layers below which a fixture is to run; none if there are none, or if it cannot."""
        if self.in_test or any(each > depth for each in self._under_way):
            return []
        if self.kit is None or not self.kit.can_jump:
            return []
        first = next((at for at, each in enumerate(self._layers) if each.depth > depth), None)
        above = [] if first is None else self._layers[first:]
        if any(each.depth <= depth or each.is_shared for each in above):
            return []
        return above

    def _go_below(self, above: list[Layer]) -> State:
        kit = self.need()
        del self._layers[-len(above) :]
        present = kit.state()
        if above[0].before is not None:
            above[0].before.restore()
        return present

    def _put_back(self, layer: Layer, above: list[Layer], present: State, *, changed: bool) -> None:
        """Put back what was above a layer; if it changed the chain, only the frames."""
        kit = self.need()
        if not changed:
            present.restore()
            present.forget()
            self._layers += above
            return
        after, below = kit.state(), self._layers
        # Finalizers see the state that their fixtures know.
        present.restore()
        present.forget()
        self._layers = [*below[: below.index(layer)], *above]
        try:
            # The frame of the session is below all.
            frames = self._end_above(self._layers[-len(above) - 1])
        finally:
            after.restore()
            after.forget()
            self._layers = below
        for each in frames:
            self._push(each)

    def _begin_end(self, layer: Layer) -> None:
        """Before the finalizers of a fixture: end what is above it."""
        if layer in self._layers:
            layer.frames = self._end_above(layer)
        elif self.kit is not None:
            # It has changed nothing; what its finalizers do is reverted.
            layer.before = self.kit.state()

    def _end_above(self, layer: Layer) -> list[Layer]:
        """End the fixtures above a layer; return the frames there, which have no content now."""
        frames: list[Layer] = []
        problems: list[Exception] = []
        while self._layers[-1] is not layer:
            top = self._layers[-1]
            if top.finish is None:
                frames.insert(0, top)
            else:
                try:
                    top.finish()
                except Exception as error:  # noqa: BLE001 - those of users raise anything
                    problems.append(error)
            self._drop(top)
        if problems:
            raise problems[0] if len(problems) == 1 else ExceptionGroup("finalizers", problems)
        return frames

    def _leave(self, layer: Layer) -> None:
        """Return to the state from before a layer."""
        try:
            if layer in self._layers:
                layer.frames += self._end_above(layer)
        finally:
            if self.kit is not None and layer.before is not None:
                layer.before.restore()
            self._drop(layer)
            frames, layer.frames = layer.frames, []
            for each in frames:
                self._push(each)

    def _push(self, layer: Layer) -> None:
        layer.before = None if self.kit is None else self.kit.state()
        layer.is_shared = False
        self._layers.append(layer)

    def _drop(self, layer: Layer) -> None:
        if layer in self._layers:
            self._layers.remove(layer)
        before, layer.before = layer.before, None
        if self.kit is not None and before is not None:
            before.forget()

    def _token(self) -> object:
        return None if self.kit is None else self.kit.token()


FRAMES = Frames()
"""The layers of this process."""
