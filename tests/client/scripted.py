"""Steps run against answers that a test has written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from soliton.client.binding import Runner
from soliton.client.errors import ClientError
from soliton.client.steps import Answer, Core, Request, Steps

T = TypeVar("T")


class Scripted(Runner):
    """Answers one after the other (an error is raised), and remembers what was asked."""

    def __init__(self, *answers: Answer | ClientError, retries: int = 3) -> None:
        self._core = Core(retries=retries)
        self._core.is_soliton = False
        self._core.now = lambda: self.time
        self._exchange = self._next
        self._pause = self._sleep
        self._answers = list(answers)
        self.asked: list[Request] = []
        self.time = 0.0

    @property
    def core(self) -> Core:
        return self._core

    def run(self, steps: Callable[..., Steps[T]], *arguments: Any, **options: Any) -> T:
        return self._run(steps(self._core, *arguments, **options))

    @property
    def paths(self) -> list[str]:
        return [f"{each.method} {each.path}" for each in self.asked]

    def _next(self, request: Request) -> Answer:
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, ClientError):
            raise answer
        return answer

    def _sleep(self, seconds: float) -> None:
        self.time += seconds


def told(value: object, status: int = 200, **headers: str) -> Answer:
    """An answer with a JSON value."""
    names = {
        name.replace("_", "-").encode(): text.encode("latin-1") for name, text in headers.items()
    }
    return Answer(status, msgspec.json.encode(value), names)
