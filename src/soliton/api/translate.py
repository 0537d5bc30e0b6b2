"""From errors of the rings within to errors of the REST API: one table, by type.

What lives here: which code and text a refusal gets in each generation of the interface. What does
not: the codes themselves (``errors``), and the words that an inner error brings along.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/ApiError.scala``
(``fromValidationError``) and 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/api/http/
ApiError.scala`` for the oldest generation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from soliton.api.errors import (
    ACCOUNT_BALANCE_ERRORS,
    ALIAS_DOES_NOT_EXIST,
    ALREADY_IN_STATE,
    INSUFFICIENT_FEE,
    INVALID_ADDRESS,
    INVALID_CHAIN_ID,
    INVALID_DECIMALS,
    INVALID_NAME,
    INVALID_PROOFS,
    INVOKE_EXECUTION_ERROR,
    MISTIMING,
    NEGATIVE_AMOUNT,
    NEGATIVE_MIN_FEE,
    NON_POSITIVE_AMOUNT,
    ORDER_INVALID,
    OVERFLOW_ERROR,
    SCRIPT_EXECUTION_ERROR,
    STATE_CHECK_FAILED,
    TO_SELF_ERROR,
    TOO_BIG_IN_BYTES,
    TOO_BIG_SEQUENCE,
    TRANSACTION_NOT_ALLOWED_BY_ACCOUNT_SCRIPT,
    TRANSACTION_NOT_ALLOWED_BY_ASSET_SCRIPT,
    UNSUPPORTED_TRANSACTION_TYPE,
    WRONG_JSON,
    WRONG_JSON_DATA,
    ApiError,
    ErrorKind,
    invalid_request,
    state_check_failed,
)
from soliton.api.hints import chain_name
from soliton.chain import errors as chain_errors
from soliton.chain.errors import (
    AddressError,
    AliasError,
    JsonFieldErrors,
    NegativeAmount,
    NonPositiveAmount,
    UnsupportedTransaction,
)
from soliton.chain.orders import Order
from soliton.chain.orders import to_json as order_json
from soliton.chain.transactions.codec import ProofsError, to_json
from soliton.chain.transactions.model import AnyTransaction, TransactionType, WholeForm
from soliton.chain.transactions.table import registered
from soliton.errors import InputError, SolitonError
from soliton.ledger import errors as ledger_errors
from soliton.ledger.scripts import (
    InvocationRejected,
    NotAllowedByScript,
    ScriptExecutionError,
)
from soliton.node.pool import PoolFull

OLDEST: Final = "zbs"
"""The network family whose interface is the oldest generation."""

_LAST_TYPE: Final = 18

# Handlers of one error class each; what they take is as precise as the row's key.
Translation = Callable[[Any], ApiError]


def _plain(kind: ErrorKind) -> Translation:
    return lambda _error: kind.error()


def _with_message(kind: ErrorKind) -> Translation:
    return lambda error: kind.error(message=str(error))


def _generic(error: SolitonError) -> ApiError:
    return invalid_request(str(error))


def _faults(error: JsonFieldErrors) -> dict[str, object]:
    faults: dict[str, list[object]] = {}
    for path, words in error.errors:
        faults.setdefault(path, []).append({"msg": [words], "args": []})
    return {**faults}


def _wrong_members(kind: ErrorKind) -> Translation:
    return lambda error: kind.error(cause=None, validationErrors=_faults(error))


def _unsupported(error: UnsupportedTransaction) -> ApiError:
    # Types that exist, but cannot be sent (or signed): genesis and payment, for two.
    sendable = any(kind.type_id == error.type_id and _is_sendable(kind) for kind in registered())
    if 0 < error.type_id <= _LAST_TYPE and not sendable:
        return UNSUPPORTED_TRANSACTION_TYPE.error()
    return invalid_request(str(error))


def _is_sendable(kind: TransactionType) -> bool:
    return kind.versioned and not isinstance(kind.protobuf, WholeForm)


def _oldest_amount(error: NegativeAmount | NonPositiveAmount) -> ApiError:
    asset = "zbs" if error.asset == "waves" else error.asset
    return NEGATIVE_AMOUNT.error(amount=error.amount, asset=asset)


def _order(error: chain_errors.OrderInvalid) -> ApiError:
    shown = order_json(error.order) if isinstance(error.order, Order) else None
    return ORDER_INVALID.error(reason=error.words, order=shown)


def _script_error(error: ScriptExecutionError) -> ApiError:
    owner = "account" if error.asset_id is None else "token"
    return SCRIPT_EXECUTION_ERROR.error(owner=owner, reason=error.reason, transaction=None)


def _not_allowed(error: NotAllowedByScript) -> ApiError:
    by_account = error.asset_id is None
    kind = (
        TRANSACTION_NOT_ALLOWED_BY_ACCOUNT_SCRIPT
        if by_account
        else TRANSACTION_NOT_ALLOWED_BY_ASSET_SCRIPT
    )
    return kind.error(transaction=None)


def _chain_id(error: chain_errors.WrongChainId) -> ApiError:
    here, there = chain_name(error.expected), chain_name(error.found)
    return INVALID_CHAIN_ID.error(expected=error.expected, provided=error.found).with_hint(
        f"it was made for the chain {there}, this node is of {here}: sign it anew for that one"
    )


_TABLE: Final[Mapping[type[SolitonError], Translation]] = {
    AddressError: _plain(INVALID_ADDRESS),
    AliasError: _generic,
    chain_errors.PublicKeyError: _plain(INVALID_ADDRESS),
    JsonFieldErrors: _wrong_members(WRONG_JSON_DATA),
    UnsupportedTransaction: _unsupported,
    ProofsError: _with_message(INVALID_PROOFS),
    NegativeAmount: lambda e: NEGATIVE_AMOUNT.error(amount=e.amount, asset=e.asset),
    NonPositiveAmount: lambda e: NON_POSITIVE_AMOUNT.error(amount=e.amount, asset=e.asset),
    chain_errors.InsufficientFee: _plain(INSUFFICIENT_FEE),
    chain_errors.InvalidName: _plain(INVALID_NAME),
    chain_errors.InvalidDecimals: lambda e: INVALID_DECIMALS.error(decimals=e.decimals),
    chain_errors.NegativeMinFee: lambda e: NEGATIVE_MIN_FEE.error(fee=e.fee, asset=e.asset),
    chain_errors.ToSelf: _plain(TO_SELF_ERROR),
    chain_errors.OrderInvalid: _order,
    ScriptExecutionError: _script_error,
    InvocationRejected: lambda e: INVOKE_EXECUTION_ERROR.error(reason=e.reason, transaction=None),
    NotAllowedByScript: _not_allowed,
    chain_errors.AmountOverflow: _plain(OVERFLOW_ERROR),
    chain_errors.TooBigInBytes: _with_message(TOO_BIG_IN_BYTES),
    chain_errors.TooBigCount: _plain(TOO_BIG_SEQUENCE),
    chain_errors.WrongChainId: _chain_id,
    ledger_errors.Mistiming: _with_message(MISTIMING),
    ledger_errors.ActivationError: lambda e: invalid_request(f"ActivationError({e})"),
    ledger_errors.AlreadyInState: lambda e: ALREADY_IN_STATE.error(
        id=e.transaction_id, height=e.height
    ),
    ledger_errors.AliasDoesNotExist: lambda e: ALIAS_DOES_NOT_EXIST.error(alias=e.alias),
    ledger_errors.BalanceErrors: lambda e: ACCOUNT_BALANCE_ERRORS.error(details=e.details),
    InputError: _generic,
}

_OLDEST_TABLE: Final[Mapping[type[SolitonError], Translation]] = {
    **_TABLE,
    JsonFieldErrors: _wrong_members(WRONG_JSON),
    UnsupportedTransaction: _generic,
    ProofsError: _generic,
    NegativeAmount: _oldest_amount,
    NonPositiveAmount: _oldest_amount,
    chain_errors.TooBigInBytes: _plain(TOO_BIG_SEQUENCE),
    ledger_errors.AlreadyInState: _generic,
    ledger_errors.BalanceErrors: lambda e: invalid_request(", ".join(e.details.values())),
}


def refusal(error: SolitonError, family: str) -> ApiError:
    """The API's form of an error; one that is nobody's input is raised again."""
    if isinstance(error, ApiError):
        return error
    table = _OLDEST_TABLE if family == OLDEST else _TABLE
    for kind in type(error).__mro__:
        translate = table.get(kind)
        if translate is not None:
            return translate(error)
    raise error


def state_refusal(error: SolitonError, transaction: AnyTransaction, family: str) -> ApiError:
    """The API's form of what the pool or the ledger has against a transaction.

    Times, limits of the pool and what scripts say stand for themselves; everything else comes
    inside of error 112 with the transaction.
    """
    inner = refusal(error, family)
    if isinstance(error, ledger_errors.Mistiming | PoolFull):
        return inner
    shown = to_json(transaction)
    if isinstance(error, ScriptExecutionError | InvocationRejected | NotAllowedByScript):
        return ApiError(inner.kind, inner.message, {"transaction": shown})
    if family != OLDEST:
        return state_check_failed(inner, shown)
    message = STATE_CHECK_FAILED.message.format(reason=inner.message)
    return ApiError(STATE_CHECK_FAILED, message, {"tx": shown})
