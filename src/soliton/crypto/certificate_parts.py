"""Certificates and lists of revoked certificates, parsed.

What lives here: the records that the path algorithm reads, from DER or PEM, and their caches. What
does not: the path algorithm (``certificates``), names (``certificate_names``).

Sources: RFC 5280; OpenJDK 17 ``sun/security/provider/X509Factory.java``, which reads the first DER
element or PEM block and ignores what follows.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeVar

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import CRLEntryExtensionOID

from soliton.caching import cached_by_weight
from soliton.crypto.certificate_names import Name, canonical_name
from soliton.crypto.der import INTEGER, SEQUENCE, Reader, first_element
from soliton.crypto.errors import CryptoError

MAX_CACHED_BYTES: Final = 16 * 1024**2
"""The size of each cache, of parsed certificates and of parsed lists."""
PARSED_FACTOR: Final = 32
"""The largest size of a parsed certificate or list in memory, per byte of it."""
PARSED_OVERHEAD: Final = 4_096
UNLIMITED: Final = 2**31 - 1

_BEGIN: Final = b"-----BEGIN "
_END: Final = b"-----END "
_DASHES: Final = b"-----"
_VERSION: Final = b"\xa0"
"""The tag of a certificate's version, which the oldest ones do not have."""
_NO_PARAMETERS: Final = b"\5\0"
_RESOLVED_OF_ENTRIES: Final = frozenset(
    (CRLEntryExtensionOID.CRL_REASON, CRLEntryExtensionOID.CERTIFICATE_ISSUER)
)

_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


class Certificate(msgspec.Struct, frozen=True):
    """A parsed certificate with what the path algorithm reads often."""

    parsed: x509.Certificate
    subject: Name
    issuer: Name
    serial: int
    not_before_ms: int
    not_after_ms: int
    key_bytes: bytes
    """The public key, which may be none of its curve."""
    extensions: dict[str, x509.Extension[Any]]

    def extension(self, kind: type[_Extension]) -> _Extension | None:
        """Return the value of an extension, or ``None``."""
        found = self.extensions.get(kind.oid.dotted_string)
        return None if found is None else found.value

    def has_critical(self, kind: type[x509.ExtensionType]) -> bool:
        """Whether the certificate marks an extension as critical."""
        found = self.extensions.get(kind.oid.dotted_string)
        return found is not None and found.critical

    @property
    def is_self_issued(self) -> bool:
        """Whether subject and issuer have the same name."""
        return self.subject == self.issuer

    @property
    def is_old(self) -> bool:
        """Whether the certificate is of the version that has no extensions."""
        return self.parsed.version is x509.Version.v1

    @property
    def may_sign_lists(self) -> bool:
        """Whether nothing forbids the key to sign lists of revoked certificates."""
        usage = self.extension(x509.KeyUsage)
        return usage is None or usage.crl_sign

    @property
    def has_use(self) -> bool:
        """Whether the key may be used for anything."""
        usage = self.extension(x509.KeyUsage)
        return usage is None or any(
            (
                usage.digital_signature,
                usage.content_commitment,
                usage.key_encipherment,
                usage.data_encipherment,
                usage.key_agreement,
                usage.key_cert_sign,
                usage.crl_sign,
            )
        )

    @property
    def path_length(self) -> int | None:
        """How many further authorities may follow, or ``None`` if this is no authority's."""
        basic = self.extension(x509.BasicConstraints)
        if basic is None or not basic.ca:
            return None
        return UNLIMITED if basic.path_length is None else basic.path_length


class Entry(msgspec.Struct, frozen=True):
    """A revocation: when, and which of its critical extensions nobody knows."""

    since_ms: int
    unknown: frozenset[str]


class RevocationList(msgspec.Struct, frozen=True):
    """A parsed list of revoked certificates, by issuer and serial number."""

    parsed: x509.CertificateRevocationList
    issuer: Name
    this_update_ms: int
    next_update_ms: int | None
    entries: dict[tuple[Name, int], Entry]
    extensions: dict[str, x509.Extension[Any]]

    def extension(self, kind: type[_Extension]) -> _Extension | None:
        """Return the value of an extension, or ``None``."""
        found = self.extensions.get(kind.oid.dotted_string)
        return None if found is None else found.value


