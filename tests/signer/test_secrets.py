"""No secret leaves a signer: by its log, its answers, its audit log, its pages or its command line.

What lives here: every door, asked well and badly, with secrets in all the places where they are
brought or may be misplaced; and the anchor of the audit log. What does not: the page in a browser.
"""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final, cast

import pytest

from soliton.crypto import base58
from soliton.crypto.keys import account_seed, key_pair
from soliton.signer.journal import read_all
from soliton.signer.key_routes import PATHS
from soliton.signer.records import line_hash
from soliton.web.server import serve
from tests.e2e.programs import run, started
from tests.signer.fakes import FakeNode
from tests.signer.kept import HOT, HOT_PHRASE, HOT_TEXT, KEYS, PASSWORD, TRANSFER, Place
from tests.signer.test_doors import by_key, config
from tests.signer.test_fetched import PHRASE, PUBLIC

WRONG: Final = "a wrong password that is someone else's right one"
SEED: Final = "the seed of a request that is not kept"
MISPLACED: Final = "a phrase where none should be: abandon ability"


def forms(secret: str) -> set[str]:
    """A phrase as it is, as the keys that follow from it, and in the usual codings."""
    private = key_pair(secret).private_key
    seed = account_seed(secret.encode(), 0)
    raw = (secret.encode(), private, seed)
    return {
        secret,
        *(base58.encode(each) for each in raw),
        *(base64.b64encode(each).decode() for each in raw),
        *(each.hex() for each in raw),
    }


SECRETS: Final = {
    *(each for phrase in (HOT_PHRASE, PHRASE, SEED, MISPLACED) for each in forms(phrase)),
    *(PASSWORD, WRONG, *KEYS.values()),
}


def ask(url: str, method: str, path: str, body: Any, key: str | None = "bot") -> str:
    """Everything that is answered."""
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["X-API-Key"] = KEYS.get(key, key)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return f"{answer.headers}{answer.read().decode()}"
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.headers}{error.read().decode()}"


def bodies() -> list[Any]:
    """Good ones and bad ones."""
    transfer = {"key": "hot", "transaction": TRANSFER}
    return [
        transfer,
        {"key": "ci", "transaction": TRANSFER},
        {"key": MISPLACED[:60], "transaction": TRANSFER},
        {"key": "hot", "transaction": {**TRANSFER, "recipient": MISPLACED}},
        {"key": "hot", "transaction": {**TRANSFER, "seed": MISPLACED, MISPLACED: 1}},
        {"key": "hot", "seed": MISPLACED, "transaction": TRANSFER},
        {"key": "hot", "id": MISPLACED, "transaction": TRANSFER},
        {"key": "hot", "order": {"version": 3, "matcherPublicKey": MISPLACED}},
        {"key": "hot", "height": 5, "block": MISPLACED},
        {"key": "hot", "height": 5, "total": MISPLACED, "microblock": MISPLACED},
        {"key": "hot", "message": MISPLACED},
        {"password": WRONG},
        {"password": WRONG, "keys": [MISPLACED[:60]], "seconds": MISPLACED},
        {"policyHash": MISPLACED},
        {"seed": SEED, "data": [{"key": "a", "value": 1}]},
        {"seed": SEED, "data": MISPLACED},
        {"seed": SEED, "data": [{"key": "a", "value": None}], MISPLACED: 1},
        json.dumps(transfer).encode()[:-3] + MISPLACED.encode(),
        MISPLACED.encode(),
    ]


@pytest.mark.slow
def test_no_door_tells_a_secret(tmp_path: Path) -> None:
    place = Place(tmp_path)
    callers = f"{{ name = bot, {by_key('bot')}, may = [sign, list, unlock, operate] }}"
    ci = f'name = ci, kind = environment, variable = HOT_SEED, public-key = "{PUBLIC}"'
    more = f'stores = [{{ {ci} }}]\n    node-url = "http://127.0.0.1:1"'
    path = config(place, callers, more)
    path.write_text(path.read_text() + "soliton.logging.level = DEBUG\n")
    told: list[str] = []
    environment = {"HOT_SEED": PHRASE}
    with started("signer", "--config", path, until="signer on", environment=environment) as program:
        url = program.signer_url
        good = {"password": PASSWORD, "keys": ["hot"]}
        assert '"locked":false' in ask(url, "POST", "/keys/unlock", good)
        told += [ask(url, method, each, None) for each, method in PATHS.items() if method == "GET"]
        told += [ask(url, "GET", each, None) for each in ("/", "/openapi.json", "/keys", "/health")]
        doors = [each for each, method in PATHS.items() if method == "POST"] + ["/data"]
        for door in doors:
            told += [ask(url, "POST", door, body) for body in bodies()]
        told += [ask(url, "POST", "/sign", bodies()[0], key) for key in (None, MISPLACED, WRONG)]
        told += [ask(url, "GET", f"/{base58.encode(MISPLACED.encode())[:40]}", None)]
        told.append(Path(f"/proc/{program.process.pid}/cmdline").read_text())
        told.append(ask(url, "POST", "/sign", bodies()[0]))
    told.append(program.output)
    told += [each.read_text() for each in place.state.glob("audit-*.jsonl")]
    told += [run("signer", "audit", "export", place.state).stdout]
    everything = "\n".join(told)
    # What is no secret is there: the search finds what it looks for.
    assert HOT_TEXT in everything and "7026" in everything and "wrong-password" in everything
    assert [each for each in SECRETS if each in everything] == []


@pytest.mark.slow
async def test_the_last_line_of_the_log_goes_on_the_chain(tmp_path: Path) -> None:
    node, place = FakeNode(), Place(tmp_path)
    app = place.app(node.url)
    assert app._keys is not None
    app._keys.pipeline.keyring.find("hot").unlock(HOT, 2**62)
    server = await serve(app, "127.0.0.1", 0, close=app.close)
    key_file = tmp_path / "bot.key"
    key_file.write_text(KEYS["bot"])
    words = ("signer", "audit", "anchor", "--key", "hot", "--network", "devnet")
    where = ("--url", f"http://127.0.0.1:{server.port}", "--api-key-file", key_file)
    try:
        async with node.serving():
            ended = await asyncio.to_thread(run, *words, *where)
            again = await asyncio.to_thread(run, *words, *where)
    finally:
        await server.stop()
    assert ended.returncode == again.returncode == 0, ended.stderr
    first, second = (cast("dict[str, Any]", each) for each in node.broadcast)
    (entry,) = first["data"]
    assert entry["key"] == "audit-head" and first["id"] in ended.stdout
    number, _, head = entry["value"].partition(":")
    hashes = {str(each.number): line_hash(line) for each, line in read_all(place.state)}
    assert hashes[number] == head
    # The signature of the first one is a line, too.
    assert int(second["data"][0]["value"].partition(":")[0]) > int(number)
