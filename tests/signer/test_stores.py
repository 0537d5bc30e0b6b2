"""Keys that never come here: any Ed25519 key owns an account, whatever keeps it.

A token of SoftHSM is asked where that is installed; Vault's transit engine is played by a server
that answers as its documentation says (a real one: ``test_vault``).
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from soliton.chain.transactions.json_reader import read_signed
from soliton.crypto import base58
from soliton.crypto.curve25519 import verify
from soliton.crypto.ed25519_keys import protocol_key, protocol_signature
from soliton.crypto.errors import CryptoError
from soliton.keystore.keys import KeyProblem
from soliton.signer.errors import RequestRefused
from soliton.signer.keyring import Keyring
from soliton.signer.pkcs11 import Pkcs11
from soliton.signer.settings import StoreSettings
from soliton.signer.stores import StoredKey, StoreTrouble, VaultTransit
from tests.signer.kept import (
    ALL,
    BOT,
    CHAIN_ID,
    TRANSFER,
    Place,
    as_caller,
)

SOFTHSM: Final = Path("/usr/lib/softhsm/libsofthsm2.so")
TOOLS: Final = ("softhsm2-util", "pkcs11-tool")
PIN: Final = "5678"


def raw(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def test_every_ed25519_key_is_one_of_the_protocol() -> None:
    for number in range(100):
        key = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
        message = bytes([number, 1])
        signature = protocol_signature(raw(key), key.sign(message))
        assert verify(protocol_key(raw(key)), message, signature)
        assert not verify(protocol_key(raw(key)), message + b"x", signature)


@pytest.mark.parametrize("key", [b"", b"\1" + bytes(31), b"\xff" * 32, bytes(31)])
def test_keys_that_are_none(key: bytes) -> None:
    with pytest.raises(CryptoError):
        protocol_key(key)


@pytest.mark.parametrize("signature", [b"", bytes(63), bytes(63) + b"\x80"])
def test_signatures_that_are_none(signature: bytes) -> None:
    with pytest.raises(CryptoError):
        protocol_signature(bytes(32), signature)


class Held:
    """A store in the test's hands."""

    def __init__(self) -> None:
        self.key = Ed25519PrivateKey.from_private_bytes(b"\7" * 32)
        self.answer: list[bytes] | Exception | None = None

    def public_key(self) -> bytes:
        return raw(self.key)

    def sign(self, messages: Sequence[bytes]) -> list[bytes]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return [self.key.sign(each) for each in messages] if self.answer is None else self.answer

    def close(self) -> None:
        """Nothing is open."""


def test_what_a_store_says_is_verified() -> None:
    held = Held()
    stored = StoredKey(held)
    (signature,) = stored.sign([b"a"])
    assert verify(stored.public_key, b"a", signature)
    wrong: list[list[bytes] | Exception] = [
        StoreTrouble("gone"),
        [],
        [b""],
        [held.key.sign(b"b")],
        [bytes(64)],
    ]
    for held.answer in wrong:
        with pytest.raises(RequestRefused) as caught:
            stored.sign([b"a"])
        assert caught.value.answer.code == 7037


