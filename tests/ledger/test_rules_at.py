"""At which height which rules begin."""

from __future__ import annotations

import msgspec
import pytest

from soliton.chain import networks
from soliton.chain.features import Feature
from soliton.consensus.pos import FAIR_1, NXT, Algorithm
from soliton.ledger.rules_at import NEVER, RuleBook, voting_window

MAINNET = networks.load("waves-mainnet")
DEVNET = networks.load("devnet")


def book(features: dict[int, int], **settings: int) -> RuleBook:
    functionality = msgspec.structs.replace(
        DEVNET.functionality, pre_activated_features=features, **settings
    )
    return RuleBook(msgspec.structs.replace(DEVNET, functionality=functionality))


@pytest.mark.parametrize(
    ("height", "version"),
    [(1, 1), (2, 2), (795_000, 2), (795_001, 2), (795_002, 3), (2_000_000, 3)],
)
def test_block_versions_of_mainnet_without_features(height: int, version: int) -> None:
    assert RuleBook(MAINNET).at(height).block_version == version


@pytest.mark.parametrize(
    ("height", "version"), [(1, 1), (2, 2), (9, 2), (10, 3), (11, 4), (19, 4), (20, 5), (21, 5)]
)
def test_block_versions_by_features(height: int, version: int) -> None:
    rules = book({14: 10, 15: 20}, block_version_3_after_height=1_000)
    assert rules.at(height).block_version == version


def test_payments_end_with_block_version_3() -> None:
    rules = RuleBook(MAINNET)
    assert rules.at(795_000).payments_allowed and not rules.at(795_001).payments_allowed
    assert not rules.at(795_000).leased_coins_protected
    assert rules.at(795_001).leased_coins_protected


def test_sponsorship_begins_a_voting_period_after_its_feature() -> None:
    rules = book({7: 10})
    assert next(height for height in range(30) if rules.at(height).sponsorship) == 15
    assert not book({}).at(10**9).sponsorship
    assert RuleBook(DEVNET).at(1).sponsorship


def test_recovered_keys_keep_their_zeros_from_a_feature_on() -> None:
    rules = book({24: 10})
    fixed = [rules.at(height).language.ecrecover_fix for height in (9, 10, 11)]
    assert fixed == [False, True, True]
    assert not RuleBook(MAINNET).at(10**9).language.ecrecover_fix


def test_carry_begins_one_block_after_ng() -> None:
    rules = book({2: 10})
    assert [rules.at(height).ng for height in (9, 10, 11)] == [False, True, True]
    assert [rules.at(height).ng_carry for height in (9, 10, 11)] == [False, False, True]


def test_algorithms() -> None:
    rules = book({8: 10, 15: 20}, min_block_time_ms=15_000, delay_delta=8)
    assert rules.at(9).pos is NXT
    assert rules.at(10).pos == FAIR_1
    last = rules.at(20).pos
    assert (last.algorithm, last.min_block_time_ms, last.delay_delta) == (Algorithm.FAIR, 15_000, 8)
    assert not rules.at(19).uses_vrf and rules.at(20).uses_vrf
    for least, delta, expected in ((15_500, 8, 15_000), (15_500, 7, 15_500), (9_500, 8, 9_500)):
        rules = book({8: 10, 15: 20}, min_block_time_ms=least, delay_delta=delta)
        assert rules.at(20).pos.min_block_time_ms == expected


def test_state_hash_begins_after_an_interval() -> None:
    rules = book({22: 10}, light_node_block_fields_absence_interval=7)
    assert [rules.at(height).state_hash_required for height in (16, 17)] == [False, True]


def test_generating_balances() -> None:
    rules = RuleBook(MAINNET)
    depths = [rules.at(height).generating_balance_depth for height in (231_999, 232_000)]
    assert depths == [50, 1_000]
    least = book({1: 10})
    assert least.at(9).minimum_generating_balance == 10 * least.at(10).minimum_generating_balance


def test_limits_of_a_block() -> None:
    rules = book({2: 10, 3: 20})
    assert [rules.at(height).max_transactions for height in (9, 10, 20)] == [100, 6_000, None]
    assert [rules.at(height).max_transactions_bytes for height in (19, 20)] == [None, 1_048_576]


def test_voting_window() -> None:
    settings = MAINNET.functionality
    assert voting_window(settings, 810_000) == 5_000
    assert voting_window(settings, 810_001) == 10_000


def test_feature_15_counts_from_its_approval_for_some_rules() -> None:
    undecided = book({}, feature_check_blocks_period=5, blocks_for_feature_activation=4)
    rules = undecided.with_approvals({15: 20})
    heights = (20, 21, 24, 25)
    assert [rules.at(each).block_v5_approved for each in heights] == [False, True, True, True]
    assert [rules.at(each).has(Feature.BLOCK_V5) for each in heights] == [False] * 3 + [True]
    assert rules.at(21).estimation.reduced_verifier_limit
    assert book({15: 30}).at(2).block_v5_approved and not book({}).at(30).block_v5_approved


def test_features() -> None:
    rules = book({5: 10})
    assert not rules.at(9).has(Feature.DATA_TRANSACTION)
    assert rules.at(10).has(Feature.DATA_TRANSACTION)
    assert rules.activation_height(Feature.DATA_TRANSACTION) == 10
    assert rules.activation_height(Feature.NG) is None
    assert NEVER == 2**63 - 1
