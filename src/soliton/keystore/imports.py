"""Import of keys from the files of other programs.

What lives here: a reader per format, and detection of the format. What does not: Soliton's own
files (``files``), and a running node's wallet (``node.wallet``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/wallet/Wallet.scala`` and
``utils/JsonFileStorage.scala``; wavesplatform/gowaves ``pkg/wallet``;
Keeper-Wallet/Keeper-Wallet-Extension ``src/ui/components/pages/importKeystore/importKeystore.tsx``
(Keeper's export and the exchange's backup), wavesplatform/ts-lib-crypto ``encryptSeed``.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

try:
    from cryptography.hazmat.decrepit.ciphers.modes import CFB
except ImportError:
    from cryptography.hazmat.primitives.ciphers.modes import CFB

from soliton.crypto.encrypted_seeds import DEFAULT_ROUNDS, decrypt_text
from soliton.crypto.errors import CryptoError
from soliton.crypto.password_files import decrypt, file_key
from soliton.keystore.files import StoreUnavailable, WrongPassword
from soliton.keystore.keys import (
    MAX_NAME_CHARACTERS,
    KeyProblem,
    NamedSecret,
    Secret,
    SecretKind,
    account_seed,
    phrase,
    private_key,
)

MAX_FILE_BYTES: Final = 8 * 1024 * 1024
MAX_ENTRIES: Final = 10_000
_GO_VERSION: Final = (1).to_bytes(4, "big")
_GO_SALT: Final = b"E84265D411C08F99E092AE237F4EC250B2F20B2EAB7CFB2FCB0857880983DF44"
_GO_IV_BYTES: Final = 16
_NETWORKS: Final = ("mainnet", "testnet", "stagenet", "custom")
_INVALID_NAME_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9._@-]+")


def read_file(path: Path, password: str) -> list[NamedSecret]:
    """Return the keys of a node's ``wallet.dat``, a Go node's wallet, Keeper's export, an
    exchange's backup, or the output of ``encryptSeed``. Raises ``KeyProblem`` and
    ``WrongPassword``.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise KeyProblem(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    try:
        found = _reader(data)(data, password, path.stem)
    except CryptoError as error:
        raise WrongPassword(f"{path} does not open: {error}") from None
    if not found:
        raise KeyProblem(f"{path} holds no keys that could be imported")
    if len(found) > MAX_ENTRIES:
        raise KeyProblem(f"{path} holds more than {MAX_ENTRIES} keys")
    return list(_with_unique_names(found))


def _reader(data: bytes) -> Callable[[bytes, str, str], list[NamedSecret]]:
    """Choose the reader of a file by its first bytes."""
    if data[:4] == _GO_VERSION:
        return _go_wallet
    text = data.strip()
    if text[:1] == b"{":
        return _json_file
    if base64.b64encode(b"Salted__")[:10] == text[:10]:
        return _encrypted_seed
    return _node_wallet


def _node_wallet(data: bytes, password: str, stem: str) -> list[NamedSecret]:
    try:
        secret = base64.b64decode(data.strip(), validate=True)
    except binascii.Error:
        raise KeyProblem("the file has no known format") from None
    wallet = _object(_json(decrypt(file_key(password), secret)))
    seeds = wallet.get("accountSeeds")
    if not isinstance(seeds, list):
        raise WrongPassword("a wrong password, or no wallet")
    return [
        NamedSecret(f"{stem}-{number}", account_seed(_text(each)))
        for number, each in enumerate(seeds, 1)
    ]


def _go_wallet(data: bytes, password: str, stem: str) -> list[NamedSecret]:
    iv, secret = data[4 : 4 + _GO_IV_BYTES], data[4 + _GO_IV_BYTES :]
    if len(iv) != _GO_IV_BYTES:
        raise KeyProblem("the wallet is cut short")
    key = Argon2id(salt=_GO_SALT, length=32, iterations=4, lanes=4, memory_cost=64 * 1024).derive(
        password.encode("utf-8", "surrogatepass")
    )
    plain = Cipher(algorithms.AES(key), CFB(iv)).decryptor().update(secret)
    seeds = _object(_json(plain)).get("seeds")
    if not isinstance(seeds, list):
        raise WrongPassword("a wrong password, or no wallet")
    return [
        NamedSecret(f"{stem.lstrip('.')}-{number}", _account_seed(each))
        for number, each in enumerate(seeds, 1)
    ]


def _account_seed(text: object) -> Secret:
    try:
        return Secret(SecretKind.ACCOUNT_SEED, base64.b64decode(_text(text), validate=True))
    except binascii.Error:
        raise KeyProblem("an account seed of the wallet is not base64") from None


def _encrypted_seed(data: bytes, password: str, stem: str) -> list[NamedSecret]:
    text = decrypt_text(data.strip().decode("ascii", "replace"), password)
    return [NamedSecret(stem, phrase(text))]


def _json_file(data: bytes, password: str, _stem: str) -> list[NamedSecret]:
    """Keeper's export and the exchange's backup."""
    outer = _object(_json(data))
    if isinstance(outer.get("profiles"), str):
        return _keeper_export(outer["profiles"], password)
    if isinstance(outer.get("data"), str):
        return _exchange_backup(outer["data"], password)
    raise KeyProblem("the file is JSON, but of no known format")


def _keeper_export(profiles: str, password: str) -> list[NamedSecret]:
    secret = _base64_text(profiles)
    networks = _object(_json(decrypt_text(secret, password).encode()))
    return [
        named
        for network in _NETWORKS
        for account in _list(_object(networks.get(network, {})).get("accounts", []))
        if (named := _wallet_account(_object(account))) is not None
    ]


def _exchange_backup(data: str, password: str) -> list[NamedSecret]:
    inner = _object(_json(_base64_text(data).encode()))
    rounds = inner.get("encryptionRounds", DEFAULT_ROUNDS)
    if type(rounds) is not int:
        raise KeyProblem("encryptionRounds should be an integer")
    users = _json(decrypt_text(_text(inner.get("saveUsers")), password, rounds).encode())
    return [
        named
        for account in _list(users)
        if (named := _wallet_account(_object(account))) is not None
    ]


def _wallet_account(account: dict[str, Any]) -> NamedSecret | None:
    """Return an account's key, or ``None`` if the file has none, as for a Ledger device."""
    name = _text(account.get("name") or account.get("address") or "key")
    for member in ("seed", "encodedSeed"):
        if isinstance(account.get(member), str):
            return NamedSecret(name, phrase(account[member]))
    if isinstance(account.get("privateKey"), str):
        return NamedSecret(name, private_key(account["privateKey"]))
    return None


def _with_unique_names(found: list[NamedSecret]) -> Iterator[NamedSecret]:
    """Drop duplicate keys, and turn the names into valid file names without duplicates."""
    names: set[str] = set()
    keys: set[bytes] = set()
    for entry in found:
        public_key = entry.secret.keys().public_key
        if public_key in keys:
            continue
        keys.add(public_key)
        base = _INVALID_NAME_CHARACTERS.sub("-", entry.name).strip("-._@")[
            : MAX_NAME_CHARACTERS - 6
        ]
        name, number = base or "key", 2
        while name in names:
            name, number = f"{base or 'key'}-{number}", number + 1
        names.add(name)
        yield NamedSecret(name, entry.secret)


def _base64_text(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        raise KeyProblem("the file's content is not base64") from None


def _json(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # No cause: it may quote the decrypted text.
        raise WrongPassword("a wrong password, or damaged bytes") from None


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise KeyProblem("the file has another structure than its kind has")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise KeyProblem("the file has another structure than its kind has")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise KeyProblem("the file has another structure than its kind has")
    return value