def test_a_key_is_in_one_place(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with pytest.raises(KeyProblem, match="in two places"):
        Keyring(place.keys, CHAIN_ID, lambda: 0, {"hot": StoredKey(Held())})


async def uses(place: Place, settings: StoreSettings) -> None:
    """A signer signs with a key of a store: what it signs is good, and stands in its log."""
    async with place.serving(stores=(settings,)) as client:
        shown = (await client.get("/keys", headers=as_caller("idle"))).json()["keys"]
        (key,) = [each for each in shown if each["name"] == settings.name]
        assert key["stored"] and not key["locked"]
        package = [{"transaction": {**TRANSFER, "amount": amount}} for amount in (1, 2, 3)]
        body = {"key": settings.name, "package": package, "id": "once"}
        response = await client.post("/sign", json=body, headers=BOT)
        assert response.status_code == 200, response.text
        for each in response.json()["signed"]:
            assert each["sender"] == key["address"]
            transaction = read_signed(each, CHAIN_ID)
            public_key = base58.decode(key["publicKey"])
            assert verify(public_key, transaction.body, transaction.proofs[0])
        again = await client.post("/sign", json=body, headers=BOT)
        assert again.content == response.content
        # It is opened elsewhere: a password here has nothing to do with it.
        await client.post("/keys/lock", headers=BOT)
        single = {"key": settings.name, "transaction": TRANSFER}
        assert (await client.post("/sign", json=single, headers=BOT)).status_code == 200


# --- PKCS#11 --------------------------------------------------------------------------------------

needs_softhsm = pytest.mark.skipif(
    not SOFTHSM.exists() or any(shutil.which(each) is None for each in TOOLS),
    reason="SoftHSM and OpenSC are not installed (Debian: softhsm2, opensc)",
)


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A token with an Ed25519 key; its PIN, in a file."""
    directory = tmp_path_factory.mktemp("token")
    (directory / "tokens").mkdir()
    config = directory / "softhsm2.conf"
    config.write_text(f"directories.tokendir = {directory / 'tokens'}\n", encoding="utf-8")
    before = os.environ.get("SOFTHSM2_CONF")
    os.environ["SOFTHSM2_CONF"] = str(config)
    try:
        make = ["--init-token", "--free", "--label", "soliton", "--so-pin", "1234", "--pin", PIN]
        subprocess.run(["softhsm2-util", *make], check=True, capture_output=True)
        login = ["--module", str(SOFTHSM), "--login", "--pin", PIN, "--token-label", "soliton"]
        key = ["--keypairgen", "--key-type", "EC:edwards25519", "--label", "hot", "--id", "01"]
        subprocess.run(["pkcs11-tool", *login, *key], check=True, capture_output=True)
        (directory / "pin").touch(0o600)
        (directory / "pin").write_text(f"{PIN}\n", encoding="utf-8")
        yield directory / "pin"
    finally:
        if before is None:
            del os.environ["SOFTHSM2_CONF"]
        else:
            os.environ["SOFTHSM2_CONF"] = before


@needs_softhsm
async def test_a_token_signs(tmp_path: Path, token: Path) -> None:
    settings = StoreSettings("hsm", "pkcs11", str(SOFTHSM), "soliton", "hot", token)
    await uses(Place(tmp_path, ALL), settings)


@needs_softhsm
def test_tokens_and_keys_that_are_not_there(tmp_path: Path, token: Path) -> None:
    wrong_pin = tmp_path / "pin"
    wrong_pin.write_text("9999")
    for module, label, key, pin, words in (
        (SOFTHSM, "other", "hot", token, "no token with the label other"),
        (SOFTHSM, "soliton", "cold", token, "0 Ed25519 keys of the token"),
        (tmp_path / "none.so", "soliton", "hot", token, "cannot be loaded"),
        (SOFTHSM, "soliton", "hot", tmp_path / "none", "cannot be read"),
    ):
        with pytest.raises(StoreTrouble, match=words) as caught:
            Pkcs11(module, label, key, pin)
        assert PIN not in str(caught.value)


class FakeToken:
    """A module of PKCS#11 as C calls it, with one key; ``lost`` is its answer when taken out."""

    def __init__(self) -> None:
        self.key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
        self.sessions = 0
        self.pins: list[bytes] = []
        self.is_in = True
        self.lost = 0

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("C_"):
            raise AttributeError(name)
        calls: dict[str, Callable[..., int]] = {
            "C_GetSlotList": self._slots,
            "C_GetTokenInfo": self._info,
            "C_OpenSession": self._open,
            "C_Login": self._login,
            "C_FindObjects": self._find,
            "C_Sign": self._sign,
        }
        return Function(calls.get(name, lambda *_: 0))

    def _slots(self, _present: Any, slots: Any, count: Any) -> int:
        slots[0], count._obj.value = 7, int(self.is_in)
        return 0

    def _info(self, _slot: Any, info: Any) -> int:
        info._obj.label = b"soliton".ljust(32)
        return 0

    def _open(self, _slot: Any, _flags: Any, _one: Any, _two: Any, session: Any) -> int:
        self.sessions += 1
        session._obj.value, self.lost = self.sessions, 0
        return 0

    def _login(self, _session: Any, _user: Any, pin: bytes, _length: Any) -> int:
        self.pins.append(pin)
        return 0

    def _find(self, _session: Any, found: Any, _most: Any, count: Any) -> int:
        found[0], count._obj.value = 1, 1
        return 0

    def _sign(self, _session: Any, message: bytes, _size: Any, room: Any, length: Any) -> int:
        if self.lost:
            return self.lost
        room.raw, length._obj.value = self.key.sign(message), 64
        return 0


class Function:
    """A function of C: its result has a type."""

    def __init__(self, call: Callable[..., int]) -> None:
        self._call = call
        self.restype: Any = None

    def __call__(self, *arguments: Any) -> int:
        return self._call(*arguments)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeToken:
    token = FakeToken()
    monkeypatch.setattr("soliton.signer.pkcs11.ctypes.CDLL", lambda _path: token)
    return token


@pytest.mark.parametrize("lost", [0x32, 0x82, 0xB0, 0xB3, 0xE0, 0x101, 0x190])
def test_a_token_that_is_back_is_opened_again(tmp_path: Path, fake: FakeToken, lost: int) -> None:
    pin = tmp_path / "pin"
    pin.touch(0o600)
    pin.write_text(PIN)
    opened = Pkcs11(tmp_path / "module.so", "soliton", "hot", pin)
    (first,) = opened.sign([b"one"])
    fake.key.public_key().verify(first, b"one")
    fake.lost, fake.is_in = lost, False
    for _ in range(2):
        with pytest.raises(StoreTrouble, match="no token"):
            opened.sign([b"two"])
    fake.is_in = True
    signatures = opened.sign([b"two", b"three"])
    fake.key.public_key().verify(signatures[1], b"three")
    assert (fake.sessions, fake.pins) == (2, [PIN.encode()] * 2)
    # A refusal is no loss.
    fake.lost = 0x5
    with pytest.raises(StoreTrouble, match="0x5"):
        opened.sign([b"four"])
    assert fake.sessions == 2


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o602])
def test_a_pin_that_others_can_read_is_refused(tmp_path: Path, fake: FakeToken, mode: int) -> None:
    pin = tmp_path / "pin"
    pin.write_text(PIN)
    pin.chmod(mode)
    with pytest.raises(StoreTrouble, match="open to others: chmod 600"):
        Pkcs11(tmp_path / "module.so", "soliton", "hot", pin)
    assert fake.pins == []
    pin.chmod(0o400)
    assert Pkcs11(tmp_path / "module.so", "soliton", "hot", pin).sign([]) == []


