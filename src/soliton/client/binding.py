"""From steps to methods: for those who block, and for those who await.

What lives here: the four kinds of methods. What does not: the steps, and the classes that have the
methods (``node``, ``async_node``).
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
"""What steps are sent after a pause."""


class _Closing(Protocol):
    """Connections."""

    def close(self) -> None:
        """Close them."""


class Runner:
    """What takes steps, and blocks meanwhile; use it with ``with``, or ``close`` it."""

    _transport: _Closing
    _core: Core
    _exchange: Callable[[Request], Answer]
    _pause: Callable[[float], None]

    def close(self) -> None:
        """Close the connections; the next question opens one again."""
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
            asked = next(steps)
            while True:
                try:
                    answer = self._answer(asked)
                except ClientError as error:
                    asked = steps.throw(error)
                else:
                    asked = _sent(steps, answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def _answer(self, asked: Request | Pause) -> Answer:
        if isinstance(asked, Request):
            return self._exchange(asked)
        self._pause(asked.seconds)
        return NOTHING


class AsyncRunner:
    """What takes steps, and lets others work meanwhile; use it with ``async with``, or ``close``
    it.
    """

    _transport: _Closing
    _core: Core
    _exchange: Callable[[Request], Coroutine[Any, Any, Answer]]
    _pause: Callable[[float], Coroutine[Any, Any, None]]

    def close(self) -> None:
        """Close the connections; the next question opens one again."""
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
            asked = next(steps)
            while True:
                try:
                    answer = await self._answer(asked)
                except ClientError as error:
                    asked = steps.throw(error)
                else:
                    asked = _sent(steps, answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _answer(self, asked: Request | Pause) -> Answer:
        if isinstance(asked, Request):
            return await self._exchange(asked)
        await self._pause(asked.seconds)
        return NOTHING


def _sent(steps: Steps[Any], answer: Answer) -> Request | Pause:
    """What steps ask next; raises ``NodeBroken`` for an answer that lacks what they look for."""
    try:
        return steps.send(answer)
    except LookupError as error:
        raise NodeBroken(f"no answer of a node: it lacks {error}") from error


def blocking(
    steps: Callable[Concatenate[Core, P], Steps[T]],
) -> Callable[Concatenate[Runner, P], T]:
    """A method that gives the result of steps."""

    def method(self: Runner, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(steps(self._core, *args, **kwargs))

    return cast("Callable[Concatenate[Runner, P], T]", _shown(method, steps, None))


def iterating(
    pages: Callable[Concatenate[Core, P], Pages[T]],
) -> Callable[Concatenate[Runner, P], Iterator[T]]:
    """A method that iterates over the rows of pages, and asks for a page when it is there."""

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
    """``blocking``, to be awaited."""

    async def method(self: AsyncRunner, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(steps(self._core, *args, **kwargs))

    return cast(
        "Callable[Concatenate[AsyncRunner, P], Coroutine[Any, Any, T]]", _shown(method, steps, None)
    )


def async_iterating(
    pages: Callable[Concatenate[Core, P], Pages[T]],
) -> Callable[Concatenate[AsyncRunner, P], AsyncIterator[T]]:
    """``iterating``, asynchronously."""

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
    """The method, with the name, the words and the signature that its readers should see."""
    update_wrapper(method, steps)
    # Tools that look behind a method would show its steps.
    del method.__wrapped__  # type: ignore[attr-defined]  # just set
    signature = inspect.signature(steps)
    first, *others = signature.parameters.values()
    told = str(signature.return_annotation)
    inner = eval(told[told.index("[") + 1 : -1], steps.__globals__)  # noqa: S307 - of our own source
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]  # of all functions
        parameters=[first.replace(name="self", annotation=inspect.Parameter.empty), *others],
        return_annotation=inner if returns is None else returns[inner],
    )
    return method