def _block(data: bytes) -> bytes:
    """Return the first DER element, or the content of the first PEM block; what follows is
    ignored.
    """
    if not data:
        raise CryptoError("Empty input")
    if data[0] == SEQUENCE:
        return first_element(data)
    lines = [line.rstrip() for line in data.replace(b"\r", b"\n").split(b"\n")]
    start = next((place for place, line in enumerate(lines) if line.startswith(_DASHES)), None)
    if start is None:
        raise CryptoError("Empty input")
    end = next(
        (place for place in range(start + 1, len(lines)) if lines[place].startswith(b"-")), start
    )
    header, footer = lines[start], lines[end]
    if (
        not header.startswith(_BEGIN)
        or not header.endswith(_DASHES)
        or (footer != _END + header.removeprefix(_BEGIN))
    ):
        raise CryptoError("Illegal header or footer of PEM")
    digits = b"".join(b"".join(lines[start + 1 : end]).split())
    try:
        return base64.b64decode(digits + b"=" * (-len(digits) % 4), validate=True)
    except binascii.Error as error:
        raise CryptoError(f"Invalid PEM: {error}") from None


def _weight(data: bytes) -> int:
    return PARSED_OVERHEAD + PARSED_FACTOR * len(data)


def read_certificate(data: bytes) -> Certificate:
    """Parse a certificate; raise ``CryptoError`` if it is malformed."""
    return _parse_certificate(_block(data))


def read_list(data: bytes) -> RevocationList:
    """Parse a list of revoked certificates; raise ``CryptoError`` if it is malformed."""
    return _parse_list(_block(data))


@cached_by_weight(MAX_CACHED_BYTES, _weight)
def _parse_certificate(data: bytes) -> Certificate:
    try:
        parsed = x509.load_der_x509_certificate(data)
        key_bytes = _checked_key_bytes(data)
        return Certificate(
            parsed,
            canonical_name(parsed.subject.public_bytes()),
            canonical_name(parsed.issuer.public_bytes()),
            parsed.serial_number,
            _milliseconds(parsed.not_valid_before_utc),
            _milliseconds(parsed.not_valid_after_utc),
            key_bytes,
            _by_number(parsed.extensions),
        )
    except _PARSE_ERRORS as error:
        raise CryptoError(f"Could not parse certificate: {error}") from None


@cached_by_weight(MAX_CACHED_BYTES, _weight)
def _parse_list(data: bytes) -> RevocationList:
    try:
        parsed = x509.load_der_x509_crl(data)
        _check_algorithm(*_opened(data))
        issuer = canonical_name(parsed.issuer.public_bytes())
        until = parsed.next_update_utc
        return RevocationList(
            parsed,
            issuer,
            _milliseconds(parsed.last_update_utc),
            None if until is None else _milliseconds(until),
            _entries(parsed, issuer),
            _by_number(parsed.extensions),
        )
    except _PARSE_ERRORS as error:
        raise CryptoError(f"Could not parse CRL: {error}") from None


def _checked_key_bytes(data: bytes) -> bytes:
    """Return the public key of a certificate in DER, which need not be a valid one."""
    whole, content = _opened(data)
    if content.rest[:1] == _VERSION:
        content.next(_VERSION[0])
    _check_algorithm(whole, content)
    for _ in ("issuer", "validity", "subject"):
        content.next(SEQUENCE)
    return first_element(content.rest)


def _opened(data: bytes) -> tuple[Reader, Reader]:
    """Return readers of what follows the signed content, and of the content."""
    whole = Reader(Reader(data).only(SEQUENCE))
    return whole, Reader(whole.next(SEQUENCE))


def _check_algorithm(whole: Reader, content: Reader) -> None:
    """Raise ``CryptoError`` unless the signed content, after a number, names the algorithm of the
    signature.
    """
    if content.rest[:1] == bytes((INTEGER,)):
        content.next(INTEGER)
    algorithms = (reader.next(SEQUENCE).removesuffix(_NO_PARAMETERS) for reader in (whole, content))
    if len(set(algorithms)) > 1:
        raise CryptoError("Signature algorithm mismatch")


_PARSE_ERRORS: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)


def _entries(parsed: x509.CertificateRevocationList, issuer: Name) -> dict[tuple[Name, int], Entry]:
    found: dict[tuple[Name, int], Entry] = {}
    current = issuer
    for revoked in parsed:
        extensions = _by_number(revoked.extensions)
        named = extensions.get(CRLEntryExtensionOID.CERTIFICATE_ISSUER.dotted_string)
        if named is not None:
            names = named.value.get_values_for_type(x509.DirectoryName)
            if names:
                current = canonical_name(names[0].public_bytes())
        found[current, revoked.serial_number] = Entry(
            _milliseconds(revoked.revocation_date_utc),
            frozenset(
                number
                for number, each in extensions.items()
                if each.critical and each.oid not in _RESOLVED_OF_ENTRIES
            ),
        )
    return found


def _by_number(extensions: Iterable[x509.Extension[Any]]) -> dict[str, x509.Extension[Any]]:
    return {each.oid.dotted_string: each for each in extensions}


class _Moment(Protocol):
    def timestamp(self) -> float: ...


def _milliseconds(moment: _Moment) -> int:
    return int(moment.timestamp()) * 1_000
