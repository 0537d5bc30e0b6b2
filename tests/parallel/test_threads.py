"""Many signatures at once, on any number of threads, and after a fork."""

from __future__ import annotations

import multiprocessing
import sys
import warnings

import pytest

from soliton.crypto import base58, curve25519
from soliton.parallel import threads
from tests.vectors import load_vectors

PRIVATE_KEY = base58.decode("3kMEhU5z3v8bmer1ERFUUhW58Dtuhyo9hE5vrhjqAWYT")
PUBLIC_KEY = curve25519.public_key(PRIVATE_KEY)


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 63, 64, 65, 200])
def test_many_at_once(count: int) -> None:
    items = []
    for number in range(count):
        message = number.to_bytes(4, "big")
        signature = curve25519.sign(PRIVATE_KEY, message)
        items.append((PUBLIC_KEY, message if number % 3 else b"other", signature))
    expected = [bool(number % 3) for number in range(count)]
    assert threads.verify_many(items) == expected
    assert threads.verify_many(tuple(items)) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_many_at_once_with_other_numbers_of_threads(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "cores", lambda: count)
    monkeypatch.setattr(threads, "MIN_ITEMS_PER_THREAD", 1)
    signature = curve25519.sign(PRIVATE_KEY, b"m")
    messages = [b"m" if number % 2 else b"n" for number in range(21)]
    items = [(PUBLIC_KEY, message, signature) for message in messages]
    assert threads.verify_many(items) == [message == b"m" for message in messages]


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
def test_threads_after_a_fork() -> None:
    signature = curve25519.sign(PRIVATE_KEY, b"m")
    items = [(PUBLIC_KEY, b"m", signature)] * 200
    assert all(threads.verify_many(items))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about forking beside threads
        child = multiprocessing.get_context("fork").Process(
            target=threads.verify_many, args=(items,), daemon=True
        )
        child.start()
    child.join(timeout=20)
    assert child.exitcode == 0


@pytest.mark.parametrize("name", ["signatures_curve25519", "signature_edge_cases"])
def test_vectors(name: str) -> None:
    vectors = load_vectors(name)
    items = [
        (
            bytes.fromhex(each["public"]),
            bytes.fromhex(each["message"]),
            bytes.fromhex(each["signature"]),
        )
        for each in vectors
    ]
    assert threads.verify_many(items) == [each["valid"] for each in vectors]
