"""Keys out of other programs' files; those of JavaScript libraries are in ``tests/clients``."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from soliton.chain.addresses import from_public_key
from soliton.crypto.encrypted_seeds import encrypt_text
from soliton.crypto.keys import key_pair, key_pair_from_account_seed
from soliton.keystore.exports import keeper_export
from soliton.keystore.files import WrongPassword
from soliton.keystore.imports import MAX_FILE_BYTES, read_file
from soliton.keystore.keys import KeyProblem, phrase, private_key
from soliton.node.wallet import Wallet

PASSWORD = "pass word"
CHAIN = ord("W")


def test_the_wallet_of_a_node(tmp_path: Path) -> None:
    path = tmp_path / "wallet.dat"
    wallet = Wallet.open(path, PASSWORD, b"seed")
    wallet.generate_account(CHAIN)
    found = read_file(path, PASSWORD)
    assert [each.name for each in found] == ["wallet-1", "wallet-2"]
    addresses = [from_public_key(each.secret.keys().public_key, CHAIN) for each in found]
    assert addresses == wallet.accounts(CHAIN)
    with pytest.raises(WrongPassword):
        read_file(path, "wrong")


def test_the_wallet_of_a_go_node(tmp_path: Path) -> None:
    seeds = [b"first account seed", b"second"]
    salt = b"E84265D411C08F99E092AE237F4EC250B2F20B2EAB7CFB2FCB0857880983DF44"
    derive = Argon2id(salt=salt, length=32, iterations=4, lanes=4, memory_cost=65536)
    iv = os.urandom(16)
    plain = json.dumps({"seeds": [base64.b64encode(each).decode() for each in seeds]}).encode()
    cipher = Cipher(algorithms.AES(derive.derive(PASSWORD.encode())), CFB(iv))
    path = tmp_path / ".waves"
    path.write_bytes(b"\x00\x00\x00\x01" + iv + cipher.encryptor().update(plain))
    found = read_file(path, PASSWORD)
    assert [each.secret.keys() for each in found] == [
        key_pair_from_account_seed(each) for each in seeds
    ]
    with pytest.raises(WrongPassword):
        read_file(path, "wrong")


def test_the_export_of_keeper(tmp_path: Path) -> None:
    path = tmp_path / "keystore-accounts-keeper-2611230300.json"
    path.write_text(keeper_export("my account!", phrase("some words"), PASSWORD))
    [found] = read_file(path, PASSWORD)
    assert found.name == "my-account"
    assert found.secret.keys() == key_pair("some words")
    by_key = private_key("CKTdWdRrGp1zDqjWweJJi7MutudZ3UQbpVhu5omkdRjd")
    path.write_text(keeper_export("raw", by_key, PASSWORD))
    assert read_file(path, PASSWORD)[0].secret.keys() == key_pair("soliton devnet account 1")
    with pytest.raises(WrongPassword):
        read_file(path, "wrong")


def test_the_backup_of_the_exchange(tmp_path: Path) -> None:
    users = [
        {"name": "a", "userType": "seed", "seed": "first words", "networkByte": 87},
        {"name": "a", "userType": "seed", "seed": "base58:3yZe7d", "networkByte": 87},
        {"name": "on a device", "userType": "ledger", "id": 3},
    ]
    inner = {"encryptionRounds": 100, "saveUsers": encrypt_text(json.dumps(users), PASSWORD, 100)}
    data = base64.b64encode(json.dumps(inner).encode()).decode()
    path = tmp_path / "backup.json"
    path.write_text(json.dumps({"data": data}))
    found = read_file(path, PASSWORD)
    assert [each.name for each in found] == ["a", "a-2"]
    assert [each.secret.keys() for each in found] == [key_pair("first words"), key_pair(b"test")]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"{",
        b"{" * 50_000,
        b'{"profiles": 5}',
        b'{"profiles": "*"}',
        b'{"data": "AAAA"}',
        b"\x00\x00\x00\x01short",
        b"\x00\x00\x00\x01" + bytes(64),
        b"U2FsdGVkX1",
        b"U2FsdGVkX1" + b"A" * 60,
        b"no wallet",
        b"A" * (MAX_FILE_BYTES + 1),
        b'{"data": "'
        + base64.b64encode(b'{"encryptionRounds": 99999999999, "saveUsers": "U2FsdGVkX18AAAAA"}')
        + b'"}',
    ],
)
def test_what_is_no_file_of_keys_is_told(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(KeyProblem):
        read_file(path, PASSWORD)
