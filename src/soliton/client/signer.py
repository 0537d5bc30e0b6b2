"""A signing service that keeps keys, for those who block.

What lives here: ``Signer``. What does not: what the methods ask (``signer_routes``), connections
(``transport``), and the service itself (``soliton.signer``).
"""

from __future__ import annotations

import time

from soliton.client import signer_routes as routes
from soliton.client.binding import Runner, blocking
from soliton.client.steps import Core
from soliton.client.transport import ANSWER_SECONDS, Transport


class Signer(Runner):
    """A signing service of Soliton that keeps keys, at a URL. Any number of threads may use it.

    Transactions and orders are made by the account of a key (``account``), without proofs, and come
    back signed, if the rules of the service let this caller have that.

    >>> signer = Signer("http://127.0.0.1:6888", api_key=key)  # doctest: +SKIP
    >>> hot = signer.account("hot")  # doctest: +SKIP
    >>> signed = signer.sign(hot.transfer(bob, 5))  # doctest: +SKIP
    """

    def __init__(
        self, url: str, *, api_key: str, timeout: float = ANSWER_SECONDS, retries: int = 3
    ) -> None:
        """``api_key`` is that of one of the service's callers; ``timeout`` is how many seconds an
        answer may take, ``retries`` how often a question is tried again at most: a request to sign
        only if it has an ``id``. Raises ``InputError`` for a URL that is none; nothing is asked
        yet.
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
