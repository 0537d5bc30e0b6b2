"""The signer that holds the keys of a node's wallet (``wallet.signer``), as the node asks it.

What lives here: requests to ``soliton signer`` and what its answers mean. What does not: what is
asked for (``node.held_keys``), the signer (``soliton.signer``).
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
from soliton.node.held_keys import (
    HeldKey,
    HeldWallet,
    MicroSignatures,
    SignedBefore,
    SignerSilent,
    SigningRefused,
)
from soliton.node.settings import WalletSettings
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble

API_KEY_VARIABLE: Final = "SOLITON_SIGNER_KEY"
MAX_KEY_BYTES: Final = 4_096
ANSWER_SECONDS: Final = 10.0
CONNECTIONS: Final = 16
_SIGNED_BEFORE: Final = 7039
_KEY_BYTES: Final = 32


def open_wallet(settings: WalletSettings, chain_id: int) -> HeldWallet:
    """The accounts of the signer that the settings name. Raises ``InputError`` where it lets us
    see none, ``SignerSilent``.
    """
    api_key = _api_key(settings.signer_key_file)
    signer = WalletSigner(settings.signer, api_key, chain_id, _tls(settings))
    found = asyncio.run(signer.keys_before_start())
    if not found:
        raise InputError(f"wallet.signer: {settings.signer} has no keys")
    return HeldWallet(HeldKey(each, signer) for each in found)


def _api_key(file: Path | None) -> str:
    if file is None:
        found = os.environ.get(API_KEY_VARIABLE, "")
    else:
        try:
            with file.open("rb") as opened:
                found = opened.read(MAX_KEY_BYTES).decode("ascii", "replace").strip()
        except OSError as error:
            raise SignerSilent(f"wallet.signer-key-file: {file}: {error.strerror}") from error
    if not found.isascii() or not found.isprintable():
        raise InputError("an API key has visible characters only")
    return found


def _tls(settings: WalletSettings) -> ssl.SSLContext | None:
    """Whom we trust, and what we show. Raises ``SignerSilent`` for files that cannot be used."""
    trusted, own = settings.signer_authorities_file, settings.signer_certificate_file
    if trusted is None and own is None:
        return None
    try:
        context = ssl.create_default_context(cafile=None if trusted is None else str(trusted))
        if own is not None:
            # A key under a password would ask for it on the terminal.
            context.load_cert_chain(own, settings.signer_certificate_key_file, password="")
    except OSError as error:
        raise SignerSilent(f"wallet.signer: its certificates: {error}") from error
    return context


class WalletSigner:
    """A signer, and our API key for it. Its connections belong to the loop that uses it."""

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
        """Those that the signer keeps. Raises ``SigningRefused``, ``SignerSilent``."""
        told = await self._ask("GET", "/keys")
        try:
            found = [base58.decode(each["publicKey"]) for each in told["keys"]]
        except (CryptoError, KeyError, TypeError):
            raise self._senseless() from None
        if any(len(each) != _KEY_BYTES for each in found):
            raise self._senseless()
        return found

    async def keys_before_start(self) -> list[bytes]:
        """The same in an event loop that ends: no connection is left behind."""
        try:
            return await self.public_keys()
        finally:
            if self._client is not None:
                self._client.close()
                # Closing takes effect in the loop's next round.
                await asyncio.sleep(0)

    async def transaction(self, public_key: bytes, transaction: AnyTransaction) -> bytes:
        """As ``KeyHolder``."""
        shown = codec.to_json(codec.with_proofs(transaction, ()))
        return await self._signature(public_key, transaction.body, "proofs", transaction=shown)

    async def order(self, public_key: bytes, order: Order) -> bytes:
        """As ``KeyHolder``."""
        shown = orders.to_json(msgspec.structs.replace(order, proofs=()))
        return await self._signature(public_key, order.body, "proofs", order=shown)

    async def text(self, public_key: bytes, text: str) -> bytes:
        """As ``KeyHolder``."""
        wanted = {"text": text}
        return await self._signature(public_key, text.encode(), "signature", text=wanted)

    async def _signature(
        self, public_key: bytes, body: bytes, member: str, **thing: dict[str, Any]
    ) -> bytes:
        told = await self._ask("POST", "/sign", {"key": base58.encode(public_key), **thing})
        signed = told.get("signed")
        found = signed.get(member) if isinstance(signed, dict) else None
        signature = self._bytes(found[0] if isinstance(found, list) and found else found)
        if not verify(public_key, body, signature):
            raise SignerSilent(f"{self._url} has signed something else")
        return signature

    async def proof(self, public_key: bytes, hit_source: bytes) -> bytes:
        """As ``KeyHolder``."""
        asked = {"key": base58.encode(public_key), "message": base58.encode(hit_source)}
        return self._bytes((await self._ask("POST", "/generator/vrf", asked)).get("proof"))

    async def block(self, public_key: bytes, height: int, block: Block) -> bytes:
        """As ``KeyHolder``."""
        asked = {"key": base58.encode(public_key), "height": height, "block": _header(block)}
        told = await self._ask("POST", "/generator/block", asked)
        return self._bytes(told.get("signature"))

    async def microblock(
        self, public_key: bytes, height: int, total: Block, micro: Microblock
    ) -> MicroSignatures:
        """As ``KeyHolder``."""
        asked = {
            "key": base58.encode(public_key),
            "height": height,
            "total": _header(total),
            "microblock": base64.b64encode(microblocks.encode(micro)).decode(),
        }
        told = await self._ask("POST", "/generator/microblock", asked)
        names = "totalSignature", "signature", "announcement"
        return MicroSignatures(*(self._bytes(told.get(name)) for name in names))

    # --- HTTP -------------------------------------------------------------------------------------

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        data = b"" if body is None else msgspec.json.encode(body)
        try:
            # All that is asked for twice is signed once, or costs nobody anything.
            answer = await self._connected().request(method, path, data, may_repeat=True)
            told = msgspec.json.decode(answer.body)
        except HttpTrouble as error:
            raise SignerSilent(f"{self._url}: {error}") from error
        except msgspec.DecodeError:
            raise self._senseless() from None
        if not isinstance(told, dict):
            raise self._senseless()
        if answer.status == HTTPStatus.OK:
            return told
        words = str(told.get("message"))[:1_000]
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise SignerSilent(f"{self._url} answers {answer.status}: {words}")
        if told.get("error") == _SIGNED_BEFORE:
            raise SignedBefore(words, self._block_of(told))
        raise SigningRefused("it needs approval" if answer.status == 202 else words)

    def _connected(self) -> HttpClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            limits = ClientLimits(CONNECTIONS, answer_seconds=ANSWER_SECONDS)
            self._client, self._loop = (
                HttpClient(self._url, limits, self._headers, self._tls),
                loop,
            )
        return self._client

    def _block_of(self, told: dict[str, Any]) -> Block | None:
        """The block that was signed before, if it is told."""
        signed, signature = told.get("signed"), told.get("signature")
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
            raise self._senseless() from None

    def _senseless(self) -> SignerSilent:
        return SignerSilent(f"{self._url} answers, but not as a signer does")


def _header(block: Block) -> str:
    """What a block's signature is made of: of older versions all transactions are."""
    modern = block.header.version >= blocks.PROTOBUF_VERSION
    data = blocks.assemble(block.header, (), block.signature).data if modern else block.data
    return base64.b64encode(data).decode()
