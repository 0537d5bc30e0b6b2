"""The matcher's errors: a table of codes and templates, and the exception that carries one of them
with its parameters.

A code combines an object, a part of it and a class: ``(object << 20) + (part << 8) + class``. The
rules of this package raise the errors that concern orders; ``soliton.matcher`` raises the rest, so
that all are in one table.

What lives here: the table, the types of parameters and their forms as text and JSON. What does not:
HTTP statuses and response bodies, which differ from route to route.

Source: wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/error/MatcherError.scala``
and ``error/Implicits.scala``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from soliton.errors import InputError
from soliton.matching.pairs import AssetPair


class ErrorKind(msgspec.Struct, frozen=True):
    """One row of the table. ``templates`` has two forms if the message depends on the case."""

    code: int
    name: str
    templates: tuple[str, ...]


class Amount(msgspec.Struct, frozen=True):
    """An amount (decimal text) of an asset (base58, or ``WAVES`` for the native coin)."""

    volume: str
    asset: str


class Balance(msgspec.Struct, frozen=True):
    """Amounts of several assets."""

    amounts: tuple[Amount, ...]


Param = int | str | AssetPair | Amount | Balance | tuple[str, ...] | tuple[int, ...]


class MatcherError(InputError):
    """An error of one kind. ``form`` selects one of the kind's templates."""

    def __init__(self, kind: ErrorKind, /, *, form: int = 0, **params: Param) -> None:
        self.kind = kind
        self.template = kind.templates[form]
        self.params: Mapping[str, Param] = params
        self.message = self.template
        for name, value in params.items():
            self.message = self.message.replace("{{" + name + "}}", param_text(value))
        super().__init__(self.message)

    @property
    def code(self) -> int:
        """The error code that clients see."""
        return self.kind.code

    def to_json(self) -> dict[str, Any]:
        """``error``, ``message``, ``template`` and, unless empty, ``params``."""
        out: dict[str, Any] = {
            "error": self.kind.code,
            "message": self.message,
            "template": self.template,
        }
        if self.params:
            out["params"] = {name: param_json(value) for name, value in self.params.items()}
        return out


def param_text(value: Param) -> str:
    """A parameter as text, for a message."""
    match value:
        case AssetPair():
            return value.key
        case Amount(volume=volume, asset=asset):
            return f"{volume} {asset}"
        case Balance(amounts=amounts):
            return " and ".join(map(param_text, amounts))
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def param_json(value: Param) -> object:
    """A parameter as JSON."""
    match value:
        case AssetPair():
            return value.to_json()
        case Amount(volume=volume, asset=asset):
            return {"volume": volume, "assetId": asset}
        case Balance(amounts=amounts):
            return {amount.asset: amount.volume for amount in amounts}
        case tuple():
            return list(value)
        case _:
            return value


KINDS: Final[dict[str, ErrorKind]] = {}
"""All kinds by name."""


def _row(head: str, *templates: str) -> ErrorKind:
    code, name = head.split()
    kind = KINDS[name] = ErrorKind(int(code), name, templates)
    return kind


# fmt: off
UNEXPECTED_ERROR: Final = _row("4 UnexpectedError", "An unexpected error occurred")
MATCHER_IS_STARTING: Final = _row("13 MatcherIsStarting", "System is starting. Please retry later")
MATCHER_IS_STOPPING: Final = _row("14 MatcherIsStopping",
    "System is shutting down. Please retry later")
FEATURE_NOT_IMPLEMENTED: Final = _row("515 FeatureNotImplemented",
    "This feature is not implemented")
FEATURE_DISABLED: Final = _row("528 FeatureDisabled",
    "This feature is disabled, contact with the administrator")
UNEXPECTED_MATCHER_PUBLIC_KEY: Final = _row("3076 UnexpectedMatcherPublicKey",
    "The required matcher public key for this DEX is {{required}}, but given {{given}}")
CAN_NOT_PERSIST_EVENT: Final = _row("25601 CanNotPersistEvent",
    "Can not persist command, please retry later or contact with the administrator")
COMMAND_OUTCOME_UNKNOWN: Final = _row("25612 CommandOutcomeUnknown",
    "It is not known yet whether the command was stored: ask for the status of the order before "
    "you send it again")
REQUEST_ARGUMENT_INVALID: Final = _row("1048576 RequestArgumentInvalid",
    "The request argument '{{name}}' is invalid",
    "The request argument '{{name}}' is invalid: {{reason}}")
INVALID_JSON: Final = _row("1048577 InvalidJson",
    "The provided JSON is invalid. Check the documentation",
    "The provided JSON contains invalid fields: {{invalidFields}}. Check the documentation")
