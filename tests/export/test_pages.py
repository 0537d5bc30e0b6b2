"""The pages about exports and notices, with the commands as they stand; places are the tests'."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.blocks import blocks, typed
from tests.e2e.programs import call, devnet, eventually, signed_transfer, started
from tests.export import receiver
from tests.export.receiver import receiving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NODE = "http://node:6869"
RICH = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
FRIEND = "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY"

pytestmark = pytest.mark.slow


def test_the_export_to_postgres(dsn: str, tmp_path: Path) -> None:
    (page,) = blocks("docs/how-to/export-to-postgres.md")
    _, *command = shlex.split(page)
    chain = tmp_path / "chain"
    with devnet("--data-dir", chain) as program:
        top = call(f"{program.node_url}/blocks/height").json()["height"]
        given = {"postgresql://soliton@db/chain": dsn, "/var/lib/soliton": str(chain)}
        words = [given.get(each, each) for each in command]
        with (
            started(*words, "--network", "devnet", until="caught up with the chain"),
            psycopg.connect(dsn) as database,
        ):
            found = database.execute("SELECT max(height) FROM blocks_microblocks").fetchone()
            assert found == (top,)


def test_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The web server checks what comes by the page's own program."""
    posting, running = blocks("docs/how-to/get-notices.md")
    (check,) = blocks("docs/how-to/get-notices.md", "python")
    names: dict[str, Any] = {}
    exec(check, names)
    monkeypatch.setattr(receiver, "is_signed", names["is_genuine"])
    secret, program = tmp_path / "secret", tmp_path / "on-payment"
    secret.write_text(SECRET, encoding="utf-8")
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/told\ncat >> {tmp_path}/told\n')
    program.chmod(0o755)
    with devnet() as chain, receiving(SECRET) as server:
        body = signed_transfer(chain.node_url, RICH, FRIEND, 7)
        call(f"{chain.node_url}/transactions/broadcast", body)
        eventually(lambda: call(f"{chain.node_url}/blocks/height").json()["height"] > 2)
        call(f"{chain.node_url}/devnet/mine?blocks=11", "")
        places = {
            "/var/lib/hooks/deposits": tmp_path / "cursor",
            "https://shop.example/hook": server.url,
            "/etc/hooks/secret": secret,
            "/usr/local/bin/on-payment": program,
            "3P...": FRIEND,
            NODE: chain.node_url,
        }
        once = " --once --from-height 1"
        typed(posting.rstrip() + once, tmp_path, places)
        typed(f"{running.rstrip()}{once} --from-node {chain.node_url}", tmp_path, places)
    *_, got = server.got
    assert server.wrong == [] and (got.notice["event"], got.notice["amount"]) == ("payment", 7)
    arguments, notice = (tmp_path / "told").read_text().split("\n", 1)
    assert arguments == "--shop 7" and json.loads(notice)["transaction"] == body["id"]
    assert not names["is_genuine"]({"webhook-id": "1", "webhook-timestamp": "1"}, b"", SECRET)
    forged = {"webhook-id": "1", "webhook-timestamp": "9", "webhook-signature": "v1,x"}
    monkeypatch.setattr(names["time"], "time", lambda: 9)
    assert not names["is_genuine"](forged, b"", SECRET)
