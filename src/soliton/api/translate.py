"""Translation of errors of the inner packages to errors of the REST API: one table, by type.

What lives here: the code and the text of an error in each generation of the interface. What does
not: the codes themselves (``errors``), and the messages of the inner errors.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/ApiError.scala``
(``fromValidationError``) and 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/api/http/
ApiError.scala`` for the oldest generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from soliton.api import errors
from soliton.api.hints import chain_name
from soliton.chain import errors as chain_errors
from soliton.chain.orders import Order
from soliton.chain.orders import to_json as order_json
from soliton.chain.transactions.codec import ProofsError, to_json
from soliton.chain.transactions.model import AnyTransaction, ForeignForm, TransactionType
from soliton.chain.transactions.table import registered
from soliton.errors import InputError, SolitonError
from soliton.ledger import errors as ledger_errors
from soliton.ledger.scripts import (
    InvocationRejected,
    NotAllowedByScript,
    ScriptExecutionError,
)
from soliton.node.peering import NotEnoughPeers
from soliton.node.pool import PoolFull
from soliton.storage.errors import NotBelow

OLDEST: Final = "zbs"
"""The network family with the oldest generation of the interface."""

_LAST_TYPE: Final = 18

# Each function takes the error class of its row.
Translation = Callable[[Any], errors.ApiError]


def _as(kind: errors.ErrorKind, *members: str, **fixed: object) -> Translation:
    """An error of a kind; ``members`` are copied from the inner error."""
    return lambda error: kind.error(**{name: getattr(error, name) for name in members}, **fixed)


def _with_message(kind: errors.ErrorKind) -> Translation:
    return lambda error: kind.error(message=str(error))


def _generic(error: SolitonError) -> errors.ApiError:
    return errors.invalid_request(str(error))


def json_faults(found: Iterable[chain_errors.JsonFieldError]) -> dict[str, object]:
    """The errors of members in the structure of play-json."""
    faults: dict[str, list[object]] = {}
    for each in found:
        shown = {"msg": [each.expected], "args": [*each.details]}
        faults.setdefault(each.path, []).append(shown)
    return {**faults}


def _wrong_members(kind: errors.ErrorKind) -> Translation:
    return lambda error: kind.error(cause=None, validationErrors=json_faults(error.errors))


def _unsupported(error: chain_errors.UnsupportedTransaction) -> errors.ApiError:
    # Types that exist but cannot be sent or signed, such as genesis and payment.
    sendable = any(kind.type_id == error.type_id and is_sendable(kind) for kind in registered())
    if 0 < error.type_id <= _LAST_TYPE and not sendable:
        return errors.UNSUPPORTED_TRANSACTION_TYPE.error()
    return errors.invalid_request(str(error))


def is_sendable(kind: TransactionType) -> bool:
    """Whether transactions of the type can be sent in JSON."""
    return kind.versioned and not isinstance(kind.protobuf, ForeignForm)


def _oldest_amount(
    error: chain_errors.NegativeAmount | chain_errors.NonPositiveAmount,
) -> errors.ApiError:
    asset = "zbs" if error.asset == "waves" else error.asset
    return errors.NEGATIVE_AMOUNT.error(amount=error.amount, asset=asset)


def _order(error: chain_errors.OrderInvalid) -> errors.ApiError:
    shown = order_json(error.order) if isinstance(error.order, Order) else None
    return errors.ORDER_INVALID.error(reason=error.reason, order=shown)


def _script_error(error: ScriptExecutionError) -> errors.ApiError:
    owner = "account" if error.asset_id is None else "token"
    return errors.SCRIPT_EXECUTION_ERROR.error(owner=owner, reason=error.reason, transaction=None)


def _not_allowed(error: NotAllowedByScript) -> errors.ApiError:
    by_account = error.asset_id is None
    kind = (
        errors.TRANSACTION_NOT_ALLOWED_BY_ACCOUNT_SCRIPT
        if by_account
        else errors.TRANSACTION_NOT_ALLOWED_BY_ASSET_SCRIPT
    )
    return kind.error(transaction=None)


def _chain_id(error: chain_errors.WrongChainId) -> errors.ApiError:
    here, there = chain_name(error.expected), chain_name(error.found)
    return errors.INVALID_CHAIN_ID.error(expected=error.expected, provided=error.found).with_hint(
        f"it was made for the chain {there}, this node is of {here}: sign it anew for that one"
    )


_TABLE: Final[Mapping[type[SolitonError], Translation]] = {
    chain_errors.AddressError: _as(errors.INVALID_ADDRESS),
    chain_errors.AliasError: _generic,
    chain_errors.PublicKeyError: _as(errors.INVALID_ADDRESS),
    chain_errors.JsonFieldErrors: _wrong_members(errors.WRONG_JSON_DATA),
    chain_errors.UnsupportedTransaction: _unsupported,
    ProofsError: _with_message(errors.INVALID_PROOFS),
    chain_errors.NegativeAmount: _as(errors.NEGATIVE_AMOUNT, "amount", "asset"),
    chain_errors.NonPositiveAmount: _as(errors.NON_POSITIVE_AMOUNT, "amount", "asset"),
    chain_errors.InsufficientFee: _as(errors.INSUFFICIENT_FEE),
    chain_errors.InvalidName: _as(errors.INVALID_NAME),
    chain_errors.InvalidDecimals: _as(errors.INVALID_DECIMALS, "decimals"),
    chain_errors.NegativeMinFee: _as(errors.NEGATIVE_MIN_FEE, "fee", "asset"),
    chain_errors.ToSelf: _as(errors.TO_SELF_ERROR),
    chain_errors.OrderInvalid: _order,
    ScriptExecutionError: _script_error,
    InvocationRejected: _as(errors.INVOKE_EXECUTION_ERROR, "reason", transaction=None),
    NotAllowedByScript: _not_allowed,
    chain_errors.AmountOverflow: _as(errors.OVERFLOW_ERROR),
    chain_errors.TooBigInBytes: _with_message(errors.TOO_BIG_IN_BYTES),
    chain_errors.TooBigCount: _as(errors.TOO_BIG_SEQUENCE),
    chain_errors.WrongChainId: _chain_id,
    ledger_errors.Mistiming: _with_message(errors.MISTIMING),
    ledger_errors.ActivationError: lambda e: errors.invalid_request(f"ActivationError({e})"),
    ledger_errors.AlreadyInState: lambda e: errors.ALREADY_IN_STATE.error(
        id=e.transaction_id, height=e.height
    ),
    ledger_errors.AliasDoesNotExist: _as(errors.ALIAS_DOES_NOT_EXIST, "alias"),
    ledger_errors.BalanceErrors: _as(errors.ACCOUNT_BALANCE_ERRORS, "details"),
    NotBelow: _with_message(errors.NOT_IN_FORK),
    InputError: _generic,
}

_OLDEST_TABLE: Final[Mapping[type[SolitonError], Translation]] = {
    **_TABLE,
    chain_errors.JsonFieldErrors: _wrong_members(errors.WRONG_JSON),
    chain_errors.UnsupportedTransaction: _generic,
    ProofsError: _generic,
    chain_errors.NegativeAmount: _oldest_amount,
    chain_errors.NonPositiveAmount: _oldest_amount,
    chain_errors.TooBigInBytes: _as(errors.TOO_BIG_SEQUENCE),
    ledger_errors.AlreadyInState: _generic,
    ledger_errors.BalanceErrors: lambda e: errors.invalid_request(", ".join(e.details.values())),
}


def refusal(error: SolitonError, family: str) -> errors.ApiError:
    """The API's form of an error. Raises an error that no input has caused."""
    if isinstance(error, errors.ApiError):
        return error
    table = _OLDEST_TABLE if family == OLDEST else _TABLE
    for kind in type(error).__mro__:
        translate = table.get(kind)
        if translate is not None:
            return translate(error)
    raise error


def state_refusal(error: SolitonError, transaction: AnyTransaction, family: str) -> errors.ApiError:
    """The API's form of an error of the pool or the ledger about a transaction.

    Timestamps, the pool's limits, scripts and a fork's limits have their own codes; any other error
    is wrapped in error 112 with the transaction.
    """
    inner = refusal(error, family)
    if isinstance(error, ledger_errors.Mistiming | PoolFull | NotEnoughPeers | NotBelow):
        return inner
    shown = to_json(transaction)
    if isinstance(error, ScriptExecutionError | InvocationRejected | NotAllowedByScript):
        return errors.ApiError(inner.kind, inner.message, {"transaction": shown})
    if family != OLDEST:
        return errors.state_check_failed(inner, shown)
    message = errors.STATE_CHECK_FAILED.message.format(reason=inner.message)
    return errors.ApiError(errors.STATE_CHECK_FAILED, message, {"tx": shown})
