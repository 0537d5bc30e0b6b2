"""Keys, signatures and URLs of the driver.

What lives here: the account's keys, and its signatures. What does not: which request needs one.
"""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlencode

from ccxt.base.errors import AuthenticationError
from ccxt.base.exchange import Exchange

from soliton.chain import orders
from soliton.chain.orders import Order
from soliton.crypto import base58
from soliton.crypto.curve25519 import public_key as derive_public_key
from soliton.crypto.curve25519 import sign
from soliton.crypto.errors import Base58Error, CryptoError

_KEY_BYTES: Final = 32


def keys_of(exchange: Exchange) -> tuple[bytes, bytes]:
    """The account's public and private key; raises ccxt's ``AuthenticationError``."""
    exchange.check_required_credentials()
    try:
        private_key = base58.decode(exchange.secret)
        if len(private_key) != _KEY_BYTES:
            raise AuthenticationError("secret has to be a private key of 32 bytes in base58")
        return derive_public_key(private_key), private_key
    except (Base58Error, CryptoError) as error:
        raise AuthenticationError(f"secret is no private key in base58: {error}") from None


def public_key_of(exchange: Exchange) -> str:
    """The account's public key as text."""
    return base58.encode(keys_of(exchange)[0])


def signature(exchange: Exchange, message: bytes) -> str:
    """The account's signature of its public key and a message."""
    public_key, private_key = keys_of(exchange)
    return base58.encode(sign(private_key, public_key + message))


def signed_order(exchange: Exchange, draft: Order) -> dict[str, Any]:
    """The JSON of a signed order."""
    return orders.to_json(orders.sign(orders.build(draft), keys_of(exchange)[1]))


def signed_url(
    exchange: Exchange,
    path: str,
    api: str,
    method: str,
    params: dict[str, Any],
    headers: dict[str, str] | None,
    body: str | None,
) -> dict[str, Any]:
    """A request with its parameters in URL or body, and with the account's signature if the
    endpoint requires one.
    """
    rest = exchange.omit(params, exchange.extract_params(path))
    url = f"{exchange.urls['api']}/{exchange.implode_params(path, params)}"
    headers = dict(headers or {})
    if method == "GET" and rest:
        url += "?" + urlencode(rest)
    elif method != "GET":
        body = json.dumps(rest) if body is None else body
        headers["Content-Type"] = "application/json"
    if api == "private":
        timestamp = exchange.milliseconds()
        headers["Timestamp"] = str(timestamp)
        headers["Signature"] = signature(exchange, timestamp.to_bytes(8, "big"))
    return {"url": url, "method": method, "body": body, "headers": headers}
