"""Accounts of a private chain that go by its clock, and whose signatures hold no chance: the same
commands give the same ids.

What lives here: the accounts. What does not: what they do (``playing``, ``soliton.testing``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from soliton.client.account import Account
from soliton.crypto import curve25519
from soliton.crypto.keys import key_pair


class Player(Account):
    """The library's ``Account`` with another clock: each call of ``tick`` gives a later time."""

    __slots__ = ("_tick",)

    def __init__(self, seed: str, chain_id: int, tick: Callable[[], int]) -> None:
        """Of a seed phrase."""
        super().__init__(key_pair(seed), chain_id)
        self._tick = tick

    def sign(self, message: bytes) -> bytes:
        """The same signature for the same message, so that the same blocks come of it."""
        secret = self._keys.private_key
        chance = hashlib.sha512(secret + message).digest()
        return curve25519.sign(secret, message, chance, self._point)

    def _stamp(self) -> int:
        return self._tick()
