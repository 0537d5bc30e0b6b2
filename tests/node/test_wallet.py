"""The wallet: its accounts, and the file that has to survive everything."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from soliton.chain.addresses import address_text, from_public_key
from soliton.crypto import base58, keys, password_files
from soliton.node import wallet as wallet_module
from soliton.node.wallet import (
    Wallet,
    WalletError,
    WalletFileProblem,
    WrongPasswordError,
)
from tests.vectors import load_vectors, report

SEED = b"waves private node seed with waves tokens"
SEED_TEXT = "TBXHUUcVx2n3Rgszpu5MCybRaR86JGmqCWp7XKh7czU57ox5dgjdX4K4"
R = ord("R")
FIRST = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
SECOND = "3MGqWUDyZuENhGUK7MqcavBbgtTgfMeDzUW"

# Written by the Java platform's cryptography, password "rich": the seed above, two accounts with
# the second one first, nonce 2.
FOREIGN_FILE = (
    "+igceG4pKKlBwT+CanASRvg4Q+CVGn5Aw84r/+nWY2YVTLhhTu61q+h8qgVtVRPfAevjE3xw4LGG+BfTAcj/Y2cm"
    "U96F2WLVahx9iwvgK3Ey0zjGqFbWF6Wgxwea4rHbjM1VcvDEZvM0XfEY6KusDOSTbEj3hkygd6R8DyqY+xMNdw7K"
    "9IgRzoLhPwoU+dg2Mz88jVC0F2Uw110kYWD7hD8vnOhLoia4wYcLAGNsLopAHKahSFNuZkuxB6N+1QfM"
)


@pytest.fixture
def fast_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key derivation that takes no time, for tests that are not about it."""
    monkeypatch.setattr(password_files, "KEY_ROUNDS", 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "below" / "wallet.dat"


def texts(wallet: Wallet) -> list[str]:
    return [address_text(address) for address in wallet.accounts(R)]


def test_wallet_in_memory_has_one_account_from_the_start() -> None:
    wallet = Wallet.open(None, None, SEED)
    assert texts(wallet) == [FIRST]
    assert wallet.seed == SEED
    assert wallet.path is None
    assert wallet.warnings == ()


def test_random_seeds_are_64_bytes_and_differ() -> None:
    one, other = Wallet.open(None, None), Wallet.open(None, None)
    assert len(one.seed) == len(other.seed) == 64
    assert one.seed != other.seed


def test_accounts_follow_the_nonces_of_the_seed() -> None:
    wallet = Wallet.open(None, None, SEED)
    assert address_text(wallet.generate_account(R)) == SECOND
    wallet.generate_account(R)
    for nonce, address in enumerate(wallet.accounts(R)):
        pair = keys.key_pair(SEED, nonce)
        assert wallet.key(address) == pair
        assert wallet.account_seed(address) == keys.account_seed(SEED, nonce)
        assert from_public_key(pair.public_key, R) == address


def test_accounts_have_the_addresses_that_other_libraries_give() -> None:
    vectors = [vector for vector in load_vectors("keys") if "seed_text" in vector]
    for vector in vectors:
        wallet = Wallet.open(None, None, vector["seed_text"].encode())
        nonce = vector.get("nonce", 0)
        for _ in range(nonce):
            wallet.generate_account(R)
        for chain, address in vector["addresses"].items():
            assert address_text(wallet.accounts(ord(chain))[nonce]) == address
    report.ran("keys", len(vectors))


def test_an_account_is_found_on_every_chain() -> None:
    wallet = Wallet.open(None, None, SEED)
    for chain_id in (ord("W"), ord("T"), R):
        (address,) = wallet.accounts(chain_id)
        assert address[1] == chain_id
        assert wallet.key(address) == keys.key_pair(SEED)


@pytest.mark.parametrize("address", [b"", b"\x01", bytes(26), b"\x01R" + bytes(24)])
def test_foreign_addresses_are_not_in_the_wallet(address: bytes) -> None:
    wallet = Wallet.open(None, None, SEED)
    assert wallet.key(address) is None
    assert wallet.account_seed(address) is None
    assert not wallet.delete_account(address)


def test_deleted_account_is_gone_and_its_nonce_is_not_used_again() -> None:
    wallet = Wallet.open(None, None, SEED)
    (first,) = wallet.accounts(R)
    assert wallet.delete_account(first)
    assert wallet.accounts(R) == []
    assert not wallet.delete_account(first)
    assert address_text(wallet.generate_account(R)) == SECOND


def test_wallet_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wallet_module, "MAX_ACCOUNTS", 2)
    wallet = Wallet.open(None, None, SEED)
    wallet.generate_account(R)
    with pytest.raises(WalletError, match="full"):
        wallet.generate_account(R)
    assert texts(wallet) == [FIRST, SECOND]


