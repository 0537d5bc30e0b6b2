"""What packages bring along: units of systemd, settings of services, scripts of a package.

What lives here: checks of these files, without building a package. What does not: a build
(``make deb``), and what services tell systemd (``tests/cli/test_service_manager.py``).
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest

from tests.blocks import blocks
from tests.cli.here import run_here
from tests.e2e.programs import PROGRAM
from tests.vectors import REPOSITORY

UNITS = sorted((REPOSITORY / "deploy/systemd").glob("*.service"))
DEBIAN = REPOSITORY / "deploy/debian"
MOST_EXPOSED = 15
"""Ten times the figure that ``systemd-analyze security`` gives; that of a service without any
protection is 96.
"""


def start_of(unit: Path) -> list[str]:
    (line,) = re.findall(r"^ExecStart=(.*)$", unit.read_text("utf-8"), re.MULTILINE)
    return shlex.split(line)


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    command = ["systemd-analyze", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_is_valid(unit: Path, tmp_path: Path) -> None:
    """``/usr/bin/soliton`` is that of this environment here."""
    text = unit.read_text("utf-8").replace("/usr/bin/soliton", str(PROGRAM))
    place = tmp_path / unit.name
    place.write_text(text, "utf-8")
    done = analyze("verify", "--man=no", str(place))
    if "running as PID 1" in done.stderr or "Failed to initialize manager" in done.stderr:
        pytest.skip("systemd-analyze cannot verify units here")
    about = [line for line in done.stderr.splitlines() if unit.name in line]
    assert about == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_gives_its_service_few_rights(unit: Path) -> None:
    done = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(unit))
    if "Unknown" in done.stderr or "unrecognized" in done.stderr:
        pytest.skip("systemd-analyze is too old to look at files")
    assert done.returncode == 0, done.stdout


def test_units_share_what_protects_them() -> None:
    """One that lacks a line of the others has lost it."""
    protections = {
        unit.stem: frozenset(unit.read_text("utf-8").partition("NoNewPrivileges")[2].splitlines())
        for unit in UNITS
    }
    assert len(UNITS) == 4 and len(set(protections.values())) == 1


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_starts_a_command_that_there_is(unit: Path) -> None:
    program, *arguments = start_of(unit)
    assert program == "/usr/bin/soliton"
    command = [each for each in arguments if not each.startswith(("-", "/", "$"))]
    done = run_here(*command, "--help")
    assert done.returncode == 0
    for option in (each for each in arguments if each.startswith("--")):
        assert option in done.stdout


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_reads_files_that_the_package_or_its_user_writes(unit: Path) -> None:
    for place in re.findall(r"/etc/soliton/([\w.-]+)", unit.read_text("utf-8")):
        assert (DEBIAN / "etc" / place).is_file()


@pytest.mark.parametrize("name", ["node.conf", "signer.conf"])
def test_settings_of_the_package_are_valid(name: str, tmp_path: Path) -> None:
    """The directory of the services belongs to their user."""
    text = (DEBIAN / "etc" / name).read_text("utf-8").replace("/var/lib/soliton", str(tmp_path))
    (tmp_path / name).write_text(text, "utf-8")
    done = run_here("config", "check", tmp_path / name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_environment_of_the_data_service_has_options_that_there_are() -> None:
    parser = RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(f"[all]\n{(DEBIAN / 'etc/data-service.env').read_text('utf-8')}")
    options = shlex.split(parser["all"]["OPTIONS"])
    text = run_here("data-service", "--help").stdout
    assert all(option in text for option in options if option.startswith("--"))


def test_the_page_starts_units_that_there_are() -> None:
    """Its commands need root and a system's manager: they were typed in a root of Debian 13."""
    (text,) = blocks("docs/how-to/install.md", "console")
    named = set(re.findall(r"(soliton-[a-z-]+)(?=\s)", text))
    assert named and named <= {unit.stem for unit in UNITS}
    command = next(line for line in text.splitlines() if "matcher init" in line)
    words = shlex.split(command)
    assert run_here(*words[words.index("matcher") :][:2], "--help").returncode == 0


@pytest.mark.parametrize("name", ["build", "postinst", "prerm", "postrm"])
def test_scripts_of_the_package_parse(name: str) -> None:
    script = DEBIAN / name
    shell = script.read_text("utf-8").partition("\n")[0].split("/")[-1].split()[-1]
    subprocess.run([shell, "-n", str(script)], check=True)
    assert script.stat().st_mode & 0o111
