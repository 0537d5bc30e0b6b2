"""Hashes, signatures, proofs and Merkle trees, with their limits of size.

What lives here: the library functions. What does not: the algorithms (``soliton.crypto``).

Sources: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/
impl/CryptoContext.scala`` and ``lang/jvm/src/main/scala/com/wavesplatform/lang/Global.scala``;
recovery of keys: web3j ``org.web3j.crypto.Sign``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from soliton.crypto import (
    base58,
    curve25519,
    groth16,
    rsa,
    scrypto_merkle,
    secp256k1,
)
from soliton.crypto.errors import CryptoError
from soliton.crypto.hashes import HASH_BYTES, blake2b256, keccak256, sha256
from soliton.ride.environment import CallContext
from soliton.ride.errors import EvaluationError, NativeCrash, ThrownError
from soliton.ride.functions.calling import mismatch
from soliton.ride.values import CaseObject, RideList, Value

KILOBYTE: Final = 1024
MAX_MESSAGE_KILOBYTES_V3: Final = 32
MAX_MERKLE_PROOFS: Final = 16
MAX_GROTH16_INPUTS: Final = 16
RECOVERABLE_SIGNATURE_LENGTH: Final = 65
MAX_CERTIFICATES: Final = 5

_DIGESTS: Final = {
    "NoAlg": rsa.NO_DIGEST,
    "Md5": "md5",
    "Sha1": "sha1",
    "Sha224": "sha224",
    "Sha256": "sha256",
    "Sha384": "sha384",
    "Sha512": "sha512",
    "Sha3224": "sha3_224",
    "Sha3256": "sha3_256",
    "Sha3384": "sha3_384",
    "Sha3512": "sha3_512",
}
_FIRST_HEADER: Final = 27
_HEADERS: Final = 4
_SIGNED_BYTE: Final = 128
_MIN_INT32: Final = -(2**31)
_MAX_INT32: Final = 2**31 - 1

Hash = Callable[[bytes], bytes]
HASHES: Final[dict[str, Hash]] = {
    "keccak256": keccak256,
    "blake2b256": blake2b256,
    "sha256": sha256,
}
"""By the prefixes of function names."""


def limited_hash(algorithm: Hash, kilobytes: int, message: bytes) -> Value:
    """A hash function with a limit on the message."""
    _check_size(message, kilobytes)
    return algorithm(message)


def verify_signature(message: bytes, signature: bytes, public_key: bytes) -> Value:
    """``sigVerify``; false also for keys and signatures of the wrong length."""
    return curve25519.verify(public_key, message, signature)


def limited_verify_signature(
    kilobytes: int, message: bytes, signature: bytes, public_key: bytes
) -> Value:
    """``sigVerify`` with a limit on the message."""
    _check_size(message, kilobytes)
    return curve25519.verify(public_key, message, signature)


def verify_rsa(digest: CaseObject, message: bytes, signature: bytes, public_key: bytes) -> Value:
    """``rsaVerify``; an error for an invalid key."""
    name = _DIGESTS.get(digest.type_name)
    if name is None:
        raise EvaluationError("Unknown digest type")
    try:
        key = rsa.parse_public_key(public_key)
    except CryptoError as error:
        text = base58.encode(public_key)
        raise EvaluationError(f"Invalid key base58'{text}': {error}") from None
    try:
        return rsa.verify(name, message, signature, key)
    except CryptoError as error:
        raise EvaluationError(str(error)) from None


def limited_verify_rsa(
    kilobytes: int, digest: CaseObject, message: bytes, signature: bytes, public_key: bytes
) -> Value:
    """``rsaVerify`` with a limit on the message."""
    _check_size(message, kilobytes)
    return verify_rsa(digest, message, signature, public_key)


def _check_size(message: bytes, kilobytes: int) -> None:
    if len(message) > kilobytes * KILOBYTE:
        raise EvaluationError(
            f"Invalid message size = {len(message)} bytes, must be not greater than {kilobytes} KB"
        )


def verify_groth16(
    curve: groth16.Curve, max_inputs: int, key: bytes, proof: bytes, inputs: bytes
) -> Value:
    """``groth16Verify`` and ``bn256Groth16Verify``; an error for wrong sizes."""
    limit = max_inputs * groth16.INPUT_LENGTH
    if len(inputs) > limit:
        raise EvaluationError(
            f"Invalid inputs size {len(inputs)} bytes, must be not greater than {limit} bytes"
        )
    if len(inputs) % groth16.INPUT_LENGTH:
        raise EvaluationError(
            f"Invalid inputs size {len(inputs)} bytes, must be a multiple of "
            f"{groth16.INPUT_LENGTH} bytes"
        )
    if len(proof) != curve.proof_length:
        raise EvaluationError(
            f"Invalid proof size {len(proof)} bytes, must be equal to {curve.proof_length} bytes"
        )
    count = len(inputs) // groth16.INPUT_LENGTH
    if len(key) != curve.key_length(count):
        raise EvaluationError(
            f"Invalid vk size {len(key)} bytes, must be equal to {curve.key_length(count)} bytes "
            f"for {count} inputs"
        )
    return groth16.verify(curve, key, proof, inputs)


def check_merkle_proof(root: bytes, proof: bytes, value: bytes) -> Value:
    """``checkMerkleProof`` of version 3."""
    return scrypto_merkle.verify(root, proof, value)


def create_merkle_root(proofs: RideList, value: bytes, index: int) -> Value:
    """``createMerkleRoot``: the root that a proof, from the leaf to the root, implies."""
    siblings = [item for item in proofs.items if type(item) is bytes and len(item) == HASH_BYTES]
    if (
        len(value) != HASH_BYTES
        or len(proofs.items) > MAX_MERKLE_PROOFS
        or len(siblings) != len(proofs.items)
    ):
        raise mismatch("createMerkleRoot", (proofs, value, index))
    if not _MIN_INT32 <= index <= _MAX_INT32:
        raise ThrownError("integer overflow")
    node, rest = value, index
    for sibling in siblings:
        node = blake2b256(sibling + node if rest % 2 else node + sibling)
        # Halved toward zero, so that -1 is the right child of the first node.
        rest = -(-rest // 2) if rest < 0 else rest // 2
    if rest:
        raise ThrownError(
            f"Index {index} out of range allowed by proof list length {len(siblings)}"
        )
    return node


def recover_key(context: CallContext, digest: bytes, signature: bytes) -> Value:
    """``ecrecover``: the public key that signed a hash.

    Before the switch ``ecrecover_fix`` the reference formats the key as a hexadecimal number and
    parses that: leading zero bytes are lost, and an odd number of digits is an error.
    """
    if len(digest) != HASH_BYTES:
        raise EvaluationError(
            f"Invalid message hash size {len(digest)} bytes, must be equal to {HASH_BYTES} bytes"
        )
    if len(signature) != RECOVERABLE_SIGNATURE_LENGTH:
        raise EvaluationError(
            f"Invalid signature size {len(signature)} bytes, must be equal to "
            f"{RECOVERABLE_SIGNATURE_LENGTH} bytes"
        )
    header = signature[64]
    if header < _FIRST_HEADER or header >= _SIGNED_BYTE:
        header = (header + _FIRST_HEADER) % 256
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    choice = header - _FIRST_HEADER
    if not 0 <= choice < _HEADERS:
        raise NativeCrash(f"Header byte out of range: {header}")
    key = secp256k1.recover(digest, r, s, choice)
    if key is None:
        raise NativeCrash("Could not recover public key from signature")
    if context.switches.ecrecover_fix:
        return key
    digits = f"{int.from_bytes(key, 'big'):x}"
    if len(digits) % 2:
        raise NativeCrash(f"Invalid input length {len(digits)}")
    return bytes.fromhex(digits)


def verify_p256(message: bytes, signature: bytes, public_key: bytes) -> Value:
    """``p256Verify``; an error for a key or a signature that cannot be one."""
    # Few scripts call it, and the import of the library would slow every start down.
    from soliton.crypto import p256

    try:
        return p256.verify(message, signature, public_key)
    except CryptoError as error:
        raise EvaluationError(str(error)) from None


def validate_certificate_chain(chain: RideList, lists: RideList, timestamp: int) -> Value:
    """``validateCertificateChain``: the public key of the first certificate, which the others, the
    last of them trusted, and a list of revoked certificates for each pair vouch for.
    """
    count = len(chain.items)
    if not count:
        raise EvaluationError("Certificate chain must contain at least one certificate")
    if count > MAX_CERTIFICATES:
        raise EvaluationError(
            f"Certificate chain can not contain more than {MAX_CERTIFICATES} certificates"
        )
    if len(lists.items) != count - 1:
        raise EvaluationError(
            f"Certificate chain contains {count} certificates and requires {count - 1} CRLs, "
            f"{len(lists.items)} provided"
        )
    certificate_data = [item for item in chain.items if type(item) is bytes]
    if len(certificate_data) != count:
        raise EvaluationError("Certificates must be byte vectors")
    list_data = [item for item in lists.items if type(item) is bytes]
    if len(list_data) != count - 1:
        raise EvaluationError("CRLs must be ByteVectors")
    # As above: imported by its first call.
    from soliton.crypto import certificates

    try:
        return certificates.validate_chain(certificate_data, list_data, timestamp)
    except CryptoError as error:
        raise EvaluationError(str(error)) from None
