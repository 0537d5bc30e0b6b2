"""The errors of the REST API: one table of code, HTTP status, message and extra members.

What lives here: the kinds of error, the exception that carries one, and the rejection that makes
the application try the next route. What does not: choosing the error for a rule of the chain
(``translate`` and the routes), and responding (``application``). ``docs/reference/errors.md`` and
the error responses of the OpenAPI document are generated from the table.

Source of codes and messages: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/ApiError.scala``. Codes 1, 10, 111, 112, 114,
115, 302 and 306 stand for two kinds each, as they do there: clients read the message too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from string import Formatter

import msgspec

from soliton.errors import InvariantBroken, SolitonError
from soliton.web.request import RejectionError as RejectionError


class ApiError(SolitonError):
    """An error of the table with its message and members."""

    def __init__(
        self, kind: ErrorKind, message: str, members: Mapping[str, object], hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after = kind.retry_after
        self.kind = kind
        self.message = message
        self.members = members
        self.hint = hint

    def body(self) -> dict[str, object]:
        """The JSON object of the response. ``hint`` is an addition to the reference."""
        body: dict[str, object] = {"error": self.kind.code, "message": self.message, **self.members}
        if self.hint is not None:
            body["hint"] = self.hint
        return body

    def with_hint(self, hint: str) -> ApiError:
        """The same error with a sentence on how to avoid it."""
        return ApiError(self.kind, self.message, self.members, hint)

    def after(self, seconds: float) -> ApiError:
        """Set ``Retry-After`` to at least ``seconds``; returns the error."""
        self.retry_after = max(1, ceil(seconds))
        return self


class ErrorKind(msgspec.Struct, frozen=True):
    """One row of the table; ``error(...)`` makes the exception."""

    code: int
    status: int
    name: str
    message: str
    when: str
    members: tuple[str, ...] = ()
    example: Mapping[str, object] = {}
    retry_after: int | None = None
    """The value of ``Retry-After`` in seconds."""

    def error(self, **values: object) -> ApiError:
        """The exception. ``values`` fill the fields of the message and the extra members."""
        message = self.message
        if "{" in message:
            texts = {name: _text(value) for name, value in values.items()}
            missing = {place for _, place, _, _ in Formatter().parse(message) if place} - set(texts)
            if missing:
                raise InvariantBroken(f"error {self.name} made without {sorted(missing)}")
            message = message.format_map(texts)
        try:
            members = {name: values[name] for name in self.members}
        except KeyError as error:
            raise InvariantBroken(f"error {self.name} made without {error}") from error
        return ApiError(self, message, members)


def _text(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(item) for item in value)
    return str(value)


def _row(head: str, message: str, when: str, members: str = "", /, **example: object) -> ErrorKind:
    """A kind; ``head`` is its code, status, name and, optionally, ``Retry-After`` in seconds."""
    code, status, name, *retry_after = head.split()
    kind = ErrorKind(int(code), int(status), name, message, when, tuple(members.split()), example)
    return msgspec.structs.replace(kind, retry_after=int(retry_after[0])) if retry_after else kind


# fmt: off
UNKNOWN = _row("0 500 Unknown", "Error is unknown",
    "the node itself failed; its log has the reason")
WRONG_JSON = _row("1 400 WrongJson", "failed to parse json message",
    "the body is not JSON, or not of the expected outer shape", "cause validationErrors",
    cause="JSON is malformed: invalid character (byte 1)", validationErrors={})
WRONG_JSON_DATA = _row("1 400 WrongJson",
    "json data validation error, see validationErrors for details",
    "the body is JSON, but members are missing or of a wrong type", "cause validationErrors",
    cause=None, validationErrors={"obj.fee": [{"msg": ["error.path.missing"], "args": []}]})
API_KEY_NOT_VALID = _row("2 403 ApiKeyNotValid", "Provided API key is not correct",
    "the header `X-API-Key` is missing or wrong, or the configured hash is malformed")
DISCONTINUED_API = _row("3 400 DiscontinuedApi", "This API is no longer supported",
    "an old payment path")
TOO_BIG_SEQUENCE = _row("10 400 TooBigArrayAllocation", "Too big sequence requested",
    "a range, list or length is over its limit")
TOO_BIG_SEQUENCE_WITH_LIMIT = _row("10 400 TooBigArrayAllocation",
    "Too big sequence requested: max limit is {limit} entries",
    "a list is over its limit, which the message names", limit=1000)
INVALID_SIGNATURE = _row("101 400 InvalidSignature", "invalid signature",
    "a request's signature is wrong")
INVALID_ADDRESS = _row("102 400 InvalidAddress", "invalid address",
    "wrong length, checksum or network of an address")
TOO_BIG_IN_BYTES = _row("107 400 TooBigInBytes", "{message}",
    "an attachment, a data transaction or proofs are too long",
    message="Invalid attachment. Length 141 bytes exceeds maximum of 140 bytes.")
INVALID_PUBLIC_KEY = _row("108 400 InvalidPublicKey", "invalid public key",
    "a public key is not 32 bytes")
INVALID_MESSAGE = _row("110 400 InvalidMessage", "invalid message",
    "a signed message cannot be decoded")
INVALID_NAME = _row("111 400 InvalidName", "invalid name",
    "length or characters of an asset's name")
NEGATIVE_AMOUNT = _row("111 400 NegativeAmount", "negative amount: {amount} of {asset}",
    "an amount that must not be negative", amount=-1, asset="waves")
STATE_CHECK_FAILED = _row("112 400 StateCheckFailed", "State check failed. Reason: {reason}",
    "the transaction is invalid in this state; has the members of the inner error", "transaction",
    reason="Fee for TransferTransaction (1 in WAVES) is too small", transaction={"type": 4})
INSUFFICIENT_FEE = _row("112 400 InsufficientFee", "insufficient fee",
    "the fee is zero or negative")
OVERFLOW_ERROR = _row("113 400 OverflowError", "overflow error", "a sum does not fit 64 bits")
TO_SELF_ERROR = _row("114 400 ToSelfError", "Transaction to yourself", "a lease to oneself")
NEGATIVE_MIN_FEE = _row("114 400 NegativeMinFee", "negative fee per: {fee} per {asset}",
    "a sponsored asset's fee is negative", fee=-1, asset="WAVES")
MISSING_SENDER_PRIVATE_KEY = _row("115 400 MissingSenderPrivateKey",
    "no private key for sender address in wallet", "the node's wallet has no such account")
NON_POSITIVE_AMOUNT = _row("115 400 NonPositiveAmount", "non-positive amount: {amount} of {asset}",
    "an amount that must be above zero", amount=0, asset="waves")
INVALID_IDS = _row("116 400 InvalidIds", "Request contains invalid IDs. {ids}",
    "ids of a list are not base58, or unknown", "ids", ids=["0OIl"])
INVALID_DECIMALS = _row("117 400 InvalidDecimals",
    "invalid decimals value: {decimals}, decimals should be in interval [0; 8]",
    "decimals of an asset", decimals=9)
CONFLICTING_REQUEST_STRUCTURE = _row("198 400 ConflictingRequestStructure",
    "Conflicting request structure. Both expression and invocation structure were sent",
    "script evaluation")
CUSTOM_VALIDATION_ERROR = _row("199 400 CustomValidationError", "{message}",
    "every rule without a code of its own", message="Invalid sequence")
BLOCK_DOES_NOT_EXIST = _row("301 404 BlockDoesNotExist", "block does not exist",
    "no such height or block id")
ALIAS_DOES_NOT_EXIST = _row("302 404 AliasDoesNotExist", "alias '{alias}' doesn't exist",
    "no account has this alias", alias="alias:W:nobody")
MISTIMING = _row("303 400 Mistiming", "{message}",
    "a timestamp too far in the past or in the future",
    message="Transaction timestamp 1 is more than 7200000ms in the past")
DATA_KEY_DOES_NOT_EXIST = _row("304 404 DataKeyDoesNotExist", "no data for this key",
    "an account has no such entry")
SCRIPT_COMPILER_ERROR = _row("305 400 ScriptCompilerError", "{message}",
    "RIDE source or a serialised script does not compile",
    message="Compilation failed: [A definition of 'a' is not found in 0-1]")
SCRIPT_EXECUTION_ERROR = _row("306 400 ScriptExecutionError",
    "Error while executing {owner}-script: {reason}", "an account's or a token's script failed",
    "transaction", owner="account", reason="Explicit script termination", transaction={"type": 4})
INVOKE_EXECUTION_ERROR = _row("306 400 InvokeExecutionError",
    "Error while executing dApp: {reason}", "a dApp's function failed", "transaction",
    reason="Explicit script termination", transaction={"type": 16})
TRANSACTION_NOT_ALLOWED_BY_ACCOUNT_SCRIPT = _row("307 400 TransactionNotAllowedByAccountScript",
    "Transaction is not allowed by account-script", "the sender's script returned false",
    "transaction",
    transaction={"type": 4})
TRANSACTION_NOT_ALLOWED_BY_ASSET_SCRIPT = _row("308 400 TransactionNotAllowedByAssetScript",
    "Transaction is not allowed by token-script", "an asset's script returned false", "transaction",
    transaction={"type": 4})
TRANSACTION_DOES_NOT_EXIST = _row("311 404 TransactionDoesNotExist", "transactions does not exist",
    "no such transaction on the chain")
UNSUPPORTED_TRANSACTION_TYPE = _row("312 501 UnsupportedTransactionType",
    "transaction type not supported",
    "genesis and payment transactions cannot be sent; some types cannot be signed")
ASSET_DOES_NOT_EXIST = _row("313 404 AssetDoesNotExist", "Asset does not exist: {id}",
    "no such asset", id="DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p")
ASSETS_DOES_NOT_EXIST = _row("314 400 AssetsDoesNotExist", "Asset does not exist. {ids}",
    "some assets of a list do not exist", "ids",
    ids=["DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p"])
ALREADY_IN_STATE = _row("400 400 AlreadyInState",
    "Transaction {id} is already in the state on a height of {height}",
    "the transaction is on the chain", id="CreSCBdSzL8NtUKSvpWWHNGPPHo1Fb3nJ5FjhZs7pVvM",
    height=100)
ACCOUNT_BALANCE_ERRORS = _row("402 400 AccountBalanceErrors", "Accounts balance errors",
    "balances would become negative", "details",
    details={"3P274YB5qseSE9DTTL3bpSjosZrYBPDpJ8k": "negative waves balance"})
ORDER_INVALID = _row("403 400 OrderInvalid", "Order validation error: {reason}",
    "an order of an exchange breaks a rule", "order", reason="price should be > 0",
    order={"orderType": "buy"})
INVALID_CHAIN_ID = _row("404 400 InvalidChainId",
    "Wrong chain-id. Expected - {expected}, provided - {provided}",
    "the transaction was made for another network", expected=87, provided=84)
INVALID_PROOFS = _row("405 400 InvalidProofs", "{message}",
    "too many proofs, or one of them too long", message="Too many proofs (9), only 8 allowed")
NOT_FINALIZED = _row("406 404 NotFinalized", "Not finalized",
    "there is no block above this height yet, which could have made one final")
INVALID_TRANSACTION_ID = _row("4001 400 InvalidTransactionId", "{message}",
    "a transaction id is not base58, has a wrong length or is missing",
    message="Transaction ID was not specified")
INVALID_BLOCK_ID = _row("4002 400 InvalidBlockId", "{message}",
    "a block id is not base58 or has a wrong length",
    message="at has invalid length 2. Length can either be 32 or 64")
INVALID_ASSET_ID = _row("4007 400 InvalidAssetId", "Invalid asset id",
    "an asset id is not base58")
DATA_KEYS_NOT_SPECIFIED = _row("4008 400 DataKeysNotSpecified", "Key was not specified",
    "an empty list of keys")
ASSET_ID_NOT_SPECIFIED = _row("4009 400 AssetIdNotSpecified", "Asset ID was not specified",
    "an empty list of assets")
EVENTS_GONE = _row("4100 410 EventsGone", "cannot go on from there: {reason}",
    "the place of `Last-Event-ID` or `from` is too old, or of another chain",
    reason="the event is too old: events go back to height 90000")
NO_CONTROLS = _row("4040 404 NoControls",
    "The controls are those of a devnet with one node: {reason}",
    "a request for a route under `/devnet` to a devnet of several nodes",
    reason="its nodes agree by proof of stake, and none can make blocks or time alone")
FOREIGN_ORIGIN = _row("4030 403 ForeignOrigin",
    "Pages of {origin} may not control this devnet: name them with --allow-origin",
    "a page of another origin calls a control of a devnet, under `/devnet` or on `/eth`",
    origin="https://example.com")
NOT_IN_FORK = _row("4101 404 NotInFork", "{message}",
    "on a devnet with `--fork`: the origin node does not provide it, or has changed since",
    message="who has DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p: not known in a fork")
NOT_KEPT = _row("4102 410 NotKept", "{message}",
    "the mode of the node (`db.mode`, or a switch `db.store-…`) keeps no such records of that age",
    message="not kept here: the transactions of block 5 (this node, whose mode is pruned, has "
    "those from height 8001 on); a node with db.mode = full has it")
TOO_MANY_WAITING = _row("5032 503 TooManyWaiting 5", "too many clients wait for events already",
    "the limit on event streams, or on requests that wait")
TOO_MANY_REQUESTS = _row("4290 429 TooManyRequests 1", "Too much has been asked from this address",
    "the requests of one address took more working time than `rest-api.limits` allow")
TOO_MANY_OF_CLIENT = _row("4291 429 TooManyLongAnswers 1",
    "Too many long answers for this address are under way",
    "the limit on long answers of one address")
TOO_MANY_LONG_ANSWERS = _row("5033 503 Busy 1", "Too many long answers are under way",
    "the limit on long answers of all clients")
NODE_NOT_REACHABLE = _row("5034 503 NodeNotReachable 1", "The node cannot be asked now",
    "with `rest-api.workers`: a worker cannot reach the process that writes")
STORE_BUSY = _row("5035 503 StoreBusy 1", "Too many requests read the chain at the same time",
    "the limit on snapshots of the chain, or on those who read its store")
STORE_FULL = _row("5036 503 NoSpaceLeft 10", "There is no space left on the node's disk",
    "the request has to write to the disk, which is full; nothing has changed")
STORE_DAMAGED = _row("5037 503 StoreDamaged",
    "The node's store is damaged: its operator has to look at it",
    "a record on the disk cannot be read; the log says which, and `soliton verify` finds others")
WALLET_NOT_WRITTEN = _row("5038 503 WalletNotWritten 10",
    "The wallet's file cannot be written; the wallet is as it was",
    "an account is created or deleted, and the disk is full or fails; the log has the reason")
STORE_TROUBLE = _row("5039 503 StoreTrouble 10", "The node cannot use its disk now",
    "the disk or the database fails; the log has the reason")
SIGNER_REFUSES = _row("5040 403 SignerRefuses", "The signer refuses: {reason}",
    "with `wallet.signer`: its rules reject it, or a key is locked", reason="the key hot is locked")
SIGNER_SILENT = _row("5041 503 SignerUnavailable 1", "The signer cannot be asked now",
    "with `wallet.signer`: it does not answer, or not correctly; the log has the reason")
FORK_TROUBLE = _row("5042 503 ForkTrouble 10", "{message}",
    "on a devnet with `--fork`: the origin node is not reachable, or its answer is wrong",
    message="http://127.0.0.1:6870, which this chain is forked from: it cannot be reached")
SERVER_REQUEST_TIMEOUT = _row("5031 503 ServerRequestTimeout",
    "The server was not able to produce a timely response to request",
    "the request timed out, or too many long ones are queued")
# fmt: on

ERRORS: tuple[ErrorKind, ...] = tuple(
    sorted(
        (value for value in globals().copy().values() if isinstance(value, ErrorKind)),
        key=lambda kind: kind.code,
    )
)


def state_check_failed(inner: ApiError, transaction: object) -> ApiError:
    """Error 112 around ``inner``, whose members are kept (``details`` of 402, for example)."""
    outer = STATE_CHECK_FAILED.error(reason=inner.message, transaction=transaction)
    return ApiError(outer.kind, outer.message, {**inner.members, **outer.members}, inner.hint)


def invalid_request(message: str) -> ApiError:
    """Error 199, for every rule without a code of its own."""
    return CUSTOM_VALIDATION_ERROR.error(message=message)


def errors_reference() -> str:
    """The text of ``docs/reference/errors.md``; run this module to write it."""
    lines = [
        "# Errors of the REST API",
        "",
        'An error is a JSON object `{"error": code, "message": text}` with the members named',
        "below. A `hint` may follow: a sentence for a person, not for a program.",
        "Some codes stand for two kinds of error: read the message as well.",
        "This page is generated from `soliton.api.errors`.",
        "",
        "| Code | HTTP | Name | Message | More members | When |",
        "|---|---|---|---|---|---|",
    ]
    for kind in ERRORS:
        members = ", ".join(f"`{name}`" for name in kind.members)
        message = kind.message.replace("|", "\\|")
        lines.append(
            f"| {kind.code} | {kind.status} | {kind.name} | `{message}` | {members} | {kind.when} |"
        )
    lines += [
        "",
        "A request that no route accepts (an unknown path, a wrong method, a malformed number in",
        "a path or query, a missing or wrong content type) gets status 404",
        "with a sentence in plain text and a hint in the header `X-Hint`, a `GET` on some routes",
        "that require JSON 405, a body over `rest-api.limits.body-bytes` 413, and a request that",
        "times out 503. With 429 and 503 the header `Retry-After` has the seconds to wait.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    from pathlib import Path

    Path("docs/reference/errors.md").write_text(errors_reference(), encoding="utf-8")
