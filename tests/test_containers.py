"""The image and ``compose.yaml``: what they name is there, and opens the ports that pages name.

What lives here: checks of the files, without a registry of images. What does not: a build of the
image, which takes minutes and a network (``podman build``).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.blocks import blocks
from tests.cli.here import run_here
from tests.vectors import REPOSITORY

COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: each for name, each in SERVICES.items() if each["image"] == "soliton"}
CONTAINERFILE = (REPOSITORY / "Containerfile").read_text("utf-8")
PROMETHEUS = REPOSITORY / "deploy/prometheus/prometheus.yml"
PORTS = {"node": 6869, "matcher": 6886, "signer": 6888, "data-service": 3000}


@pytest.mark.parametrize("name", OURS)
def test_a_service_runs_a_command_that_there_is(name: str) -> None:
    command = [str(each) for each in OURS[name]["command"]]
    first = next(at for at, each in enumerate(command) if each.startswith("--"))
    done = run_here(*(each for each in command[:first] if "/" not in each), "--help")
    assert done.returncode == 0, done.stderr
    for option in (each for each in command if each.startswith("--")):
        assert option in done.stdout


@pytest.mark.parametrize("name", OURS)
def test_a_service_has_no_rights(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] and service["tmpfs"] == ["/tmp"] and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == ("no" if "init" in service["command"] else "unless-stopped")


def test_ports_are_open_to_this_machine_only_and_each_is_published_once() -> None:
    for profile in ("devnet", "stack"):
        chosen = [each for each in SERVICES.values() if profile in each["profiles"]]
        published = [port for each in chosen for port in each.get("ports", ())]
        assert all(port.startswith("127.0.0.1:") for port in published)
        assert len({port.split(":")[1] for port in published}) == len(published)


def test_volumes_are_declared_and_files_are_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("./"):
                # Dashboards may be none.
                assert source.endswith("/dashboards") or (REPOSITORY / source).exists(), source
            else:
                assert source in COMPOSE["volumes"]


def test_prometheus_asks_the_services_on_their_ports() -> None:
    jobs = yaml.safe_load(PROMETHEUS.read_text("utf-8"))["scrape_configs"]
    asked = {job["job_name"]: job["static_configs"][0]["targets"] for job in jobs}
    assert asked == {name: [f"{name}:{port}"] for name, port in PORTS.items()}
    for name in PORTS:
        at = SERVICES[name].get("environment", {}).get("ALIVE", "http://127.0.0.1:6869/livez")
        assert f":{PORTS[name]}/" in at


def test_prometheus_reads_its_file() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    command = ["promtool", "check", "config", str(PROMETHEUS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_runs_without_rights_and_has_what_its_build_reads() -> None:
    last = CONTAINERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE) and "HEALTHCHECK" in last
    for line in (REPOSITORY / ".containerignore").read_text("utf-8").splitlines():
        if line.startswith("!") and not line.startswith("!.git/"):
            assert (REPOSITORY / line[1:]).exists(), line


def test_a_linter_accepts_the_image() -> None:
    if shutil.which("hadolint") is None:
        pytest.skip("hadolint is not installed")
    command = ["hadolint", str(REPOSITORY / "Containerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_page_starts_profiles_that_there_are() -> None:
    commands = "\n".join(blocks("docs/how-to/containers.md", "console"))
    named = set(re.findall(r"--profile (\S+)", commands))
    assert named == {profile for each in SERVICES.values() for profile in each["profiles"]}
