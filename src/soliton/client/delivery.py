"""Requests that change something: repeated with care, and refused only if they are known to be.

A response of a proxy, a limit, or a server in trouble (429, 502, 503, ...) does not tell whether
the request was processed. Before it is sent again, and before it counts as refused, the status of
what was sent is queried.

What lives here: that rule, as steps. What does not: the requests and the queries (``sending``,
``matcher_routes``, ``signer_routes``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from soliton.client.errors import (
    ClientError,
    NodeBroken,
    NodeRefused,
    NodeTimeout,
    OutcomeUnknown,
)
from soliton.client.steps import (
    FIRST_PAUSE,
    MAX_PAUSE,
    Answer,
    Core,
    Pause,
    Request,
    Steps,
    call,
    retry_after,
)

T = TypeVar("T")

SERVER_ERROR: Final = 500
UNCERTAIN: Final = frozenset((408, 425, 429))
"""Statuses below 500 after which a request may have been processed: those of limits and delays."""


def is_uncertain(error: NodeRefused) -> bool:
    """Whether the request may have been processed, in spite of this response."""
    return not 400 <= error.status < SERVER_ERROR or error.status in UNCERTAIN


def deliver(
    core: Core,
    request: Request,
    name: str,
    read: Callable[[Answer], T],
    settle: Callable[[NodeRefused | None], Steps[T | None]],
    uncertain: Callable[[NodeRefused], bool] = is_uncertain,
) -> Steps[T]:
    """Send a request that changes something, and return what ``read`` makes of the response.

    After an attempt without a certain result, ``settle`` queries the status: it returns the result,
    or ``None`` if the server does not know of the request. It is given the refusal if a later
    attempt was refused. Raises ``NodeRefused``, or ``OutcomeUnknown`` with ``name``.
    """
    once = msgspec.structs.replace(request, repeatable=False)
    trouble: ClientError = NodeBroken("not sent")
    pause, was_sent = FIRST_PAUSE, False
    for attempt in range(core.retries + 1):
        if attempt:
            yield Pause(pause)
            pause = min(2 * pause, MAX_PAUSE)
        delay = 0.0
        refused: NodeRefused | None = None
        try:
            answer = yield from call(core, once)
            delay = retry_after(answer)
            return read(answer)
        except (NodeTimeout, NodeBroken) as error:
            trouble = error
        except NodeRefused as error:
            trouble = error
            if not uncertain(error):
                if not was_sent:
                    raise
                refused = error
        was_sent = True
        found = yield from _settled(settle, refused, name, trouble)
        if found is not None:
            return found
        if refused is not None:
            refused.is_certain = False
            raise refused
        if delay > MAX_PAUSE:
            break
        pause = max(pause, delay)
    raise OutcomeUnknown(name, str(trouble)) from trouble


def _settled(
    settle: Callable[[NodeRefused | None], Steps[T | None]],
    refused: NodeRefused | None,
    name: str,
    trouble: ClientError,
) -> Steps[T | None]:
    try:
        return (yield from settle(refused))
    except OutcomeUnknown:
        raise
    except ClientError:
        raise OutcomeUnknown(name, str(trouble)) from trouble


def nothing_to_ask(_refused: NodeRefused | None) -> Steps[None]:
    """The ``settle`` of requests without a status, which can be repeated without harm."""
    return None
    yield  # a generator, as all steps are
