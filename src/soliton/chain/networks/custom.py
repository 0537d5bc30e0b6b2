"""A network described in a configuration file: the ``blockchain.custom`` section.

What lives here: the keys of that section, their defaults and bounds. What does not: reading the
file (``node.settings``), and the presets.

Source: wavesplatform/Waves ``node/src/main/resources/custom-defaults.conf`` and
``node/src/main/scala/com/wavesplatform/settings/BlockchainSettings.scala``; the older separate
times instead of ``last-time-based-fork-parameter`` are those of 0bsnetwork/Zbs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from soliton.chain.addresses import parse_address
from soliton.chain.errors import AddressError
from soliton.chain.networks.model import (
    Functionality,
    Genesis,
    GenesisTransfer,
    Network,
    Rewards,
)
from soliton.chain.networks.presets import NetworkError, fees_of
from soliton.chain.networks.sections import Section
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error

MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1
MAX_CHAIN_ID: Final = 127
UNKNOWN_CHAIN: Final = 0
"""The byte of a network whose character is not known: its addresses are not checked."""
MAX_FEATURE_ID: Final = 2**15 - 1
SIGNATURE_LENGTH: Final = 64
MAX_SIGNATURE_CHARS: Final = 88


class _Family(NamedTuple):
    coin: str
    rest_port: int
    peer_port: int
    application: str


_FAMILIES: Final = {
    "waves": _Family("WAVES", 6869, 6863, "waves"),
    "zbs": _Family("ZBS", 7431, 7430, "zbs"),
    "tn": _Family("TN", 6861, 6860, "TN"),
}

# Heights and counts: the key is the field's name with hyphens.
_NUMBERS: Final = (
    "generation_balance_depth_from_50_to_1000_after_height",
    "block_version_3_after_height",
    "reset_effective_balances_at_height",
    "estimator_pre_check_height",
    "estimation_overflow_fix_height",
    "estimator_sum_overflow_fix_height",
    "enforce_transfer_validation_after",
    "eth_invoke_payments_check_height",
    "payments_check_height",
    "disable_hijacked_aliases_height",
    "min_asset_info_update_interval",
    "delay_delta",
    "light_node_block_fields_absence_interval",
    "lease_expiration",
    "xtn_buyback_reward_period",
    "block_reward_boost_period",
)

_POSITIVE: Final = ("generation_period_length", "max_valid_endorsers")

# Rules that end at a time. Today one key sets all of them; older files have a key for each.
_TIMES: Final = {
    "allow-temporary-negative-until": "allow_temporary_negative_until",
    "minimal-generating-balance-after": "minimal_generating_balance_after",
    "allow-transactions-from-future-until": "allow_transactions_from_future_until",
    "allow-unissued-assets-until": "allow_unissued_assets_until",
    "allow-invalid-reissue-in-same-block-until-timestamp": (
        "allow_invalid_reissue_in_same_block_until"
    ),
    "allow-multiple-lease-cancel-transaction-until-timestamp": "allow_multiple_lease_cancel_until",
}

_RESET: Final = "reset-effective-balances-at-height"

# Rules of old versions, which no chain that can be described here needs.
_OBSOLETE: Final = (
    "allow-invalid-payment-transactions-by-timestamp",
    "require-sorted-transactions-after",
    "require-payment-unique-id-after",
    "allow-leased-balance-transfer-until",
    "allow-burn-transaction-after",
    "allow-lease-transaction-after",
    "allow-exchange-transaction-after",
    "allow-create-alias-transaction-after",
    "max-complexity-in-block",
    "sync-d-app-check-payments-height",
    "sync-d-app-check-transfers-height",
    "check-total-data-entries-bytes-height",
)


def custom(
    tree: Mapping[str, object],
    *,
    family: str = "waves",
    path: str = "blockchain.custom",
    warnings: list[str] | None = None,
) -> Network:
    """Return the network that a ``custom`` section describes.

    ``family`` determines the parameters that the section does not contain (coin, ports, fees);
    ``path`` is the section's full name for messages. Ignored and unknown keys are appended to
    ``warnings``. Raises ``NetworkError`` for invalid values, with the full key.
    """
    section = Section(tree, path, NetworkError)
    collected: list[str] = [] if warnings is None else warnings
    network = read(section, family, collected)
    collected.extend(f"unknown setting {key}" for key in section.unknown())
    return network


def read(section: Section, family: str, warnings: list[str]) -> Network:
    """Like ``custom``, but the caller checks for unknown keys itself."""
    if family not in _FAMILIES:
        raise NetworkError(f"unknown family {family!r}: there are {', '.join(_FAMILIES)}")
    defaults = _FAMILIES[family]
    chain_id = _chain_id(section)
    fee_table = section.text("fee-table", family)
    if fee_table not in _FAMILIES:
        section.refuse("fee-table", f"one of {', '.join(_FAMILIES)}")
    heights = section.section("functionality")
    functionality = _functionality(heights, chain_id, family, warnings)
    genesis_section = section.section("genesis")
    genesis = _genesis(genesis_section, chain_id)
    delays = heights.is_sound("min-block-time") and genesis_section.is_sound("average-block-delay")
    if delays and functionality.min_block_time_ms > genesis.average_block_delay_ms:
        heights.refuse("min-block-time", "no more than genesis.average-block-delay")
    return Network(
        name="custom",
        family=family,
        chain_id=chain_id,
        coin=defaults.coin,
        rest_port=defaults.rest_port,
        peer_port=defaults.peer_port,
        known_peers=(),
        application_name=f"{defaults.application}{chr(chain_id)}",
        fees=fees_of(fee_table),
        genesis=genesis,
        functionality=functionality,
        rewards=_rewards(section.section("rewards")),
    )


def _chain_id(section: Section) -> int:
    """The byte of the network, ``UNKNOWN_CHAIN`` where its character is a removed setting."""
    key = "address-scheme-character"
    character = section.text(key, None)
    if not section.is_sound(key):
        return UNKNOWN_CHAIN
    if len(character) != 1 or not 0 < ord(character) <= MAX_CHAIN_ID:
        section.refuse(key, "one ASCII character")
    return ord(character)


def _functionality(
    section: Section, chain_id: int, family: str, warnings: list[str]
) -> Functionality:
    period = section.integer("feature-check-blocks-period", 10_000, 1, MAX_INT)
    fields: dict[str, object] = {
        "feature_check_blocks_period": period,
        "blocks_for_feature_activation": section.integer(
            "blocks-for-feature-activation",
            max(1, period * 9 // 10),
            1,
            period if section.is_sound("feature-check-blocks-period") else MAX_INT,
        ),
        "double_features_periods_after_height": section.integer(
            "double-features-periods-after-height", MAX_INT, 0, MAX_INT
        ),
        "pre_activated_features": _pre_activated(section.section("pre-activated-features")),
        "max_transaction_time_back_offset_ms": section.duration_ms(
            "max-transaction-time-back-offset", 7_200_000
        ),
        "max_transaction_time_forward_offset_ms": section.duration_ms(
            "max-transaction-time-forward-offset", 5_400_000
        ),
        "min_block_time_ms": section.duration_ms("min-block-time", 15_000),
        "xtn_buyback_reward_period": MAX_INT,
        "block_reward_boost_period": 1_000,
        "generation_period_length": 1_000,
        "max_valid_endorsers": 5,
    }
    for field in _NUMBERS:
        key = field.replace("_", "-")
        if section.has(key):
            fields[field] = section.integer(key, None, 0, MAX_INT)
    for field in _POSITIVE:
        key = field.replace("_", "-")
        if section.has(key):
            fields[field] = section.integer(key, None, 1, MAX_INT)
    for key in ("dao-address", "xtn-buyback-address"):
        if section.has(key):
            fields[key.replace("-", "_")] = _address(section, key, chain_id)
    last_time = section.integer("last-time-based-fork-parameter", 0, 0, MAX_LONG)
    for key, field in _TIMES.items():
        fields[field] = section.integer(key, last_time, 0, MAX_LONG)
    warnings.extend(f"{key} is obsolete and ignored" for key in section.written(*_OBSOLETE))
    # In the first block there are no leases; the Waves node has this at two heights of its own,
    # and the ZBS node by this setting (0bsnetwork/Zbs ``state/diffs/BlockDiffer.scala``).
    if section.integer(_RESET, 0, 0, MAX_INT) > 1:
        others = "; nodes of ZBS cancel all of them, so this one leaves their chain there"
        warnings.append(
            f"{section.full(_RESET)} has no effect: no leases are cancelled there"
            f"{others if family == 'zbs' else ''}"
        )
    warnings.extend(
        f"{key} has no effect: no network has the feature that it belongs to"
        for key in section.written("lease-expiration")
    )
    warnings.extend(
        f"{key} has no effect: since node 1.6.1 it is called max-valid-endorsers"
        for key in section.written("max-endorsements")
    )
    return msgspec.convert(fields, Functionality)


def _pre_activated(section: Section) -> dict[int, int]:
    """Map feature ids to heights; a height before the first block (even negative) is allowed."""
    features: dict[int, int] = {}
    for key in section.keys():  # noqa: SIM118 - not a dict
        if not (key.isascii() and key.isdigit() and 1 <= int(key) <= MAX_FEATURE_ID):
            section.refuse(key, f"only feature numbers from 1 to {MAX_FEATURE_ID} as keys here")
        features[int(key)] = section.integer(key, None, -MAX_INT, MAX_INT)
    return features


def _genesis(section: Section, chain_id: int) -> Genesis:
    timestamp = section.integer("timestamp", None, 0, MAX_LONG)
    items = section.sections("transactions")
    transfers = tuple(
        GenesisTransfer(
            _address(item, "recipient", chain_id), item.integer("amount", None, 1, MAX_LONG)
        )
        for item in items
    )
    total = sum(transfer.amount for transfer in transfers)
    initial_balance = section.integer("initial-balance", None, 0, MAX_LONG)
    amounts = all(item.is_sound("amount") for item in items)
    whole = amounts and len(items) == section.length("transactions")
    if total != initial_balance and whole and section.is_sound("initial-balance"):
        section.refuse("initial-balance", f"the sum of all genesis transactions, {total}")
    return Genesis(
        average_block_delay_ms=section.duration_ms("average-block-delay", None),
        initial_base_target=section.integer("initial-base-target", None, 1, MAX_LONG),
        transaction_timestamp=timestamp,
        block_timestamp=section.integer("block-timestamp", timestamp, 0, MAX_LONG),
        initial_balance=initial_balance,
        transactions=transfers,
        signature=_signature(section),
    )


def _signature(section: Section) -> str | None:
    if not section.text("signature", "") or not section.is_sound("signature"):
        return None
    text = section.text("signature", None)
    try:
        signature = base58.decode(text, MAX_SIGNATURE_CHARS)
    except Base58Error:
        signature = b""
    if len(signature) != SIGNATURE_LENGTH:
        section.refuse("signature", f"{SIGNATURE_LENGTH} bytes in base58, or no such key")
    return text


def _rewards(section: Section) -> Rewards:
    defaults = Rewards()
    term = section.integer("term", defaults.term, 1, MAX_INT)
    capped_term = section.integer(
        "term-after-capped-reward-feature", min(defaults.term_after_capped_reward, term), 1, MAX_INT
    )
    shorter = min(term, capped_term)
    if not section.is_sound("term", "term-after-capped-reward-feature"):
        shorter = MAX_INT
    return Rewards(
        term=term,
        term_after_capped_reward=capped_term,
        initial=section.integer("initial", defaults.initial, 0, MAX_LONG),
        min_increment=section.integer("min-increment", defaults.min_increment, 1, MAX_LONG),
        voting_interval=section.integer(
            "voting-interval", min(defaults.voting_interval, shorter), 1, shorter
        ),
    )


def _address(section: Section, key: str, chain_id: int) -> str:
    text = section.text(key, None)
    if chain_id == UNKNOWN_CHAIN or not section.is_sound(key):
        return text
    try:
        parse_address(text, chain_id)
    except AddressError as error:
        section.refuse(key, f"an address of this chain ({error})")
    return text
