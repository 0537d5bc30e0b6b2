"""``soliton keys`` and ``soliton api-key`` as their users call them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from soliton.cli.keys import PASSWORD_VARIABLE
from soliton.cli.main import cli
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.errors import SolitonError
from soliton.node.settings import api_key_hash_text

PASSWORD = "of the store"


def run(store: Path, *arguments: str, given: str = "") -> Result:
    place = [] if arguments[0] == "api-key" else ["--store", str(store)]
    return CliRunner().invoke(
        cli, [*arguments, *place], input=given, env={PASSWORD_VARIABLE: PASSWORD}
    )


def told(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_new_key_is_told_kept_and_shown(tmp_path: Path) -> None:
    made = told(run(tmp_path, "keys", "new", "alice"))
    match = re.search(r"^phrase: (.*)$", made, re.MULTILINE)
    assert match is not None
    public_key = base58.encode(key_pair(match[1]).public_key)
    assert public_key in made
    assert told(run(tmp_path, "keys", "list")) == f"alice\t{public_key}\n"
    assert match[1] not in told(run(tmp_path, "keys", "show", "alice"))
    assert match[1] in told(run(tmp_path, "keys", "show", "alice", "--secret"))
    assert match[1] == told(run(tmp_path, "keys", "export", "alice", "--as", "phrase")).strip()
    assert "phrase" not in told(run(tmp_path, "keys", "new", "bob", "--quiet"))


def test_a_phrase_is_read_from_standard_input(tmp_path: Path) -> None:
    arguments = ("keys", "import", "--phrase", "--name", "one")
    shown = told(run(tmp_path, *arguments, given="soliton devnet account 1\n"))
    assert "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY  devnet" in shown
    wrong = base58.encode(key_pair("another").public_key)
    refused = run(tmp_path, *arguments, "--public-key", wrong, given="soliton devnet account 1\n")
    assert isinstance(refused.exception, SolitonError)


def test_an_export_is_imported_under_another_password(tmp_path: Path) -> None:
    told(run(tmp_path / "a", "keys", "import", "--phrase", "--name", "one", given="some words\n"))
    word = tmp_path / "word"
    word.write_text("of the copy\n")
    for form in ("keeper", "encrypted-seed"):
        copy = tmp_path / form
        options = ("--as", form, "--export-password-file", str(word))
        copy.write_text(told(run(tmp_path / "a", "keys", "export", "one", *options)))
        options = ("--file-password-file", str(word), "--name", form)
        shown = told(run(tmp_path / form[:1], "keys", "import", str(copy), *options))
        assert base58.encode(key_pair("some words").public_key) in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ("keys", "import"),
        ("keys", "import", "--phrase"),
        ("keys", "import", "--phrase", "--private-key", "--name", "x"),
        ("keys", "import", "--private-key", "--name", "x"),
        ("keys", "show", "nobody"),
        ("keys", "rename", "nobody", "x"),
        ("keys", "new", "../x"),
    ],
)
def test_what_cannot_be_is_refused_and_no_secret_repeated(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    refused = run(tmp_path / "store", *arguments, given="a secret of mine\n")
    assert isinstance(refused.exception, SolitonError)
    assert "secret of mine" not in str(refused.exception)
    assert not list(tmp_path.glob("store/*.json"))


def test_an_api_key_and_its_hash(tmp_path: Path) -> None:
    shown = told(run(tmp_path, "api-key", "new"))
    found = dict(re.findall(r"^(key|hash): +(\S+)$", shown, re.MULTILINE))
    assert api_key_hash_text(found["key"]) == found["hash"]
