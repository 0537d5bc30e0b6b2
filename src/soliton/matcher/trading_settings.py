"""The settings of validation, matching and fees: their names, forms and defaults.

What lives here: reading the sections into the records of ``soliton.matching``. What does not: their
meaning, and the settings of the service (``settings``).

Source: wavesplatform/matcher ``dex/src/main/resources/application.conf`` and
``dex/src/main/scala/com/wavesplatform/dex/settings``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.addresses import PUBLIC_KEY_LENGTH, parse_address
from soliton.chain.errors import AddressError, FormatError
from soliton.chain.layouts import DIGEST_LENGTH
from soliton.chain.networks.sections import Section
from soliton.chain.values import MAX_I64
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.matcher.exchanges import BASE_FEE
from soliton.matching.fees import (
    AssetType,
    CompositeFee,
    Discount,
    DynamicFee,
    FixedFee,
    OrderFee,
    PercentFee,
    SimpleFee,
    custom_pairs,
)
from soliton.matching.pairs import NATIVE_TEXT, Asset, AssetPair, parse_asset
from soliton.matching.placement import Deviations, PlacementSettings, Restrictions
from soliton.matching.rules import (
    DEFAULT_FEE,
    NEVER,
    MatchingSettings,
    OffsetSchedule,
    normalized_tick_sizes,
)
from soliton.matching.validation import is_allowed

MAX_PATTERN_CHARS: Final = 256
MAX_KEY_CHARS: Final = 88
MAX_DECIMAL_CHARS: Final = 40
MAX_FILE_CHARS: Final = 1_000_000
MAX_PERCENT: Final = 100
ORDER_VERSIONS: Final = (1, 2, 3, 4)
TICKER: Final = re.compile(r"[A-Za-z0-9_.]{1,32}")
_MODES: Final = ("dynamic", "fixed", "percent")
_PAIR: Final = "a pair, as AMOUNT-PRICE with WAVES or base58 on both sides"

TickSizes = Mapping[AssetPair, tuple[tuple[int, Decimal], ...]]
"""Decimal tick sizes, with the offset from which each is in force."""


class TradingSettings(msgspec.Struct, frozen=True):
    """The trading rules. Offsets are those of the journal.

    Orders of version 4 are accepted from the first command on, unlike in the reference, which
    requires an obscure setting for it.
    """

    order_fees: OffsetSchedule = ((-1, DEFAULT_FEE),)
    tick_sizes: TickSizes = msgspec.field(default_factory=dict)
    order_v4_start_offset: int = -1
    distinct_timestamps_start_offset: int = NEVER
    pass_execution_parameters_start_offset: int = NEVER
    lp_accounts: frozenset[bytes] = frozenset()
    exchange_base_fee: int = BASE_FEE
    placement: PlacementSettings = PlacementSettings(b"")

    def matching(self, decimals: Callable[[Asset], int]) -> MatchingSettings:
        """The engine's settings; ``decimals`` returns those of assets with tick sizes."""
        return MatchingSettings(
            order_fees=self.order_fees,
            tick_sizes={
                pair: normalized_tick_sizes(
                    schedule, decimals(pair.amount_asset), decimals(pair.price_asset)
                )
                for pair, schedule in self.tick_sizes.items()
            },
            order_v4_start_offset=self.order_v4_start_offset,
            distinct_timestamps_start_offset=self.distinct_timestamps_start_offset,
            pass_execution_parameters_start_offset=self.pass_execution_parameters_start_offset,
            lp_accounts=self.lp_accounts,
        )

    def tick_size_assets(self) -> set[Asset]:
        """The assets whose decimals ``matching`` needs."""
        pairs = self.tick_sizes.keys()
        return {asset for pair in pairs for asset in (pair.amount_asset, pair.price_asset)}


def read_trading(section: Section, chain_id: int) -> TradingSettings:
    """The settings in a section such as ``waves.dex``; rejects invalid values."""
    price_assets = tuple(_assets(section, "price-assets"))
    parameters = section.section("pass-execution-parameters")
    parameters.has("for-accounts")
    pools = section.section("lp-accounts")
    # Keys of the reference that have no effect here, or of its older versions.
    for foreign in ("custom", "num", "seed"):
        pools.has(foreign)
    placement = _placement(section, price_assets, chain_id)
    return TradingSettings(
        order_fees=_order_fees(section.section("order-fee"), placement),
        tick_sizes=_tick_sizes(section.section("matching-rules")),
        order_v4_start_offset=_offset(section, "order-v-4-start-offset", -1),
        distinct_timestamps_start_offset=_offset(section, "exchange-tx-ts-start-offset", NEVER),
        pass_execution_parameters_start_offset=_offset(parameters, "since-offset", NEVER),
        lp_accounts=public_keys(pools, "public-keys") | _keys_in_file(pools, "file-path"),
        exchange_base_fee=section.integer("exchange-tx-base-fee", BASE_FEE, BASE_FEE, MAX_I64),
        placement=placement,
    )


