"""The local source files of scripts on a chain.

What lives here: finding the source that a script was compiled from, and positions in it. What does
not: requests (``soliton.client``), options (``soliton.cli``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from soliton.client.errors import NodeRefused
from soliton.client.node import Node
from soliton.ride.faults import KNOWN, FaultReport, Position, SourceText
from soliton.ride.script import parse_script_text
from soliton.ride.source_map import SourceMap, map_known_source


def remember_source(node: Node, script: str, source: SourceText) -> bool:
    """Send the source of a script to a devnet, for line numbers in its errors. Returns ``False`` on
    other chains.
    """
    body = {"script": script, "source": source.text, "imports": source.libraries}
    body |= {"name": source.name} if source.name else {}
    try:
        return bool(node.post_json("/devnet/sources", body)["done"])
    except NodeRefused:
        return False


class LocalFiles:
    """Finds the local source files of scripts on a chain."""

    def __init__(self, node: Node, sources: Mapping[Path, SourceText]) -> None:
        """Each script is compared with all ``sources``."""
        self._node = node
        self._sources = sources
        self._found: dict[str, SourceMap | None] = {}
        self._known: dict[str, tuple[str, SourceText]] = {}
        self.names: Final[dict[str, str]] = {}
        """File names by the addresses of their scripts."""

    def mapped(self, report: FaultReport) -> FaultReport:
        """The report with positions in the local files."""
        return msgspec.structs.replace(
            report,
            position=self._position(report.position),
            calls=tuple(self._position(each) for each in report.calls),
        )

    def map_of(self, address: str) -> SourceMap | None:
        """The source map of an account's script, if its source is known."""
        if address not in self._found:
            self._found[address] = self._find(address)
        return self._found[address]

    def source_of(self, address: str) -> tuple[str, SourceText] | None:
        """An account's script in base64 and its source, if that is known."""
        if self.map_of(address) is None:
            return None
        return self._known[address]

    def _find(self, address: str) -> SourceMap | None:
        text = self._node.script(address).script if self._sources else None
        if text is None:
            return None
        script = parse_script_text(text)
        for path, source in self._sources.items():
            known = map_known_source(script, source.text, source.libraries)
            if known is not None:
                self.names[address] = str(path)
                self._known[address] = text, source
                return known
        return None

    def _position(self, position: Position) -> Position:
        known = self.map_of(position.script)
        if known is None or position.node < 0:
            return position
        place = known.range_of(position.node)
        return msgspec.structs.replace(
            position,
            source=KNOWN,
            line=place.line,
            column=place.column,
            expression=place.text,
            file=place.file,
        )
