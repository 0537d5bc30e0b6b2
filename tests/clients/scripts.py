"""Running the programs beside this module: each prints one JSON object per line,
``{"name": ..., "value": ...}``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

HERE: Final = Path(__file__).parent
NODE: Final = shutil.which("node")
SCRIPT_SECONDS: Final = 300
JVM: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""For programs that end soon: the second compiler would take longer than it saves."""

NEEDS_NODE: Final = [
    pytest.mark.slow,
    pytest.mark.skipif(NODE is None, reason="node is not installed"),
    pytest.mark.skipif(
        not (HERE / "node_modules" / "@waves").is_dir(),
        reason="tests/clients/node_modules is missing (`make clients` installs it)",
    ),
]


def run_script(script: str, *arguments: str, given: str = "") -> dict[str, Any]:
    """What a script for node told, by name."""
    assert NODE is not None
    return run_client(NODE, str(HERE / script), *arguments, given=given)


def run_client(*command: str, given: str = "") -> dict[str, Any]:
    """What a program told, by name; a library of its may print what it likes besides."""
    done = subprocess.run(
        command,
        input=given,
        capture_output=True,
        encoding="utf-8",
        timeout=SCRIPT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"')]
    return {line["name"]: line["value"] for line in lines}


def by_key(entries: list[dict[str, Any]]) -> dict[str, tuple[str, Any]]:
    """Data entries as ``{key: (type, value)}``."""
    return {entry["key"]: (entry["type"], entry["value"]) for entry in entries}
