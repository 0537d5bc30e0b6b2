"""A directory of encrypted keys: one file per key, readable by its owner only.

A file is JSON with everything but the password that is needed to open it
(docs/reference/key-files.md). Argon2id derives a key from the password, and AES-256-GCM encrypts
the secret, with name, public key and kind as associated data. Files with the same salt share the
derived key, so a store of ten thousand opens with one derivation.

What lives here: reading, writing and opening. What does not: secrets (``keys``).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from soliton.crypto import base58
from soliton.crypto.curve25519 import KEY_BYTES
from soliton.crypto.errors import CryptoError
from soliton.crypto.keys import KeyPair
from soliton.errors import EnvironmentProblem
from soliton.keystore.keys import KeyProblem, NamedSecret, Secret, SecretKind, check_name
from soliton.storage.files import replace_file, sync_directory

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
SUFFIX: Final = ".key.json"
LOCK_NAME: Final = "lock"
MAX_KEYS: Final = 100_000
MAX_FILE_BYTES: Final = 16 * 1024
VERSION: Final = 1
SALT_BYTES: Final = 16
NONCE_BYTES: Final = 12
DERIVED_BYTES: Final = 32
ITERATIONS: Final = 3
MEMORY_KIB: Final = 64 * 1024
LANES: Final = 4
MAX_ITERATIONS: Final = 64
MAX_MEMORY_KIB: Final = 1024 * 1024
MAX_LANES: Final = 64
"""The most that a file may request, so that an untrusted file cannot exhaust the machine."""


class KeyFileProblem(KeyProblem):
    """A key file is damaged, or other users can access it."""


class WrongPassword(KeyProblem):
    """The password does not decrypt the key."""


class StoreUnavailable(EnvironmentProblem):
    """The directory cannot be read, written or locked."""


class Derivation(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The parameters of Argon2id. All keys that one store writes have the same salt."""

    salt: bytes
    iterations: int = ITERATIONS
    memory_kib: int = MEMORY_KIB
    lanes: int = LANES

    def check(self) -> None:
        """Raise ``KeyFileProblem`` if a parameter is out of range."""
        valid = (
            len(self.salt) >= SALT_BYTES // 2
            and 1 <= self.iterations <= MAX_ITERATIONS
            and 1 <= self.lanes <= MAX_LANES
            and 8 * self.lanes <= self.memory_kib <= MAX_MEMORY_KIB
        )
        if not valid:
            raise KeyFileProblem("a parameter of its key derivation is out of range")

    def derive(self, password: str) -> bytes:
        """Derive the key from a password; deliberately slow, a good part of a second."""
        return Argon2id(
            salt=self.salt,
            length=DERIVED_BYTES,
            iterations=self.iterations,
            lanes=self.lanes,
            memory_cost=self.memory_kib,
        ).derive(password.encode("utf-8", "surrogatepass"))


