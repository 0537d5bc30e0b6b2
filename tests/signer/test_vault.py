"""A real Vault server, where there is one: its transit engine signs, its KV engine keeps a phrase.

``SOLITON_VAULT_URL`` and ``SOLITON_VAULT_TOKEN`` lead to one that runs; else the program ``vault``
is started, and forgets all at its end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import pytest

from soliton.crypto.curve25519 import verify
from soliton.signer.fetched import fetch
from soliton.signer.settings import FetchedSettings, StoreSettings
from soliton.signer.stores import StoredKey, StoreTrouble, VaultTransit
from tests.signer.kept import ALL, HOT, HOT_PHRASE, HOT_TEXT, Place
from tests.signer.test_stores import uses

REAL_TOKEN: Final = os.environ.get("SOLITON_VAULT_TOKEN", "token-of-the-tests")
STARTING_SECONDS: Final = 60


def _make(client: httpx.Client, path: str, asked: dict[str, Any]) -> None:
    client.post(f"/v1/{path}", json=asked).raise_for_status()


@pytest.fixture(scope="module")
def real_vault() -> Iterator[httpx.Client]:
    """Who asks it, with both engines at places of their own."""
    url, program = os.environ.get("SOLITON_VAULT_URL"), shutil.which("vault")
    if url is None and program is None:
        pytest.skip("Vault is not installed (program vault), nor is SOLITON_VAULT_URL set")
    with contextlib.ExitStack() as open_:
        if url is None:
            with socket.create_server(("127.0.0.1", 0)) as free:
                address = f"127.0.0.1:{free.getsockname()[1]}"
            url = f"http://{address}"
            options = [f"-dev-root-token-id={REAL_TOKEN}", f"-dev-listen-address={address}"]
            command = [str(program), "server", "-dev", "-dev-no-store-token", *options]
            process = open_.enter_context(
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            open_.callback(process.terminate)
        headers = {"X-Vault-Token": REAL_TOKEN}
        client = open_.enter_context(httpx.Client(base_url=url, headers=headers, timeout=60))
        for _ in range(STARTING_SECONDS * 10):
            with contextlib.suppress(httpx.TransportError):
                if client.get("/v1/sys/health").status_code == 200:
                    break
            time.sleep(0.1)
        mounts: tuple[tuple[str, dict[str, Any]], ...] = (
            ("sys/mounts/soliton-transit", {"type": "transit"}),
            ("sys/mounts/soliton-kv", {"type": "kv", "options": {"version": "2"}}),
        )
        for path, asked in mounts:
            _make(client, path, asked)
        yield client
        for path, _ in mounts:
            client.delete(f"/v1/{path}")


@pytest.fixture
def real_token(tmp_path: Path) -> Path:
    path = tmp_path / "real-token"
    path.write_text(f"{REAL_TOKEN}\n")
    return path


async def test_a_real_vault_signs(
    tmp_path: Path, real_vault: httpx.Client, real_token: Path
) -> None:
    _make(real_vault, "soliton-transit/keys/hot", {"type": "ed25519"})
    url = str(real_vault.base_url)
    settings = StoreSettings("vault", "vault", url, "soliton-transit", "hot", real_token)
    await uses(Place(tmp_path, ALL), settings)


def test_a_key_of_a_real_vault_is_rotated(real_vault: httpx.Client, real_token: Path) -> None:
    key = "soliton-transit/keys/rotated"
    _make(real_vault, key, {"type": "ed25519"})
    where = str(real_vault.base_url), "soliton-transit", "rotated", real_token
    stored = StoredKey(VaultTransit(*where))
    _make(real_vault, f"{key}/rotate", {})
    for count in (1, 5):
        messages = [bytes([number]) for number in range(count)]
        for message, signature in zip(messages, stored.sign(messages), strict=True):
            assert verify(stored.public_key, message, signature)
    assert StoredKey(VaultTransit(*where)).public_key != stored.public_key


def test_what_a_real_vault_refuses(real_vault: httpx.Client, real_token: Path) -> None:
    url = str(real_vault.base_url)
    _make(real_vault, "soliton-transit/keys/rsa", {"type": "rsa-2048"})
    with pytest.raises(StoreTrouble, match="of the type rsa-2048"):
        VaultTransit(url, "soliton-transit", "rsa", real_token).public_key()
    with pytest.raises(StoreTrouble, match="404"):
        VaultTransit(url, "soliton-transit", "none", real_token).public_key()
    real_token.write_text("another")
    with pytest.raises(StoreTrouble, match="403"):
        VaultTransit(url, "soliton-transit", "rsa", real_token).public_key()


def test_a_real_vault_keeps_a_phrase(real_vault: httpx.Client, real_token: Path) -> None:
    _make(real_vault, "soliton-kv/data/wallet", {"data": {"phrase": HOT_PHRASE}})
    settings = FetchedSettings(
        *("hot", "vault-kv", "phrase", HOT_TEXT, str(real_vault.base_url)),
        within="soliton-kv",
        path="wallet",
        field="phrase",
        token_file=str(real_token),
    )
    assert fetch(settings) == HOT
    with pytest.raises(StoreTrouble):
        fetch(msgspec.structs.replace(settings, path="none"))
