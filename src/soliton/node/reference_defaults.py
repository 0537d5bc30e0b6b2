"""Defaults of the reference, to which a ``${…}`` in a user's file may refer.

The reference resolves a user's file with its own defaults below it. They stand in
``reference_defaults.conf``; those that differ here (directories, ports of a network) are put above
them.

What lives here: this tree. What does not: resolving (``hocon_resolving``), and the defaults that
have an effect, which the readers of ``settings`` know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from soliton.chain import networks
from soliton.node.hocon import Leaf, Node, Tree, parse

FILE: Final = "reference_defaults.conf"
ROOT: Final = "waves"
"""The root that the file is written for; the others have the same defaults."""
_FAMILIES: Final = {"waves": "waves", "zbs": "zbs", "TN": "tn", "soliton": "zbs"}


def defaults_below(
    root: str, peek: Callable[[str], object], network: str | None, data_dir: Path | None
) -> Tree:
    """Return the defaults below a root such as ``waves``, as if the file had this root.

    ``peek`` returns a value of the user's file, ``None`` without one; ``network`` and ``data_dir``
    are options of the command line.
    """
    tree = Tree(dict(_tree(root).entries))
    name = network or _network(root, peek)
    directory = data_dir or Path.home() / ".soliton" / name
    _put(tree, f"{root}.directory", str(directory))
    ports = networks.load(name if name in networks.names() else f"{_FAMILIES[root]}-mainnet")
    _put(tree, f"{root}.rest-api.port", ports.rest_port)
    _put(tree, f"{root}.network.port", ports.peer_port)
    _put(tree, f"{root}.network.known-peers", list(ports.known_peers))
    return tree


def shared_defaults() -> Tree:
    """Return the defaults outside of the node's own root."""
    return _tree(ROOT)


def _network(root: str, peek: Callable[[str], object]) -> str:
    """The name of the network of a file, as ``settings`` finds it."""
    written = peek(f"{root}.blockchain.type")
    if not isinstance(written, str) or not written:
        return f"{_FAMILIES[root]}-testnet"
    if written.upper() == "CUSTOM":
        return "custom"
    return written if written in networks.names() else f"{_FAMILIES[root]}-{written.lower()}"


@cache
def _tree(root: str) -> Tree:
    text = (resources.files("soliton.node") / FILE).read_text(encoding="utf-8")
    if root != ROOT:
        text = text.replace(f"${{{ROOT}.", f"${{{root}.").replace(f"{ROOT} {{", f"{root} {{", 1)
    return parse(text, FILE, lambda _name, _beside: None).root


def _put(tree: Tree, path: str, value: object) -> None:
    """Set a value, in copies of the sections above it."""
    *above, last = path.split(".")
    entries: dict[str, Node] = tree.entries
    for name in above:
        below = entries.get(name)
        copied = Tree(dict(below.entries) if isinstance(below, Tree) else {})
        entries[name] = copied
        entries = copied.entries
    entries[last] = Leaf(value)
