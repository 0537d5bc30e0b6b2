"""Tokens that authorize access to an account's stream.

A separate service of the operator authenticates users and issues tokens (JWT, RFC 7519). The
matcher verifies them with that service's public key.

What lives here: verifying tokens. What does not: issuing them.

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/ws/protocol/WsAddressSubscribe.scala``.
"""

from __future__ import annotations

from typing import Any, Final

from soliton.chain.addresses import Address, address_text, parse_address
from soliton.chain.errors import ChainError
from soliton.matching import errors
from soliton.matching.errors import MatcherError

AUTH_TYPES: Final = ("jwt", "sig")
SIGNATURE: Final = "sig"
LEEWAY_SECONDS: Final = 10
MAX_TOKEN_CHARS: Final = 8_192
MAX_EXPIRATION_SECONDS: Final = 10**11
_ALGORITHMS: Final = [
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
]
_SEGMENTS: Final = 3
_IGNORED: Final[Any] = {f"verify_{claim}": False for claim in ("aud", "iat", "iss", "jti", "sub")}
"""Claims that are no concern of the matcher's; the reference looks at ``exp`` and ``nbf`` only."""


def check_token(auth_type: str, token: str, address: Address, key: str, chain_id: int) -> int:
    """Verify the token of an account; returns its expiration in milliseconds.

    ``key`` is the issuer's public key as PEM. Raises ``MatcherError`` if the token is invalid.
    """
    if auth_type not in AUTH_TYPES:
        kind = errors.SUBSCRIPTION_AUTH_TYPE_UNSUPPORTED
        raise MatcherError(kind, given=auth_type[:40], required=AUTH_TYPES)
    if len(token) > MAX_TOKEN_CHARS or token.count(".") != _SEGMENTS - 1:
        raise MatcherError(errors.JWT_BROKEN)
    payload = _payload(token, key, address)
    owner, network, expiration = payload.get("a"), payload.get("nb"), payload.get("exp")
    if not isinstance(owner, str) or not isinstance(network, str) or len(network) != 1:
        raise MatcherError(errors.JWT_PAYLOAD_BROKEN)
    if type(expiration) is not int or expiration > MAX_EXPIRATION_SECONDS:
        raise MatcherError(errors.JWT_PAYLOAD_BROKEN)
    if ord(network) != chain_id:
        raise MatcherError(errors.TOKEN_NETWORK_UNEXPECTED, required=chain_id, given=ord(network))
    try:
        named = parse_address(owner, chain_id)
    except ChainError:
        raise MatcherError(errors.JWT_PAYLOAD_BROKEN) from None
    if named != address:
        raise MatcherError(
            errors.REQUEST_AND_JWT_ADDRESSES_ARE_DIFFERENT,
            requestAddress=address_text(address),
            jwtAddress=owner,
        )
    return expiration * 1_000


def _payload(token: str, key: str, address: Address) -> dict[str, Any]:
    import jwt

    try:
        found: dict[str, Any] = jwt.decode(
            token, key, algorithms=_ALGORITHMS, leeway=LEEWAY_SECONDS, options=_IGNORED
        )
    except jwt.ExpiredSignatureError:
        raise MatcherError(
            errors.SUBSCRIPTION_TOKEN_EXPIRED, address=address_text(address)
        ) from None
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise MatcherError(errors.JWT_COMMON_ERROR, message=str(error)[:200]) from None
    return found
