"""``/v0`` of a devnet at once: a database of the service's own, which follows the node."""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.programs import Program, call, devnet, eventually, is_mined, run, signed_transfer
from tests.export.postgres import find_program

pytestmark = pytest.mark.slow


@pytest.fixture
def place() -> Iterator[Path]:
    """Where others than this user may go, too."""
    with tempfile.TemporaryDirectory(prefix="own") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_devnets_data_service(place: Path) -> None:
    if find_program("initdb") is None or find_program("postgres") is None:
        pytest.skip("no PostgreSQL server is installed")
    with devnet() as node:
        url = node.node_url
        sender, *_, recipient = call(f"{url}/addresses").json()
        body = signed_transfer(url, sender, recipient, 12_345)
        call(f"{url}/transactions/broadcast", body)
        eventually(lambda: is_mined(url, body["id"]), "a block")
        program = Program(("data-service", "--from-node", url, "--port", 0), {"TMPDIR": str(place)})
        try:
            found = re.search(r"http://[\d.]+:\d+", program.wait_for("data service on http://"))
            assert found, program.output
            one = f"{found[0]}/v0/transactions/transfer/{body['id']}"
            assert call(one).json()["data"]["amount"] == 0.00012345
            later = signed_transfer(url, sender, recipient, 1)
            call(f"{url}/transactions/broadcast", later)
            # It follows: what comes later is there soon.
            eventually(
                lambda: call(f"{found[0]}/v0/transactions/all/{later['id']}").status == 200,
                "a later transaction",
            )
            program.send(signal.SIGTERM)
            assert program.wait() == 0, program.output
        finally:
            program.close()
    assert not list(place.iterdir())


def test_one_of_two_is_needed() -> None:
    done = run("data-service")
    assert done.returncode == 1
    assert "one of --dsn and --from-node is needed" in done.stderr