@pytest.mark.usefixtures("fast_key")
def test_file_round_trip(path: Path) -> None:
    wallet = Wallet.open(path, "pässwörd")
    wallet.generate_account(R)
    wallet.generate_account(R)
    wallet.delete_account(wallet.accounts(R)[1])
    again = Wallet.open(path, "pässwörd")
    assert again.seed == wallet.seed
    assert again.accounts(R) == wallet.accounts(R)
    assert again.generate_account(R) == wallet.generate_account(R)


@pytest.mark.usefixtures("fast_key")
def test_file_is_for_its_owner_only_and_no_other_file_is_left(path: Path) -> None:
    Wallet.open(path, "secret").generate_account(R)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [item.name for item in path.parent.iterdir()] == ["wallet.dat"]


def test_file_of_the_ecosystem_opens_with_accounts_in_the_order_of_nonces(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(FOREIGN_FILE + "\n")
    wallet = Wallet.open(path, "rich", base58.decode(SEED_TEXT))
    assert wallet.seed == SEED
    assert texts(wallet) == [FIRST, SECOND]


def test_written_file_is_what_the_ecosystem_would_write(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(FOREIGN_FILE)
    wallet = Wallet.open(path, "rich")
    wallet.delete_account(wallet.accounts(R)[1])
    wallet.delete_account(wallet.accounts(R)[0])
    before = base64.b64decode(FOREIGN_FILE)
    # ECB: what begins the same (the seed) is the same, with any implementation.
    assert base64.b64decode(path.read_bytes())[:64] == before[:64]


@pytest.mark.usefixtures("fast_key")
def test_wrong_password_is_told_and_harms_nothing(path: Path) -> None:
    Wallet.open(path, "right", SEED)
    before = path.read_bytes()
    with pytest.raises(WrongPasswordError, match=r"wrong wallet\.password") as caught:
        Wallet.open(path, "wrong", SEED)
    assert "'wrong'" not in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.usefixtures("fast_key")
def test_existing_file_without_password_is_refused(path: Path) -> None:
    Wallet.open(path, "right", SEED)
    with pytest.raises(WalletError, match="needs a password"):
        Wallet.open(path, None, SEED)


@pytest.mark.usefixtures("fast_key")
def test_other_seed_than_that_of_the_file_is_refused(path: Path) -> None:
    Wallet.open(path, "right", SEED)
    with pytest.raises(WalletError, match="is not the seed") as caught:
        Wallet.open(path, "right", b"another")
    assert base58.encode(SEED) not in str(caught.value)


def test_with_a_seed_and_no_password_nothing_is_written_and_the_operator_is_told(
    path: Path,
) -> None:
    wallet = Wallet.open(path, None, SEED)
    wallet.generate_account(R)
    assert not path.exists()
    assert ["accounts added are not kept" in text for text in wallet.warnings] == [True]


@pytest.mark.usefixtures("fast_key")
def test_a_random_seed_is_kept_without_a_password_from_anybody(path: Path) -> None:
    wallet = Wallet.open(path, None)
    wallet.generate_account(R)
    beside = path.with_name("wallet.dat.password")
    assert {each.name for each in path.parent.iterdir()} == {path.name, beside.name}
    for each in (path, beside):
        assert stat.S_IMODE(each.stat().st_mode) == 0o600
    (warning,) = wallet.warnings
    password = beside.read_text()
    assert str(path) in warning and str(beside) in warning
    assert password not in warning and base58.encode(wallet.seed) not in warning
    again = Wallet.open(path, None)
    assert again.seed == wallet.seed and again.accounts(R) == wallet.accounts(R)
    assert again.warnings == ()
    assert Wallet.open(path, password).seed == wallet.seed
    with pytest.raises(WrongPasswordError, match=r"its first password is in .*\.password"):
        Wallet.open(path, "another")


@pytest.mark.usefixtures("fast_key")
def test_a_start_that_broke_off_between_password_and_wallet_goes_on(path: Path) -> None:
    Wallet.open(path, None)
    password = path.with_name("wallet.dat.password").read_text()
    path.unlink()
    seed = Wallet.open(path, None).seed
    assert Wallet.open(path, password).seed == seed


@pytest.mark.usefixtures("fast_key")
@pytest.mark.parametrize(
    ("contents", "error"), [(b"", WalletError), (b"\xff", WalletError), (b"x", WrongPasswordError)]
)
def test_a_kept_password_that_is_lost_is_told(
    path: Path, contents: bytes, error: type[WalletError]
) -> None:
    Wallet.open(path, None)
    before = path.read_bytes()
    path.with_name("wallet.dat.password").write_bytes(contents)
    with pytest.raises(error):
        Wallet.open(path, None)
    assert path.read_bytes() == before


@pytest.mark.usefixtures("fast_key")
@pytest.mark.parametrize(
    ("contents", "error"),
    [
        (b"not base64!", WalletError),
        (b"AAAA", WrongPasswordError),
        (base64.b64encode(bytes(32)), WrongPasswordError),
        (b"A" * (wallet_module.MAX_FILE_BYTES + 1), WalletError),
    ],
)
def test_damaged_files_are_refused(path: Path, contents: bytes, error: type[WalletError]) -> None:
    path.parent.mkdir()
    path.write_bytes(contents)
    with pytest.raises(error):
        Wallet.open(path, "secret")
    assert path.read_bytes() == contents


@pytest.mark.usefixtures("fast_key")
@pytest.mark.parametrize(
    "plain",
    [
        b"{}",
        b"[1]",
        b'{"seed":"\xff","accountSeeds":[],"nonce":1}',
        b'{"seed":"1","accountSeeds":[],"nonce":-1}',
        b'{"seed":"0Il","accountSeeds":[],"nonce":1}',
        b'{"seed":"1","accountSeeds":["0"],"nonce":1}',
        b'{"seed":"1","accountSeeds":[],"nonce":9999999999}',
    ],
)
def test_impossible_contents_are_refused_without_showing_them(path: Path, plain: bytes) -> None:
    secret = password_files.encrypt(password_files.file_key("secret"), plain)
    path.parent.mkdir()
    path.write_bytes(base64.b64encode(secret))
    with pytest.raises(WalletError) as caught:
        Wallet.open(path, "secret")
    assert "0Il" not in str(caught.value)


@pytest.mark.usefixtures("fast_key")
def test_empty_file_is_a_new_wallet(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    Wallet.open(path, "secret", SEED)
    assert texts(Wallet.open(path, "secret")) == [FIRST]


@pytest.mark.usefixtures("fast_key")
def test_account_that_cannot_be_written_is_not_added(path: Path) -> None:
    wallet = Wallet.open(path, "secret", SEED)
    path.unlink()
    path.mkdir()
    with pytest.raises(WalletFileProblem, match="cannot be written"):
        wallet.generate_account(R)
    assert texts(wallet) == [FIRST]
    with pytest.raises(WalletFileProblem, match="cannot be read"):
        Wallet.open(path, "secret")


KILLED_BEFORE_RENAME = """
import os, pathlib, sys
from soliton.crypto import password_files
from soliton.node import wallet
password_files.KEY_ROUNDS = 10
opened = wallet.Wallet.open(pathlib.Path(sys.argv[1]), "secret")
pathlib.Path.replace = lambda *_: os.kill(os.getpid(), 9)
opened.generate_account(82)
"""


@pytest.mark.usefixtures("fast_key")
def test_kill_between_write_and_rename_leaves_the_old_wallet(path: Path) -> None:
    Wallet.open(path, "secret", SEED)
    before = path.read_bytes()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_BEFORE_RENAME, str(path)], check=False, env={**os.environ}
    )
    assert killed.returncode == -9
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 2
    wallet = Wallet.open(path, "secret")
    wallet.generate_account(R)
    assert texts(wallet) == [FIRST, SECOND]
    assert [item.name for item in path.parent.iterdir()] == ["wallet.dat"]


@pytest.mark.usefixtures("fast_key")
def test_secrets_are_not_shown(path: Path) -> None:
    wallet = Wallet.open(path, "top-secret", SEED)
    shown = repr(wallet) + str(wallet)
    for hidden in ("top-secret", SEED.decode(), SEED_TEXT, SEED.hex()):
        assert hidden not in shown
    assert "accounts=1" in shown