UNSUPPORTED_CONTENT_TYPE: Final = _row("1048579 UnsupportedContentType",
    "The provided Content-Type is not supported, please provide JSON")
CANCEL_REQUEST_IS_INCOMPLETE: Final = _row("1048580 CancelRequestIsIncomplete",
    "Either timestamp or orderId must be specified")
REQUEST_TIMEOUT: Final = _row("1048590 RequestTimeout", "Request timed out. Please retry later")
REQUEST_INVALID_SIGNATURE: Final = _row("1051904 RequestInvalidSignature",
    "The request has an invalid signature")
INVALID_DEPTH: Final = _row("1076224 InvalidDepth",
    "Provided depth is not correct, reason: {{reason}}")
ORDER_VERSION_UNSUPPORTED: Final = _row("2099459 OrderVersionUnsupported",
    "The order of version {{version}} isn't yet supported, see the activation status of "
    "'{{featureName}}'")
ADDRESS_IS_BLACKLISTED: Final = _row("3145733 AddressIsBlacklisted",
    "The account {{address}} is blacklisted")
BALANCE_NOT_ENOUGH: Final = _row("3147270 BalanceNotEnough",
    "Not enough tradable balance. The order requires at least {{required}} on balance, but "
    "available are {{actual}}")
ACCOUNT_SCRIPT_RETURNED_ERROR: Final = _row("3147520 AccountScriptReturnedError",
    "The account's script of {{address}} returned the error: {{scriptError}}")
ACCOUNT_SCRIPT_EXCEPTION: Final = _row("3147521 AccountScriptException",
    "The account's script of {{address}} is broken, please contact with the owner. The returned "
    "error is {{errorName}}, the text is: {{errorText}}")
ACCOUNT_SCRIPT_DENIED_ORDER: Final = _row("3147522 AccountScriptDeniedOrder",
    "The account's script of {{address}} rejected the order")
ACCOUNT_SCRIPT_UNEXPECT_RESULT: Final = _row("3147524 AccountScriptUnexpectResult",
    "The account's script of {{address}} is broken, please contact with the owner. The returned "
    "object is '{{returnedObject}}'")
ACCOUNT_NOT_SUPPORT_ORDER_VERSION: Final = _row("3148035 AccountNotSupportOrderVersion",
    "The account {{address}} requires the version >= {{required}}, but given {{given}}")
ACTIVE_ORDERS_LIMIT_REACHED: Final = _row("3148039 ActiveOrdersLimitReached",
    "The limit of {{limit}} active orders has been reached")
ACCOUNT_UNRELIABLE: Final = _row("3147015 AccountUnreliable",
    "The account {{address}} had no funds for {{count}} of its executions. Its orders are rejected "
    "until {{until}}")
ORDER_DUPLICATE: Final = _row("3148040 OrderDuplicate", "The order {{id}} has already been placed")
USER_PUBLIC_KEY_IS_NOT_VALID: Final = _row("3148801 UserPublicKeyIsNotValid",
    "Provided public key is not correct, reason: {{reason}}")
INVALID_ADDRESS: Final = _row("4194304 InvalidAddress",
    "Provided address is not correct, reason: {{reason}}")
MATCHER_BALANCE_NOT_ENOUGH: Final = _row("5244422 MatcherBalanceNotEnough",
    "The account {{address}} of the matcher has {{actual}} left for the fees of exchanges, but "
    "{{required}} are required. Please retry later or contact with the administrator")
ORDER_BOOK_BROKEN: Final = _row("8388609 OrderBookBroken",
    "The order book for {{assetPair}} is unavailable, please contact with the administrator")
ORDER_BOOK_UNEXPECTED_STATE: Final = _row("8388612 OrderBookUnexpectedState",
    "The order book for {{assetPair}} is unexpected state, please contact with the administrator")
ORDER_COMMON_VALIDATION_FAILED: Final = _row("9437184 OrderCommonValidationFailed",
    "The order is invalid: {{details}}")
INVALID_BASE58_STRING: Final = _row("9437185 InvalidBase58String",
    "Provided value is not a correct base58 string, reason: {{reason}}")
ORDER_FULL: Final = _row("9437191 OrderFull", "The order {{id}} is filled")
ORDER_NOT_FOUND: Final = _row("9437193 OrderNotFound", "The order {{id}} not found")
ORDER_CANCELED: Final = _row("9437194 OrderCanceled", "The order {{id}} is canceled")
ORDER_IS_PLACING: Final = _row("9437203 OrderIsPlacing",
    "The order {{id}} is in the process of placing, please retry later")
ORDER_VERSION_DENIED: Final = _row("9439746 OrderVersionDenied",
    "The orders of version {{version}} are denied by matcher. Allowed order versions are: "
    "{{allowedOrderVersions}}")
