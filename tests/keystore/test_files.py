"""The store of encrypted keys: through its files, and through the program that the page shows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.keystore.files import FileStore, KeyFileProblem, StoreUnavailable, WrongPassword
from soliton.keystore.keys import (
    PHRASE_WORDS,
    KeyProblem,
    NamedSecret,
    account_seed,
    new_phrase,
    phrase,
    private_key,
)
from tests.blocks import blocks
from tests.keystore.stores import keep

PAGE = "docs/reference/key-files.md"
PASSWORD = "correct horse"
WORDS = "ähre wind 🌊 seed phrase of a test"
OTHER = base58.encode(bytes(range(1, 33)))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a key of each kind."""
    made = tmp_path_factory.mktemp("keys") / "store"
    secrets = {
        "by-phrase": phrase(WORDS),
        "second": phrase(WORDS, nonce=1),
        "by-seed": account_seed(OTHER),
        "by-key": private_key(OTHER),
    }
    keep(made, PASSWORD, secrets)
    return made


def copy_of(directory: Path, tmp_path: Path) -> Path:
    for path in directory.glob("*.key.json"):
        target = tmp_path / path.name
        target.touch(mode=0o600)
        target.write_bytes(path.read_bytes())
    return tmp_path


def test_keys_are_those_of_the_secrets(directory: Path) -> None:
    store = FileStore(directory)
    opened = store.open(PASSWORD)
    assert store.names() == sorted(opened) == ["by-key", "by-phrase", "by-seed", "second"]
    assert opened["by-phrase"] == key_pair(WORDS)
    assert opened["second"] == key_pair(WORDS, 1)
    assert {name: keys.public_key for name, keys in opened.items()} == {
        name: store.public_key(name) for name in store.names()
    }
    assert store.secret("by-phrase", PASSWORD).plain_text() == WORDS


def test_nothing_secret_is_in_the_files_or_in_what_is_printed(directory: Path) -> None:
    text = b"".join(path.read_bytes() for path in directory.iterdir())
    for secret in (WORDS.encode(), OTHER.encode(), base58.decode(OTHER), PASSWORD.encode()):
        assert secret not in text
    assert WORDS not in repr(NamedSecret("x", phrase(WORDS)))
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    assert directory.stat().st_mode & 0o777 == 0o700


def test_the_page_opens_a_file_with_a_program_of_its_own(tmp_path: Path) -> None:
    """A store as a person makes it, with a password that takes long to try."""
    store = FileStore(tmp_path / "store")
    store.add([NamedSecret("by-phrase", phrase(WORDS))], PASSWORD)
    path = store.directory / "by-phrase.key.json"
    (program,) = blocks(PAGE, "python")
    assert len(program.splitlines()) <= 30
    (shown,) = blocks(PAGE, "json")
    written = json.loads(path.read_text(encoding="utf-8"))
    assert list(json.loads(shown)) == list(written)
    usual = {"iterations": 3, "memoryKib": 64 * 1024, "lanes": 4}
    assert written["argon2id"] | usual == written["argon2id"]
    (tmp_path / "open.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, tmp_path / "open.py", path, PASSWORD],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    assert done.stdout.strip() == WORDS
    # A second key of the store has the same salt, so that one derivation opens both.
    store.add([NamedSecret("second", phrase("x"))], PASSWORD)
    second = json.loads((store.directory / "second.key.json").read_text(encoding="utf-8"))
    assert second["argon2id"] == written["argon2id"]


def test_a_wrong_password_opens_nothing_and_adds_nothing(directory: Path) -> None:
    store = FileStore(directory)
    with pytest.raises(WrongPassword, match="opens no key"):
        store.open("wrong")
    with pytest.raises(WrongPassword):
        store.add([NamedSecret("more", phrase("more"))], "wrong")
    assert not (directory / "more.key.json").exists()


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("name", "by-seed"),
        ("publicKey", base58.encode(key_pair("another").public_key)),
        ("kind", "account-seed"),
        ("accountNonce", 7),
        ("version", 2),
        ("secret", "AAAA"),
        ("nonce", ""),
        ("more", 1),
        ("argon2id", {"salt": "AAAA", "iterations": 3, "memoryKib": 65536, "lanes": 4}),
        ("argon2id", {"salt": "A" * 24, "iterations": 3, "memoryKib": 1 << 40, "lanes": 4}),
        ("argon2id", {"salt": "A" * 24, "iterations": 1 << 40, "memoryKib": 65536, "lanes": 4}),
    ],
)
def test_what_was_changed_in_a_file_is_found_out(
    directory: Path, tmp_path: Path, member: str, value: object
) -> None:
    copied = copy_of(directory, tmp_path)
    path = copied / "by-phrase.key.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {member: value}))
    with pytest.raises(KeyProblem):
        FileStore(copied).secret("by-phrase", PASSWORD)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b"{}" * 40_000, b"[" * 9_000])
def test_a_damaged_file_stops_with_its_place(directory: Path, tmp_path: Path, text: bytes) -> None:
    copied = copy_of(directory, tmp_path)
    (copied / "by-seed.key.json").write_bytes(text)
    with pytest.raises(KeyFileProblem, match=r"by-seed\.key\.json is no key file"):
        FileStore(copied)


def test_a_file_that_others_may_read_is_refused(directory: Path, tmp_path: Path) -> None:
    copied = copy_of(directory, tmp_path)
    (copied / "by-seed.key.json").chmod(0o640)
    with pytest.raises(KeyFileProblem, match="chmod 600"):
        FileStore(copied)


def test_names_and_keys_are_there_once(directory: Path, tmp_path: Path) -> None:
    store = FileStore(copy_of(directory, tmp_path))
    with pytest.raises(KeyProblem, match="a key named second"):
        store.add([NamedSecret("second", phrase("x"))], PASSWORD)
    with pytest.raises(KeyProblem, match="there already, named by-phrase"):
        store.add([NamedSecret("third", phrase(WORDS))], PASSWORD)
    for name in ("", ".", "../x", "a/b", "-a", "a" * 65, "a\n"):
        with pytest.raises(KeyProblem, match="a key's name"):
            store.add([NamedSecret(name, phrase("x"))], PASSWORD)
    store.rename("second", "renamed", PASSWORD)
    assert FileStore(tmp_path).open(PASSWORD)["renamed"] == key_pair(WORDS, 1)
    assert "second" not in FileStore(tmp_path).names()


def test_a_second_writer_is_told(tmp_path: Path) -> None:
    first, second = FileStore(tmp_path), FileStore(tmp_path)
    with first.writing(), pytest.raises(StoreUnavailable, match="another process"):
        second.add([NamedSecret("x", phrase("x"))], PASSWORD)


def test_a_disk_that_takes_nothing_is_told(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(StoreUnavailable):
        FileStore(blocked / "store").add([NamedSecret("x", phrase("x"))], PASSWORD)


def test_phrases_are_fifteen_words_of_the_list_and_never_the_same() -> None:
    made = {new_phrase() for _ in range(50)}
    assert len(made) == 50
    assert {len(each.split()) for each in made} == {PHRASE_WORDS}
    assert all(re.fullmatch(r"[a-z]{3,8}( [a-z]{3,8}){14}", each) for each in made)
