"""Errors of the chain ring: malformed bytes or JSON, and values outside their limits.

What lives here: error types with the invalid value. What does not: error codes and messages of the
REST interface, which the shell derives from these types.
"""

from __future__ import annotations

from soliton.errors import InputError


class ChainError(InputError):
    """A value, or its bytes or JSON, is invalid."""


class FormatError(ChainError):
    """Bytes cannot be decoded: truncated, over-long, trailing, or with impossible lengths."""


class AddressError(ChainError):
    """Text or bytes are not an address or alias of this chain."""


class AliasError(AddressError):
    """Text or bytes are not an alias of this chain."""


class JsonFieldError(ChainError):
    """A JSON member is missing or of the wrong type.

    ``path`` is the member as in ``transfers[2].amount``; ``expected`` says what is expected
    (``missing``, ``string``, ``long`` …), and ``details`` more about the value.
    """

    def __init__(self, path: str, expected: str, *details: str) -> None:
        super().__init__(f"{path}: {expected}")
        self.path = path
        self.expected = expected
        self.details = details

    def below(self, path: str) -> JsonFieldError:
        """Return the same error about a member of an outer object."""
        return JsonFieldError(path + self.path, self.expected, *self.details)


class JsonFieldErrors(ChainError):
    """Several members of one JSON object are missing or of the wrong type."""

    def __init__(self, errors: list[JsonFieldError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = errors


class PublicKeyError(ChainError):
    """Text or bytes are not a public key."""


class ValueRuleError(ChainError):
    """A transaction field violates a rule that needs no state (sign, size, count)."""


class NegativeAmount(ValueRuleError):
    """An amount is negative (for some rules: not positive)."""

    def __init__(self, amount: int, asset: str) -> None:
        super().__init__(f"negative amount: {amount} of {asset}")
        self.amount = amount
        self.asset = asset


class NonPositiveAmount(ValueRuleError):
    """An amount is not positive."""

    def __init__(self, amount: int, asset: str) -> None:
        super().__init__(f"non-positive amount: {amount} of {asset}")
        self.amount = amount
        self.asset = asset


class InsufficientFee(ValueRuleError):
    """A fee is not positive."""

    def __init__(self) -> None:
        super().__init__("insufficient fee")


class AmountOverflow(ValueRuleError):
    """A sum exceeds the signed 64-bit range."""

    def __init__(self) -> None:
        super().__init__("overflow error")


class TooBigInBytes(ValueRuleError):
    """The size of a field in bytes exceeds its limit."""


class TooBigCount(ValueRuleError):
    """A list has more entries than its limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"Too big sequence requested: max limit is {limit} entries")
        self.limit = limit


class InvalidName(ValueRuleError):
    """An asset's name is too short or too long."""

    def __init__(self) -> None:
        super().__init__("invalid name")


class InvalidDecimals(ValueRuleError):
    """Decimals of an asset are outside 0 to 8."""

    def __init__(self, decimals: int) -> None:
        super().__init__(
            f"invalid decimals value: {decimals}, decimals should be in interval [0; 8]"
        )
        self.decimals = decimals


class NegativeMinFee(ValueRuleError):
    """A sponsored fee is not positive."""

    def __init__(self, fee: int, asset: str) -> None:
        super().__init__(f"negative fee per: {fee} per {asset}")
        self.fee = fee
        self.asset = asset


class ToSelf(ValueRuleError):
    """A lease from an account to itself."""

    def __init__(self) -> None:
        super().__init__("Transaction to yourself")


class OrderInvalid(ValueRuleError):
    """An order violates a rule of its own; ``order`` is the ``soliton.chain.orders.Order``."""

    def __init__(self, order: object, reason: str) -> None:
        super().__init__(f"Order validation error: {reason}")
        self.order = order
        self.reason = reason


class WrongChainId(ValueRuleError):
    """A value belongs to another network."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(f"Wrong chain-id. Expected - {expected}, provided - {found}")
        self.expected = expected
        self.found = found


class UnsupportedTransaction(ChainError):
    """A transaction type or version is unknown."""

    def __init__(self, type_id: int, version: int) -> None:
        super().__init__(f"Bad transaction type ({type_id}) and version ({version})")
        self.type_id = type_id
        self.version = version
