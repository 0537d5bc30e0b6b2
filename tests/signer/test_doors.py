"""How callers of a signer come in: by a key, as a user of this machine, with a certificate.

What lives here: real sockets, and the settings that open them. What does not: what a caller may do
(``test_keeping``).
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import queue
import ssl
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from soliton.chain.addresses import address_text
from soliton.cli.run import start_signer
from soliton.cli.wallet_signer import open_wallet
from soliton.crypto import base58
from soliton.crypto.hashes import secure_hash
from soliton.errors import InputError
from soliton.node.remote_keys import RemoteWallet, SignerUnavailable
from soliton.node.settings import SettingsError, load_settings
from soliton.signer.policy_file import policy_hash
from tests.signer.kept import CHAIN_ID, COLD_ADDRESS, HOT_ADDRESS, KEYS, Place


def certificate(directory: Path, name: str) -> tuple[Path, Path, str]:
    """The files of a certificate that signs itself and of its key, and its SHA-256."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, key_file = directory / f"{name}.pem", directory / f"{name}.key"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pem, key_file, made.fingerprint(hashes.SHA256()).hex()


def config(place: Place, callers: str, more: str = "") -> Path:
    path = place.directory / "signer.conf"
    path.write_text(
        f"""soliton {{
  blockchain.type = devnet
  signer {{
    port = 0
    keys-directory = "{place.keys}"
    policy-file = "{place.rules}"
    policy-hash = "{policy_hash(place.rules.read_bytes())}"
    state-directory = "{place.state}"
    callers = [{callers}]
    {more}
  }}
}}
"""
    )
    return path


def by_key(name: str) -> str:
    return f'key-hash = "{base58.encode(secure_hash(KEYS[name].encode()))}"'


async def test_a_user_of_this_machine_needs_no_key_on_the_unix_socket(tmp_path: Path) -> None:
    place, path = Place(tmp_path), tmp_path / "signer.sock"
    callers = f"{{ name = me, uid = {os.getuid()}, may = [list] }}"
    callers += f", {{ name = bot, {by_key('bot')}, may = [operate] }}"
    settings = load_settings(config(place, callers, f'unix-socket = "{path}"'))
    server = await start_signer(settings, "http://nobody.test")
    try:
        over = httpx.AsyncHTTPTransport(uds=str(path))
        async with httpx.AsyncClient(transport=over, base_url="http://localhost") as client:
            answer = await client.get("/keys")
            assert answer.status_code == 200
            assert {each["name"] for each in answer.json()["keys"]} == {"hot", "cold"}
            # A user may what its caller may, and who shows a key is judged by that alone.
            assert (await client.get("/policy")).status_code == 403
            own = {"X-API-Key": KEYS["bot"]}
            assert (await client.get("/policy", headers=own)).status_code == 200
            assert (await client.get("/keys", headers=own)).status_code == 403
            assert (await client.get("/keys", headers={"X-API-Key": "x"})).status_code == 403
            elsewhere = {"Host": "evil.example"}
            assert (await client.get("/keys", headers=elsewhere)).json()["error"] == 7021
        async with httpx.AsyncClient() as client:
            # Over the port nobody says which user it is.
            url = f"http://127.0.0.1:{server.port}/keys"
            assert (await client.get(url)).json()["error"] == 7020
    finally:
        await server.stop()
    assert not path.exists()


async def test_another_user_is_nobody(tmp_path: Path) -> None:
    place, path = Place(tmp_path), tmp_path / "signer.sock"
    callers = f"{{ name = other, uid = {os.getuid() + 1}, may = [list] }}"
    settings = load_settings(config(place, callers, f'unix-socket = "{path}"'))
    server = await start_signer(settings, "http://nobody.test")
    try:
        over = httpx.AsyncHTTPTransport(uds=str(path))
        async with httpx.AsyncClient(transport=over, base_url="http://localhost") as client:
            assert (await client.get("/keys")).json()["error"] == 7020
    finally:
        await server.stop()


async def test_the_socket_of_a_process_that_was_killed_is_no_obstacle(tmp_path: Path) -> None:
    import socket

    place, path = Place(tmp_path), tmp_path / "signer.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    callers = f"{{ name = me, uid = {os.getuid()}, may = [list] }}"
    settings = load_settings(config(place, callers, f'unix-socket = "{path}"'))
    server = await start_signer(settings, "http://nobody.test")
    await server.stop()


