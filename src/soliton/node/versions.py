"""The version that a node reports to its clients.

Clients compare it with the version that they need, so it is that of the interface of the network's
family, not Soliton's own.
"""

from __future__ import annotations

from typing import Final

_NAMES: Final = {"waves": "Waves", "zbs": "Zbs", "tn": "TN"}
_VERSIONS: Final = {"waves": "1.6.6", "zbs": "0.16.3", "tn": "1.2.18"}


def interface_version(family: str) -> str:
    """Return the version, such as ``1.6.6``."""
    return _VERSIONS[family]


def agent(family: str) -> str:
    """Return name and version as ``/node/version`` does, such as ``Waves v1.6.6``."""
    return f"{_NAMES[family]} v{_VERSIONS[family]}"
