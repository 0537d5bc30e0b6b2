"""The file with a matcher's account seed: the reference's, in both directions."""

from __future__ import annotations

import functools
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from soliton.cli.main import cli
from soliton.cli.matcher_config import matcher_settings
from soliton.crypto import base58, password_files
from soliton.crypto.keys import account_seed, key_pair_from_account_seed
from soliton.matcher.account_file import MAX_FILE_BYTES, read_account_seed, write_account_seed
from soliton.matcher.errors import MatcherSettingsError

SEED = b"an account seed of the matcher"
PASSWORD = "correct-horse"
# Made by OpenSSL: `openssl kdf -keylen 16 -kdfopt digest:SHA512 -kdfopt pass:correct-horse -kdfopt
# salt:0495c728-1614-41f6-8ac3-966c22b4a62d -kdfopt iter:999999 PBKDF2` gives the key for
# `printf 'an account seed of the matcher' | openssl enc -aes-128-ecb -K …`.
KEY = bytes.fromhex("fab016baefe827ffe9bb1ae80ec87557")
FILE = bytes.fromhex("07c2e6f4383e7513515951ae8ff04ad20bdc34448be1eefb8e3315769a272a17")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "below" / "account.dat"


@pytest.fixture
def fast_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key derivation that takes no time, for tests that are not about it."""
    monkeypatch.setattr(password_files, "KEY_ROUNDS", 10)


def test_files_of_the_reference_s_form(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Deriving a key takes most of a second: it is done once here.
    monkeypatch.setattr(password_files, "file_key", functools.cache(password_files.file_key))
    assert password_files.file_key(PASSWORD) == KEY
    write_account_seed(path, SEED, PASSWORD)
    assert path.read_bytes() == FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_account_seed(path, PASSWORD) == SEED


@pytest.mark.usefixtures("fast_key")
def test_a_matcher_with_such_a_file(path: Path, tmp_path: Path) -> None:
    write_account_seed(path, SEED, PASSWORD)
    config = tmp_path / "matcher.conf"
    config.write_text(
        f"""waves.dex.account-storage {{
          type = "encrypted-file"
          in-mem.seed-in-base-64 = ""
          encrypted-file {{ path = "{path}", password = "{PASSWORD}" }}
        }}"""
    )
    settings = matcher_settings(config, "devnet", tmp_path)
    assert settings.account == key_pair_from_account_seed(SEED)
    with pytest.raises(MatcherSettingsError, match="is there already"):
        write_account_seed(path, b"another", PASSWORD)
    assert read_account_seed(path, PASSWORD) == SEED


@pytest.mark.usefixtures("fast_key")
def test_files_that_do_not_open(path: Path) -> None:
    with pytest.raises(MatcherSettingsError, match="cannot be read"):
        read_account_seed(path, PASSWORD)
    write_account_seed(path, SEED, PASSWORD)
    for words in ("wrong", ""):
        with pytest.raises(MatcherSettingsError, match="wrong password") as caught:
            read_account_seed(path, words)
        assert caught.value.__cause__ is None
    for content in (b"", bytes(MAX_FILE_BYTES + 16)):
        path.write_bytes(content)
        with pytest.raises(MatcherSettingsError, match="no file with an account seed"):
            read_account_seed(path, PASSWORD)
    path.write_bytes(FILE[:-1])
    with pytest.raises(MatcherSettingsError, match="wrong password, or damaged"):
        read_account_seed(path, PASSWORD)


@pytest.mark.usefixtures("fast_key")
@pytest.mark.parametrize(
    ("options", "typed", "seed"),
    [
        ((), "YW4gYWNjb3VudCBzZWVkIG9mIHRoZSBtYXRjaGVy", SEED),
        (("--seed-format", "base58"), base58.encode(SEED), SEED),
        (("--seed-format", "raw-string"), SEED.decode(), SEED),
        (
            ("--seed-format", "raw-string", "--account-nonce", "3"),
            SEED.decode(),
            account_seed(SEED, 3),
        ),
    ],
)
def test_the_command(path: Path, options: tuple[str, ...], typed: str, seed: bytes) -> None:
    command = ["matcher", "account-file", str(path), *options]
    result = CliRunner().invoke(cli, command, input=f"{typed}\n{PASSWORD}\n{PASSWORD}\n")
    assert result.exit_code == 0, result.output
    assert typed not in result.output
    assert base58.encode(key_pair_from_account_seed(seed).public_key) in result.output
    assert read_account_seed(path, PASSWORD) == seed


@pytest.mark.parametrize("seed_format", ["base64", "base58"])
def test_a_seed_that_is_none(path: Path, seed_format: str) -> None:
    command = ["matcher", "account-file", str(path), "--seed-format", seed_format]
    result = CliRunner().invoke(cli, command, input="0OIl!\nsecret\nsecret\n")
    assert isinstance(result.exception, MatcherSettingsError)
    assert "0OIl" not in str(result.exception)
    assert not path.exists()
