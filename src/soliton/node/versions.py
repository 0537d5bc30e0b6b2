"""Which version a node tells its clients.

Clients compare it with what they need, so it is that of the interface which the network's family
expects, not Soliton's own.
"""

from __future__ import annotations

from typing import Final

_NAMES: Final = {"waves": "Waves", "zbs": "Zbs", "tn": "TN"}
_VERSIONS: Final = {"waves": "1.5.7", "zbs": "0.16.3", "tn": "1.2.18"}


def interface_version(family: str) -> str:
    """The bare version, such as ``1.5.7``."""
    return _VERSIONS[family]


def agent(family: str) -> str:
    """Name and version as ``/node/version`` gives them, such as ``Waves v1.5.7``."""
    return f"{_NAMES[family]} v{_VERSIONS[family]}"