UNSUPPORTED_ORDER_VERSION: Final = _row("9439747 UnsupportedOrderVersion",
    "The orders of version {{version}} is not supported. Supported order versions can be obtained "
    "via /matcher/settings GET method")
ORDER_INVALID_SIGNATURE: Final = _row("9440512 OrderInvalidSignature",
    "The signature of order {{id}} is invalid: {{details}}")
ASSET_PAIR_IS_DENIED: Final = _row("9440770 AssetPairIsDenied",
    "Trading is denied for the {{assetPair}} asset pair")
ORDER_ASSET_PAIR_REVERSED: Final = _row("9440771 OrderAssetPairReversed",
    "The {{assetPair}} asset pair should be reversed")
ASSET_PAIR_SAME_ASSETS: Final = _row("9440776 AssetPairSameAssets",
    "The amount and price assets must be different, but they are: {{assetId}}")
ORDER_INVALID_AMOUNT: Final = _row("9441026 OrderInvalidAmount",
    "The order's amount {{amount}} does not meet matcher's requirements: max amount = {{max}}, "
    "min amount = {{min}}, step amount = {{step}}")
ORDER_INVALID_PRICE: Final = _row("9441282 OrderInvalidPrice",
    "The order's price {{price}} does not meet matcher's requirements: max price = {{max}}, min "
    "price = {{min}}, step price = {{step}}")
PRICE_LAST_DECIMALS_MUST_BE_ZERO: Final = _row("9441284 PriceLastDecimalsMustBeZero",
    "Invalid price, last {{insignificantDecimals}} digits must be 0")
ORDER_INVALID_PRICE_LEVEL: Final = _row("9441286 OrderInvalidPriceLevel",
    "The buy order's price {{price}} does not meet matcher's requirements: price >= {{tickSize}} "
    "(actual tick size). Orders can not be placed into level with price 0")
DEVIANT_ORDER_PRICE: Final = _row("9441295 DeviantOrderPrice",
    "The buy order's price {{price}} is out of deviation bounds. It should meet the following "
    "matcher's requirements: {{bestBidPercent}}% of best bid price <= order price <= "
    "{{bestAskPercent}}% of best ask price",
    "The sell order's price {{price}} is out of deviation bounds. It should meet the following "
    "matcher's requirements: {{bestBidPercent}}% of best bid price <= order price <= "
    "{{bestAskPercent}}% of best ask price")
UNEXPECTED_FEE_ASSET: Final = _row("9441540 UnexpectedFeeAsset",
    "Required one of the following fee asset: {{required}}. But given {{given}}")
FEE_NOT_ENOUGH: Final = _row("9441542 FeeNotEnough",
    "Required {{required}} as fee for this order, but given {{given}}")
DEVIANT_ORDER_MATCHER_FEE: Final = _row("9441551 DeviantOrderMatcherFee",
    "The buy order's matcher fee {{matcherFee}} is out of deviation bounds. It should meet the "
    "following matcher's requirements: matcher fee >= {{bestAskFeePercent}}% of fee which should "
    "be paid in case of matching with best ask",
    "The sell order's matcher fee {{matcherFee}} is out of deviation bounds. It should meet the "
    "following matcher's requirements: matcher fee >= {{bestBidFeePercent}}% of fee which should "
    "be paid in case of matching with best bid")
WRONG_EXPIRATION: Final = _row("9441798 WrongExpiration",
    "The expiration should be at least {{currentTimestamp}} + {{minExpirationOffset}} = "
    "{{minExpiration}}, but it is {{given}}")
INVALID_ASSET: Final = _row("11534337 InvalidAsset",
    "The asset '{{assetId}}' is wrong, reason: {{reason}}")
ASSET_BLACKLISTED: Final = _row("11534341 AssetBlacklisted", "The asset {{assetId}} is blacklisted")
ASSET_NOT_FOUND: Final = _row("11534345 AssetNotFound", "The asset {{assetId}} not found")
ASSET_PAIR_NOT_BLACKLISTED: Final = _row("11534356 AssetPairNotBlacklisted",
    "The asset pair {{assetPair}} is not blacklisted")
ASSET_SCRIPT_RETURNED_ERROR: Final = _row("11536128 AssetScriptReturnedError",
    "The asset's script of {{assetId}} returned the error: {{scriptError}}")
ASSET_SCRIPT_EXCEPTION: Final = _row("11536129 AssetScriptException",
    "The asset's script of {{assetId}} is broken, please contact with the owner. The returned "
    "error is {{errorName}}, the text is: {{errorText}}")
