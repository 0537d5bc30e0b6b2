"""Orders on the chain: their proofs, their fills, and the meaning of their prices.

What lives here: the checks of a single order against the state. What does not: the exchange of two
orders (``rules.exchange``), and rules on an order's fields (``soliton.chain.orders``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/ExchangeTransactionDiff.scala`` and
``transaction/smart/Verifier.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.chain.addresses import ETHEREUM_KEY_BITS, Address, from_public_key
from soliton.chain.errors import OrderInvalid
from soliton.chain.features import Feature
from soliton.chain.orders import PLAIN_SIGNATURE_LENGTH, Order, PriceMode, Side
from soliton.chain.values import MAX_I64, AssetId
from soliton.crypto import base58, curve25519
from soliton.crypto.curve25519 import SignedMessage
from soliton.ledger import script_runs
from soliton.ledger.context import Context
from soliton.ledger.errors import InvalidSignature, TransactionRejected
from soliton.ledger.rules_at import Rules
from soliton.ledger.scripts import account_script
from soliton.ledger.state import ASSETS, ORDER_FILLS, OrderFill, Overlay, State

NATIVE_DECIMALS: Final = 8
PRICE_DECIMALS: Final = 8
_EXACT_DIGITS: Final = 34
_FEE_ASSET_VERSION: Final = 3
_PRICE_MODE_VERSION: Final = 4


def owner_of(order: Order, rules: Rules) -> Address:
    """Return the account that made an order."""
    return from_public_key(order.sender_public_key, rules.chain_id)


# --- who signed it --------------------------------------------------------------------------------


def check_proof(order: Order, state: State, context: Context, verify: bool) -> int:
    """Run the account's verifier, or check the signature; return the complexity of the verifier.

    Without ``verify`` a signature is added to ``context.unverified``. Raises
    ``TransactionRejected``.
    """
    owner = owner_of(order, context.rules)
    script = account_script(owner, state)
    if script is not None:
        if order.version == 1:
            raise TransactionRejected("Can't process order with signature from scripted account")
        return script_runs.run_account(owner, script, order, state, context)
    if order.eip712_signature is not None:
        if not order.sender_public_key:
            raise InvalidSignature(f"Ethereum signature invalid for {_describe(order)}")
        return 0
    if len(order.proofs) != 1:
        raise TransactionRejected(
            "Transactions from non-scripted accounts must have exactly 1 proof"
        )
    signed = signed_message(order)
    weak = context.rules.has(Feature.RIDE_V6) and curve25519.is_weak(order.sender_public_key)
    if weak or (verify and not curve25519.verify(*signed)):
        raise InvalidSignature(f"Proof doesn't validate as signature for {_describe(order)}")
    if not verify:
        context.unverified.append(signed)
    return 0


def signed_message(order: Order) -> SignedMessage:
    """Return key, message and signature of an order with one proof."""
    return order.sender_public_key, order.body, order.proofs[0]


def _describe(order: Order) -> str:
    return f"OrderV{order.version}(id={base58.encode(order.id)})"


def check_recovery(order: Order, rules: Rules) -> None:
    """Raise ``TransactionRejected`` for Ethereum signatures that early rules did not accept: public
    keys with leading zeros (``ETHEREUM_KEY_BITS``), and recovery ids other than 27 and 28; and for
    those that later ones do not: in a longer form than ``PLAIN_SIGNATURE_LENGTH``.
    """
    signature = order.eip712_signature
    if signature is None:
        return
    if rules.refuses_variants and len(signature) > PLAIN_SIGNATURE_LENGTH:
        raise TransactionRejected("Invalid order signature format")
    if rules.has(Feature.CONSENSUS_IMPROVEMENTS):
        return
    if int.from_bytes(order.sender_public_key, "big").bit_length() < ETHEREUM_KEY_BITS:
        raise TransactionRejected("Invalid public key for Ethereum orders")
    if signature[-1] in (0, 1) or signature[-1] > 28:
        raise TransactionRejected("Invalid order signature format")


# --- what was executed ----------------------------------------------------------------------------


def check_fill(order: Order, amount: int, state: State) -> None:
    """Raise ``OrderInvalid`` if more than the whole order would be executed."""
    filled = state.get(ORDER_FILLS, order.id).volume
    if filled + amount > order.amount:
        side = "buy" if order.side is Side.BUY else "sell"
        raise OrderInvalid(order, f"Too much {side}. Already filled volume for the order: {filled}")


def check_fee(order: Order, amount: int, fee: int, state: State) -> None:
    """Raise ``OrderInvalid`` if the matcher takes more than the order offers for this amount."""
    filled = state.get(ORDER_FILLS, order.id)
    limit = order.matcher_fee
    if order.version < _FEE_ASSET_VERSION:
        limit = order.matcher_fee * (filled.volume + amount) // order.amount
    if filled.fee + fee > limit:
        side = "buy" if order.side is Side.BUY else "sell"
        raise OrderInvalid(order, f"Insufficient {side} fee")


def fill(order: Order, amount: int, fee: int, overlay: Overlay) -> None:
    """Record the executed amount and the paid fee."""
    old = overlay.get(ORDER_FILLS, order.id)
    overlay.put(ORDER_FILLS, order.id, OrderFill(old.volume + amount, old.fee + fee))


# --- prices ---------------------------------------------------------------------------------------


def decimals_of(asset_id: AssetId | None, state: State) -> int:
    """Return the decimals of an existing asset, or of the native coin."""
    if asset_id is None:
        return NATIVE_DECIMALS
    info = state.get(ASSETS, asset_id)
    assert info is not None, "assets of a pair are looked for before"
    return info.decimals


def fixed_price(order: Order, amount_decimals: int, price_decimals: int) -> int:
    """Return an order's price with 8 decimals; the order may give it in the assets' decimals.

    Raises ``TransactionRejected`` if it exceeds 64 bits.
    """
    fixed = (
        order.version >= _PRICE_MODE_VERSION and order.price_mode is not PriceMode.ASSET_DECIMALS
    )
    if fixed:
        return order.price
    return _in_64_bits(_scaled(order.price, amount_decimals - price_decimals))


def price_amount(amount: int, price: int, amount_decimals: int, price_decimals: int) -> int:
    """Return the cost of an amount, in the smallest unit of the price asset.

    The reference node rounds the product to 34 digits and truncates the result.
    """
    product = amount * price
    surplus = len(str(product)) - _EXACT_DIGITS
    if surplus > 0:
        product = round(product, -surplus)
    return _scaled(product, price_decimals - amount_decimals - PRICE_DECIMALS)


def _scaled(number: int, exponent: int) -> int:
    return int(number * 10**exponent if exponent >= 0 else number // 10**-exponent)


def _in_64_bits(number: int) -> int:
    if number > MAX_I64:
        raise TransactionRejected("BigInteger out of long range")
    return number


def spent_by_buyer(order: Order, cost: int) -> int:
    """Return what the buyer pays of the price asset; raise ``TransactionRejected`` beyond 64
    bits.
    """
    if order.price_asset is None:
        _in_64_bits(cost + order.matcher_fee)
    return _in_64_bits(cost)


def received_by_seller(cost: int) -> int:
    """Return what the seller receives of the price asset; raise ``TransactionRejected`` beyond 64
    bits.
    """
    return _in_64_bits(cost)
