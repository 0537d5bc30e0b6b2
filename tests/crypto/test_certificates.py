"""Chains of certificates: each rule of the path algorithm, kept and broken.

The outcomes are those of OpenJDK 17 with Amazon Corretto, which the reference has. What does not
live here: the recorded chains (``tests/ride/test_version_9.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from soliton.crypto import certificate_signatures, certificates
from soliton.crypto.errors import CryptoError

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp()) * 1_000
DAY = timedelta(days=1)
UNKNOWN = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.99"), b"\5\0")
KEYS: list[ec.EllipticCurvePrivateKey] = [
    ec.derive_private_key(number, ec.SECP256R1()) for number in range(2, 6)
]
Extensions = dict[type[x509.ExtensionType], tuple[x509.ExtensionType, bool]]


def usage(*names: str) -> tuple[x509.KeyUsage, bool]:
    all_names = (
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
        *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    )
    return x509.KeyUsage(**{name: name in names for name in all_names}), True


def named(text: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "US"),
            x509.NameAttribute(NameOID.COMMON_NAME, text),
        ]
    )


class Part(msgspec.Struct):
    """What a certificate says, from the anchor (0) down, and the list of its issuer."""

    number: int
    extensions: Extensions
    key: ec.EllipticCurvePrivateKey
    subject: x509.Name
    issuer: x509.Name
    begins: datetime = NOW - 100 * DAY
    ends: datetime = NOW + 100 * DAY
    signer: ec.EllipticCurvePrivateKey | None = None
    digest: hashes.SHA256 | hashes.SHA384 = hashes.SHA256()
    list_begins: datetime = NOW - DAY
    list_ends: datetime = NOW + DAY
    revoked_since: datetime | None = None
    list_extensions: tuple[x509.ExtensionType, ...] = ()
    list_signer: ec.EllipticCurvePrivateKey | None = None


def parts(length: int = 3) -> list[Part]:
    """A chain that is valid: an anchor, intermediate authorities, an end entity."""
    found = []
    for number in range(length):
        extensions: Extensions = {}
        if number < length - 1:
            extensions[x509.BasicConstraints] = x509.BasicConstraints(True, None), True
            extensions[x509.KeyUsage] = usage("key_cert_sign", "crl_sign")
        issuer = named(f"Node {max(number - 1, 0)}")
        found.append(Part(number, extensions, KEYS[number], named(f"Node {number}"), issuer))
    return found


def built(chain: list[Part]) -> tuple[list[bytes], list[bytes]]:
    """The certificates, the end entity first, and the lists."""
    found, lists = [], []
    for part in chain:
        issuer = part.signer or chain[max(part.number - 1, 0)].key
        builder = (
            x509.CertificateBuilder()
            .subject_name(part.subject)
            .issuer_name(part.issuer)
            .public_key(part.key.public_key())
            .serial_number(1_000 + part.number)
            .not_valid_before(part.begins)
            .not_valid_after(part.ends)
        )
        for value, critical in part.extensions.values():
            builder = builder.add_extension(value, critical)
        found.append(builder.sign(issuer, part.digest).public_bytes(Encoding.DER))
        if part.number:
            lists.append(_list_of(part, part.list_signer or issuer))
    return found[::-1], lists


def _list_of(part: Part, signer: ec.EllipticCurvePrivateKey) -> bytes:
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(part.issuer)
        .last_update(part.list_begins)
        .next_update(part.list_ends)
    )
    if part.revoked_since is not None:
        entry = x509.RevokedCertificateBuilder().serial_number(1_000 + part.number)
        builder = builder.add_revoked_certificate(entry.revocation_date(part.revoked_since).build())
    for value in part.list_extensions:
        builder = builder.add_extension(value, True)
    return builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.DER)


def test_the_key_of_the_end_entity() -> None:
    found, lists = built(parts())
    numbers = KEYS[2].public_key().public_numbers()
    assert isinstance(numbers, ec.EllipticCurvePublicNumbers)
    expected = numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")
    assert certificates.validate_chain(found, lists, NOW_MS) == expected
    assert certificates.validate_chain(found, lists[::-1], NOW_MS) == expected
    assert certificates.validate_chain([found[0] + b"more", *found[1:]], lists, NOW_MS) == expected
    armored = x509.load_der_x509_certificate(found[0]).public_bytes(Encoding.PEM)
    assert certificates.validate_chain([armored, *found[1:]], lists, NOW_MS) == expected
    # Alone it is trusted, even out of its time.
    assert certificates.validate_chain(found[:1], [], 0) == expected


def change(number: int, **fields: object) -> Callable[[list[Part]], None]:
    """Replace fields of a certificate's."""

    def apply(chain: list[Part]) -> None:
        for name, value in fields.items():
            setattr(chain[number], name, value)

    return apply


