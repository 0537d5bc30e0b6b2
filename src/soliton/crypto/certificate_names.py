"""Names in certificates: their canonical form, and the constraints that authorities put on them.

What lives here: comparison of distinguished names, and name constraints. What does not: the path
algorithm (``certificates``).

Names are compared as OpenJDK does it: letters in either case and runs of spaces are equal in the
usual attributes and string types, everything else byte by byte.

Sources: RFC 5280, sections 4.2.1.10 and 7.1; RFC 2253; OpenJDK 17 ``sun/security/x509/{AVA,RDN,
X500Name,DNSName,RFC822Name,URIName,IPAddressName,NameConstraintsExtension}.java``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network
from typing import Final

import msgspec
from cryptography import x509

from soliton.crypto.der import (
    OBJECT_IDENTIFIER,
    PRINTABLE_STRING,
    SEQUENCE,
    SET,
    UTF8_STRING,
    Reader,
)

_FOLDED_TYPES: Final = frozenset(
    bytes.fromhex(number)
    for number in (
        *("550403", "550406", "550407", "550408", "55040a", "55040b", "550409"),
        *("0992268993f22c640119", "0992268993f22c640101"),
    )
)
"""CN, C, L, ST, O, OU, STREET, DC, UID: the attributes that RFC 2253 has words for."""
_NETWORKS: Final = (IPv4Network, IPv6Network)

Attribute = tuple[bytes, str | bytes]
Name = tuple[tuple[Attribute, ...], ...]
"""The relative names of a distinguished name, each a sorted tuple of types and values."""


def canonical_name(data: bytes) -> Name:
    """Return a name in DER so that equal names are equal; raise ``CryptoError`` if malformed."""
    relative = Reader(Reader(data).only(SEQUENCE)).all(SET)
    return tuple(
        tuple(sorted(map(_attribute, Reader(parts).all(SEQUENCE)), key=repr)) for parts in relative
    )


def _attribute(data: bytes) -> Attribute:
    reader = Reader(data)
    kind = reader.next(OBJECT_IDENTIFIER)
    encoded = reader.rest
    tag = encoded[0] if encoded else 0
    content = reader.only(tag)
    if kind in _FOLDED_TYPES and tag in (UTF8_STRING, PRINTABLE_STRING):
        words = content.decode("utf-8", "replace").split(" ")
        text = " ".join(word for word in words if word)
        return kind, unicodedata.normalize("NFKD", text.upper().lower())
    return kind, encoded


Comparable = tuple[type, object]


def comparable(name: x509.GeneralName) -> Comparable:
    """Return a name of any form so that equal names are equal."""
    match name:
        case x509.DirectoryName():
            return x509.DirectoryName, canonical_name(name.value.public_bytes())
        case x509.DNSName() | x509.UniformResourceIdentifier() | x509.RFC822Name():
            return type(name), name.value.lower()
    return type(name), name


class Constraints(msgspec.Struct, frozen=True):
    """The constraints of one authority: of names that are permitted, and of those that are not."""

    permitted: tuple[x509.GeneralName, ...]
    excluded: tuple[x509.GeneralName, ...]

    def allow(self, names: Iterable[x509.GeneralName]) -> bool:
        """Whether all names are permitted, and none is excluded."""
        return all(map(self._allows, names))

    def _allows(self, name: x509.GeneralName) -> bool:
        if any(_is_within(name, base) for base in self.excluded):
            return False
        same = [base for base in self.permitted if type(base) is type(name)]
        return not same or any(_is_within(name, base) for base in same)


def names_of(
    certificate: x509.Certificate, alternatives: x509.SubjectAlternativeName | None
) -> list[x509.GeneralName]:
    """Return the names that constraints apply to: the subject, if it has one, and alternative names
    or, without them, mail addresses in the subject.
    """
    subject = certificate.subject
    found: list[x509.GeneralName] = [x509.DirectoryName(subject)] if list(subject) else []
    if alternatives is not None:
        return found + list(alternatives)
    addresses = subject.get_attributes_for_oid(x509.NameOID.EMAIL_ADDRESS)
    return found + [x509.RFC822Name(str(each.value)) for each in addresses]


def _is_within(name: x509.GeneralName, base: x509.GeneralName) -> bool:
    """Whether a name is in the subtree below a base of the same form."""
    match name, base:
        case x509.DirectoryName(), x509.DirectoryName():
            whole = canonical_name(name.value.public_bytes())
            top = canonical_name(base.value.public_bytes())
            return whole[: len(top)] == top
        case x509.DNSName(), x509.DNSName():
            return _is_domain_within(name.value.lower(), base.value.lower())
        case x509.RFC822Name(), x509.RFC822Name():
            return _is_address_within(name.value.lower(), base.value.lower())
        case x509.UniformResourceIdentifier(), x509.UniformResourceIdentifier():
            return _is_host_within(_host(name.value), base.value.lower())
        case x509.IPAddress(value=address), x509.IPAddress(value=network):
            return isinstance(network, _NETWORKS) and (
                not isinstance(address, _NETWORKS) and address in network
            )
    return name == base


def _is_domain_within(domain: str, base: str) -> bool:
    if domain == base:
        return True
    before = domain[-len(base) - 1 : -len(base)]
    return domain.endswith(base) and (before == ".") != base.startswith(".")


def _is_address_within(address: str, base: str) -> bool:
    if address == base:
        return True
    if "@" in base or not address.endswith(base):
        return False
    return base.startswith(".") or address[: -len(base)].endswith("@")


def _host(uri: str) -> str:
    authority = uri.partition("//")[2]
    for end in "/?#":
        authority = authority.partition(end)[0]
    return authority.rpartition("@")[2].partition(":")[0].lower()


def _is_host_within(host: str, base: str) -> bool:
    return host == base or (base.startswith(".") and _is_domain_within(host, base))
