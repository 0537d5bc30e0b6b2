"""Surfboard, the ecosystem's tool for RIDE projects, and `@waves/js-test-env`, with whose names its
tests are written: a project's tests run against a devnet as they do against any node.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.amounts import only_long
from tests.clients.scripts import HERE, NEEDS_NODE, NODE, SCRIPT_SECONDS, run_script
from tests.e2e.programs import devnet

SEED: Final = "waves private node seed with waves tokens"
PROJECT: Final = HERE / "surfboard"
SURFBOARD: Final = HERE / "node_modules" / "@waves" / "surfboard"

pytestmark = [
    *NEEDS_NODE,
    pytest.mark.skipif(
        not SURFBOARD.is_dir(),
        reason="surfboard is not in tests/clients/node_modules (`make clients` installs it)",
    ),
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with devnet() as program:
        yield program.node_url


@pytest.fixture
def project(url: str, tmp_path: Path) -> Path:
    """A project, with the configuration that `surfboard init` writes but for the node."""
    place = tmp_path / "project"
    shutil.copytree(PROJECT, place)
    configuration = json.loads((SURFBOARD / "lib" / "surfboard.config.json").read_text("utf-8"))
    configuration["envs"]["custom"] |= {"API_BASE": f"{url}/", "SEED": SEED}
    (place / "surfboard.config.json").write_text(json.dumps(configuration), "utf-8")
    return place


def surfboard(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert NODE is not None
    return subprocess.run(
        [NODE, str(SURFBOARD / "bin" / "run"), *arguments],
        cwd=project,
        capture_output=True,
        encoding="utf-8",
        timeout=SCRIPT_SECONDS,
        check=False,
        # It looks for newer versions of itself, and keeps a configuration in the home directory.
        env={**os.environ, "HOME": str(project), "npm_config_registry": "http://127.0.0.1:9"},
    )


def test_a_project_runs_its_tests(project: Path) -> None:
    done = surfboard(project, "test", "wallet.ride-test.js")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passing" in done.stdout and "failing" not in done.stdout


def test_a_fault_in_the_dapp_is_seen(project: Path) -> None:
    path = project / "ride" / "wallet.ride"
    source = path.read_text("utf-8")
    path.write_text(source.replace('throw("not enough balance")', "[]"), "utf-8")
    done = surfboard(project, "test")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "1 failing" in done.stdout and "not enough balance" in done.stdout


def test_a_script_is_run_and_compiled(project: Path) -> None:
    compiled = surfboard(project, "compile", "ride/wallet.ride")
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    script = "const tx = transfer({ recipient: address('bob'), amount: 5 });\n"
    script += "broadcast(tx).then(() => waitForTx(tx.id))"
    script += ".then((it) => console.log('in', it.height > 1));"
    (project / "send.js").write_text(script, "utf-8")
    done = surfboard(project, "run", "send.js")
    assert done.returncode == 0 and "in true" in done.stdout, done.stdout + done.stderr


@only_long
def test_the_test_environment_alone(url: str) -> None:
    told: dict[str, Any] = run_script("test_env.js", url)
    assert told["transfer"] == {"status": "succeeded", "received": 25}
    assert told["refused"] == "too much"
    assert told["confirmations"] is True
