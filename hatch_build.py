"""Build hook: makes Python modules of our ``.proto`` files when the package is built or installed.

``protoc`` comes from the wheel of ``grpcio-tools``, so no compiler is needed. The generated modules
go next to their ``.proto`` files, are ignored by git, and are part of every wheel.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from grpc_tools import protoc
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROTO_DIRECTORIES = (Path("src/soliton/chain/proto"), Path("src/soliton/grpc_api/proto"))


class ProtobufBuildHook(BuildHookInterface[Any]):
    """Runs before each wheel build, editable or not."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Generate ``*_pb2.py`` and their ``.pyi`` for every ``.proto`` file of the package."""
        if self.target_name == "wheel":
            generate(Path(self.root))


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
