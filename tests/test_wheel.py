"""The wheel as its users have it: what is in it, what pages tell pip about it, and a first use.

What lives here: one wheel, built of a copy of the source, and an environment that finds all that it
depends on in ours. What does not: the archive of the source, and whether both are the same again
(``make dist``).
"""

from __future__ import annotations

import email
import email.message
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from soliton.revision import revision, revision_in, revision_of_checkout
from soliton.web.swagger import ASSETS
from tests.test_installing import texts
from tests.vectors import REPOSITORY

pytestmark = pytest.mark.slow

COMMIT = "0123456789abcdef0123456789abcdef01234567"
EXTRAS = re.compile(r"pip install '(?:WHEEL|soliton)\[([\w,-]+)\]'")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
LINK = re.compile(r"\[[^\]]*\]\(([^)]+)\)")


def copy_of_source(place: Path) -> Path:
    """What the build reads, as if a commit of it were checked out: ours is in use meanwhile."""
    made = shutil.ignore_patterns("__pycache__", "*_pb2.py*", "swagger_ui")
    shutil.copytree(REPOSITORY / "src", place / "src", ignore=made)
    for name in ("README.md", "LICENSE", "pyproject.toml", "hatch_build.py", ".gitignore"):
        shutil.copy(REPOSITORY / name, place)
    (place / ".git").mkdir()
    (place / ".git/HEAD").write_text("ref: refs/heads/main\n", "utf-8")
    (place / ".git/packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/main\n", "utf-8")
    return place


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Skips where neither an index of packages nor a folder has the tools of the build."""
    folder = tmp_path_factory.mktemp("wheel")
    source = copy_of_source(tmp_path_factory.mktemp("source"))
    command = [*PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "No matching distribution found for" in done.stderr:
        pytest.skip("an index of packages is not within reach")
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel, but not this checkout."""
    place = tmp_path_factory.mktemp("environment")
    others = tmp_path_factory.mktemp("others")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if "soliton" not in each.name and each.suffix != ".pth":
            (others / each.name).symlink_to(each)
    (site,) = place.glob("lib/python*/site-packages")
    (site / "others.pth").write_text(f"{others}\n", "utf-8")
    install(place / "bin", str(wheel))
    return place / "bin"


def install(programs: Path, *arguments: str) -> None:
    """Without an index: whatever a requirement names that is not there fails."""
    command = [*PIP, "--python", str(programs / "python"), "install", "--no-index", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "does not provide" not in done.stderr, done.stderr


def description(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_it_has_what_the_build_adds_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert archive.read("soliton/REVISION").decode("ascii").strip() == COMMIT
    package = {name.removeprefix("soliton/") for name in names if name.startswith("soliton/")}
    assert {f"web/swagger_ui/{name}" for name in (*ASSETS, "LICENSE")} == {
        name for name in package if name.startswith("web/swagger_ui/")
    }
    assert {"chain/proto/block_pb2.py", "py.typed", "__init__.pyi"} <= package
    assert not [name for name in package if "__pycache__" in name]
    assert not [name for name in names if not name.startswith(("soliton/", "soliton-"))]
    assert wheel.stat().st_size < 4_000_000


def test_what_an_index_shows(wheel: Path) -> None:
    """There is no link that leads nowhere, and no extra for the program's makers."""
    told = description(wheel)
    assert told["Name"] == "soliton" and told["Description-Content-Type"] == "text/markdown"
    assert told["License-Expression"] == "MIT AND Apache-2.0"
    page = told.get_payload()
    assert isinstance(page, str) and page.lstrip().startswith("# Soliton")
    assert [link for link in LINK.findall(page) if not link.startswith("http")] == []
    assert "dev" not in (told.get_all("Provides-Extra") or ())
    assert all("swagger" not in each for each in told.get_all("Requires-Dist") or ())


def named_extras() -> list[str]:
    """Each that a page or a message tells to install, as it stands there."""
    return sorted({found for text in texts().values() for found in EXTRAS.findall(text)})


def test_pages_name_extras() -> None:
    assert len(named_extras()) >= 6


@pytest.mark.parametrize("extras", named_extras())
def test_extras_of_pages_can_be_installed(programs: Path, wheel: Path, extras: str) -> None:
    install(programs, "--dry-run", f"{wheel}[{extras}]")


def test_a_first_use(programs: Path, tmp_path: Path) -> None:
    """The version with its commit, a devnet with its pages, and a test by the plugin."""
    command = [sys.executable, str(REPOSITORY / ".ci/try-install"), str(programs)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert COMMIT in done.stdout and "1 passed" in done.stdout


def test_the_commit_of_a_checkout(tmp_path: Path) -> None:
    assert revision_of_checkout(tmp_path) is None
    git = tmp_path / "main/.git"
    (git / "refs/heads").mkdir(parents=True)
    (git / "refs/heads/main").write_text(f"{COMMIT}\n", "ascii")
    (git / "HEAD").write_text("ref: refs/heads/main\n", "ascii")
    assert revision_of_checkout(tmp_path / "main") == COMMIT
    # An archive that git has made, and the same file where it has not.
    file = tmp_path / "REVISION"
    file.write_text(f"{COMMIT}\n", "ascii")
    assert revision_in(file) == COMMIT
    file.write_bytes((REPOSITORY / "REVISION").read_bytes())
    assert revision_in(file) in (None, revision())
    assert revision_in(tmp_path / "none") is None
    # A further work tree, and one with a commit instead of a branch.
    further = git / "worktrees/further"
    further.mkdir(parents=True)
    (further / "HEAD").write_text("ref: refs/heads/main\n", "ascii")
    (further / "commondir").write_text("../..\n", "ascii")
    (tmp_path / "further").mkdir()
    (tmp_path / "further/.git").write_text(f"gitdir: {further}\n", "utf-8")
    assert revision_of_checkout(tmp_path / "further") == COMMIT
    (further / "HEAD").write_text(f"{COMMIT[::-1]}\n", "ascii")
    assert revision_of_checkout(tmp_path / "further") == COMMIT[::-1]
    # Before the first commit.
    (git / "refs/heads/main").unlink()
    assert revision_of_checkout(tmp_path / "main") is None


class Hook:
    """In place of hatchling's, which is there while it builds only."""

    def __init__(self, root: str, config: dict[str, object]) -> None:
        self.root = root
        self.config = config


def test_links_of_a_published_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it has an address, the page of an index leads there."""
    names = {"protoc": None, "BuildHookInterface": dict, "MetadataHookInterface": Hook}
    tools = SimpleNamespace(**names)
    for kind in ("builders.hooks", "metadata"):
        monkeypatch.setitem(sys.modules, f"hatchling.{kind}.plugin.interface", tools)
    monkeypatch.setitem(sys.modules, "grpc_tools", tools)
    hook = runpy.run_path(str(REPOSITORY / "hatch_build.py"))["IndexPageHook"]
    told: dict[str, object] = {}
    hook(str(REPOSITORY), {"repository": "https://example.com/soliton"}).update(told)
    assert "(https://example.com/soliton/blob/main/docs/how-to/install.md)" in str(told["readme"])
    assert "](docs/" not in str(told["readme"])
    assert told["urls"]
