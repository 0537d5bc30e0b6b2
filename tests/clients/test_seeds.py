"""Encrypted seeds: what ``@waves/ts-lib-crypto`` makes opens here, and what is made here there."""

from __future__ import annotations

import pytest

from soliton.crypto.encrypted_seeds import decrypt_text, encrypt_text
from soliton.crypto.errors import CryptoError
from tests.clients.scripts import NEEDS_NODE, run_script

pytestmark = [*NEEDS_NODE]
PHRASE = "ähre wind 🌊 seed phrase of a test"
PASSWORD = "pässword"


def test_encrypted_seeds_go_both_ways() -> None:
    told = run_script("seeds.js", PHRASE, PASSWORD, encrypt_text(PHRASE, PASSWORD))
    assert decrypt_text(told["made"], PASSWORD) == PHRASE
    assert decrypt_text(told["made in a hundred rounds"], PASSWORD, 100) == PHRASE
    assert told["opened"] == PHRASE
    with pytest.raises(CryptoError):
        decrypt_text(told["made"], "wrong", 100)
