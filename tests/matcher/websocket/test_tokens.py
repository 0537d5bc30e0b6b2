"""Tokens: signed by the operator's own service, for one account, for a while."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from soliton.matcher.websocket.tokens import check_token
from soliton.matching.errors import MatcherError
from tests.matcher.fakes import ALICE, BOB, CHAIN_ID, address_of, text_address

SIGNER = ec.generate_private_key(ec.SECP256R1())
ALICE_ADDRESS = address_of(ALICE)


def pem(private: Any) -> str:
    """The public half, as an operator configures it."""
    encoded: bytes = private.public_key().public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    )
    return encoded.decode()


def payload(**changes: Any) -> dict[str, Any]:
    values = {
        "a": text_address(ALICE),
        "nb": chr(CHAIN_ID),
        "exp": int(time.time()) + 3_600,
        "scope": ["general"],
    }
    return {name: value for name, value in (values | changes).items() if value is not None}


def token(private: Any = SIGNER, algorithm: str = "ES256", **changes: Any) -> str:
    return jwt.encode(payload(**changes), private, algorithm=algorithm)


def refused(text: str, auth_type: str = "jwt", key: str | None = None) -> int:
    with pytest.raises(MatcherError) as caught:
        check_token(auth_type, text, ALICE_ADDRESS, pem(SIGNER) if key is None else key, CHAIN_ID)
    return caught.value.code


@pytest.mark.parametrize(
    ("private", "algorithm"),
    [
        (SIGNER, "ES256"),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
        (rsa.generate_private_key(65_537, 2_048), "RS256"),
    ],
)
def test_a_good_token_says_when_it_ends(private: Any, algorithm: str) -> None:
    ends = int(time.time()) + 100
    text = token(private, algorithm, exp=ends)
    assert check_token("jwt", text, ALICE_ADDRESS, pem(private), CHAIN_ID) == ends * 1_000


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"a": text_address(BOB)}, 106957828),
        ({"a": None}, 110127617),
        ({"a": 1}, 110127617),
        ({"a": "3M"}, 110127617),
        ({"nb": "W"}, 110106116),
        ({"nb": ""}, 110127617),
        ({"nb": None}, 110127617),
        ({"exp": None}, 110127617),
        ({"exp": 10**12}, 110127617),
    ],
)
def test_payloads_that_are_wrong(changes: dict[str, Any], code: int) -> None:
    assert refused(token(**changes)) == code


@pytest.mark.parametrize(
    "claim",
    [
        {"iat": int(time.time()) + 3_600},
        *({"iat": "x"}, {"sub": 5}, {"jti": 7}, {"aud": ["x"]}, {"iss": "somebody"}),
    ],
)
def test_claims_that_are_no_concern(claim: dict[str, Any]) -> None:
    """The clock of the service that issues tokens may be ahead, for example."""
    assert check_token("jwt", token(**claim), ALICE_ADDRESS, pem(SIGNER), CHAIN_ID)


def test_too_late_and_too_early() -> None:
    assert refused(token(exp=int(time.time()) - 11)) == 110105088
    assert refused(token(nbf=int(time.time()) + 60)) == 110100480


def test_ten_seconds_of_leeway() -> None:
    text = token(exp=int(time.time()) - 5)
    assert check_token("jwt", text, ALICE_ADDRESS, pem(SIGNER), CHAIN_ID)


def test_tokens_that_are_none() -> None:
    good = token()
    assert refused(good, auth_type="password") == 106960131
    for text in ("", "a.b", "a.b.c.d", "x" * 9_000):
        assert refused(text) == 110100481
    assert refused("a.b.c") == 110100480
    assert refused(good[:-4] + "AAAA") == 110100480
    other = ec.generate_private_key(ec.SECP256R1())
    assert refused(token(other)) == 110100480
    assert refused(good, key="") == 110100480


def test_a_public_key_is_no_shared_secret() -> None:
    """Signed with HMAC over the public key, or with no algorithm at all."""
    header = jwt.encode(payload(), "x" * 32, algorithm="HS256")
    assert refused(header) == 110100480
    assert refused(jwt.encode(payload(), "", algorithm="none")) == 110100480