def _offset(section: Section, key: str, default: int) -> int:
    # The reference's own file has 2**63 for "never".
    return min(section.integer(key, default, -1, NEVER + 1), NEVER)


# --- fees -----------------------------------------------------------------------------------------


def _order_fees(section: Section, placement: PlacementSettings) -> OffsetSchedule:
    schedule: list[tuple[int, OrderFee]] = []
    for key in section.keys():  # noqa: SIM118 - a section is no mapping
        start = key.strip('"')
        if not re.fullmatch(r"-1|[0-9]{1,18}", start):
            section.refuse(key, "offsets as keys, from -1 on")
        schedule.append((int(start), _order_fee(section.section(key), placement)))
    schedule.sort(key=lambda entry: entry[0])
    if not schedule or schedule[0][0] > 0:
        schedule.insert(0, (-1, DEFAULT_FEE))
    return tuple(schedule)


def _order_fee(section: Section, placement: PlacementSettings) -> OrderFee:
    if section.text("mode", "dynamic") != "composite":
        return _simple_fee(section)
    for mode in _MODES:
        section.has(mode)
    inner = section.section("composite")
    chosen = inner.section("custom")
    many = inner.section("custom-assets")
    custom: dict[AssetPair, SimpleFee] = {}
    assets = set(_assets(many, "assets"))
    shared = many.section("settings")
    if assets:
        custom |= custom_pairs(assets, _simple_fee(shared), partial(is_allowed, settings=placement))
    for key, pair in _pair_keys(chosen):
        custom[pair] = _simple_fee(chosen.section(key))
    discount = inner.section("discount")
    return CompositeFee(
        default=_simple_fee(inner.section("default")),
        custom=custom,
        discount=Discount(_asset(discount, "asset"), _percentage(discount, "value", None))
        if discount.has("asset")
        else None,
        zero_fee_accounts=public_keys(inner, "zero-fee-accounts"),
    )


def _simple_fee(section: Section) -> SimpleFee:
    # A file often contains all modes, and selects one of them.
    for mode in (*_MODES, "composite"):
        section.has(mode)
    mode = section.text("mode", "dynamic")
    if mode not in _MODES:
        section.refuse("mode", ", ".join((*_MODES, "composite")))
    if mode == "dynamic":
        dynamic = section.section("dynamic")
        return DynamicFee(
            dynamic.integer("base-maker-fee", 300_000, 1, MAX_I64),
            dynamic.integer("base-taker-fee", 300_000, 1, MAX_I64),
            public_keys(dynamic, "zero-fee-accounts"),
        )
    if mode == "fixed":
        fixed = section.section("fixed")
        return FixedFee(_asset(fixed, "asset"), fixed.integer("min-fee", 300_000, 0, MAX_I64))
    percent = section.section("percent")
    text = percent.text("asset-type", "amount")
    if text not in [each.value for each in AssetType]:
        percent.refuse("asset-type", ", ".join(each.value for each in AssetType))
    return PercentFee(
        AssetType(text),
        _percentage(percent, "min-fee", "0.1"),
        percent.integer("min-fee-in-waves", 300_000, 1, MAX_I64),
    )


# --- placement ------------------------------------------------------------------------------------


def _placement(
    section: Section, price_assets: tuple[Asset, ...], chain_id: int
) -> PlacementSettings:
    addresses = []
    for number, text in section.text_items("blacklisted-addresses"):
        try:
            addresses.append(parse_address(text, chain_id))
        except AddressError:
            section.refuse_item("blacklisted-addresses", number, "an address of this chain")
    pairs = []
    for number, text in section.text_items("allowed-asset-pairs"):
        pair = _read_pair(text)
        if pair is None:
            section.refuse_item("allowed-asset-pairs", number, _PAIR)
        pairs.append(pair)
    return PlacementSettings(
        matcher_public_key=b"",
        price_assets=price_assets,
        blacklisted_assets=frozenset(_assets(section, "blacklisted-assets")),
        blacklisted_names=tuple(_patterns(section)),
        blacklisted_addresses=frozenset(addresses),
        white_list_only=section.boolean("white-list-only", False),
        allowed_pairs=frozenset(pairs),
        allowed_versions=section.integers("allowed-order-versions", 1, 4) or ORDER_VERSIONS,
        deviations=_deviations(section.section("max-price-deviations")),
        restrictions=_restrictions(section.section("order-restrictions")),
    )


def _patterns(section: Section) -> Iterator[re.Pattern[str]]:
    for number, text in section.text_items("blacklisted-names"):
        try:
            if len(text) > MAX_PATTERN_CHARS:
                raise re.error("too long")
            yield re.compile(text)
        except re.error:
            section.refuse_item("blacklisted-names", number, "a regular expression")


