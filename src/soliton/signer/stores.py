"""Keys in external stores, which sign with Ed25519 keys and never export them.

What lives here: the interface of a store, Vault's transit engine, and the check of what a store
returns. What does not: PKCS#11 (``pkcs11``), keys in files (``keyring``).

Source: hashicorp/vault ``website/content/api-docs/secret/transit.mdx`` (read key, sign data). The
store signs the message with plain Ed25519; ``crypto.ed25519_keys`` converts the signature to the
protocol's form.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Protocol

from soliton.crypto.curve25519 import verify
from soliton.crypto.ed25519_keys import protocol_key, protocol_signature
from soliton.crypto.errors import CryptoError
from soliton.errors import EnvironmentProblem
from soliton.signer.errors import KEY_STORE_TROUBLE, RequestRefused
from soliton.storage.files import OpenToOthers, read_secret
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble

MAX_TOKEN_BYTES: Final = 4_096
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
VAULT_SECONDS: Final = 15.0
_KEY_TYPE: Final = "ed25519"


class StoreTrouble(EnvironmentProblem):
    """A store cannot be reached, or answers with something unexpected."""


class Store(Protocol):
    """A store of one Ed25519 key. The methods block."""

    def public_key(self) -> bytes:
        """Return the Ed25519 public key; raises ``StoreTrouble``."""

    def sign(self, messages: Sequence[bytes]) -> list[bytes]:
        """Return plain Ed25519 signatures, in order; raises ``StoreTrouble``."""

    def close(self) -> None:
        """Close the connection to the store."""


class StoredKey:
    """A key in a store, in the forms of the protocol."""

    def __init__(self, store: Store) -> None:
        """Raises ``StoreTrouble``."""
        self._store = store
        self._key = store.public_key()
        try:
            self.public_key = protocol_key(self._key)
        except CryptoError as error:
            raise StoreTrouble(f"the store's key: {error}") from None

    def sign(self, messages: Sequence[bytes]) -> list[bytes]:
        """Return verified signatures of the protocol; raises ``RequestRefused``."""
        try:
            made = self._store.sign(messages)
            if len(made) != len(messages):
                raise StoreTrouble("the store has left signatures out")
            signatures = [protocol_signature(self._key, each) for each in made]
        except (StoreTrouble, CryptoError) as error:
            raise RequestRefused(KEY_STORE_TROUBLE, f"the store of the key: {error}") from None
        for message, signature in zip(messages, signatures, strict=True):
            if not verify(self.public_key, message, signature):
                raise RequestRefused(KEY_STORE_TROUBLE, "the store has signed something else")
        return signatures

    def close(self) -> None:
        """Close the store."""
        self._store.close()


class Vault:
    """A Vault server, and the file with the access token."""

    def __init__(self, url: str, token_file: Path) -> None:
        self._url = url
        self._token_file = token_file

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        """Send a request and return the ``data`` of the answer; raises ``StoreTrouble``. The token
        is read each time, since agents renew it in its file.
        """
        try:
            token = read_secret(self._token_file, MAX_TOKEN_BYTES).decode("ascii").strip()
        except OpenToOthers as error:
            raise StoreTrouble(str(error)) from None
        except (OSError, UnicodeDecodeError) as error:
            raise StoreTrouble(f"{self._token_file} cannot be read") from error
        payload = b"" if body is None else json.dumps(body).encode()
        status, text = _run(lambda: self._request(method, f"/v1/{path}", payload, token))
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if status == 200 and isinstance(answer, dict):
            return answer.get("data")
        raise StoreTrouble(f"Vault answers {status}")

    async def _request(self, method: str, path: str, data: bytes, token: str) -> tuple[int, bytes]:
        limits = ClientLimits(1, answer_seconds=VAULT_SECONDS, answer_bytes=MAX_ANSWER_BYTES)
        client = HttpClient(self._url, limits, {"X-Vault-Token": token})
        try:
            answer = await client.request(method, path, data)
        except HttpTrouble as error:
            raise StoreTrouble(f"Vault: {error}") from None
        finally:
            client.close()
        return answer.status, answer.body


class VaultTransit:
    """A key of a Vault server's transit engine, in the latest version at the start: a rotated key
    belongs to another account.
    """

    def __init__(self, url: str, mount: str, key: str, token_file: Path) -> None:
        self._vault = Vault(url, token_file)
        self._mount = mount
        self._key = key
        self._version: int = 0

    def public_key(self) -> bytes:
        """Return the public key of the latest version."""
        data = self._vault.ask("GET", f"{self._mount}/keys/{self._key}")
        try:
            self._version = int(data["latest_version"])
            if data["type"] != _KEY_TYPE:
                raise StoreTrouble(f"the key is of the type {str(data['type'])[:40]}")
            key = data["keys"][str(self._version)]
            return base64.b64decode(key["public_key"], validate=True)
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise StoreTrouble("Vault answers, but not as its transit engine does") from None

    def sign(self, messages: Sequence[bytes]) -> list[bytes]:
        """Sign all messages in one request."""
        batch = [{"input": base64.b64encode(each).decode()} for each in messages]
        path = f"{self._mount}/sign/{self._key}"
        body = {"batch_input": batch, "key_version": self._version}
        data = self._vault.ask("POST", path, body)
        try:
            return [_vault_signature(each["signature"]) for each in data["batch_results"]]
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise StoreTrouble("Vault answers, but not as its transit engine does") from None

    def close(self) -> None:
        """Nothing is open between requests."""


def _run(work: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the work gives
    """Run it in an event loop on its own thread: stores block, and are also used at the start."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(work())).result()


def _vault_signature(text: str) -> bytes:
    prefix, version, signature = text.split(":")
    if prefix != "vault" or not version.startswith("v"):
        raise ValueError(text)
    return base64.b64decode(signature, validate=True)
