"""A test kit for dApps and bots: a chain in the tests' own process, and fixtures for pytest.

Its public names are those below, and the fixtures of ``soliton.testing.plugin``, which pytest loads
by itself. What lives here: lazy imports, so that no server is loaded before a name is used. What
does not: the client library (``soliton.client``).
"""

import importlib

_PLACES = {
    "chain": "Chain NotObeying",
    "dapps": "Dapp",
    "machines": "ChainMachine",
    "refusals": "Refusal refused",
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
