"""The key that a command signs with: its options, and reading it. A seed is never an argument,
which every user of the machine can read.

What lives here: the options that all signing commands share. What does not: key files
(``soliton.keystore``), signing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from soliton.cli.keys import PASSWORD_VARIABLE, read_password
from soliton.cli.quantities import WholeRange
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.crypto.keys import KeyPair

_MAX_ACCOUNTS: Final = 200
"""Those of a devnet, whose modules not every command imports."""
SEED_VARIABLE: Final = "SOLITON_SEED"
SEED_FILE_VARIABLE: Final = "SOLITON_SEED_FILE"
MAX_SEED_BYTES: Final = 64 * 1024
_Command = TypeVar("_Command", bound=Callable[..., Any])


def signing_options(command: _Command) -> _Command:
    """Add the options that choose the signing key."""
    for option in (
        click.option("--password-file", type=click.Path(path_type=Path, exists=True),
            help=f"Password of the key files, or {PASSWORD_VARIABLE}."),
        click.option("--keys", "store", type=click.Path(path_type=Path, file_okay=False),
            default=Path("~/.soliton/keys"), show_default=True, help="Directory of the key files."),
        click.option("--key", "key", help="Sign with this key of the key files."),
        click.option("--account", type=WholeRange(1, _MAX_ACCOUNTS),
            help="Sign as this account of a devnet (with the default --seed)."),
    ):  # fmt: skip
        command = option(command)
    return command


def read_keys(
    account: int | None, key: str | None, store: Path, password_file: Path | None
) -> KeyPair:
    """Return the key that the options or the environment choose; raises ``InputError``."""
    from soliton.crypto.keys import key_pair

    if key is not None and account is not None:
        raise InputError("one of: --key, --account")
    if key is not None:
        from soliton.keystore.files import FileStore

        opened = FileStore(store.expanduser())
        opened.public_key(key)
        return opened.secret(key, read_password(opened.directory, password_file)).keys()
    if account is not None:
        from soliton.devnet.accounts import account_seed_phrase

        return key_pair(account_seed_phrase(account))
    file = os.environ.get(SEED_FILE_VARIABLE)
    if file:
        return key_pair(_seed_in(Path(file)))
    seed = os.environ.get(SEED_VARIABLE)
    if not seed:
        raise InputError(
            f"who signs? --key NAME, --account NUMBER, {SEED_FILE_VARIABLE} or {SEED_VARIABLE}"
        )
    return key_pair(seed)


def _seed_in(path: Path) -> bytes:
    """Return the seed in a file without its line's end; raises ``InputError``."""
    from soliton.storage.files import read_secret

    data = read_secret(path, MAX_SEED_BYTES + 1).rstrip(b"\r\n")
    if not data or len(data) > MAX_SEED_BYTES:
        raise InputError(f"{path} has no seed of 1 to {MAX_SEED_BYTES} bytes")
    return data


def read_chain_id(text: str | None) -> int | None:
    """Return the chain id in an option, a letter or number; raises ``InputError``."""
    from soliton.client.transaction import chain_number

    if text is None:
        return None
    return chain_number(
        int(text) if text.isascii() and text.isdecimal() and len(text) > 1 else text
    )