ASSET_SCRIPT_DENIED_ORDER: Final = _row("11536130 AssetScriptDeniedOrder",
    "The asset's script of {{assetId}} rejected the order")
ASSET_SCRIPT_UNEXPECT_RESULT: Final = _row("11536132 AssetScriptUnexpectResult",
    "The asset's script of {{assetId}} is broken, please contact with the owner. The returned "
    "object is '{{returnedObject}}'")
AMOUNT_ASSET_BLACKLISTED: Final = _row("11538181 AmountAssetBlacklisted",
    "The amount asset {{assetId}} is blacklisted")
PRICE_ASSET_BLACKLISTED: Final = _row("11538437 PriceAssetBlacklisted",
    "The price asset {{assetId}} is blacklisted")
FEE_ASSET_BLACKLISTED: Final = _row("11538693 FeeAssetBlacklisted",
    "The fee asset {{assetId}} is blacklisted")
MARKET_ORDER_CANCEL: Final = _row("19922960 MarketOrderCancel",
    "The market order {{id}} cannot be cancelled manually")
INVALID_MARKET_ORDER_PRICE: Final = _row("19927055 InvalidMarketOrderPrice",
    "Price of the buy market order ({{orderPrice}}) is too low for its full execution with the "
    "current market state",
    "Price of the sell market order ({{orderPrice}}) is too high for its full execution with the "
    "current market state")
RATE_NOT_FOUND: Final = _row("20971529 RateNotFound",
    "The rate for the asset {{assetId}} was not specified")
WAVES_IMMUTABLE_RATE: Final = _row("20971531 WavesImmutableRate",
    "The rate for {{assetId}} cannot be changed")
INVALID_ASSET_RATE: Final = _row("20971535 InvalidAssetRate",
    "Asset rate should be positive and should fit into double")
WAVES_NODE_CONNECTION_BROKEN: Final = _row("105906177 WavesNodeConnectionBroken",
    "Waves Node is unavailable, please retry later or contact with the administrator")
API_KEY_IS_NOT_VALID: Final = _row("106954752 ApiKeyIsNotValid", "Provided API key is not correct")
API_KEY_IS_NOT_PROVIDED: Final = _row("106954769 ApiKeyIsNotProvided",
    "API key is not provided in the configuration, please contact with the administrator")
REQUEST_AND_JWT_ADDRESSES_ARE_DIFFERENT: Final = _row(
    "106957828 RequestAndJwtAddressesAreDifferent",
    "Request address {{requestAddress}} and jwt address {{jwtAddress}} are different")
SUBSCRIPTION_AUTH_TYPE_UNSUPPORTED: Final = _row("106960131 SubscriptionAuthTypeUnsupported",
    "The subscription authentication type '{{given}}' is not supported. Required one of: "
    "{{required}}")
AUTH_IS_REQUIRED: Final = _row("106981137 AuthIsRequired",
    "The authentication is required. Please read the documentation")
BALANCING: Final = _row("109051922 Balancing", "System is balancing the load. Please reconnect")
WS_CONNECTION_MAX_LIFETIME_EXCEEDED: Final = _row("109077767 WsConnectionMaxLifetimeExceeded",
    "WebSocket has reached max allowed lifetime")
WS_CONNECTION_PONG_TIMEOUT: Final = _row("109077772 WsConnectionPongTimeout",
    "WebSocket has reached pong timeout")
SUBSCRIPTIONS_LIMIT_REACHED: Final = _row("109079303 SubscriptionsLimitReached",
    "The limit of {{limit}} subscriptions of this type was reached. The subscription of {{id}} "
    "was stopped")
JWT_COMMON_ERROR: Final = _row("110100480 JwtCommonError",
    "JWT parsing and validation failed: {{message}}")
JWT_BROKEN: Final = _row("110100481 JwtBroken", "JWT has invalid format")
INVALID_JWT_PAYLOAD_SIGNATURE: Final = _row("110103809 InvalidJwtPayloadSignature",
    "The token payload signature is invalid")
SUBSCRIPTION_TOKEN_EXPIRED: Final = _row("110105088 SubscriptionTokenExpired",
    "The subscription token for address {{address}} expired")
TOKEN_NETWORK_UNEXPECTED: Final = _row("110106116 TokenNetworkUnexpected",
    "The required network is {{required}}, but given {{given}}")
JWT_PAYLOAD_BROKEN: Final = _row("110127617 JwtPayloadBroken",
    "JWT payload has not expected fields")
# fmt: on

NOT_KNOWN_TO_BE_STORED: Final = frozenset((CAN_NOT_PERSIST_EVENT, COMMAND_OUTCOME_UNKNOWN))
"""Errors of the journal, independent of the command."""
