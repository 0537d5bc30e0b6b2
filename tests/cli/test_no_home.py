"""A user without a name and without HOME, as in a container with a number for a user."""

from __future__ import annotations

import pwd
import sys
from pathlib import Path

import pytest

from soliton.cli.main import main


@pytest.fixture(autouse=True)
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)


def ended(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> object:
    """The exit code of a command."""
    monkeypatch.setattr(sys, "argv", ["soliton", *map(str, arguments)])
    with pytest.raises(SystemExit) as found:
        main()
    return found.value.code


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--network=devnet", "--offline"],
        ["matcher", "init", "--network=devnet"],
        ["matcher", "verify", "--network=devnet"],
        ["state-hash", "1", "--network=devnet"],
        ["keys", "list", "--store=~/keys"],
    ],
)
def test_a_default_that_needs_it_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert ended(monkeypatch, *arguments) == 1
    told = capsys.readouterr().err
    assert told.startswith("soliton: this user has no home directory") and told.count("\n") == 1


def test_it_is_not_needed_where_directories_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "node.conf"
    text = f'soliton {{ blockchain.type = devnet, directory = "{tmp_path}" }}\n'
    config.write_text(text, "utf-8")
    assert ended(monkeypatch, "config", "check", config) in (0, 1)
    assert ended(monkeypatch, "state-hash", "1", f"--data-dir={tmp_path}", "--network=devnet") == 1
    assert "home" not in capsys.readouterr().err
