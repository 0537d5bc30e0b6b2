"""``soliton keys``, ``soliton api-key``: encrypted files of account keys, and API keys.

What lives here: the commands, prompts for passwords and secrets, printing. What does not: the files
(``soliton.keystore``).
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from soliton.cli.helping import Commands
from soliton.cli.quantities import WHOLE
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.keystore.keys import NamedSecret, Secret

DEFAULT_STORE: Final = Path("~/.soliton/keys")
PASSWORD_VARIABLE: Final = "SOLITON_KEYS_PASSWORD"  # noqa: S105 - a name
MAX_PASSWORD_FILE_BYTES: Final = 4_096
API_KEY_BYTES: Final = 32
EXPORT_FORMS: Final = ("encrypted-seed", "keeper", "phrase")

_STORE: Final = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_STORE,
    show_default=True,
    help="The directory of key files.",
)
_PASSWORD_FILE: Final = click.option(
    "--password-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help=f"A file with the store's password; else {PASSWORD_VARIABLE}, or a prompt.",
)


class KeysUsage(InputError):
    """Options of a command are missing or conflict."""


@click.group(cls=Commands)
def keys() -> None:
    """Create, import, show and rename account keys in encrypted files."""


@keys.command()
@click.argument("name")
@click.option("--quiet", is_flag=True, help="Do not print the phrase: only the file has it.")
@_STORE
@_PASSWORD_FILE
def new(name: str, quiet: bool, store: Path, password_file: Path | None) -> None:
    """Create a key NAME from a new phrase of fifteen words, and print both."""
    from soliton.keystore.keys import NamedSecret, check_name, new_phrase, phrase

    check_name(name)
    words = new_phrase()
    entry = NamedSecret(name, phrase(words))
    _add([entry], store, password_file)
    if not quiet:
        click.echo(f"phrase: {words}")
        click.echo(
            "Whoever has these words has the account. Write them down; they cannot be recovered.",
            err=True,
        )
    _show_public(name, entry.secret.keys().public_key)


@keys.command("import")
@click.argument(
    "file", type=click.Path(path_type=Path, dir_okay=False, exists=True), required=False
)
@click.option("--name", help="The new key's name; with FILE, of its only key.")
@click.option("--phrase", "as_phrase", is_flag=True, help="Import a seed phrase, not FILE.")
@click.option("--private-key", "as_private", is_flag=True, help="Import a private key in base58.")
@click.option("--account-seed", "as_seed", is_flag=True, help="Import an account seed in base58.")
@click.option("--nonce", type=WHOLE, default=0, help="The account's number under the phrase.")
@click.option("--public-key", help="Fail unless this is the public key.")
@click.option(
    "--file-password-file",
    type=click.Path(path_type=Path, exists=True),
    help="A file with the password of FILE.",
)
@_STORE
@_PASSWORD_FILE
def import_command(
    file: Path | None,
    name: str | None,
    as_phrase: bool,
    as_private: bool,
    as_seed: bool,
    nonce: int,
    public_key: str | None,
    file_password_file: Path | None,
    store: Path,
    password_file: Path | None,
) -> None:
    """Import keys from FILE (a node's wallet.dat, a Go node's wallet, Keeper's export, an
    exchange's backup, an encrypted seed), or one from a prompt or standard input.
    """
    from soliton.crypto import base58
    from soliton.keystore.imports import read_file
    from soliton.keystore.keys import NamedSecret, account_seed, check_name, phrase, private_key

    if (file is not None) + as_phrase + as_private + as_seed != 1:
        raise KeysUsage("give FILE, or one of --phrase, --private-key, --account-seed")
    if file is not None:
        found = read_file(file, _read_or_ask(file_password_file, f"password of {file}"))
        if name is not None:
            if len(found) != 1:
                raise KeysUsage(f"{file} holds {len(found)} keys, which have names of their own")
            found = [NamedSecret(check_name(name), found[0].secret)]
    else:
        if name is None:
            raise KeysUsage("--name is needed")
        check_name(name)
        if as_phrase:
            secret = phrase(_secret_line("phrase"), nonce)
        elif as_private:
            secret = private_key(_secret_line("private key"))
        else:
            secret = account_seed(_secret_line("account seed"))
        found = [NamedSecret(name, secret)]
    if public_key is not None:
        _check_public_key(found, base58.decode(public_key))
    _add(found, store, password_file)
    for entry in found:
        _show_public(entry.name, entry.secret.keys().public_key)


@keys.command("list")
@_STORE
def list_command(store: Path) -> None:
    """Print names and public keys."""
    from soliton.crypto import base58
    from soliton.keystore.files import FileStore

    opened = FileStore(store.expanduser())
    names = opened.names()
    if not names:
        click.echo(f"there is no key in {opened.directory}: soliton keys new NAME", err=True)
    for name in names:
        click.echo(f"{name}\t{base58.encode(opened.public_key(name))}")


@keys.command()
@click.argument("name")
@click.option("--secret", "with_secret", is_flag=True, help="Also print phrase and private key.")
@_STORE
@_PASSWORD_FILE
def show(name: str, with_secret: bool, store: Path, password_file: Path | None) -> None:
    """Print the public key and the addresses on every network of the key NAME."""
    from soliton.crypto import base58
    from soliton.keystore.files import FileStore

    opened = FileStore(store.expanduser())
    public_key = opened.public_key(name)
    if with_secret:
        secret = opened.secret(name, read_password(opened.directory, password_file))
        click.echo(f"{secret.kind.value}: {secret.plain_text()}")
        if secret.nonce:
            click.echo(f"nonce: {secret.nonce}")
        click.echo(f"private key: {base58.encode(secret.keys().private_key)}")
    _show_public(name, public_key)


@keys.command()
@click.argument("name")
@click.argument("new_name", metavar="NEW")
@_STORE
@_PASSWORD_FILE
def rename(name: str, new_name: str, store: Path, password_file: Path | None) -> None:
    """Rename the key NAME to NEW."""
    from soliton.keystore.files import FileStore

    opened = FileStore(store.expanduser())
    opened.public_key(name)
    opened.rename(name, new_name, read_password(opened.directory, password_file))
    click.echo(f"{name} is called {new_name} now")


@keys.command()
@click.argument("name")
@click.option(
    "--as",
    "form",
    type=click.Choice(EXPORT_FORMS),
    default="encrypted-seed",
    show_default=True,
    help="A text that wallets decrypt, Keeper's export file, or the bare phrase.",
)
@click.option("--export-password-file", type=click.Path(path_type=Path, exists=True))
@_STORE
@_PASSWORD_FILE
def export(
    name: str, form: str, export_password_file: Path | None, store: Path, password_file: Path | None
) -> None:
    """Print the key NAME in a format that other programs read."""
    from soliton.crypto.encrypted_seeds import encrypt_text
    from soliton.keystore.exports import keeper_export
    from soliton.keystore.files import FileStore

    opened = FileStore(store.expanduser())
    opened.public_key(name)
    secret = opened.secret(name, read_password(opened.directory, password_file))
    if form == "phrase":
        click.echo(_as_phrase(secret))
        return
    password = _read_or_ask(export_password_file, "password of the export", confirm=True)
    if form == "keeper":
        click.echo(keeper_export(name, secret, password))
    else:
        click.echo(encrypt_text(_as_phrase(secret), password))


@click.group("api-key", cls=Commands)
def api_key() -> None:
    """Create API keys for callers of a node, a matcher or a signer."""


@api_key.command("new")
def new_api_key() -> None:
    """Print a new API key, and its hash for the settings of a service."""
    from soliton.crypto import base58
    from soliton.crypto.hashes import secure_hash

    key = base58.encode(secrets.token_bytes(API_KEY_BYTES))
    hashed = base58.encode(secure_hash(key.encode()))
    click.echo(f"key:  {key}")
    click.echo(f"hash: {hashed}")
    click.echo(
        "The caller sends the key as X-API-Key. The settings have its hash:\n"
        f'  a node     rest-api.api-key-hash = "{hashed}"\n'
        f'  a matcher  rest.api-key-hashes = ["{hashed}"]\n'
        f'  a signer   signer.callers = [{{ name = "…", key-hash = "{hashed}", may = ["sign"] }}]',
        err=True,
    )


def _as_phrase(secret: Secret) -> str:
    from soliton.keystore.keys import SecretKind

    if secret.kind is not SecretKind.PHRASE or secret.nonce:
        raise KeysUsage(
            "this key was not made of a phrase alone, and the form has room for nothing else"
        )
    return secret.plain_text()


def _check_public_key(found: list[NamedSecret], expected: bytes) -> None:
    if len(found) != 1 or found[0].secret.keys().public_key != expected:
        raise KeysUsage("that is not the public key of what would be imported")


def _add(found: list[NamedSecret], store: Path, password_file: Path | None) -> None:
    from soliton.keystore.files import FileStore

    opened = FileStore(store.expanduser())
    is_new = not opened.names()
    opened.add(found, read_password(opened.directory, password_file, confirm=is_new))


def _show_public(name: str, public_key: bytes) -> None:
    from soliton.chain.addresses import address_text, from_public_key
    from soliton.chain.networks import load, names
    from soliton.crypto import base58

    click.echo(f"name: {name}")
    click.echo(f"public key: {base58.encode(public_key)}")
    for chain_id in sorted({load(each).chain_id for each in names()}):
        networks = ", ".join(each for each in names() if load(each).chain_id == chain_id)
        click.echo(f"  {address_text(from_public_key(public_key, chain_id))}  {networks}")


def read_password(directory: Path, file: Path | None, *, confirm: bool = False) -> str:
    """Return the password of a key directory, from a file, the environment, or a prompt."""
    given = os.environ.get(PASSWORD_VARIABLE)
    if file is None and given:
        return given
    return _read_or_ask(file, f"password of {directory}", confirm=confirm)


def warn_if_open(file: Path) -> None:
    """Warn of a file with a secret that other users of the machine can read."""
    mode = file.stat().st_mode
    if stat.S_ISREG(mode) and mode & (stat.S_IRWXG | stat.S_IRWXO):
        click.echo(f"soliton: {file} is open to others: chmod 600 {file}", err=True)


def _read_or_ask(file: Path | None, what: str, *, confirm: bool = False) -> str:
    if file is not None:
        warn_if_open(file)
        with file.open("rb") as opened:
            text = opened.read(MAX_PASSWORD_FILE_BYTES)
        return text.decode("utf-8", "surrogateescape").rstrip("\r\n")
    if not sys.stdin.isatty():
        raise KeysUsage(f"the {what} is needed: --password-file, {PASSWORD_VARIABLE}, a terminal")
    return str(click.prompt(what, hide_input=True, confirmation_prompt=confirm, err=True))


def _secret_line(what: str) -> str:
    if sys.stdin.isatty():
        return str(click.prompt(what, hide_input=True, err=True))
    return sys.stdin.readline(64 * 1024).rstrip("\r\n")
