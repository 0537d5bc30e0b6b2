"""A blocking client of a signing service.

What lives here: ``Signer``. What does not: the requests of its methods (``signer_routes``),
connections (``transport``), and the service itself (``soliton.signer``).
"""

from __future__ import annotations

import time

from soliton.client import signer_routes as routes
from soliton.client.binding import Runner, blocking
from soliton.client.steps import Core
from soliton.client.transport import ANSWER_SECONDS, Transport


class Signer(Runner):
    """A Soliton signing service at a URL. Any number of threads may use it.

    The account of a key (``account``) makes transactions and orders without proofs; the service
    returns them signed if its policy allows that to this caller.

    >>> signer = Signer("http://127.0.0.1:6888", api_key=key)  # doctest: +SKIP
    >>> hot = signer.account("hot")  # doctest: +SKIP
    >>> signed = signer.sign(hot.transfer(bob, 5))  # doctest: +SKIP
    """

    def __init__(
        self, url: str, *, api_key: str, timeout: float = ANSWER_SECONDS, retries: int = 3
    ) -> None:
        """``api_key`` is the key of one of the service's callers; ``timeout`` is the time limit of
        a response in seconds; ``retries`` limits how often a request is repeated. Raises
        ``InputError`` for an invalid URL. Nothing is sent yet.
        """
        self._transport = Transport(url, timeout=timeout)
        self._exchange = self._transport.exchange
        self._pause = time.sleep
        self._core = Core(api_key=api_key, retries=retries)
        self.url = url

    def __repr__(self) -> str:
        return f"<Signer {self.url}>"

    sign = blocking(routes.sign)
    sign_all = blocking(routes.sign_all)
    sign_and_broadcast = blocking(routes.sign_and_broadcast)
    sign_message = blocking(routes.sign_message)
    all_pending = blocking(routes.all_pending)
    pending = blocking(routes.pending)
    simulation = blocking(routes.simulation)
    approve = blocking(routes.approve)
    refuse = blocking(routes.refuse)
    approved = blocking(routes.approved)
    keys = blocking(routes.keys)
    account = blocking(routes.account)
    unlock = blocking(routes.unlock)
    lock = blocking(routes.lock)
    caller = blocking(routes.caller)
    policy = blocking(routes.policy)
    audit = blocking(routes.audit)
    verify_audit = blocking(routes.verify_audit)
