"""Methods made from steps, blocking and asyncio.

What lives here: the runners, and the four kinds of methods. What does not: the steps, and the
classes that have the methods (``node``, ``async_node``).
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, cast

from soliton.client.errors import ClientError, NodeBroken
from soliton.client.steps import Answer, Core, Pages, Pause, Request, Steps

P = ParamSpec("P")
T = TypeVar("T")

NOTHING = Answer(0, b"")
"""The value that steps are sent after a pause."""


class _Closing(Protocol):
    """A pool of connections."""

    def close(self) -> None:
        """Close all connections."""


class Runner:
    """Base of the blocking clients; use it as a context manager, or call ``close``."""

    _transport: _Closing
    _core: Core
    _exchange: Callable[[Request], Answer]
    _pause: Callable[[float], None]

    def close(self) -> None:
        """Close the connections; the next request opens a new one."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._answer(step)
                except ClientError as error:
                    step = steps.throw(error)
                else:
                    step = _sent(steps, answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def _answer(self, step: Request | Pause) -> Answer:
        if isinstance(step, Request):
            return self._exchange(step)
        self._pause(step.seconds)
        return NOTHING


class AsyncRunner:
    """Base of the asyncio clients; use it as an asynchronous context manager, or call ``close``."""

    _transport: _Closing
    _core: Core
    _exchange: Callable[[Request], Coroutine[Any, Any, Answer]]
    _pause: Callable[[float], Coroutine[Any, Any, None]]

    def close(self) -> None:
        """Close the connections; the next request opens a new one."""
        self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def _run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._answer(step)
                except ClientError as error:
                    step = steps.throw(error)
                else:
                    step = _sent(steps, answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _answer(self, step: Request | Pause) -> Answer:
        if isinstance(step, Request):
            return await self._exchange(step)
        await self._pause(step.seconds)
        return NOTHING


def _sent(steps: Steps[Any], answer: Answer) -> Request | Pause:
    """Send a response to steps; raises ``NodeBroken`` if it lacks a member that they need."""
    try:
        return steps.send(answer)
    except LookupError as error:
        raise NodeBroken(f"invalid response from the node: it lacks {error}") from error


def blocking(
    steps: Callable[Concatenate[Core, P], Steps[T]],
) -> Callable[Concatenate[Runner, P], T]:
    """Return a blocking method that returns the result of steps."""

    def method(self: Runner, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(steps(self._core, *args, **kwargs))

    return cast("Callable[Concatenate[Runner, P], T]", _shown(method, steps, None))


def iterating(
    pages: Callable[Concatenate[Core, P], Pages[T]],
) -> Callable[Concatenate[Runner, P], Iterator[T]]:
    """Return a method that iterates over the rows of pages, requesting each page when needed."""

    def method(self: Runner, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        page, mark = pages(self._core, *args, **kwargs), None
        while True:
            rows, mark = self._run(page(mark))
            yield from rows
            if mark is None:
                return

    return cast("Callable[Concatenate[Runner, P], Iterator[T]]", _shown(method, pages, Iterator))


def awaiting(
    steps: Callable[Concatenate[Core, P], Steps[T]],
) -> Callable[Concatenate[AsyncRunner, P], Coroutine[Any, Any, T]]:
    """The coroutine version of ``blocking``."""

    async def method(self: AsyncRunner, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(steps(self._core, *args, **kwargs))

    return cast(
        "Callable[Concatenate[AsyncRunner, P], Coroutine[Any, Any, T]]", _shown(method, steps, None)
    )


def async_iterating(
    pages: Callable[Concatenate[Core, P], Pages[T]],
) -> Callable[Concatenate[AsyncRunner, P], AsyncIterator[T]]:
    """The asynchronous version of ``iterating``."""

    async def method(self: AsyncRunner, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        page, mark = pages(self._core, *args, **kwargs), None
        while True:
            rows, mark = await self._run(page(mark))
            for row in rows:
                yield row
            if mark is None:
                return

    return cast(
        "Callable[Concatenate[AsyncRunner, P], AsyncIterator[T]]",
        _shown(method, pages, AsyncIterator),
    )


def _shown(method: Callable[..., Any], steps: Callable[..., Any], returns: Any) -> object:  # noqa: ANN401
    """Give a method the name, docstring and signature that its users should see."""
    update_wrapper(method, steps)
    # Tools that follow __wrapped__ would show the steps.
    del method.__wrapped__  # type: ignore[attr-defined]  # just set
    signature = inspect.signature(steps)
    first, *others = signature.parameters.values()
    returned = str(signature.return_annotation)
    inner = returned[returned.index("[") + 1 : -1]
    result = eval(inner, steps.__globals__)  # noqa: S307 - of our own source
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]  # of all functions
        parameters=[first.replace(name="self", annotation=inspect.Parameter.empty), *others],
        return_annotation=result if returns is None else returns[result],
    )
    return method
