"""The node's client of the signer that holds its wallet keys (``wallet.signer``).

What lives here: requests to ``soliton signer`` and their responses. What does not: the interface
(``node.remote_keys``), the signer (``soliton.signer``).
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec

from soliton.chain import blocks, microblocks, orders
from soliton.chain.blocks import Block
from soliton.chain.errors import ChainError
from soliton.chain.microblocks import Microblock
from soliton.chain.orders import Order
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.crypto.curve25519 import verify
from soliton.crypto.errors import CryptoError
from soliton.errors import InputError
from soliton.node.remote_keys import (
    MicroSignatures,
    RemoteKey,
    RemoteWallet,
    SignedBefore,
    SignerUnavailable,
    SigningRefused,
)
from soliton.node.settings import WalletSettings
from soliton.storage.files import read_secret
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble

API_KEY_VARIABLE: Final = "SOLITON_SIGNER_KEY"
MAX_KEY_BYTES: Final = 4_096
ANSWER_SECONDS: Final = 10.0
CONNECTIONS: Final = 16
_SIGNED_BEFORE: Final = 7039
_KEY_BYTES: Final = 32


def open_wallet(settings: WalletSettings, chain_id: int) -> RemoteWallet:
    """Return the accounts of the signer in the settings. Raises ``InputError`` if it shows us none,
    ``SignerUnavailable``.
    """
    api_key = _api_key(settings.signer_key_file)
    signer = WalletSigner(settings.signer, api_key, chain_id, _tls(settings))
    found = asyncio.run(signer.keys_before_start())
    if not found:
        raise InputError(f"wallet.signer: {settings.signer} has no keys")
    return RemoteWallet(RemoteKey(each, signer) for each in found)


def check_files(settings: WalletSettings) -> None:
    """Check the files of a signer's client; raises ``SignerUnavailable``, ``InputError``."""
    _api_key(settings.signer_key_file)
    _tls(settings)


def _api_key(file: Path | None) -> str:
    if file is None:
        found = os.environ.get(API_KEY_VARIABLE, "")
    else:
        try:
            found = read_secret(file, MAX_KEY_BYTES).decode("ascii", "replace").strip()
        except OSError as error:
            raise SignerUnavailable(f"wallet.signer-key-file: {file}: {error.strerror}") from error
    if not found.isascii() or not found.isprintable():
        raise InputError("an API key has visible characters only")
    return found


def _tls(settings: WalletSettings) -> ssl.SSLContext | None:
    """Return the TLS context; raises ``SignerUnavailable`` for files that cannot be used."""
    trusted, own = settings.signer_authorities_file, settings.signer_certificate_file
    if trusted is None and own is None:
        return None
    try:
        context = ssl.create_default_context(cafile=None if trusted is None else str(trusted))
        if own is not None:
            # Without a password, an encrypted key would prompt for one on the terminal.
            context.load_cert_chain(own, settings.signer_certificate_key_file, password="")
    except OSError as error:
        raise SignerUnavailable(f"wallet.signer: its certificates: {error}") from error
    return context


