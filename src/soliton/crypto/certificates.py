"""X.509 certificate chains: validation of a path with lists of revoked certificates.

What lives here: the path algorithm of RFC 5280, sections 6.1 and 6.3, as OpenJDK's PKIX validator
carries it out. What does not: parsing (``certificate_parts``), names and their constraints
(``certificate_names``), signatures (``certificate_signatures``).

The last certificate of a chain is trusted as it is. A list of revoked certificates has to cover
each other one. Like OpenJDK, this accepts lists up to fifteen minutes before and after their time,
ignores a revocation after the moment of validation, and takes a chain of one certificate unchecked.

Sources: RFC 5280; wavesplatform/Waves
``lang/jvm/src/main/scala/com/wavesplatform/crypto/P256Curve.scala``; OpenJDK 17, in
``sun/security/provider/certpath``: ``PKIXCertPathValidator.java``, ``AlgorithmChecker.java``,
``KeyChecker.java``, ``ConstraintsChecker.java``, ``PolicyChecker.java``, ``BasicChecker.java``,
``RevocationChecker.java``, ``DistributionPointFetcher.java``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cryptography import x509
from cryptography.x509.oid import ExtensionOID

from soliton.crypto.certificate_names import Comparable, Constraints, Name, comparable, names_of
from soliton.crypto.certificate_parts import (
    UNLIMITED,
    Certificate,
    RevocationList,
    read_certificate,
    read_list,
)
from soliton.crypto.certificate_policies import Policies
from soliton.crypto.certificate_signatures import check_key, coordinates, is_signed_by
from soliton.crypto.errors import CryptoError

MAX_LIST_SKEW_MS: Final = 15 * 60 * 1_000
"""How far outside of its time a list of revoked certificates is still accepted."""

_RESOLVED: Final = frozenset(
    (
        ExtensionOID.KEY_USAGE,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.NAME_CONSTRAINTS,
        ExtensionOID.CERTIFICATE_POLICIES,
        ExtensionOID.POLICY_MAPPINGS,
        ExtensionOID.POLICY_CONSTRAINTS,
        ExtensionOID.INHIBIT_ANY_POLICY,
    )
)
"""The extensions that a certificate may mark as critical."""
_ALL_REASONS: Final = frozenset(range(9))
"""The bits of a set of reasons."""
_REASON_BITS: Final = {
    x509.ReasonFlags.key_compromise: 1,
    x509.ReasonFlags.ca_compromise: 2,
    x509.ReasonFlags.affiliation_changed: 3,
    x509.ReasonFlags.superseded: 4,
    x509.ReasonFlags.cessation_of_operation: 5,
    x509.ReasonFlags.certificate_hold: 6,
    x509.ReasonFlags.privilege_withdrawn: 7,
    x509.ReasonFlags.aa_compromise: 8,
}


class _UndeterminedError(CryptoError):
    """No list tells whether a certificate is revoked."""

    def __init__(self) -> None:
        super().__init__("Could not determine revocation status")


def validate_chain(
    certificates: Sequence[bytes], lists: Sequence[bytes], timestamp_ms: int
) -> bytes:
    """Return the public key of the first certificate, both coordinates of 32 bytes.

    The last certificate is the trust anchor, the others are the path from the end entity up. Raises
    ``CryptoError`` if the path is not valid at that time, or the key is not of an elliptic curve.
    """
    *path, anchor = map(read_certificate, certificates)
    revoked = list(map(read_list, lists))
    if path:
        _Path(anchor, len(path), revoked, timestamp_ms).check(path[::-1])
    return coordinates((path[0] if path else anchor).key_bytes)


class _Path:
    """The state of a validation, which goes from the trust anchor down to the end entity."""

    def __init__(
        self, anchor: Certificate, length: int, lists: list[RevocationList], moment_ms: int
    ) -> None:
        self._moment_ms = moment_ms
        self._lists = [each for each in lists if _is_of_time(each, moment_ms)]
        self._below = length
        self._max_path_length = length
        self._constraints: list[Constraints] = []
        self._policies = Policies(length)
        self._chain = [anchor]
        """The anchor and the certificates below it, to the one that is checked."""

    def check(self, path: list[Certificate]) -> None:
        """Raise ``CryptoError`` unless the anchor vouches for the path."""
        first = path[0]
        (anchor,) = self._chain
        if first.issuer != anchor.subject or not _is_identified(
            anchor, first.extension(x509.AuthorityKeyIdentifier)
        ):
            raise CryptoError("Path does not chain with any of the trust anchors")
        check_key(anchor.key_bytes)
        for certificate in path:
            self._chain.append(certificate)
            self._check(certificate, issuer=self._chain[-2])

    def _check(self, certificate: Certificate, issuer: Certificate) -> None:
        self._below -= 1
        check_key(certificate.key_bytes)
        if not certificate.has_use:
            raise CryptoError("incorrect KeyUsage extension bits")
        if self._below:
            self._check_authority(certificate)
        self._check_names(certificate)
        self._policies.check(certificate, is_last=not self._below)
        if self._moment_ms < certificate.not_before_ms:
            raise CryptoError("validity check failed: the certificate is not yet valid")
        if self._moment_ms > certificate.not_after_ms:
            raise CryptoError("validity check failed: the certificate has expired")
        if not certificate.issuer or certificate.issuer != issuer.subject:
            raise CryptoError("subject/issuer name chaining check failed")
        if not is_signed_by(certificate.parsed, issuer.key_bytes):
            raise CryptoError("signature check failed")
        self._check_revocation(len(self._chain) - 1)
        if any(
            each.critical and each.oid not in _RESOLVED for each in certificate.extensions.values()
        ):
            raise CryptoError("unrecognized critical extension(s)")

    def _check_authority(self, certificate: Certificate) -> None:
        usage = certificate.extension(x509.KeyUsage)
        if usage is not None and not usage.key_cert_sign:
            raise CryptoError("CA key usage check failed: keyCertSign bit is not set")
        allowed = certificate.path_length
        if certificate.is_old:
            is_top = len(self._chain) == 2 and certificate.is_self_issued
            allowed = UNLIMITED if is_top else None
        if allowed is None:
            raise CryptoError("basic constraints check failed: this is not a CA certificate")
        if not certificate.is_self_issued:
            if self._max_path_length <= 0:
                raise CryptoError("basic constraints check failed: pathLenConstraint violated")
            self._max_path_length -= 1
        self._max_path_length = min(self._max_path_length, allowed)

    def _check_names(self, certificate: Certificate) -> None:
        if self._constraints and not (self._below and certificate.is_self_issued):
            alternatives = certificate.extension(x509.SubjectAlternativeName)
            names = names_of(certificate.parsed, alternatives)
            if not all(each.allow(names) for each in self._constraints):
                raise CryptoError("name constraints check failed")
        own = certificate.extension(x509.NameConstraints)
        if own is not None:
            self._constraints.append(
                Constraints(tuple(own.permitted_subtrees or ()), tuple(own.excluded_subtrees or ()))
            )

    def _check_revocation(self, number: int, stacked: set[int] | None = None) -> None:
        """Raise ``CryptoError`` if a certificate of the chain, counted from the anchor, is revoked,
        or no list tells whether it is. ``stacked`` has those on which this question depends.
        """
        certificate, issuer = self._chain[number], self._chain[number - 1]
        if stacked is not None and number in stacked:
            raise _UndeterminedError
        # An anchor may sign lists whatever its certificate has, another issuer only if it has so.
        usage = issuer.extension(x509.KeyUsage)
        may_sign = number == 1 or (usage is not None and usage.crl_sign)
        try:
            return self._check_lists(certificate, number, issuer.key_bytes if may_sign else None)
        except _UndeterminedError:
            # Another path to the issuer may be the right one, or the issuer may have another key.
            refuted = {issuer.key_bytes} if may_sign else set[bytes]()
        stacked = set() if stacked is None else stacked
        for other in self._signers_of_lists(certificate.issuer, number):
            key = self._chain[other].key_bytes
            if key in refuted:
                continue
            refuted.add(key)
            stacked.add(number)
            try:
                for above in range(1, other + 1):
                    self._check_revocation(above, stacked)
            except CryptoError:
                continue
            try:
                return self._check_lists(certificate, number, key)
            except _UndeterminedError:
                continue
        raise _UndeterminedError

    def _signers_of_lists(self, name: Name, below: int) -> Iterator[int]:
        """Yield the numbers of the certificates above one that have a name, may sign lists, and can
        be reached from the anchor: not from one out of its time, which the chain itself allows.
        """
        anchor = self._chain[0]
        is_valid = anchor.not_before_ms <= self._moment_ms <= anchor.not_after_ms
        for number, each in enumerate(self._chain[:below]):
            if each.subject == name and each.may_sign_lists and (is_valid or not number):
                yield number

    def _check_lists(self, certificate: Certificate, number: int, key: bytes | None) -> None:
        """Raise ``CryptoError`` if a list revokes a certificate, and ``_UndeterminedError`` if the
        lists of an issuer with this key, which may be unable to sign any, do not cover it.
        """
        approved: list[RevocationList] = []
        reasons: frozenset[int] = frozenset()
        for point in certificate.extension(x509.CRLDistributionPoints) or (None,):
            for each in self._lists:
                covered = self._covered(certificate, point, each)
                if covered - reasons and self._approves(number, key, point, each):
                    approved.append(each)
                    reasons |= covered
            if reasons == _ALL_REASONS:
                break
        else:
            raise _UndeterminedError
        for each in approved:
            entry = each.entries.get((certificate.issuer, certificate.serial))
            if entry is None:
                continue
            if entry.unknown:
                raise CryptoError("Unrecognized critical extension(s) in revoked CRL entry")
            if entry.since_ms < self._moment_ms:
                raise CryptoError("Certificate has been revoked")

    def _covered(
        self, certificate: Certificate, point: x509.DistributionPoint | None, of: RevocationList
    ) -> frozenset[int]:
        """Return the reasons that a list covers at a distribution point of a certificate."""
        scope = of.extension(x509.IssuingDistributionPoint)
        found = _ALL_REASONS
        if point is not None and point.reasons is not None:
            found &= _bits(point.reasons)
        if scope is None:
            return found
        if scope.only_some_reasons is not None:
            found &= _bits(scope.only_some_reasons)
        is_authority = certificate.path_length is not None
        if (
            (scope.only_contains_user_certs and is_authority)
            or (scope.only_contains_ca_certs and not is_authority)
            or scope.only_contains_attribute_certs
            or not _is_same_point(certificate, point, of, scope)
        ):
            return frozenset()
        return found

    def _approves(
        self,
        number: int,
        key: bytes | None,
        point: x509.DistributionPoint | None,
        of: RevocationList,
    ) -> bool:
        """Whether a list is an issuer's that has this key, or the certificate's own, and has no
        unknown critical extension.
        """
        certificate = self._chain[number]
        own, theirs = _authority_key(certificate), _authority_key(of)
        if point is not None and point.crl_issuer is not None:
            scope = of.extension(x509.IssuingDistributionPoint)
            if scope is None or not scope.indirect_crl or not _is_named(of, point.crl_issuer):
                return False
            is_indirect = True
        elif of.issuer != certificate.issuer:
            return False
        else:
            is_indirect = own is not None and theirs is not None and own != theirs
        if (is_indirect or own is None or theirs is None) and _issues(certificate, of):
            # Only an issuer that may sign lists may have its own list as well.
            key = key and certificate.key_bytes
        elif is_indirect:
            key = self._key_of_other_issuer(number, of)
        return (
            key is not None
            and is_signed_by(of.parsed, key)
            and all(
                not each.critical or each.oid == ExtensionOID.ISSUING_DISTRIBUTION_POINT
                for each in of.extensions.values()
            )
        )

    def _key_of_other_issuer(self, below: int, of: RevocationList) -> bytes:
        """Return the key of a list's issuer that is not the certificate's, but above it in the
        chain; raise ``_UndeterminedError`` if it is not there.
        """
        wanted = of.extension(x509.AuthorityKeyIdentifier)
        for each in map(self._chain.__getitem__, self._signers_of_lists(of.issuer, below)):
            if wanted is None:
                return each.key_bytes
            identifier = each.extension(x509.SubjectKeyIdentifier)
            digest = None if identifier is None else identifier.digest
            if wanted.key_identifier in (None, digest) and (
                wanted.authority_cert_serial_number in (None, each.serial)
            ):
                return each.key_bytes
        raise _UndeterminedError


def _is_of_time(of: RevocationList, moment_ms: int) -> bool:
    return of.next_update_ms is not None and (
        of.this_update_ms - MAX_LIST_SKEW_MS <= moment_ms <= of.next_update_ms + MAX_LIST_SKEW_MS
    )


def _is_identified(certificate: Certificate, by: x509.AuthorityKeyIdentifier | None) -> bool:
    """Whether a certificate has the key identifier and serial number that another one names for
    its issuer.
    """
    if by is None:
        return True
    own = certificate.extension(x509.SubjectKeyIdentifier)
    if by.key_identifier is not None and own is not None and own.digest != by.key_identifier:
        return False
    number = by.authority_cert_serial_number
    return number is None or certificate.is_old or number == certificate.serial


def _authority_key(of: Certificate | RevocationList) -> bytes | None:
    found = of.extension(x509.AuthorityKeyIdentifier)
    return None if found is None else found.key_identifier


def _issues(certificate: Certificate, of: RevocationList) -> bool:
    """Whether a list that covers a certificate is issued by that certificate."""
    identifier = of.extension(x509.AuthorityKeyIdentifier)
    if (
        certificate.subject != of.issuer
        or not _is_identified(certificate, identifier)
        or not certificate.may_sign_lists
    ):
        return False
    if identifier is None or certificate.extension(x509.AuthorityKeyIdentifier) is None:
        return is_signed_by(of.parsed, certificate.key_bytes)
    return True


def _bits(reasons: frozenset[x509.ReasonFlags]) -> frozenset[int]:
    return frozenset(_REASON_BITS[each] for each in reasons)


def _is_same_point(
    certificate: Certificate,
    point: x509.DistributionPoint | None,
    of: RevocationList,
    scope: x509.IssuingDistributionPoint,
) -> bool:
    """Whether the names of the distribution point in a list, if it has one, and in a certificate
    have one in common.
    """
    if scope.full_name is None and scope.relative_name is None:
        return True
    here = _names_of_point(scope, of.parsed.issuer)
    if point is None:
        there = {comparable(x509.DirectoryName(certificate.parsed.issuer))}
    elif point.full_name is not None or point.relative_name is not None:
        there = _names_of_point(point, certificate.parsed.issuer)
    else:
        there = set(map(comparable, point.crl_issuer or ()))
    return not here.isdisjoint(there)


def _names_of_point(
    point: x509.DistributionPoint | x509.IssuingDistributionPoint, issuer: x509.Name
) -> set[Comparable]:
    names = point.full_name
    if names is None:
        assert point.relative_name is not None, "a point has one of both"
        names = [x509.DirectoryName(x509.Name([*issuer.rdns, point.relative_name]))]
    return set(map(comparable, names))


def _is_named(of: RevocationList, names: Iterable[x509.GeneralName]) -> bool:
    return comparable(x509.DirectoryName(of.parsed.issuer)) in set(map(comparable, names))
