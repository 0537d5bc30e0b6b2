"""Calls of dApps by Ethereum wallets, encoded in the Ethereum ABI.

What lives here: decoding a call according to its dApp, and a dApp's interface for wallets. What
does not: running the call (``invocation``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/transaction/``
``EthABIConverter.scala`` and ``EthereumTransaction.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.caching import cached_by_weight
from soliton.chain.addresses import address_text
from soliton.chain.errors import FormatError
from soliton.chain.ethereum_encoding import SELECTOR_LENGTH, selector
from soliton.chain.features import Feature
from soliton.chain.transactions import invoke_script
from soliton.chain.transactions.ethereum import EthereumCall, to_invoke
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.rules_at import Rules
from soliton.ledger.script_setting import parsed_script
from soliton.ledger.scripts import account_script
from soliton.ledger.state import State
from soliton.ride.bindings import argument_value
from soliton.ride.errors import RideError, ScriptFormatError
from soliton.ride.expressions import DApp
from soliton.ride.functions.data import checked_bytes
from soliton.ride.functions.text import checked_text
from soliton.ride.meta import ArgumentType, argument_types, read_meta
from soliton.ride.values import MAX_LIST_LENGTH, RideList

_MAX_CACHED_BYTES: Final = 16 * 1024**2
"""The size of the cache of dApp interfaces, which holds the scripts as well."""
_HEAD_BYTES: Final = 512
_INTERFACE_FACTOR: Final = 8
"""An upper bound for the size of a parsed interface with its script, in sizes of the script."""
_ABI_TYPES: Final = {
    "Int": "int64",
    "Boolean": "bool",
    "ByteVector": "bytes",
    "String": "string",
}


def read_call(action: EthereumCall, state: State, rules: Rules) -> InvokeScript:
    """Decode the call of a wallet; raise ``TransactionRejected``."""
    account = account_script(action.d_app, state)
    if account is None:
        raise TransactionRejected(f"No script at address {address_text(action.d_app)}")
    method = action.data[:SELECTOR_LENGTH]
    signature = _functions_by_selector(account.script).get(method)
    if signature is None:
        raise TransactionRejected(f"Function not defined: {method.hex()}")
    function, types = signature
    try:
        payload, exact = to_invoke(action, function, types)
    except FormatError as error:
        raise TransactionRejected(str(error)) from error
    later = rules.has(Feature.BLOCK_REWARD_DISTRIBUTION)
    if later and not exact:
        raise TransactionRejected("Redundant bytes were found in Ethereum Invoke")
    _check_arguments(payload)
    if later and invoke_script.data_size(payload) > invoke_script.MAX_BYTES:
        raise TransactionRejected(
            f"Ethereum Invoke bytes length exceeds limit = {invoke_script.MAX_BYTES}"
        )
    if rules.ethereum_payments_checked:
        invoke_script.check_payments(payload.payments)
    return payload


def wallet_call(action: EthereumCall, state: State) -> InvokeScript | None:
    """Decode the call of a wallet; ``None`` if the dApp has no such function."""
    account = account_script(action.d_app, state)
    if account is None:
        return None
    try:
        functions = _functions_by_selector(account.script)
        signature = functions.get(action.data[:SELECTOR_LENGTH])
        return None if signature is None else to_invoke(action, *signature)[0]
    except (FormatError, TransactionRejected):
        return None


def _weight(source: bytes) -> int:
    return _HEAD_BYTES + _INTERFACE_FACTOR * len(source)


@cached_by_weight(_MAX_CACHED_BYTES, _weight)
def _functions_by_selector(source: bytes) -> dict[bytes, tuple[str, tuple[str, ...]]]:
    """Return the functions that wallets can call, with the types of their arguments."""
    content = parsed_script(source).content
    if not isinstance(content, DApp):
        return {}
    try:
        signatures = argument_types(read_meta(content.meta))
    except ScriptFormatError:
        return {}
    if signatures is None:
        return {}
    # The metadata may not fit the functions: the last of several with one name counts, and
    # parameters without a type and types without a parameter do not.
    functions = [each.function for each in content.callables]
    named = {
        function.name: signature[: len(function.parameters)]
        for function, signature in zip(functions, signatures, strict=False)
    }
    found = {}
    for name, signature in named.items():
        types = tuple(map(abi_type, signature))
        plain = tuple(kind for kind in types if kind is not None)
        if len(plain) == len(types):
            found[selector(name, plain)] = (name, plain)
    return found


def abi_type(argument: ArgumentType) -> str | None:
    """Return the ABI type of an argument; ``None`` for a union."""
    if len(argument.types) != 1:
        return None
    name = _ABI_TYPES[argument.types[0]]
    return f"{name}[]" if argument.is_list else name


def _check_arguments(payload: InvokeScript) -> None:
    """Raise for texts, bytes and lists that are longer than the language allows."""
    call = payload.call
    for argument in () if call is None else call.args:
        try:
            value = argument_value(argument)
            for item in value.items if isinstance(value, RideList) else (value,):
                if isinstance(item, str):
                    checked_text(item)
                elif isinstance(item, bytes):
                    checked_bytes(item)
        except RideError as error:
            raise TransactionRejected(str(error)) from error
        if isinstance(value, RideList) and len(value.items) > MAX_LIST_LENGTH:
            raise TransactionRejected(f"List size should not exceed {MAX_LIST_LENGTH}")
