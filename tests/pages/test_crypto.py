"""What a page signs with, beside what the ecosystem's library gives for the same."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.vectors import REPOSITORY

MODULES = REPOSITORY / "tests" / "clients" / "node_modules"
STATIC = REPOSITORY / "src" / "soliton" / "pages" / "static"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed"),
    pytest.mark.skipif(
        not (MODULES / "@waves" / "ts-lib-crypto").exists(), reason="`make clients` was not run"
    ),
]


def test_hashes_keys_addresses_and_signatures_are_those_of_the_library() -> None:
    script = REPOSITORY / "tests" / "pages" / "crypto.mjs"
    done = subprocess.run(
        ["node", "--no-warnings", script, STATIC, MODULES],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 59
    for name, ours, theirs in found:
        assert ours == theirs, name
