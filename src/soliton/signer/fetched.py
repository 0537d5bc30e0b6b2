"""Keys fetched at the start: from the environment, a command, or Vault's KV engine.

Whoever starts the signer can read them at their source, so no password protects them here. They
stay unlocked until they are locked, or the process ends. The settings hold the public key: a secret
of another key stops the start.

What lives here: the three sources, and the check. What does not: keys that stay in a store
(``stores``).

Source: hashicorp/vault ``website/content/api-docs/secret/kv/kv-v2.mdx`` (read secret version).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from soliton.crypto import base58
from soliton.crypto.errors import CryptoError
from soliton.crypto.keys import KeyPair
from soliton.keystore.keys import (
    MAX_PHRASE_CHARACTERS,
    KeyProblem,
    Secret,
    account_seed,
    phrase,
    private_key,
)
from soliton.signer.settings import FetchedSettings
from soliton.signer.stores import StoreTrouble, Vault

COMMAND_SECONDS: Final = 60.0
"""Enough for somebody to touch a device."""
MAX_OUTPUT_BYTES: Final = 64 * 1024
_READERS: Final = {"phrase": phrase, "account-seed": account_seed, "private-key": private_key}


def fetch(settings: FetchedSettings) -> KeyPair:
    """Return the key that the settings name; raises ``StoreTrouble`` and ``KeyProblem``, neither of
    which quotes the secret.
    """
    text = _text(settings)
    if not 0 < len(text) <= MAX_PHRASE_CHARACTERS:
        raise KeyProblem(f"{settings.name}: there is no secret at {settings.kind}, or a long one")
    try:
        secret: Secret = _READERS[settings.secret](text)
        keys = secret.keys()
        wanted = base58.decode(settings.public_key)
    except (KeyProblem, CryptoError) as error:
        raise KeyProblem(f"{settings.name}: {error}") from None
    if keys.public_key != wanted:
        found = base58.encode(keys.public_key)
        raise KeyProblem(
            f"{settings.name}: the secret is of the public key {found}, not {settings.public_key}"
        )
    return keys


def _text(settings: FetchedSettings) -> str:
    if settings.kind == "environment":
        # Child processes must not inherit it.
        return os.environ.pop(settings.where, "")
    if settings.kind == "command":
        return _output(settings)
    return _from_vault(settings)


def _output(settings: FetchedSettings) -> str:
    """Return the first line that a command prints, as password managers print secrets."""
    trouble: str
    try:
        # Its diagnostics may contain the secret, so they are discarded.
        ended = subprocess.run(  # noqa: S603 - the operator's own command
            settings.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        if ended.returncode == 0:
            return ended.stdout[:MAX_OUTPUT_BYTES].decode().partition("\n")[0].rstrip("\r")
        trouble = f"it ends with {ended.returncode}"
    except subprocess.TimeoutExpired:
        trouble = f"it takes longer than {COMMAND_SECONDS:g} s"
    except UnicodeDecodeError:
        trouble = "it prints no text"
    except OSError as error:
        trouble = f"it cannot be started: {error.strerror}"
    raise StoreTrouble(f"{settings.name}: the command {settings.command[0]}: {trouble}")


def _from_vault(settings: FetchedSettings) -> str:
    vault = Vault(settings.where, Path(settings.token_file))
    data = vault.ask("GET", f"{settings.within}/data/{settings.path}")
    held = data.get("data") if isinstance(data, dict) else None
    found = held.get(settings.field) if isinstance(held, dict) else None
    if not isinstance(found, str):
        raise StoreTrouble(f"{settings.name}: Vault has no text {settings.field} there")
    return found
