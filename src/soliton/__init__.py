"""Soliton: a node, signer and matcher of the Waves protocol family, and a library for its users.

The names below are the public ones: they follow semantic versions. Each is loaded when it is first
used, so that importing ``soliton`` costs nothing; the stub beside this file tells type checkers.
"""

import importlib

__version__ = "0.1.0"

_PLACES = {
    "account": "Account decrypt_seed encrypt_seed new_phrase verify",
    "amounts": "Asset units",
    "ethereum": "EthereumAccount",
    "events": "Event",
    "errors": (
        "AmountError ApprovalNeeded ClientError ClockTooFar FeeTooHigh NodeBroken NodeRefused "
        "NodeTimeout NodeUnreachable NotFound OtherChain OutcomeUnknown ScriptFailed "
        "ScriptRefused StillWaiting TransactionLost"
    ),
    "async_matcher": "AsyncMatcher",
    "async_node": "AsyncNode AsyncSent",
    "async_signer": "AsyncSigner",
    "matcher": "Matcher",
    "node": "Node Sent",
    "order": "Order",
    "payments": "Payment PaymentsUndone",
    "signer": "Signer",
    "transaction": "Transaction",
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = ["__version__", *sorted(_MODULES)]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"soliton.client.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
