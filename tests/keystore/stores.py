"""Stores of keys whose password is cheap to try.

What lives here: how such a store is made. What does not: what a store costs that a person makes,
which is tested in one place (``test_files``); the cost stands in each file, so that nothing else
differs.
"""

from __future__ import annotations

import os
from pathlib import Path

from soliton.keystore.files import Derivation, FileStore
from soliton.keystore.keys import NamedSecret, Secret


def keep(directory: Path, password: str, secrets: dict[str, Secret]) -> None:
    """Add keys to the store of a directory, new or not."""
    entries = [NamedSecret(name, secret) for name, secret in secrets.items()]
    cheap = Derivation(os.urandom(16), iterations=1, memory_kib=8, lanes=1)
    FileStore(directory).add(entries, password, cheap)
