"""The signer's keys: found by name, address or public key, and unlocked by a password for a time.

What lives here: the list of keys, unlocking, locking, signing. What does not: key files
(``soliton.keystore``), keys in external stores (``stores``), and what may be signed (``policy``).

A wrong password costs the time of the key derivation, and a pause that doubles with each attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NoReturn

from soliton.chain.addresses import address_text, from_public_key
from soliton.crypto import base58, curve25519, vrf
from soliton.crypto.keys import KeyPair
from soliton.keystore.files import FileStore, WrongPassword
from soliton.keystore.keys import KeyProblem
from soliton.signer.errors import (
    KEY_STORE_TROUBLE,
    LOCKED,
    NO_KEY,
    PASSWORD_PAUSE,
    WRONG_PASSWORD,
    RequestRefused,
)
from soliton.signer.stores import StoredKey

MAX_NAME_CHARACTERS: Final = 64
MAX_PASSWORD_CHARACTERS: Final = 4_096
FIRST_PAUSE_MS: Final = 1_000
LONGEST_PAUSE_MS: Final = 60_000
MAX_UNLOCKED_SECONDS: Final = 366 * 24 * 60 * 60
FOR_EVER_SECONDS: Final = 100 * MAX_UNLOCKED_SECONDS
"""How long a key fetched at the start stays unlocked."""


class Account:
    """One key: its names, and its secret while it is unlocked."""

    __slots__ = ("_keys", "_point", "_until", "address", "name", "public_key", "store", "text")

    def __init__(
        self, name: str, public_key: bytes, chain_id: int, store: StoredKey | None = None
    ) -> None:
        self.name = name
        self.public_key = public_key
        self.store = store
        """The external store that signs with it, if the key is in one."""
        self.text = base58.encode(public_key)
        self.address = address_text(from_public_key(public_key, chain_id))
        self._keys: KeyPair | None = None
        self._point = b""
        self._until = 0

    def unlock(self, keys: KeyPair, until: int) -> None:
        """Unlock it until a time, or until an earlier call's time if that is later."""
        if self._keys is None:
            self._point = curve25519.signing_point(keys.private_key)
        self._keys = keys
        self._until = max(self._until, until)

    def lock(self) -> None:
        """Forget the secret."""
        self._keys, self._point, self._until = None, b"", 0

    def is_locked(self, now: int) -> bool:
        """Whether it is locked at this time; forgets an expired secret."""
        if self._keys is not None and now >= self._until:
            self.lock()
        return self._keys is None and self.store is None

    def left_ms(self, now: int) -> int:
        """Return for how many milliseconds it stays unlocked; 0 for a key in a store."""
        return 0 if self.is_locked(now) or self.store is not None else self._until - now

    def sign(self, message: bytes, now: int) -> bytes:
        """Return the signature of a message; raises ``RequestRefused`` when the key is locked."""
        return curve25519.sign(self._private_key(now), message, None, self._point)

    def prove(self, message: bytes, now: int) -> bytes:
        """Return the deterministic VRF proof of a message; raises ``RequestRefused`` when the key
        is locked, or in a store.
        """
        if self.store is not None:
            problem = f"the store of the key {self.name} makes no VRF proofs"
            raise RequestRefused(KEY_STORE_TROUBLE, problem)
        # The nonce is derived from the key and the message; randomness would add nothing.
        return vrf.prove(self._private_key(now), message, bytes(vrf.RANDOM_BYTES))

    def _private_key(self, now: int) -> bytes:
        if self._keys is None or now >= self._until:
            self.lock()
            raise RequestRefused(LOCKED, f"the key {self.name} is locked")
        return self._keys.private_key