async def test_with_tls_a_client_is_its_certificate(tmp_path: Path) -> None:
    place = Place(tmp_path)
    own, own_key, _ = certificate(tmp_path, "signer")
    files = {name: certificate(tmp_path, name) for name in ("bot", "other", "stranger")}
    trusted = tmp_path / "clients.pem"
    trusted.write_bytes(files["bot"][0].read_bytes() + files["other"][0].read_bytes())
    fingerprint = files["bot"][2]
    shown = ":".join(fingerprint[i : i + 2] for i in range(0, 64, 2)).upper()
    callers = f'{{ name = bot, certificate = "{shown}", may = [list] }}'
    more = (
        f'tls {{ certificate-file = "{own}", key-file = "{own_key}", clients-file = "{trusted}" }}'
    )
    server = await start_signer(load_settings(config(place, callers, more)), "http://nobody.test")

    def client(name: str | None) -> httpx.AsyncClient:
        context = ssl.create_default_context(cafile=str(own))
        if name is not None:
            context.load_cert_chain(*files[name][:2])
        return httpx.AsyncClient(verify=context, base_url=f"https://localhost:{server.port}")

    try:
        async with client("bot") as known:
            assert (await known.get("/keys")).status_code == 200
            assert (await known.get("/policy")).status_code == 403
        async with client("other") as other:
            # It may connect, and is nobody of the settings.
            assert (await other.get("/keys")).json()["error"] == 7020
        for name in ("stranger", None):
            async with client(name) as stranger:
                with pytest.raises(httpx.TransportError):
                    await stranger.get("/keys")
        async with httpx.AsyncClient() as plain:
            with pytest.raises(httpx.TransportError):
                await plain.get(f"http://127.0.0.1:{server.port}/keys")
    finally:
        await server.stop()


def test_a_node_shows_its_certificate_to_the_signer_of_its_wallet(tmp_path: Path) -> None:
    place = Place(tmp_path)
    own, own_key, _ = certificate(tmp_path, "signer")
    shown, shown_key, fingerprint = certificate(tmp_path, "node")
    callers = f'{{ name = node, certificate = "{fingerprint}", may = [list, sign] }}'
    more = f'tls {{ certificate-file = "{own}", key-file = "{own_key}", clients-file = "{shown}" }}'
    signer = load_settings(config(place, callers, more))
    started: queue.Queue[tuple[int, Callable[[], object]]] = queue.Queue()

    async def serve() -> None:
        server = await start_signer(signer, "http://nobody.test")
        done, loop = asyncio.Event(), asyncio.get_running_loop()
        started.put((server.port, partial(loop.call_soon_threadsafe, done.set)))
        await done.wait()
        await server.stop()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    port, end = started.get(timeout=60)
    try:
        url = f"https://localhost:{port}"

        def wallet(**files: Path) -> RemoteWallet:
            lines = [f'{name.replace("_", "-")} = "{file}"' for name, file in files.items()]
            path = tmp_path / "node.conf"
            text = "\n".join([f'signer = "{url}"', *lines])
            path.write_text(f"soliton {{ blockchain.type = devnet, wallet {{\n{text}\n}} }}")
            return open_wallet(load_settings(path).wallet, CHAIN_ID)

        whole = {
            "signer_authorities_file": own,
            "signer_certificate_file": shown,
            "signer_certificate_key_file": shown_key,
        }
        found = wallet(**whole)
        assert {address_text(each) for each in found.accounts(CHAIN_ID)} == {
            HOT_ADDRESS,
            COLD_ADDRESS,
        }
        for less in (
            {"signer_authorities_file": own},
            {name: file for name, file in whole.items() if "authorities" not in name},
            whole | {"signer_certificate_file": own},
            whole | {"signer_certificate_key_file": tmp_path / "none"},
        ):
            with pytest.raises(SignerUnavailable):
                wallet(**less)
        with pytest.raises(InputError, match="set together"):
            wallet(signer_certificate_file=shown)
        url = url.replace("https", "http")
        with pytest.raises(InputError, match="https"):
            wallet(**whole)
    finally:
        end()
        thread.join(60)


@pytest.mark.parametrize(
    ("callers", "words"),
    [
        ("{ name = a, may = [list] }", "key-hash"),
        ("{ name = a, uid = -5, may = [list] }", "uid"),
        ("{ name = a, uid = 1, may = [list] }, { name = b, uid = 1, may = [list] }", "uid"),
        ('{ name = a, certificate = "abc", may = [list] }', "certificate"),
    ],
)
def test_what_is_wrong_about_a_caller_is_named(tmp_path: Path, callers: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        load_settings(config(Place(tmp_path), callers))
