"""Keys that never come here: stores that sign with Ed25519 keys of their own.

What lives here: the interface that the signer sees, Vault's transit engine behind it, and checking
what a store says. What does not: PKCS#11 (``pkcs11``), keys in files (``keyring``).

Source: hashicorp/vault ``website/content/api-docs/secret/transit.mdx`` (read key, sign data). The
message goes there as it is; what comes back is plain Ed25519, of which ``crypto.ed25519_keys``
makes the protocol's form.
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
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble

MAX_TOKEN_BYTES: Final = 4_096
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
VAULT_SECONDS: Final = 15.0
_KEY_TYPE: Final = "ed25519"


class StoreTrouble(EnvironmentProblem):
    """A store cannot be reached, or says something else than such a store does."""


class Store(Protocol):
    """Something that has one Ed25519 key and signs with it. Both methods block."""

    def public_key(self) -> bytes:
        """The Ed25519 key; raises ``StoreTrouble``."""

    def sign(self, messages: Sequence[bytes]) -> list[bytes]:
        """Plain Ed25519 signatures, in their order; raises ``StoreTrouble``."""

    def close(self) -> None:
        """Let it go."""


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
        """Signatures of the protocol, each of which is verified; raises ``RequestRefused``."""
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
        """Let the store go."""
        self._store.close()


class Vault:
    """A Vault server, and the file with our token for it."""

    def __init__(self, url: str, token_file: Path) -> None:
        self._url = url
        self._token_file = token_file

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        """The ``data`` of an answer; raises ``StoreTrouble``. The token is read each time: agents
        renew it in its file.
        """
        try:
            with self._token_file.open("rb") as file:
                token = file.read(MAX_TOKEN_BYTES).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise StoreTrouble(f"{self._token_file} cannot be read") from error
        data = b"" if body is None else json.dumps(body).encode()
        status, answer = _run(lambda: self._request(method, f"/v1/{path}", data, token))
        try:
            told = json.loads(answer)
        except (ValueError, RecursionError):
            told = None
        if status == 200 and isinstance(told, dict):
            return told.get("data")
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
    """A key of a Vault server's transit engine, in the version that was the latest at the start: a
    rotation makes another account.
    """

    def __init__(self, url: str, mount: str, key: str, token_file: Path) -> None:
        self._vault = Vault(url, token_file)
        self._mount = mount
        self._key = key
        self._version: int = 0

    def public_key(self) -> bytes:
        """The latest version's key."""
        told = self._vault.ask("GET", f"{self._mount}/keys/{self._key}")
        try:
            self._version = int(told["latest_version"])
            if told["type"] != _KEY_TYPE:
                raise StoreTrouble(f"the key is of the type {str(told['type'])[:40]}")
            key = told["keys"][str(self._version)]
            return base64.b64decode(key["public_key"], validate=True)
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise StoreTrouble("Vault answers, but not as its transit engine does") from None

    def sign(self, messages: Sequence[bytes]) -> list[bytes]:
        """All in one request."""
        batch = [{"input": base64.b64encode(each).decode()} for each in messages]
        path = f"{self._mount}/sign/{self._key}"
        asked = {"batch_input": batch, "key_version": self._version}
        told = self._vault.ask("POST", path, asked)
        try:
            return [_vault_signature(each["signature"]) for each in told["batch_results"]]
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise StoreTrouble("Vault answers, but not as its transit engine does") from None

    def close(self) -> None:
        """Nothing is open between requests."""


def _run(work: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the work gives
    """Do it in an event loop of its own on a thread of its own: stores block, also at the start."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(work())).result()


def _vault_signature(text: str) -> bytes:
    prefix, version, signature = text.split(":")
    if prefix != "vault" or not version.startswith("v"):
        raise ValueError(text)
    return base64.b64decode(signature, validate=True)