# --- Vault ----------------------------------------------------------------------------------------


class Vault(ThreadingHTTPServer):
    """What the documentation of the transit engine says of two of its paths."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = Ed25519PrivateKey.from_private_bytes(b"\5" * 32)
        self.old = Ed25519PrivateKey.from_private_bytes(b"\6" * 32)
        self.latest = 2
        self.says: tuple[int, object] | None = None
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Vault

    def do_GET(self) -> None:
        keys = {
            str(number): {"public_key": base64.b64encode(raw(key)).decode(), "name": "ed25519"}
            for number, key in ((1, self.server.old), (2, self.server.key))
        }
        told = {"type": "ed25519", "latest_version": self.server.latest, "keys": keys}
        self._answer("/v1/transit/keys/hot", told)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        inputs = [base64.b64decode(each["input"]) for each in body["batch_input"]]
        version = body.get("key_version") or self.server.latest
        key = self.server.old if version == 1 else self.server.key
        signed = [base64.b64encode(key.sign(each)).decode() for each in inputs]
        results = [
            {"signature": f"vault:v{version}:{each}", "key_version": version} for each in signed
        ]
        self._answer("/v1/transit/sign/hot", {"batch_results": results})

    def _answer(self, path: str, data: dict[str, Any]) -> None:
        if self.path != path or self.headers["x-vault-token"] != "a token":
            status, told = self.server.says or (403, {"errors": ["permission denied"]})
        else:
            status, told = self.server.says or (200, {"data": data})
        text = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as above
        """Nobody reads it."""


@pytest.fixture
def vault() -> Iterator[Vault]:
    server = Vault()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join(60)
    server.server_close()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text("a token\n")
    return path


async def test_the_transit_engine_signs(tmp_path: Path, vault: Vault, token_file: Path) -> None:
    settings = StoreSettings("vault", "vault", vault.url, "transit", "hot", token_file)
    await uses(Place(tmp_path, ALL), settings)


def test_a_key_that_is_rotated_goes_on_in_its_version(vault: Vault, token_file: Path) -> None:
    vault.latest = 1
    stored = StoredKey(VaultTransit(vault.url, "transit", "hot", token_file))
    vault.latest = 2
    (signature,) = stored.sign([b"a"])
    assert verify(stored.public_key, b"a", signature)
    later = StoredKey(VaultTransit(vault.url, "transit", "hot", token_file))
    assert later.public_key != stored.public_key


def test_answers_that_are_none_of_a_transit_engine(vault: Vault, token_file: Path) -> None:
    transit = VaultTransit(vault.url, "transit", "hot", token_file)
    stored = StoredKey(transit)
    answers: list[tuple[int, object]] = [
        (403, {"errors": ["permission denied"]}),
        (200, []),
        (200, {"data": {}}),
        (200, {"data": {"type": "rsa-2048", "latest_version": 1, "keys": {}}}),
        (200, {"data": {"type": "ed25519", "latest_version": 1, "keys": {"1": {"public_key": 5}}}}),
        (200, {"data": {"batch_results": [{"signature": "vault:v1"}]}}),
        (200, {"data": {"batch_results": [{"error": "no"}]}}),
    ]
    for vault.says in answers:
        with pytest.raises(StoreTrouble):
            transit.public_key()
        with pytest.raises(RequestRefused):
            stored.sign([b"a"])
    vault.says = None
    token_file.write_text("another")
    with pytest.raises(StoreTrouble, match="403"):
        transit.public_key()
    token_file.unlink()
    with pytest.raises(StoreTrouble, match="cannot be read"):
        transit.public_key()
