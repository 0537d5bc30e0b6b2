"""``soliton config``: every problem with its line; what is in force and why."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import pytest

from tests.cli.meanings import meanings
from tests.e2e.programs import run

WRONG = """\
# a comment
zbs {
  directory = %s
  rest-api {
    prot = 70
    port = 70000
    api-keys = [ { name = "a b", hash = x } ]
  }
  miner { quorum = -1, micro-block-interval = 5 parsecs }
  blockchain.type = MANNET
  netwrk.port = 5
  network.upnp.enable = no
  wallet.seed = "not base58: 0OIl"
}
soliton { signer { prt = 5 } }
wave.x = 1
"""

PROBLEMS = (
    (5, "unknown setting zbs.rest-api.prot (did you mean zbs.rest-api.port?)"),
    (6, "zbs.rest-api.port is 70000: expected a whole number from 0 to 65535"),
    (7, "zbs.rest-api.api-keys[0].name is 'a b': expected a name of its own"),
    (9, "zbs.miner.quorum is -1: expected a whole number"),
    (9, "zbs.miner.micro-block-interval is '5 parsecs': expected a duration"),
    (10, "zbs.blockchain.type is 'MANNET': expected MAINNET, TESTNET"),
    (11, "unknown setting zbs.netwrk (did you mean zbs.network?)"),
    (13, "zbs.wallet.seed is (not shown): expected base58"),
    (15, "unknown setting soliton.signer.prt (did you mean soliton.signer.port?)"),
    (16, "unknown setting wave (did you mean waves?)"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "node.conf"


def test_check_prints_every_problem_with_its_line(path: Path) -> None:
    path.write_text(WRONG % path.parent)
    ended = run("config", "check", path)
    lines = ended.stdout.splitlines()
    assert ended.returncode == 1
    assert lines[-1] == f"{path}:12: note: zbs.network.upnp has no effect yet"
    for line, (number, words) in zip(lines[:-1], PROBLEMS, strict=True):
        assert line.startswith(f"{path}:{number}: {words}")
    assert "0OIl" not in ended.stdout + ended.stderr


def test_check_tells_that_all_is_well(path: Path) -> None:
    path.write_text("waves.blockchain.type = STAGENET")
    ended = run("config", "check", path)
    assert ended.returncode == 0
    assert ended.stdout == f"{path}: no problems; the settings of a node on waves-stagenet\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("waves {\n  a = 1", "2: column 8: the { of line 1 is not closed"),
        ("port = 1", " has none of the roots"),
        ("waves { }\nzbs { }", " has several roots, waves and zbs"),
        ("waves.blockchain { type = CUSTOM, custom.genesis { } }",
         "1: waves.blockchain.custom.address-scheme-character is missing"),
        ("waves.dex {\n id = x\n rest-api.prt = 1 }",
         " waves.dex.account-storage.in-mem.seed-in-base-64 is missing"),
        ('waves.dex {\n account-storage.in-mem.seed-in-base-64 = "AAAA"\n rest-api.prt = 1 }',
         "3: unknown setting waves.dex.rest-api.prt (did you mean waves.dex.rest-api.port?)"),
    ],
)  # fmt: skip
def test_check_of_other_mistakes(path: Path, text: str, words: str) -> None:
    path.write_text(text)
    ended = run("config", "check", path)
    assert ended.returncode == 1
    assert f"{path}:{words}" in ended.stdout
    assert "Traceback" not in ended.stderr


def explained(*arguments: object) -> dict[str, tuple[str, str]]:
    """Value and origin of each setting."""
    ended = run("config", "explain", *arguments)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    return {
        key: (value, origin.strip().split("; ")[0])
        for (key, _, value), origin in zip(
            (line.partition(" = ") for line in lines[::2]), lines[1::2], strict=True
        )
    }


def test_explain_tells_where_everything_comes_from(path: Path, tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text("waves.rest-api.workers = 2")
    path.write_text(
        'waves {\n  rest-api.blocks-request-limit = 7\n  wallet.password = "hush"\n}\n'
        'include "more.conf"\nsoliton.signer.port = 1\n'
        'waves.dex {\n account-storage.in-mem.seed-in-base-64 = "aHVzaA=="\n rest-api.port = 9 }'
    )
    found = explained("--config", path, "--network", "waves-stagenet", "--data-dir", tmp_path)
    for key, expected in {
        "waves.blockchain.type": ("waves-stagenet", "command line"),
        "waves.directory": (str(tmp_path), "command line"),
        "waves.db.directory": (str(tmp_path / "data"), "default"),
        "waves.rest-api.port": ("6869", "preset waves-stagenet"),
        "waves.rest-api.blocks-request-limit": ("7", f"{path}:2"),
        "waves.rest-api.workers": ("2", f"{tmp_path}/more.conf:1"),
        "waves.rest-api.cors": ("yes", "default"),
        "waves.miner.micro-block-interval": ("2s", "default"),
        "waves.wallet.password": ('"(not shown)"', f"{path}:3"),
        "waves.wallet.seed": ("none", "default"),
        "soliton.signer.port": ("1", f"{path}:6"),
        "waves.dex.rest-api.port": ("9", f"{path}:9"),
        "waves.dex.account-storage.in-mem.seed-in-base-64": ('"(not shown)"', f"{path}:8"),
    }.items():
        assert found[key] == expected
    assert "hush" not in str(found) and "aHVzaA" not in str(found)


def test_explain_of_some_keys() -> None:
    found = explained("miner.quorum", "wallet")
    assert set(found) == {
        "soliton.miner.quorum", "soliton.wallet.file", "soliton.wallet.password",
        "soliton.wallet.seed", "soliton.wallet.signer", "soliton.wallet.signer-key-file",
        "soliton.wallet.signer-authorities-file", "soliton.wallet.signer-certificate-file",
        "soliton.wallet.signer-certificate-key-file",
    }  # fmt: skip
    ended = run("config", "explain", "nothing")
    assert (ended.returncode, ended.stderr) == (1, "soliton: no setting is called nothing\n")


def test_meanings_are_those_of_the_reference() -> None:
    told = (resources.files("soliton.cli") / "meanings.toml").read_text(encoding="utf-8")
    assert tomllib.loads(told) == meanings(), "run: python -m tests.cli.meanings"
