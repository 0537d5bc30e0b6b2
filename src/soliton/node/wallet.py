"""The wallet of a node: one seed, the accounts derived from it, and their file.

What lives here: opening, creating and rewriting the wallet file; accounts in the order of their
nonces. What does not: key derivation (``crypto.keys``), permissions (the interface).

The format is the ecosystem's, so an operator can move ``wallet.dat`` between nodes: JSON
``{seed, accountSeeds, nonce}`` in base58, encrypted (``crypto.password_files``), in base64.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/wallet/Wallet.scala`` and
``utils/JsonFileStorage.scala``.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.addresses import Address, from_public_key
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error, CryptoError
from soliton.crypto.keys import MAX_NONCE, KeyPair, account_seed, key_pair_from_account_seed
from soliton.crypto.password_files import decrypt, encrypt, file_key
from soliton.errors import EnvironmentProblem, InputError
from soliton.storage.files import replace_file

NEW_SEED_BYTES: Final = 64
PASSWORD_BYTES: Final = 32
FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
MAX_ACCOUNTS: Final = 10_000
"""Each costs a key derivation at the start; far more than wallets have."""
MAX_NONCE_SCAN: Final = 1_000_000
"""How many nonces are tried for stored accounts; others keep the order of the file."""
MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Twice what ``MAX_ACCOUNTS`` accounts with a long seed need."""


class WalletError(InputError):
    """The wallet cannot be opened, or does not allow the operation."""


class WrongPasswordError(WalletError):
    """The wallet file cannot be decrypted: a wrong password or a damaged file."""


class WalletFileProblem(EnvironmentProblem):
    """The wallet file cannot be read or written."""


class _WalletData(msgspec.Struct, frozen=True, rename="camel"):
    """The contents of the file, before encryption."""

    seed: str
    account_seeds: list[str]
    nonce: int