class Keyring:
    """All keys: those of a directory, those in stores and those fetched. ``now`` returns monotonic
    milliseconds.
    """

    def __init__(
        self,
        directory: Path,
        chain_id: int,
        now: Callable[[], int],
        stored: Mapping[str, StoredKey] | None = None,
        fetched: Mapping[str, KeyPair] | None = None,
    ) -> None:
        """Raises ``KeyProblem`` with the place of an invalid file, ``StoreUnavailable``."""
        self._directory = directory
        self._stored = {
            name: Account(name, key.public_key, chain_id, key)
            for name, key in (stored or {}).items()
        }
        for name, keys in (fetched or {}).items():
            self._stored[name] = Account(name, keys.public_key, chain_id)
            self._stored[name].unlock(keys, now() + FOR_EVER_SECONDS * 1_000)
        self._chain_id = chain_id
        self._now = now
        self._by_text: dict[str, Account] = {}
        self._accounts: dict[str, Account] = {}
        self._opening = asyncio.Lock()
        self._wrong = 0
        self._next_ms = 0
        self.refresh()

    def refresh(self) -> None:
        """Read the list of keys; unlocked keys stay unlocked. Raises like the constructor."""
        self._take(FileStore(self._directory))

    def _take(self, store: FileStore) -> None:
        accounts: dict[str, Account] = {}
        by_text: dict[str, Account] = {}
        for name in store.names():
            public_key = store.public_key(name)
            known = self._accounts.get(name)
            if known is None or known.public_key != public_key:
                known = Account(name, public_key, self._chain_id)
            accounts[name] = known
            by_text[known.text] = by_text[known.address] = known
        for name, account in self._stored.items():
            if name in accounts or account.text in by_text:
                raise KeyProblem(f"the key {name} is in two places, one is {self._directory}")
            accounts[name] = by_text[account.text] = by_text[account.address] = account
        # Addresses take precedence: a key cannot be named like the address of another.
        self._by_text = {**accounts, **by_text}
        self._accounts = accounts

    def find(self, text: str) -> Account:
        """Return the key with this name, address or public key; raises ``RequestRefused``."""
        found = self._by_text.get(text)
        if found is None:
            raise RequestRefused(NO_KEY, "there is no such key here", "key")
        return found

    def accounts(self) -> Iterable[Account]:
        """Return all keys."""
        return self._accounts.values()

    async def unlock(self, password: str, names: tuple[str, ...], seconds: int) -> list[Account]:
        """Unlock keys for a time: all, or those named. Raises ``RequestRefused``."""
        async with self._opening:
            pause = self._next_ms - self._now()
            if pause > 0:
                after = -(-pause // 1_000)
                message = f"a wrong password was given; try again in {after} s"
                raise RequestRefused(PASSWORD_PAUSE, message, after=after)
            store, opened = await asyncio.to_thread(self._open, password)
            self._take(store)
            wanted = {self.find(name).name for name in names}
            if not wanted <= opened.keys():
                self._refuse_password()
            until = self._now() + seconds * 1_000
            found = []
            for name, keys in opened.items():
                if not wanted or name in wanted:
                    self._accounts[name].unlock(keys, until)
                    found.append(self._accounts[name])
            self._wrong = 0
            return found

    def _open(self, password: str) -> tuple[FileStore, dict[str, KeyPair]]:
        store = FileStore(self._directory)
        try:
            return store, store.open(password)
        except WrongPassword:
            self._refuse_password()
        except KeyProblem as error:
            raise RequestRefused(KEY_STORE_TROUBLE, str(error)) from None

    def _refuse_password(self) -> NoReturn:
        """Count a wrong password, and raise ``RequestRefused``."""
        self._next_ms = self._now() + min(FIRST_PAUSE_MS << self._wrong, LONGEST_PAUSE_MS)
        self._wrong = min(self._wrong + 1, 16)
        message = "the password does not open what was asked for"
        raise RequestRefused(WRONG_PASSWORD, message) from None

    def lock(self, names: tuple[str, ...]) -> list[Account]:
        """Lock keys: all, or those named. Raises ``RequestRefused``."""
        found = [self.find(name) for name in names] if names else list(self._accounts.values())
        found = [each for each in found if each.store is None]
        for each in found:
            each.lock()
        return found