def extend(number: int, value: x509.ExtensionType, critical: bool = True) -> Callable[..., None]:
    """Add an extension to a certificate, or replace it."""

    def apply(chain: list[Part]) -> None:
        chain[number].extensions[type(value)] = value, critical

    return apply


def without(number: int, kind: type[x509.ExtensionType]) -> Callable[[list[Part]], None]:
    """Take an extension from a certificate."""

    def apply(chain: list[Part]) -> None:
        del chain[number].extensions[kind]

    return apply


def several(*changes: Callable[[list[Part]], None]) -> Callable[[list[Part]], None]:
    """Apply one change after another."""

    def apply(chain: list[Part]) -> None:
        for each in changes:
            each(chain)

    return apply


SECOND = timedelta(seconds=1)
SKEW = timedelta(minutes=15)
US = x509.DirectoryName(x509.Name([x509.NameAttribute(NameOID.COUNTRY_NAME, "us")]))
OTHERS = x509.DirectoryName(x509.Name([x509.NameAttribute(NameOID.COUNTRY_NAME, "DE")]))
SCOPE = {
    "full_name": None,
    "relative_name": None,
    "only_contains_user_certs": False,
    "only_contains_ca_certs": False,
    "only_some_reasons": None,
    "indirect_crl": False,
    "only_contains_attribute_certs": False,
}
POINT = x509.UniformResourceIdentifier("http://lists/1")
OTHER_POINT = x509.UniformResourceIdentifier("http://lists/2")


def scope(**fields: object) -> x509.IssuingDistributionPoint:
    return x509.IssuingDistributionPoint(**{**SCOPE, **fields})  # type: ignore[arg-type]


def policy(number: str) -> x509.CertificatePolicies:
    return x509.CertificatePolicies([x509.PolicyInformation(x509.ObjectIdentifier(number), None)])


def points(*names: x509.GeneralName) -> x509.CRLDistributionPoints:
    return x509.CRLDistributionPoints(
        [x509.DistributionPoint([name], None, None, None) for name in names]
    )


VALID: dict[str, Callable[[list[Part]], None]] = {
    "an anchor out of its time": change(0, begins=NOW - 2 * DAY, ends=NOW - DAY),
    "an anchor that is no authority": extend(0, x509.BasicConstraints(False, None)),
    "an anchor that may not sign lists": extend(0, usage("key_cert_sign")[0]),
    "names in other letters": change(1, issuer=named("NODE  0 ")),
    "the last moment": change(2, ends=NOW),
    "the first moment": change(2, begins=NOW),
    "a list that is a little late": change(2, list_ends=NOW - SKEW),
    "a list that is a little early": change(2, list_begins=NOW + SKEW),
    "a revocation that is to come": change(2, revoked_since=NOW),
    "an authority without usage": without(1, x509.KeyUsage),
    "a limit of path length": extend(1, x509.BasicConstraints(True, 0)),
    "an unknown extension that is not critical": extend(2, UNKNOWN, False),
    "a list for end entities": change(2, list_extensions=(scope(only_contains_user_certs=True),)),
    "a list of the point": several(
        extend(2, points(OTHER_POINT, POINT), False),
        change(2, list_extensions=(scope(full_name=[POINT]),)),
    ),
    "a permitted name": extend(1, x509.NameConstraints([US], None)),
    "a policy that is kept": several(
        extend(1, policy("1.2.3")),
        extend(2, policy("1.2.3")),
        extend(1, x509.PolicyConstraints(0, None)),
    ),
    "another digest": change(2, digest=hashes.SHA384()),
}
BROKEN: dict[str, tuple[Callable[[list[Part]], None], str]] = {
    "another name": (change(1, issuer=named("Node 2")), "does not chain"),
    "another name below": (change(2, issuer=named("Node 0")), "name chaining"),
    "another signer": (change(2, signer=KEYS[3]), "signature check"),
    "an expired end entity": (change(2, ends=NOW - SECOND), "has expired"),
    "an early end entity": (change(2, begins=NOW + SECOND), "not yet valid"),
    "an expired authority": (change(1, ends=NOW - SECOND), "has expired"),
    "an authority that is none": (extend(1, x509.BasicConstraints(False, None)), "not a CA"),
    "an authority that does not say so": (without(1, x509.BasicConstraints), "not a CA"),
    "an authority that may not sign": (extend(1, usage("crl_sign")[0]), "keyCertSign"),
    "a key without use": (extend(2, usage()[0]), "incorrect KeyUsage"),
    "an unknown critical extension": (extend(2, UNKNOWN), "unrecognized critical"),
    "a list that is too late": (change(2, list_ends=NOW - SKEW - SECOND), "determine"),
    "a list that is too early": (change(2, list_begins=NOW + SKEW + SECOND), "determine"),
    "a list of somebody else": (change(2, list_signer=KEYS[3]), "determine"),
    "a revoked end entity": (change(2, revoked_since=NOW - SECOND), "revoked"),
    "a revoked authority": (change(1, revoked_since=NOW - SECOND), "revoked"),
    "an authority that may not sign lists": (extend(1, usage("key_cert_sign")[0]), "determine"),
    "a list for authorities": (
        change(2, list_extensions=(scope(only_contains_ca_certs=True),)),
        "determine",
    ),
    "a list of another point": (
        several(
            extend(2, points(POINT)), change(2, list_extensions=(scope(full_name=[OTHER_POINT]),))
        ),
        "determine",
    ),
    "a list for some reasons": (
        change(
            2,
            list_extensions=(
                scope(only_some_reasons=frozenset((x509.ReasonFlags.key_compromise,))),
            ),
        ),
        "determine",
    ),
    "a list with something unknown": (change(2, list_extensions=(UNKNOWN,)), "determine"),
    "a name that is not permitted": (extend(1, x509.NameConstraints([OTHERS], None)), "name con"),
    "an excluded name": (extend(1, x509.NameConstraints(None, [US])), "name constraints"),
    "no policy": (extend(1, x509.PolicyConstraints(0, None)), "policy tree"),
    "another policy": (
        several(
            extend(1, policy("1.2.3")),
            extend(2, policy("1.2.4")),
            extend(1, x509.PolicyConstraints(0, None)),
        ),
        "policy tree",
    ),
}