class Wallet:
    """A seed and its accounts. ``repr`` shows neither."""

    def __init__(
        self,
        seed: bytes,
        account_seeds: Iterable[bytes],
        nonce: int,
        *,
        path: Path | None,
        file_key: bytes | None,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self._seed = seed
        self._nonce = nonce
        self._path = path
        self._file_key = file_key
        self._accounts = {item: key_pair_from_account_seed(item) for item in account_seeds}
        self.warnings = warnings

    @classmethod
    def open(cls, path: Path | None, password: str | None, seed: bytes | None = None) -> Wallet:
        """Open the wallet in ``path``; if there is none, create it with ``seed`` or a random one.

        A random seed must not be lost with the process: without a ``password`` its file gets a
        random one, which is stored in a file next to it. Without a path, or with a seed and no
        password, the wallet is in memory only. ``warnings`` reports both cases. The wallet has at
        least one account afterwards.

        Raises ``WalletError`` when an existing file needs a (or another) password or holds another
        seed, ``WalletFileProblem`` when it cannot be read or written.
        """
        if path is None:
            wallet = cls._new(seed, None, None)
        elif (stored := _read(path)) is not None:
            wallet = cls._stored(path, stored, password, seed)
        elif password is not None:
            wallet = cls._new(seed, path, password)
        elif seed is not None:
            wallet = cls._new(seed, None, None, (_in_memory_warning(path),))
        else:
            wallet = cls._new(seed, path, _kept_password(path), (_kept_warning(path),))
        if not wallet._accounts:
            wallet._add_account()
        return wallet

    @classmethod
    def _new(
        cls,
        seed: bytes | None,
        path: Path | None,
        password: str | None,
        warnings: tuple[str, ...] = (),
    ) -> Wallet:
        own = secrets.token_bytes(NEW_SEED_BYTES) if seed is None else seed
        key = None if password is None else file_key(password)
        return cls(own, (), 0, path=path, file_key=key, warnings=warnings)

    @classmethod
    def check(cls, path: Path, password: str | None, seed: bytes | None = None) -> None:
        """Check that ``open`` would open the file, if there is one; raises the same errors. Writes
        nothing.
        """
        stored = _read(path)
        if stored is not None:
            cls._stored(path, stored, password, seed)

    @classmethod
    def _stored(
        cls, path: Path, contents: bytes, password: str | None, seed: bytes | None
    ) -> Wallet:
        beside = password_path(path)
        kept = _read_password(beside)
        chosen = kept if password is None else password
        if chosen is None:
            raise WalletError(f"The wallet file {path} needs a password: set wallet.password")
        key = file_key(chosen)
        try:
            wallet = cls._from_data(_decrypt(contents, key, path), path, key)
        except WrongPasswordError as error:
            if password is None or kept is None:
                raise
            raise WrongPasswordError(f"{error}; its first password is in {beside}") from None
        if seed is not None and seed != wallet.seed:
            raise WalletError(f"wallet.seed is not the seed in the wallet file {path}")
        return wallet

    @classmethod
    def in_memory(cls, seed: bytes, others: Iterable[bytes] = ()) -> Wallet:
        """Return a wallet without a file, with the first account of ``seed`` and of each of
        ``others``.
        """
        first = (account_seed(each, 0) for each in (seed, *others))
        return cls(seed, first, 1, path=None, file_key=None)

    @classmethod
    def _from_data(cls, data: _WalletData, path: Path, file_key: bytes) -> Wallet:
        if len(data.account_seeds) > MAX_ACCOUNTS or not 0 <= data.nonce <= MAX_NONCE:
            raise WalletError(f"The wallet file {path} has impossible contents")
        try:
            seed = base58.decode(data.seed)
            stored = [base58.decode(text) for text in data.account_seeds]
        except Base58Error:
            # Without the cause, which quotes the seed.
            raise WalletError(f"The wallet file {path} has impossible contents") from None
        ordered = _by_nonce(seed, stored, data.nonce)
        return cls(seed, ordered, data.nonce, path=path, file_key=file_key)

    def __repr__(self) -> str:
        return f"Wallet(path={self._path!s}, accounts={len(self._accounts)})"

    @property
    def seed(self) -> bytes:
        """The seed of the whole wallet."""
        return self._seed

    @property
    def path(self) -> Path | None:
        """The file, ``None`` for a wallet in memory."""
        return self._path

    def accounts(self, chain_id: int) -> list[Address]:
        """Return the addresses of all accounts on a chain, in the order of their nonces."""
        return [from_public_key(keys.public_key, chain_id) for keys in self._accounts.values()]

    def key(self, address: bytes) -> KeyPair | None:
        """Return the keys of the account with this address, on any chain."""
        found = self._find(address)
        return None if found is None else self._accounts[found]

    def account_seed(self, address: bytes) -> bytes | None:
        """Return the account seed of an address."""
        return self._find(address)

    def generate_account(self, chain_id: int) -> Address:
        """Add the account of the next nonce, and return its address on the chain.

        Raises ``WalletError`` when the wallet is full.
        """
        return from_public_key(self._add_account().public_key, chain_id)

    def delete_account(self, address: bytes) -> bool:
        """Remove an account; return ``False`` if it is not in the wallet."""
        found = self._find(address)
        if found is None:
            return False
        accounts = {item: keys for item, keys in self._accounts.items() if item != found}
        self._save(accounts, self._nonce)
        return True

    def _find(self, address: bytes) -> bytes | None:
        chain_id = address[1] if len(address) > 1 else 0
        for stored, keys in self._accounts.items():
            if from_public_key(keys.public_key, chain_id) == address:
                return stored
        return None

    def _add_account(self) -> KeyPair:
        if len(self._accounts) >= MAX_ACCOUNTS or self._nonce >= MAX_NONCE:
            raise WalletError(f"The wallet is full: it has {len(self._accounts)} accounts")
        new = account_seed(self._seed, self._nonce)
        keys = key_pair_from_account_seed(new)
        self._save({**self._accounts, new: keys}, self._nonce + 1)
        return keys

    def _save(self, accounts: dict[bytes, KeyPair], nonce: int) -> None:
        """Write the file, then change the accounts: a failed write changes nothing."""
        if self._path is not None and self._file_key is not None:
            data = _WalletData(
                seed=base58.encode(self._seed),
                account_seeds=[base58.encode(item) for item in accounts],
                nonce=nonce,
            )
            _write(self._path, _encrypt(data, self._file_key))
        self._accounts = accounts
        self._nonce = nonce


def password_path(path: Path) -> Path:
    """Return the path of the generated password of a wallet file."""
    return path.with_name(f"{path.name}.password")


def _read_password(beside: Path) -> str | None:
    contents = _read(beside)
    try:
        return None if contents is None else contents.decode().strip()
    except UnicodeDecodeError:
        raise WalletError(f"The file {beside} holds no password") from None


def _kept_password(path: Path) -> str:
    """Return the generated password for a new wallet file, from the file next to it.

    A new password is written before the wallet: a wallet without its password would be lost.
    """
    beside = password_path(path)
    password = _read_password(beside)
    if password is None:
        password = base58.encode(secrets.token_bytes(PASSWORD_BYTES))
        _write(beside, password.encode())
    return password


def _kept_warning(path: Path) -> str:
    return (
        f"wallet.password is not set: the new wallet is in {path}, with a random seed, and its "
        f"password in {password_path(path)}. Only you can read them: keep copies of both"
    )


def _in_memory_warning(path: Path) -> str:
    return (
        f"wallet.password is not set: {path} is not written, the wallet is in memory and accounts "
        "added are not kept"
    )


def _by_nonce(seed: bytes, stored: list[bytes], nonce: int) -> list[bytes]:
    """Return the account seeds in the order of their nonces; the file has them in any order."""
    missing = dict.fromkeys(stored)
    ordered = []
    for number in range(min(nonce, MAX_NONCE_SCAN)):
        if not missing:
            break
        candidate = account_seed(seed, number)
        if candidate in missing:
            del missing[candidate]
            ordered.append(candidate)
    return [*ordered, *missing]


def _encrypt(data: _WalletData, key: bytes) -> bytes:
    return base64.b64encode(encrypt(key, msgspec.json.encode(data)))


def _decrypt(stored: bytes, key: bytes, path: Path) -> _WalletData:
    try:
        secret = base64.b64decode(stored.strip(), validate=True)
    except binascii.Error:
        raise WalletError(f"The file {path} is not a wallet") from None
    try:
        return msgspec.json.decode(decrypt(key, secret), type=_WalletData)
    except (CryptoError, msgspec.DecodeError, UnicodeDecodeError):
        # Without the cause, which may quote what was decrypted.
        raise WrongPasswordError(
            f"The wallet file {path} does not open: wrong wallet.password, or a damaged file"
        ) from None


def _read(path: Path) -> bytes | None:
    """Return the file's contents; ``None`` if it is missing or empty."""
    try:
        with path.open("rb") as file:
            contents = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WalletFileProblem(
            f"The wallet file {path} cannot be read: {error.strerror}"
        ) from error
    if len(contents) > MAX_FILE_BYTES:
        raise WalletError(f"The file {path} is too large for a wallet")
    return contents or None


def _write(path: Path, contents: bytes) -> None:
    """Replace the file atomically: after a crash it is the old or the new one."""
    try:
        path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        replace_file(path, (contents,), FILE_MODE)
    except OSError as error:
        raise WalletFileProblem(
            f"The wallet file {path} cannot be written: {error.strerror}"
        ) from error
