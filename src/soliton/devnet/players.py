"""Accounts of a private chain with its clock and deterministic signatures, so that the same
commands give the same ids.

What lives here: the accounts. What does not: their transactions (``playing``, ``soliton.testing``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from soliton.client.account import Account
from soliton.crypto import curve25519
from soliton.crypto.keys import key_pair


class Player(Account):
    """The library's ``Account`` with another clock: each call of ``tick`` returns a later time."""

    __slots__ = ("_tick",)

    def __init__(self, seed: str, chain_id: int, tick: Callable[[], int]) -> None:
        """``seed`` is a seed phrase."""
        super().__init__(key_pair(seed), chain_id)
        self._tick = tick

    def sign(self, message: bytes) -> bytes:
        """Return the same signature for the same message, so that block ids do not vary."""
        secret = self._keys.private_key
        randomness = hashlib.sha512(secret + message).digest()
        return curve25519.sign(secret, message, randomness, self._point)

    def _stamp(self) -> int:
        return self._tick()
