"""``soliton status``: what is up, what is not, and the exit code."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.fake_nodes import FakeNode, served
from tests.cli.here import run_here
from tests.ports import free_port

REFERENCE: dict[str, object] = {
    "/node/version": {"version": "Waves v1.6.6"},
    "/blocks/height/finalized": {"height": 2},
    "/transactions/unconfirmed/size": {"size": 5},
    "/peers/connected": 403,
}
OWN = REFERENCE | {
    "/peers/connected": {"peers": [{"address": "/1.2.3.4:6868"}]},
    "/livez": {"status": "alive"},
    "/readyz": {"status": "unready", "reasons": ["the last block is 99 s old"]},
}
DOWN = f"http://127.0.0.1:{free_port()}"
ELSEWHERE = ("--matcher", DOWN, "--signer", DOWN)


def test_a_node_of_the_reference() -> None:
    with served(FakeNode(["1", "2", "3"], answers=REFERENCE)) as url:
        done = run_here("status", "--node", url)
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(run_here("status", "--node", url, "--json").stdout)
    assert "Waves v1.6.6" in done.stdout and "final up to" in done.stdout
    node = told["node"]
    assert node["up"] is True and node["chainId"] == "R" and node["height"] == 3
    assert (node["finalizedHeight"], node["pool"], node["peers"]) == (2, 5, None)
    assert "ready" not in node


def test_a_node_that_is_not_ready() -> None:
    # The body of the answer is compared as the node writes it.
    with served(FakeNode(["1", "2"], answers=OWN)) as url:
        done = run_here("status", "--node", url)
        assert done.returncode == 0, done.stderr


def test_services_that_do_not_answer() -> None:
    with served(FakeNode(["1", "2", "3"], answers=REFERENCE)) as url:
        done = run_here("status", "--node", url, *ELSEWHERE)
        assert done.returncode == 1
        assert "no answer: " in done.stdout and "cannot be reached" in done.stdout
        broken = FakeNode(["1"], answers={"/": 502})
        with served(broken) as signer:
            assert run_here("status", "--node", url, "--signer", signer).returncode == 1
        with served(FakeNode(["1"])) as signer:
            # A signer refuses who has no key: it is up.
            assert run_here("status", "--node", url, "--signer", signer).returncode == 0
    done = run_here("status", "--node", DOWN, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["node"]["up"] is False


def test_a_node_that_answers_nonsense() -> None:
    for path in ("/blocks/headers/last", "/node/version", "/transactions/unconfirmed/size"):
        answers = REFERENCE | {path: {"version": 1, "size": "\u202e\x1b[31m", "x": 1}}
        with served(FakeNode(["1", "2"], answers=answers)) as url:
            done = run_here("status", "--node", url)
        assert done.returncode in (0, 1)
        assert "\x1b" not in done.stdout and "Traceback" not in done.stderr
