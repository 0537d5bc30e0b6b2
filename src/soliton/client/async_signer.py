"""An asyncio client of a signing service, with the same methods as ``signer``.

What lives here: ``AsyncSigner``. What does not: the requests of its methods (``signer_routes``),
and connections (``async_transport``).
"""

from __future__ import annotations

import asyncio

from soliton.client import signer_routes as routes
from soliton.client.async_transport import AsyncTransport
from soliton.client.binding import AsyncRunner, awaiting
from soliton.client.steps import Core
from soliton.client.transport import ANSWER_SECONDS


class AsyncSigner(AsyncRunner):
    """The coroutine version of ``Signer``. Use it from one event loop.

    >>> signer = AsyncSigner("http://127.0.0.1:6888", api_key=key)  # doctest: +SKIP
    >>> signed = await signer.sign(hot.transfer(bob, 5))  # doctest: +SKIP
    """

    def __init__(
        self, url: str, *, api_key: str, timeout: float = ANSWER_SECONDS, retries: int = 3
    ) -> None:
        """``api_key`` is the key of one of the service's callers; ``timeout`` is the time limit of
        a response in seconds; ``retries`` limits how often a request is repeated. Raises
        ``InputError`` for an invalid URL. Nothing is sent yet.
        """
        self._transport = AsyncTransport(url, timeout=timeout)
        self._exchange = self._transport.exchange
        self._pause = asyncio.sleep
        self._core = Core(api_key=api_key, retries=retries)
        self.url = url

    def __repr__(self) -> str:
        return f"<AsyncSigner {self.url}>"

    sign = awaiting(routes.sign)
    sign_all = awaiting(routes.sign_all)
    sign_and_broadcast = awaiting(routes.sign_and_broadcast)
    sign_message = awaiting(routes.sign_message)
    all_pending = awaiting(routes.all_pending)
    pending = awaiting(routes.pending)
    simulation = awaiting(routes.simulation)
    approve = awaiting(routes.approve)
    refuse = awaiting(routes.refuse)
    approved = awaiting(routes.approved)
    keys = awaiting(routes.keys)
    account = awaiting(routes.account)
    unlock = awaiting(routes.unlock)
    lock = awaiting(routes.lock)
    caller = awaiting(routes.caller)
    policy = awaiting(routes.policy)
    audit = awaiting(routes.audit)
    verify_audit = awaiting(routes.verify_audit)