class WalletSigner:
    """A signer and the API key for it. Its connections belong to the event loop that uses it."""

    def __init__(
        self, url: str, api_key: str, chain_id: int, tls: ssl.SSLContext | None = None
    ) -> None:
        self._url = url
        self._tls = tls
        self._headers = {"X-API-Key": api_key} if api_key else {}
        self._chain_id = chain_id
        self._client: HttpClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def public_keys(self) -> list[bytes]:
        """The public keys of the signer. Raises ``SigningRefused``, ``SignerUnavailable``."""
        reply = await self._request("GET", "/keys")
        try:
            found = [base58.decode(each["publicKey"]) for each in reply["keys"]]
        except (CryptoError, KeyError, TypeError):
            raise self._invalid_response() from None
        if any(len(each) != _KEY_BYTES for each in found):
            raise self._invalid_response()
        return found

    async def keys_before_start(self) -> list[bytes]:
        """``public_keys`` in a temporary event loop: closes the connections."""
        try:
            return await self.public_keys()
        finally:
            if self._client is not None:
                self._client.close()
                # Closing takes effect in the next iteration of the loop.
                await asyncio.sleep(0)

    async def transaction(self, public_key: bytes, transaction: AnyTransaction) -> bytes:
        """See ``RemoteSigner``."""
        shown = codec.to_json(codec.with_proofs(transaction, ()))
        return await self._signature(public_key, transaction.body, "proofs", transaction=shown)

    async def order(self, public_key: bytes, order: Order) -> bytes:
        """See ``RemoteSigner``."""
        shown = orders.to_json(msgspec.structs.replace(order, proofs=()))
        return await self._signature(public_key, order.body, "proofs", order=shown)

    async def text(self, public_key: bytes, text: str) -> bytes:
        """See ``RemoteSigner``."""
        return await self._signature(public_key, text.encode(), "signature", text={"text": text})

    async def _signature(
        self, public_key: bytes, body: bytes, member: str, **thing: dict[str, Any]
    ) -> bytes:
        reply = await self._request("POST", "/sign", {"key": base58.encode(public_key), **thing})
        signed = reply.get("signed")
        found = signed.get(member) if isinstance(signed, dict) else None
        signature = self._bytes(found[0] if isinstance(found, list) and found else found)
        if not verify(public_key, body, signature):
            raise SignerUnavailable(f"{self._url} has signed something else")
        return signature

    async def proof(self, public_key: bytes, hit_source: bytes) -> bytes:
        """See ``RemoteSigner``."""
        body = {"key": base58.encode(public_key), "message": base58.encode(hit_source)}
        return self._bytes((await self._request("POST", "/generator/vrf", body)).get("proof"))

    async def block(self, public_key: bytes, height: int, block: Block) -> bytes:
        """See ``RemoteSigner``."""
        body = {"key": base58.encode(public_key), "height": height, "block": _header(block)}
        reply = await self._request("POST", "/generator/block", body)
        return self._bytes(reply.get("signature"))

    async def microblock(
        self, public_key: bytes, height: int, total: Block, micro: Microblock
    ) -> MicroSignatures:
        """See ``RemoteSigner``."""
        body = {
            "key": base58.encode(public_key),
            "height": height,
            "total": _header(total),
            "microblock": base64.b64encode(microblocks.encode(micro)).decode(),
        }
        reply = await self._request("POST", "/generator/microblock", body)
        names = "totalSignature", "signature", "announcement"
        return MicroSignatures(*(self._bytes(reply.get(name)) for name in names))

    # --- HTTP -------------------------------------------------------------------------------------

    async def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        data = b"" if body is None else msgspec.json.encode(body)
        try:
            # Every request is idempotent: a repeated one is signed once, or has no effect.
            answer = await self._connected().request(method, path, data, may_repeat=True)
            reply = msgspec.json.decode(answer.body)
        except HttpTrouble as error:
            raise SignerUnavailable(f"{self._url}: {error}") from error
        except msgspec.DecodeError:
            raise self._invalid_response() from None
        if not isinstance(reply, dict):
            raise self._invalid_response()
        if answer.status == HTTPStatus.OK:
            return reply
        message = str(reply.get("message"))[:1_000]
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise SignerUnavailable(f"{self._url} answers {answer.status}: {message}")
        if reply.get("error") == _SIGNED_BEFORE:
            raise SignedBefore(message, self._block_of(reply))
        raise SigningRefused("it needs approval" if answer.status == 202 else message)

    def _connected(self) -> HttpClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            limits = ClientLimits(CONNECTIONS, answer_seconds=ANSWER_SECONDS)
            self._client = HttpClient(self._url, limits, self._headers, self._tls)
            self._loop = loop
        return self._client

    def _block_of(self, reply: dict[str, Any]) -> Block | None:
        """The block that was signed before, if the reply includes it."""
        signed, signature = reply.get("signed"), reply.get("signature")
        if not isinstance(signed, str) or not isinstance(signature, str):
            return None
        try:
            block = blocks.decode(base64.b64decode(signed, validate=True), self._chain_id)
        except (ChainError, ValueError):
            return None
        return blocks.assemble(block.header, block.transactions, self._bytes(signature))

    def _bytes(self, text: object) -> bytes:
        try:
            return base58.decode(text) if isinstance(text, str) else b""
        except CryptoError:
            raise self._invalid_response() from None

    def _invalid_response(self) -> SignerUnavailable:
        return SignerUnavailable(f"{self._url} answers, but not as a signer does")


def _header(block: Block) -> str:
    """The signed part of a block in base64: before protobuf blocks, it includes transactions."""
    modern = block.header.version >= blocks.PROTOBUF_VERSION
    data = blocks.assemble(block.header, (), block.signature).data if modern else block.data
    return base64.b64encode(data).decode()
