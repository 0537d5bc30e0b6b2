"""Certificate policies along a path: which are valid, and whether one has to be.

What lives here: the policy part of the path algorithm. What does not: the rest of it
(``certificates``).

Scripts accept every policy, so only whether any is valid matters, and the lowest level of the
reference's tree of policies is all of it that is needed: a node above without children below has
no effect.

Sources: RFC 5280, sections 6.1.3 (d) to (f), 6.1.4 (a), (b) and (h) to (j), 6.1.5 (a) and (b);
OpenJDK 17 ``sun/security/provider/certpath/PolicyChecker.java``.
"""

from __future__ import annotations

from typing import Final

from cryptography import x509
from cryptography.x509.oid import ExtensionOID

from soliton.crypto.certificate_parts import Certificate
from soliton.crypto.der import OBJECT_IDENTIFIER, SEQUENCE, Reader
from soliton.crypto.errors import CryptoError

_ANY: Final = "2.5.29.32.0"
_MAPPINGS: Final = ExtensionOID.POLICY_MAPPINGS.dotted_string


class Policies:
    """The valid policies after each certificate, and the counters of RFC 5280."""

    def __init__(self, length: int) -> None:
        self._expected: dict[str, set[str]] = {_ANY: {_ANY}}
        """By valid policy, what the next certificate may have for it."""
        self._explicit = self._mapping = self._any = length + 1

    def check(self, certificate: Certificate, *, is_last: bool) -> None:
        """Apply the policies of the next certificate; raise ``CryptoError`` if none is valid where
        one has to be.
        """
        self._restrict(certificate, is_last=is_last)
        if not is_last:
            self._map(certificate)
        constraints = certificate.extension(x509.PolicyConstraints)
        explicit = None if constraints is None else constraints.require_explicit_policy
        counts = not certificate.is_self_issued
        if is_last:
            self._explicit = 0 if explicit == 0 else max(self._explicit - counts, 0)
        if not self._explicit and not self._expected:
            raise CryptoError("non-null policy tree required and policy tree is null")
        if is_last:
            return
        inhibited = certificate.extension(x509.InhibitAnyPolicy)
        self._explicit = _next(self._explicit, counts, explicit)
        self._mapping = _next(
            self._mapping,
            counts,
            None if constraints is None else constraints.inhibit_policy_mapping,
        )
        self._any = _next(self._any, counts, None if inhibited is None else inhibited.skip_certs)

    def _restrict(self, certificate: Certificate, *, is_last: bool) -> None:
        policies = certificate.extension(x509.CertificatePolicies)
        if policies is None or not self._expected:
            self._expected = {}
            return
        before, after = self._expected, dict[str, set[str]]()
        wanted: set[str] = set().union(*before.values())
        for each in policies:
            policy = each.policy_identifier.dotted_string
            if policy == _ANY:
                continue
            if each.policy_qualifiers and certificate.has_critical(x509.CertificatePolicies):
                raise CryptoError("critical policy qualifiers present in certificate")
            if policy in wanted or _ANY in before:
                after[policy] = {policy}
        has_any = any(each.policy_identifier.dotted_string == _ANY for each in policies)
        if has_any and (self._any > 0 or (not is_last and certificate.is_self_issued)):
            for policy in wanted:
                after.setdefault(policy, {policy})
        self._expected = after

    def _map(self, certificate: Certificate) -> None:
        if not self._expected:
            return
        mapped = set()
        for policy, other in _mappings(certificate):
            if _ANY in (policy, other):
                raise CryptoError("encountered a domain policy of ANY_POLICY")
            if not self._mapping:
                self._expected.pop(policy, None)
            elif policy in self._expected or _ANY in self._expected:
                # What a policy is mapped to takes the place of itself.
                known = self._expected.get(policy, set()) if policy in mapped else set()
                self._expected[policy] = known | {other}
                mapped.add(policy)


def _mappings(certificate: Certificate) -> list[tuple[str, str]]:
    found = certificate.extensions.get(_MAPPINGS)
    if found is None:
        return []
    pairs = Reader(Reader(found.value.value).only(SEQUENCE)).all(SEQUENCE)
    return [(_dotted(reader), _dotted(reader)) for reader in map(Reader, pairs)]


def _dotted(reader: Reader) -> str:
    """Read an object identifier."""
    numbers, number = [], 0
    for byte in reader.next(OBJECT_IDENTIFIER):
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2) if numbers else 0
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:]) if numbers else ()))


def _next(counter: int, counts: bool, limit: int | None) -> int:
    """Return a counter for the next certificate: one less, and at most a certificate's limit."""
    below = max(counter - counts, 0)
    return below if limit is None else min(below, limit)