class KeyFile(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The content of a file. ``nonce`` is that of AES-GCM, ``secret`` the encrypted secret."""

    version: int
    name: str
    public_key: str
    kind: SecretKind
    account_nonce: int
    argon2id: Derivation
    nonce: bytes
    secret: bytes

    @property
    def associated_data(self) -> bytes:
        """The authenticated plain text, which binds the secret to this file."""
        return f"{self.version}|{self.name}|{self.public_key}|{self.kind.value}".encode() + (
            f"|{self.account_nonce}".encode()
        )

    def key(self) -> bytes:
        """Return the public key."""
        return base58.decode(self.public_key)


class FileStore:
    """The keys of a directory. Names and public keys are readable without the password."""

    def __init__(self, directory: Path) -> None:
        """Read all files. Raises ``KeyFileProblem`` with the path of a bad file, and
        ``StoreUnavailable``.
        """
        self.directory = directory
        self._files = {each.name: each for each in _read_all(directory)}

    def names(self) -> list[str]:
        """Return all names in alphabetical order."""
        return sorted(self._files)

    def public_key(self, name: str) -> bytes:
        """Return the public key of a name; raise ``KeyProblem`` for an unknown one."""
        return self._file(name).key()

    def open(self, password: str) -> dict[str, KeyPair]:
        """Return the keys that the password opens, by name. Raises ``WrongPassword`` if it opens
        none, ``KeyFileProblem`` for a secret that does not match its public key.
        """
        derived: dict[Derivation, bytes] = {}
        opened = {}
        for name, file in self._files.items():
            if file.argon2id not in derived:
                derived[file.argon2id] = file.argon2id.derive(password)
            with contextlib.suppress(WrongPassword):
                opened[name] = _keys(file, _decrypt(file, derived[file.argon2id]))
        if self._files and not opened:
            raise WrongPassword(f"the password opens no key of {self.directory}")
        return opened

    def secret(self, name: str, password: str) -> Secret:
        """Decrypt the secret of a name; raise ``WrongPassword`` or ``KeyProblem``."""
        file = self._file(name)
        secret = _decrypt(file, file.argon2id.derive(password))
        _keys(file, secret)
        return secret

    def add(self, entries: list[NamedSecret], password: str, new: Derivation | None = None) -> None:
        """Write keys. All keys of a store have the same password, and the first ones determine how
        the key is derived from it: as usual, or as ``new`` says.

        Raises ``KeyProblem`` for a duplicate name or key, ``WrongPassword`` for another password.
        """
        if not password:
            raise KeyProblem("an empty password protects nothing")
        if len(self._files) + len(entries) > MAX_KEYS:
            raise KeyProblem(f"a store holds {MAX_KEYS} keys at most")
        known = {file.public_key: name for name, file in self._files.items()}
        derivation, derived = self._derived(password, new)
        written: list[KeyFile] = []
        for entry in entries:
            file = _sealed(entry, derivation, derived)
            if entry.name in self._files or any(entry.name == each.name for each in written):
                raise KeyProblem(f"there is a key named {entry.name} already")
            if file.public_key in known:
                raise KeyProblem(f"this key is there already, named {known[file.public_key]}")
            known[file.public_key] = entry.name
            written.append(file)
        with self.writing():
            for file in written:
                _write(self.directory, file)
        self._files |= {each.name: each for each in written}

    def rename(self, name: str, new: str, password: str) -> None:
        """Rename a key. This needs the password, since the name is authenticated."""
        file = self._file(name)
        if check_name(new) in self._files:
            raise KeyProblem(f"there is a key named {new} already")
        derived = file.argon2id.derive(password)
        renamed = _sealed(NamedSecret(new, _decrypt(file, derived)), file.argon2id, derived)
        with self.writing():
            _write(self.directory, renamed)
            try:
                _path(self.directory, name).unlink()
                sync_directory(self.directory)
            except OSError as error:
                raise StoreUnavailable(f"{name} cannot be removed: {error.strerror}") from error
        del self._files[name]
        self._files[new] = renamed

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the directory against other writers; raise ``StoreUnavailable`` if it is locked."""
        try:
            self.directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            descriptor = os.open(
                self.directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE
            )
        except OSError as error:
            raise StoreUnavailable(f"{self.directory}: {error.strerror}") from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise StoreUnavailable(f"another process writes to {self.directory}") from None
            yield
        finally:
            os.close(descriptor)

    def _derived(self, password: str, new: Derivation | None) -> tuple[Derivation, bytes]:
        """Return the derivation of the existing keys, after checking the password on one, and the
        derived key.
        """
        for file in self._files.values():
            derived = file.argon2id.derive(password)
            _decrypt(file, derived)
            return file.argon2id, derived
        derivation = new or Derivation(os.urandom(SALT_BYTES))
        return derivation, derivation.derive(password)

    def _file(self, name: str) -> KeyFile:
        file = self._files.get(name)
        if file is None:
            raise KeyProblem(f"there is no key named {check_name(name)} in {self.directory}")
        return file


def _sealed(entry: NamedSecret, derivation: Derivation, derived: bytes) -> KeyFile:
    secret = entry.secret
    draft = KeyFile(
        VERSION,
        check_name(entry.name),
        base58.encode(secret.keys().public_key),
        secret.kind,
        secret.nonce,
        derivation,
        os.urandom(NONCE_BYTES),
        b"",
    )
    encrypted = AESGCM(derived).encrypt(draft.nonce, secret.value, draft.associated_data)
    return msgspec.structs.replace(draft, secret=encrypted)


def _decrypt(file: KeyFile, derived: bytes) -> Secret:
    try:
        value = AESGCM(derived).decrypt(file.nonce, file.secret, file.associated_data)
    except InvalidTag:
        raise WrongPassword(
            f"the key {file.name} does not open: a wrong password, or a damaged file"
        ) from None
    return Secret(file.kind, value, file.account_nonce)


def _keys(file: KeyFile, secret: Secret) -> KeyPair:
    keys = secret.keys()
    if keys.public_key != file.key():
        raise KeyFileProblem(f"the secret of {file.name} is not that of its public key")
    return keys


def _path(directory: Path, name: str) -> Path:
    return directory / f"{name}{SUFFIX}"


def _write(directory: Path, file: KeyFile) -> None:
    text = msgspec.json.format(msgspec.json.encode(file), indent=2)
    try:
        replace_file(_path(directory, file.name), (text, b"\n"), FILE_MODE)
    except OSError as error:
        raise StoreUnavailable(f"{directory} cannot be written: {error.strerror}") from error


def _read_all(directory: Path) -> list[KeyFile]:
    try:
        with os.scandir(directory) as entries:
            names = sorted(each.name for each in entries if each.name.endswith(SUFFIX))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreUnavailable(f"{directory} cannot be read: {error.strerror}") from error
    if len(names) > MAX_KEYS:
        raise KeyProblem(f"a store holds {MAX_KEYS} keys at most")
    return [_read(directory / name) for name in names]


def _read(path: Path) -> KeyFile:
    """Read a file; raise ``KeyFileProblem`` with its path."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be read: {error.strerror}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeyFileProblem(f"{path} is open to others: chmod 600 {path}")
    try:
        if len(text) > MAX_FILE_BYTES:
            raise KeyFileProblem(f"it is larger than {MAX_FILE_BYTES} bytes")
        key_file = _DECODER.decode(text)
        key_file.argon2id.check()
        if key_file.version != VERSION:
            raise KeyFileProblem(f"version {key_file.version} is not supported")
        if f"{check_name(key_file.name)}{SUFFIX}" != path.name:
            raise KeyFileProblem("its name is not that of the file")
        if len(key_file.key()) != KEY_BYTES or len(key_file.nonce) != NONCE_BYTES:
            raise KeyFileProblem("its public key or its nonce has the wrong length")
    except (msgspec.DecodeError, UnicodeDecodeError, KeyProblem, CryptoError) as error:
        raise KeyFileProblem(f"{path} is no key file: {error}") from None
    return key_file


_DECODER: Final = msgspec.json.Decoder(KeyFile)
