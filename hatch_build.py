"""Build hooks: what wheels and archives hold beyond the files of the repository.

What lives here: Python modules of our ``.proto`` files, by ``protoc`` from the wheel of
``grpcio-tools``, so that no compiler is needed; the four files of Swagger UI that are served, from
that of ``swagger-ui-py``; the commit; the README as an index shows it. The first two go into the
source tree, where git ignores them, since an editable installation reads them there.
"""

from __future__ import annotations

import re
import runpy
import shutil
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

from grpc_tools import protoc
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PROTO_DIRECTORIES = (Path("src/soliton/chain/proto"), Path("src/soliton/grpc_api/proto"))
SWAGGER_UI = Path("src/soliton/web/swagger_ui")
SERVED = (
    *("swagger-ui.css", "swagger-ui-bundle.js"),
    *("favicon-16x16.png", "favicon-32x32.png"),
)
"""As in ``soliton.web.swagger``, which cannot be imported here; a test compares."""
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)([^)]+)\)")


class SourceHook(BuildHookInterface[Any]):
    """Runs before each build of a wheel, editable or not, and of an archive of the source."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make what the target needs; the commit of an editable one is read when it is asked."""
        root = Path(self.root)
        if self.target_name == "wheel":
            generate(root)
            copy_swagger_ui(root)
        if version != "editable" and (place := revision_file(root)) is not None:
            name = f"soliton/{place.name}" if self.target_name == "wheel" else place.name
            build_data["force_include"][str(place)] = name


class IndexPageHook(MetadataHookInterface):
    """Makes what an index shows: links work there, or are none."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README and the addresses of the project; ``repository`` has no slash at its end,
        and is empty as long as the source is published nowhere.
        """
        repository = self.config.get("repository", "")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        target = rf"[\1]({repository}/blob/main/\2)" if repository else r"\1"
        metadata["readme"] = {"text": LINK.sub(target, text), "content-type": "text/markdown"}
        if repository:
            metadata["urls"] = {
                "Source": repository,
                "Documentation": f"{repository}/blob/main/docs/README.md",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }


def revision_file(root: Path) -> Path | None:
    """Return a file with the commit: an archive's own, or one of what git has checked out."""
    module = runpy.run_path(str(root / "src/soliton/revision.py"))
    own = root / module["FILE"]
    if module["revision_in"](own) is not None:
        return own
    commit = module["revision_of_checkout"](root)
    if commit is None:
        return None
    place = root / "build" / module["FILE"]
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"{commit}\n", encoding="ascii")
    return place


def generate(root: Path) -> None:
    """Run protoc over all files at once; a schema that it refuses ends the build."""
    source = root / "src"
    protos = sorted(path for each in PROTO_DIRECTORIES for path in (root / each).glob("*.proto"))
    well_known = files("grpc_tools") / "_proto"
    arguments = [
        "protoc",
        f"--proto_path={source}",
        f"--proto_path={well_known}",
        f"--python_out={source}",
        f"--pyi_out={source}",
        *(str(path) for path in protos),
    ]
    if protoc.main(arguments) != 0:
        message = f"protoc refused one of {', '.join(path.name for path in protos)}"
        raise RuntimeError(message)


def copy_swagger_ui(root: Path) -> None:
    """Copy the files that are served, and the licence that they come with, into the package."""
    package = distribution("swagger-ui-py")
    target = root / SWAGGER_UI
    target.mkdir(exist_ok=True)
    for name in SERVED:
        shutil.copyfile(str(package.locate_file(f"swagger_ui/static/{name}")), target / name)
    licence = next(path for path in package.files or () if path.name == "LICENSE")
    shutil.copyfile(str(licence.locate()), target / "LICENSE")
