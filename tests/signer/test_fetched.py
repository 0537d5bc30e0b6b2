"""Keys that are brought to a signer at its start: from the environment, a command, Vault's KV.

Vault is played by a server that answers as its documentation says (KV version 2).
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.cli.run import start_signer
from soliton.crypto import base58
from soliton.crypto.keys import account_seed, key_pair
from soliton.errors import SolitonError
from soliton.keystore.keys import KeyProblem
from soliton.node.settings import SettingsError, load_settings
from soliton.signer.fetched import fetch
from soliton.signer.settings import FetchedSettings
from soliton.signer.stores import StoreTrouble
from tests.signer.kept import BOT, PASSWORD, TRANSFER, Place, checked
from tests.signer.test_doors import by_key, config

PHRASE: Final = "a phrase that nobody should ever see anywhere"
PAIR: Final = key_pair(PHRASE)
PUBLIC: Final = base58.encode(PAIR.public_key)
KV: Final = 'kind = vault-kv, path = p, public-key = "x"'
SECRETS: Final = {
    "phrase": PHRASE,
    "account-seed": base58.encode(account_seed(PHRASE.encode(), 0)),
    "private-key": base58.encode(PAIR.private_key),
}


@pytest.fixture
def hot_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOT_SEED", PHRASE)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_of_the_environment_is_taken_out_of_it(
    monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("HOT_SEED", SECRETS[secret])
    wanted = FetchedSettings("hot", "environment", secret, PUBLIC, "HOT_SEED")
    assert fetch(wanted) == PAIR
    assert "HOT_SEED" not in os.environ
    with pytest.raises(KeyProblem, match="no secret at environment"):
        fetch(wanted)


@pytest.mark.usefixtures("hot_seed")
def test_another_secret_stops_the_start() -> None:
    other = base58.encode(key_pair("other").public_key)
    with pytest.raises(KeyProblem, match=f"public key {PUBLIC}, not {other}") as caught:
        fetch(FetchedSettings("hot", "environment", "phrase", other, "HOT_SEED"))
    assert PHRASE not in str(caught.value)


def tool(directory: Path, lines: str) -> str:
    """A program as ``pass`` is one."""
    path = directory / "pass"
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(stat.S_IRWXU)
    return str(path)


def by_command(*command: str) -> FetchedSettings:
    return FetchedSettings("hot", "command", "phrase", PUBLIC, command=command)


def test_the_first_line_of_a_command_is_the_secret(tmp_path: Path) -> None:
    program = tool(tmp_path, f'[ "$1 $2" = "show waves/hot" ] && echo "{PHRASE}" && echo "url: x"')
    assert fetch(by_command(program, "show", "waves/hot")) == PAIR


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (f'echo "{PHRASE}"; echo "{PHRASE}" >&2; exit 3', "it ends with 3"),
        ("printf '\\377\\376'", "prints no text"),
        ("true", "no secret at command"),
    ],
)
def test_a_command_that_fails_says_nothing_of_what_it_printed(
    tmp_path: Path, lines: str, words: str
) -> None:
    with pytest.raises(SolitonError, match=words) as caught:
        fetch(by_command(tool(tmp_path, lines)))
    assert PHRASE not in str(caught.value)


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreTrouble, match="cannot be started"):
        fetch(by_command(str(tmp_path / "nothing")))


class KvVault(BaseHTTPRequestHandler):
    """Vault's KV engine, version 2, mounted at ``secret``, with one secret."""

    def do_GET(self) -> None:
        status, told = 404, {}
        if self.headers["X-Vault-Token"] != "a-token":
            status = 403
        elif self.path == "/v1/secret/data/waves/hot":
            metadata = {"version": 3, "destroyed": False, "deletion_time": ""}
            held = {"phrase": PHRASE, "number": 5}
            status, told = 200, {"data": {"data": held, "metadata": metadata}}
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: Any) -> None:
        """Nothing is said."""


@pytest.fixture
def vault() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), KvVault)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def of_vault(url: str, token: Path, **others: str) -> FetchedSettings:
    usual: dict[str, Any] = {"where": url, "within": "secret", "path": "waves/hot"}
    usual |= {"field": "phrase", "token_file": str(token), **others}
    return FetchedSettings("hot", "vault-kv", "phrase", PUBLIC, **usual)


def test_a_secret_of_vault(tmp_path: Path, vault: str) -> None:
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("a-token\n")
    assert fetch(of_vault(vault, token)) == PAIR
    for others in ({"path": "else"}, {"within": "kv"}, {"field": "none"}, {"field": "number"}):
        with pytest.raises(StoreTrouble):
            fetch(of_vault(vault, token, **others))
    token.chmod(0o644)
    with pytest.raises(StoreTrouble, match="open to others"):
        fetch(of_vault(vault, token))
    token.chmod(0o600)
    token.write_text("wrong")
    with pytest.raises(StoreTrouble, match="403"):
        fetch(of_vault(vault, token))


@pytest.mark.usefixtures("hot_seed")
async def test_a_fetched_key_signs_at_once_until_it_is_locked(tmp_path: Path) -> None:
    fetched = FetchedSettings("ci", "environment", "phrase", PUBLIC, "HOT_SEED")
    async with Place(tmp_path).serving(fetched=(fetched,), unlocked=False) as client:
        body = {"key": "ci", "transaction": TRANSFER}
        answer = await client.post("/sign", json=body, headers=BOT)
        assert answer.status_code == 200, answer.text
        checked(answer.json()["signed"], PAIR.public_key)
        own = {"password": PASSWORD}
        assert (await client.post("/keys/unlock", json=own, headers=BOT)).status_code == 200
        await client.post("/keys/lock", json={"keys": ["ci"]}, headers=BOT)
        answer = await client.post("/sign", json=body, headers=BOT)
        assert answer.json()["error"] == 7025


@pytest.mark.usefixtures("hot_seed")
async def test_the_settings_lead_to_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    key, program = f'public-key = "{PUBLIC}"', tool(tmp_path, "exit 1")
    ci = f"{{ name = ci, kind = environment, variable = HOT_SEED, {key} }}"
    stores = f'stores = [{ci}, {{ name = pw, kind = command, command = ["{program}"], {key} }}]'
    callers = f"{{ name = bot, {by_key('bot')}, may = [list] }}"
    settings = load_settings(config(place, callers, stores))
    assert settings.signer.keys is not None
    assert [it.kind for it in settings.signer.keys.fetched] == ["environment", "command"]
    with pytest.raises(StoreTrouble, match="pw: the command"):
        await start_signer(settings, "http://nobody.test")


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("kind = environment, variable = A", "public-key"),
        ('kind = environment, public-key = "x"', "variable"),
        ('kind = command, command = [], public-key = "x"', "command"),
        ('kind = command, command = [a], public-key = "x", secret = word', "secret"),
        (f'{KV}, url = "ftp://x", mount = m', "url"),
        (f'{KV}, url = "http://x", mount = "../a"', "mount"),
        (f'{KV}, url = "http://x", mount = a', "token-file"),
        ("kind = other", "environment, command, vault-kv"),
    ],
)
def test_what_is_wrong_in_the_settings_is_named(tmp_path: Path, item: str, words: str) -> None:
    callers = f"{{ name = bot, {by_key('bot')}, may = [list] }}"
    with pytest.raises(SettingsError, match=words):
        load_settings(config(Place(tmp_path), callers, f"stores = [{{ name = a, {item} }}]"))
