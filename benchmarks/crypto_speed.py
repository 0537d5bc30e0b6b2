"""How fast the cryptography is: ``python benchmarks/crypto_speed.py``.

Prints microseconds of CPU per operation, the least of several runs, and for lists of signatures
also the time on the clock, which the number of cores divides. No network, no files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from soliton.crypto import base58, curve25519, edwards, hashes, keys, merkle, vrf
from soliton.parallel import threads

RUNS = 7
SECONDS_PER_RUN = 0.1
LIST_SIZES = (16, 64, 256, 6000)
KEYS = 50
MESSAGE_BYTES = 150


def least_microseconds(operation: Callable[[], object], per_call: int = 1) -> tuple[float, float]:
    """CPU and clock per operation, the least of `RUNS` runs of about `SECONDS_PER_RUN`."""
    start = time.perf_counter()
    operation()
    calls = max(1, int(SECONDS_PER_RUN / max(time.perf_counter() - start, 1e-7)))
    best_cpu = best_clock = float("inf")
    for _ in range(RUNS):
        clock, cpu = time.perf_counter(), time.process_time()
        for _ in range(calls):
            operation()
        best_cpu = min(best_cpu, time.process_time() - cpu)
        best_clock = min(best_clock, time.perf_counter() - clock)
    scale = 1e6 / calls / per_call
    return best_cpu * scale, best_clock * scale


def show(name: str, operation: Callable[[], object]) -> None:
    """One line: CPU per call."""
    cpu, _ = least_microseconds(operation)
    print(f"{name:<44} {cpu:>9.2f} us CPU")


def with_order_added(signature: bytes) -> bytes:
    """The same signature, its second half not reduced: valid, but libsodium refuses it."""
    sign = (signature[63] & 0x80) << 248
    response = (int.from_bytes(signature[32:], "little") ^ sign) + edwards.GROUP_ORDER | sign
    return signature[:32] + response.to_bytes(32, "little")


def signatures() -> None:
    """Sign, verify, verify what is invalid, verify lists."""
    pairs = [keys.key_pair(os.urandom(32)) for _ in range(KEYS)]
    message = os.urandom(MESSAGE_BYTES)
    pair, signature = pairs[0], curve25519.sign(pairs[0].private_key, message)
    unreduced = with_order_added(signature)
    other = message + b"!"
    assert curve25519.verify(pair.public_key, message, unreduced)
    show("public key", lambda: curve25519.public_key(pair.private_key))
    show("sign", lambda: curve25519.sign(pair.private_key, message))
    show("verify", lambda: curve25519.verify(pair.public_key, message, signature))
    show("verify, invalid", lambda: curve25519.verify(pair.public_key, other, signature))
    show("verify, not reduced", lambda: curve25519.verify(pair.public_key, message, unreduced))
    show(
        "Montgomery to Edwards, not cached",
        lambda: curve25519.edwards_keys.__wrapped__(pair.public_key),
    )
    items = []
    for number in range(max(LIST_SIZES)):
        signer, text = pairs[number % KEYS], os.urandom(MESSAGE_BYTES)
        items.append((signer.public_key, text, curve25519.sign(signer.private_key, text)))
    for size in LIST_SIZES:
        part = items[:size]
        cpu, clock = least_microseconds(lambda part=part: threads.verify_many(part), size)
        name = f"verify_many, {size} signatures, each"
        print(f"{name:<44} {cpu:>9.2f} us CPU {clock:>9.2f} us clock")


def random_function() -> None:
    """Prove and verify, and what hostile points cost."""
    pair, message = keys.key_pair(b"benchmark"), bytes(32)
    proof = vrf.prove(pair.private_key, message)
    key = curve25519.edwards_keys(pair.public_key)[0]
    parts = (key, vrf._message_point(key, message), proof[:32], proof[32:64], proof[64:])
    show("VRF prove", lambda: vrf.prove(pair.private_key, message))
    show("VRF verify", lambda: vrf.verify(pair.public_key, message, proof))
    show("VRF, exact path for hostile points", lambda: vrf._solve_exactly(*parts))


def texts_and_hashes() -> None:
    """Base58, hashes, Merkle root."""
    for size in (26, 32, 64):
        data = b"\x01" + os.urandom(size - 1)
        text = base58.encode(data)
        show(f"base58 encode, {size} bytes", lambda data=data: base58.encode(data))
        show(f"base58 decode, {size} bytes", lambda text=text: base58.decode(text))
    longest = "z" * base58.MAX_TEXT_CHARS
    show(f"base58 decode, {len(longest)} characters", lambda: base58.decode(longest))
    data = os.urandom(MESSAGE_BYTES)
    show(f"blake2b256, {MESSAGE_BYTES} bytes", lambda: hashes.blake2b256(data))
    show(f"keccak256, {MESSAGE_BYTES} bytes", lambda: hashes.keccak256(data))
    show("secure hash, 32 bytes", lambda: hashes.secure_hash(data[:32]))
    leaves = [os.urandom(MESSAGE_BYTES) for _ in range(100)]
    show("Merkle root, 100 leaves", lambda: merkle.root(leaves))


if __name__ == "__main__":
    signatures()
    random_function()
    texts_and_hashes()