def _deviations(section: Section) -> Deviations | None:
    found = Deviations(
        max_price_profit=_decimal(section, "max-price-profit", "1000000"),
        max_price_loss=_decimal(section, "max-price-loss", "1000000"),
        max_fee_deviation=_decimal(section, "max-fee-deviation", "1000000"),
    )
    return found if section.boolean("enable", False) else None


def _restrictions(section: Section) -> dict[AssetPair, Restrictions]:
    defaults = Restrictions()
    found = {}
    for key, pair in _pair_keys(section):
        inner = section.section(key)
        limits = found[pair] = Restrictions(
            *(
                _decimal(inner, name.replace("_", "-"), str(getattr(defaults, name)))
                for name in Restrictions.__struct_fields__
            )
        )
        if limits.min_amount >= limits.max_amount:
            inner.refuse("max-amount", f"a number above min-amount, {limits.min_amount}")
        if limits.min_price >= limits.max_price:
            inner.refuse("max-price", f"a number above min-price, {limits.min_price}")
    return found


def _tick_sizes(section: Section) -> TickSizes:
    found = {}
    for key, pair in _pair_keys(section):
        steps = [
            (step.integer("start-offset", 0, 0, NEVER), _decimal(step, "tick-size", None))
            for step in section.sections(key)
        ]
        if [start for start, _ in steps] != sorted({start for start, _ in steps}):
            section.refuse(key, "a list of { start-offset, tick-size } with growing offsets")
        found[pair] = tuple(steps)
    return found


# --- small values ---------------------------------------------------------------------------------


def _decimal(section: Section, key: str, default: str | None) -> Decimal:
    text = section.text(key, default)
    try:
        value = Decimal(text[:MAX_DECIMAL_CHARS])
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or value < 0:
        section.refuse(key, "a number that is not negative")
    return value


def _percentage(section: Section, key: str, default: str | None) -> Decimal:
    value = _decimal(section, key, default)
    if value > MAX_PERCENT:
        section.refuse(key, f"a number from 0 to {MAX_PERCENT}")
    return value


def _asset(section: Section, key: str) -> Asset:
    try:
        return _whole_asset(section.text(key, "WAVES"))
    except FormatError:
        section.refuse(key, "WAVES or the id of an asset")


def _assets(section: Section, key: str) -> Iterator[Asset]:
    for number, text in section.text_items(key):
        try:
            yield _whole_asset(text)
        except FormatError:
            section.refuse_item(key, number, "WAVES or the id of an asset")


def _whole_asset(text: str) -> Asset:
    asset = parse_asset(text)
    if asset is not None and len(asset) != DIGEST_LENGTH:
        raise FormatError(f"an asset id of {len(asset)} bytes")
    return asset


def public_keys(section: Section, key: str) -> frozenset[bytes]:
    """Return a list of public keys in base58."""
    found = set()
    for number, text in section.text_items(key):
        try:
            found.add(_public_key(text))
        except Base58Error:
            section.refuse_item(key, number, "a public key in base58")
    return frozenset(found)


def _keys_in_file(section: Section, key: str) -> frozenset[bytes]:
    path = section.text(key, "")
    if not path:
        return frozenset()
    expected = "a file with a public key in base58 on each line"
    try:
        with Path(path).expanduser().open(encoding="utf-8") as file:
            text = file.read(MAX_FILE_CHARS + 1)
        if len(text) > MAX_FILE_CHARS:
            section.refuse(key, f"{expected}, of at most {MAX_FILE_CHARS} characters")
        return frozenset(map(_public_key, text.split()))
    except (OSError, UnicodeDecodeError, Base58Error) as error:
        section.refuse(key, f"{expected} ({error})")


def _public_key(text: str) -> bytes:
    found = base58.decode(text, MAX_KEY_CHARS)
    if len(found) != PUBLIC_KEY_LENGTH:
        raise Base58Error(f"a public key has {PUBLIC_KEY_LENGTH} bytes, not {len(found)}")
    return found


def read_tickers(section: Section) -> dict[str, bytes]:
    """The assets that the operator vouches for, by the codes that clients may show for them."""
    found: dict[str, bytes] = {}
    for key in section.keys():  # noqa: SIM118 - a section is no mapping
        code, asset = key.strip('"'), _asset(section, key)
        if asset is None or asset in found.values() or not TICKER.fullmatch(code):
            section.refuse(key, "CODE = ASSET, each asset once; codes have 1 to 32 of A-Za-z0-9_.")
        found[code] = asset
    found.pop(NATIVE_TEXT, None)
    return found


def _pair_keys(section: Section) -> Iterator[tuple[str, AssetPair]]:
    for key in section.keys():  # noqa: SIM118 - a section is no mapping
        pair = _read_pair(key.strip('"'))
        if pair is None:
            section.refuse(key, f"as its name {_PAIR}")
        yield key, pair


def _read_pair(text: str) -> AssetPair | None:
    parts = text.split("-")
    if len(parts) != 2:
        return None
    try:
        return AssetPair(_whole_asset(parts[0]), _whole_asset(parts[1]))
    except FormatError:
        return None