@pytest.mark.parametrize("name", VALID)
def test_valid_chains(name: str) -> None:
    chain = parts()
    VALID[name](chain)
    assert len(certificates.validate_chain(*built(chain), NOW_MS)) == 64


@pytest.mark.parametrize("name", BROKEN)
def test_broken_chains(name: str) -> None:
    chain = parts()
    apply, text = BROKEN[name]
    apply(chain)
    with pytest.raises(CryptoError, match=text):
        certificates.validate_chain(*built(chain), NOW_MS)


def test_a_path_that_is_too_long() -> None:
    chain = parts(4)
    chain[1].extensions[x509.BasicConstraints] = x509.BasicConstraints(True, 0), True
    with pytest.raises(CryptoError, match="pathLenConstraint"):
        certificates.validate_chain(*built(chain), NOW_MS)
    chain[1].extensions[x509.BasicConstraints] = x509.BasicConstraints(True, 1), True
    assert certificates.validate_chain(*built(chain), NOW_MS)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x30", b"\x30\x82\xff\xff", b"no certificate", b"-----BEGIN X-----\n", b"\x30\0"],
)
def test_what_is_no_certificate(data: bytes) -> None:
    found, lists = built(parts())
    for place in range(3):
        damaged = [*found[:place], data, *found[place + 1 :]]
        with pytest.raises(CryptoError):
            certificates.validate_chain(damaged, lists, NOW_MS)
    with pytest.raises(CryptoError):
        certificates.validate_chain(found, [data, lists[1]], NOW_MS)


def test_every_changed_byte_is_refused_or_changes_nothing() -> None:
    found, lists = built(parts())
    expected = certificates.validate_chain(found, lists, NOW_MS)
    for place in range(len(found[1])):
        damaged = bytearray(found[1])
        damaged[place] ^= 1
        try:
            result = certificates.validate_chain(
                [found[0], bytes(damaged), found[2]], lists, NOW_MS
            )
        except CryptoError:
            continue
        assert result == expected


def test_a_signature_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script can ask for the same chain a thousand times."""
    counted: list[int] = []
    verify = certificate_signatures._verify

    def counting(*arguments: Any) -> bool:
        counted.append(1)
        return verify(*arguments)

    monkeypatch.setattr(certificate_signatures, "_verify", counting)
    found, lists = built(parts())
    for moment in range(20):
        certificates.validate_chain(found, lists, NOW_MS + moment)
    # Two certificates, two lists.
    assert len(counted) == 4
