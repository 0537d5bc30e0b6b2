"""The presets against the figures of the networks, and networks described in a file."""

from __future__ import annotations

import math
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from soliton.chain import networks
from soliton.chain.addresses import parse_address
from soliton.chain.networks import Network, NetworkError, custom, load, names
from soliton.chain.networks.model import Functionality
from soliton.consensus.pos import Algorithm, PoS, next_base_target
from soliton.crypto import base58
from tests.vectors import load_vectors, report

# name, chain id, coin, REST port, peer port, handshake name, genesis base target, block timestamp
PRESETS = """
waves-mainnet   87  WAVES  6869  6868  wavesW  153722867         1460678400000
waves-testnet   84  WAVES  6869  6863  wavesT  153722867         1460678400000
waves-stagenet  83  WAVES  6869  6862  wavesS  5000              1561705836768
zbs-mainnet     90  ZBS    7441  7440  zbsZ    153722867         1550685686495
zbs-testnet     84  ZBS    7431  7430  zbsT    153722867         1538694637902
tn-mainnet      76  TN     6861  6860  TNL     153722867         1500635421931
tn-testnet     108  TN     6561  6560  TNl     153722867         1500635421931
devnet          82  WAVES  6869  6860  wavesR  2000000000        1566817216027
"""

# name: fees of transfer, issue, data, script run, set script
FEES = """
waves-mainnet  100000   100000000     100000   400000   1000000
zbs-mainnet    5000000  50000000000   3000000  1000000  1000000000
zbs-testnet    5000000  50000000000   3000000  1000000  1000000000
tn-mainnet     2000000  100000000000  2000000  4000000  100000000
devnet         100000   100000000     100000   400000   1000000
"""


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


@pytest.mark.parametrize("row", rows(PRESETS), ids=lambda row: str(row[0]))
def test_preset(row: list[str]) -> None:
    network = load(row[0])
    assert [
        network.name,
        str(network.chain_id),
        network.coin,
        str(network.rest_port),
        str(network.peer_port),
        network.application_name,
        str(network.genesis.initial_base_target),
        str(network.genesis.block_timestamp),
    ] == row


def test_every_preset_is_listed_and_every_file_is_a_preset() -> None:
    files = {
        item.name.removesuffix(".toml")
        for item in resources.files(networks).iterdir()
        if item.name.endswith(".toml")
    }
    assert set(names()) == files - {"fees"}
    assert [row[0] for row in rows(PRESETS)] == list(names())


@pytest.mark.parametrize("row", rows(FEES), ids=lambda row: str(row[0]))
def test_fees(row: list[str]) -> None:
    fees = load(row[0]).fees
    found = [fees.base[4], fees.base[3], fees.base[12], fees.script_extra, fees.base[13]]
    assert found == [int(text) for text in row[1:]]


@pytest.mark.parametrize("name", names())
def test_genesis_of_preset_is_consistent(name: str) -> None:
    network = load(name)
    genesis = network.genesis
    assert sum(transfer.amount for transfer in genesis.transactions) == genesis.initial_balance
    for transfer in genesis.transactions:
        parse_address(transfer.recipient, network.chain_id)
    for address in (
        network.functionality.dao_address,
        network.functionality.xtn_buyback_address,
    ):
        assert address is None or parse_address(address, network.chain_id)
    assert (genesis.signature is None) == (name == "devnet")
    assert genesis.signature is None or len(base58.decode(genesis.signature)) == 64


def test_load_gives_the_same_object() -> None:
    assert load("devnet") is load("devnet")


def test_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(NetworkError, match=r"'mainnet'.*waves-mainnet.*devnet"):
        load("mainnet")
    with pytest.raises(NetworkError, match="fee table"):
        networks.fees_of("eth")


@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("waves-mainnet", {}),
        ("waves-stagenet", dict.fromkeys(range(1, 14), 0)),
        ("zbs-mainnet", dict.fromkeys(range(1, 12), 0)),
        ("zbs-testnet", dict.fromkeys(range(1, 9), 0)),
        ("tn-mainnet", dict.fromkeys((1, 2, 3, 5, 6), 0)),
        ("devnet", dict.fromkeys(range(1, 26), 0) | {7: -5, 14: 1}),
    ],
)
def test_pre_activated_features(name: str, features: dict[int, int]) -> None:
    assert load(name).functionality.pre_activated_features == features


def test_devnet_never_waits_for_any_hit_of_its_miner() -> None:
    network = load("devnet")
    # Nine tenths of the rich account's coins may be spent.
    balance = network.genesis.transactions[0].amount // 10
    greatest = -math.log(1 / 2**64)
    target = network.genesis.initial_base_target
    delay = 70_000 * math.log(1 + 5e17 * greatest / target / balance)
    assert int(network.functionality.min_block_time_ms + delay) == 0


@pytest.mark.parametrize("delay_ms", [1, 1_000, 60_000, 30 * 86_400_000, 50 * 365 * 86_400_000])
def test_the_base_target_of_devnet_stays_what_32_bits_hold(delay_ms: int) -> None:
    network = load("devnet")
    target = network.genesis.initial_base_target
    assert target < 2**31
    rules = PoS(Algorithm.FAIR, 0, network.functionality.delay_delta)
    seconds = network.genesis.average_block_delay_ms // 1_000
    times = [network.genesis.block_timestamp + delay_ms * step for step in range(4)]
    assert next_base_target(rules, seconds, 3, target, times[2], times[0], times[3]) == target


# Fields that another implementation writes for the three Waves networks, and where ours are.
SAME_NUMBERS = {
    "features_voting_period": "functionality.feature_check_blocks_period",
    "votes_for_feature_activation": "functionality.blocks_for_feature_activation",
    "generation_balance_depth_from_50_to_1000_after_height": (
        "functionality.generation_balance_depth_from_50_to_1000_after_height"
    ),
    "block_version_3_after_height": "functionality.block_version_3_after_height",
    "reset_effective_balance_at_height": "functionality.reset_effective_balances_at_height",
    "payments_fix_after_height": "functionality.payments_check_height",
    "max_tx_time_back_offset": "functionality.max_transaction_time_back_offset_ms",
    "max_tx_time_forward_offset": "functionality.max_transaction_time_forward_offset_ms",
    "address_scheme_character": "chain_id",
    "min_block_time": "functionality.min_block_time_ms",
    "delay_delta": "functionality.delay_delta",
    "block_reward_term": "rewards.term",
    "block_reward_term_after_20": "rewards.term_after_capped_reward",
    "initial_block_reward": "rewards.initial",
    "block_reward_increment": "rewards.min_increment",
    "block_reward_voting_period": "rewards.voting_interval",
    "min_xtn_buy_back_period": "functionality.xtn_buyback_reward_period",
    "block_reward_boost_period": "functionality.block_reward_boost_period",
    "min_update_asset_info_interval": "functionality.min_asset_info_update_interval",
    "light_node_block_fields_absence_interval": (
        "functionality.light_node_block_fields_absence_interval"
    ),
}


def value_at(network: Network, dotted: str) -> object:
    value: object = network
    for part in dotted.split("."):
        value = getattr(value, part)
    return value


def test_waves_presets_agree_with_the_settings_of_the_go_node() -> None:
    vectors = load_vectors("genesis_settings")
    for vector in vectors:
        network = load(f"waves-{vector['network']}")
        settings, genesis = vector["settings"], vector["genesis"]
        for key, dotted in SAME_NUMBERS.items():
            assert value_at(network, dotted) == settings[key], (network.name, key)
        functionality = network.functionality
        assert sorted(functionality.pre_activated_features) == (
            settings["preactivated_features"] or []
        )
        assert network.genesis.average_block_delay_ms == (
            settings["average_block_delay_seconds"] * 1000
        )
        assert [functionality.dao_address, functionality.xtn_buyback_address] == settings[
            "reward_addresses"
        ]
        assert network.genesis.initial_base_target == genesis["nxt-consensus"]["base-target"]
        assert network.genesis.block_timestamp == genesis["timestamp"]
        assert network.genesis.signature == genesis["signature"]
        assert [
            (transfer.recipient, transfer.amount, network.genesis.transaction_timestamp)
            for transfer in network.genesis.transactions
        ] == [(tx["recipient"], tx["amount"], tx["timestamp"]) for tx in genesis["transactions"]]
    report.ran("genesis_settings", len(vectors))


RECIPIENT = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"


def described(**changes: object) -> dict[str, Any]:
    """A custom section; a change is ``section__key=value``, a value of ``...`` leaves it out."""
    tree: dict[str, Any] = {
        "address-scheme-character": "R",
        "functionality": {
            "feature-check-blocks-period": 5,
            "blocks-for-feature-activation": 4,
            "min-block-time": "5s",
            "pre-activated-features": {"1": 0, "7": "-5"},
        },
        "genesis": {
            "average-block-delay": "10000ms",
            "initial-base-target": 1240,
            "timestamp": 1566817216027,
            "initial-balance": 700,
            "transactions": [{"recipient": RECIPIENT, "amount": 700}],
        },
        "rewards": {"term": 6, "voting-interval": 3},
    }
    for name, value in changes.items():
        *above, key = name.replace("_", "-").split("--")
        target = tree
        for part in above:
            target = target.setdefault(part, {})
        if value is ...:
            del target[key]
        else:
            target[key] = value
    return tree


def test_custom_takes_what_is_written_and_defaults_the_rest() -> None:
    told: list[str] = []
    network = custom(described(), warnings=told)
    assert told == []
    assert (network.name, network.chain_id, network.coin) == ("custom", ord("R"), "WAVES")
    assert network.application_name == "wavesR"
    assert network.functionality.min_block_time_ms == 5_000
    assert network.functionality.pre_activated_features == {1: 0, 7: -5}
    assert network.functionality.max_transaction_time_back_offset_ms == 7_200_000
    assert network.functionality.double_features_periods_after_height == 2**31 - 1
    assert network.functionality.block_reward_boost_period == 1_000
    assert network.genesis.average_block_delay_ms == 10_000
    assert network.genesis.block_timestamp == network.genesis.transaction_timestamp
    assert network.genesis.signature is None
    assert network.rewards.term_after_capped_reward == 6
    assert network.fees == load("waves-mainnet").fees


def test_custom_of_another_family_and_fee_table() -> None:
    network = custom(described(), family="zbs")
    assert (network.coin, network.rest_port, network.application_name) == ("ZBS", 7431, "zbsR")
    assert network.fees == load("zbs-mainnet").fees
    assert custom(described(fee_table="waves"), family="zbs").fees == load("devnet").fees
    with pytest.raises(NetworkError, match="family 'eth'"):
        custom(described(), family="eth")


def test_one_time_for_all_time_based_rules_and_older_single_ones() -> None:
    network = custom(
        described(
            functionality__last_time_based_fork_parameter=9,
            functionality__allow_unissued_assets_until=4,
        )
    )
    assert network.functionality.allow_unissued_assets_until == 4
    assert network.functionality.allow_temporary_negative_until == 9
    assert network.functionality.allow_multiple_lease_cancel_until == 9


def test_keys_without_effect_are_told() -> None:
    path = "waves.blockchain.custom"
    for height, expected in ((0, []), (1, []), (2, ["no leases are cancelled there"])):
        told: list[str] = []
        tree = described(functionality__reset_effective_balances_at_height=height)
        custom(tree, path=path, warnings=told)
        key = f"{path}.functionality.reset-effective-balances-at-height"
        assert told == [f"{key} has no effect: {each}" for each in expected]
    # The node of ZBS has this rule, in its ``state/diffs/BlockDiffer.scala``.
    told = []
    tree = described(functionality__reset_effective_balances_at_height=2)
    custom(tree, family="zbs", path=path, warnings=told)
    assert told[0].endswith("nodes of ZBS cancel all of them, so this one leaves their chain there")
    told = []
    custom(described(functionality__lease_expiration=5), path=path, warnings=told)
    (warning,) = told
    assert warning.startswith(f"{path}.functionality.lease-expiration has no effect: ")


def test_every_rule_of_a_network_has_an_effect() -> None:
    """A field that no code reads is a setting that is documented and does nothing."""
    source = Path(networks.__file__).parents[2]
    texts = [each.read_text() for each in source.rglob("*.py")]
    read = {name for text in texts for name in re.findall(r"\.([a-z_][a-z0-9_]*)", text)}
    fields = set(Functionality.__struct_fields__)
    assert fields - read == {"lease_expiration", "reset_effective_balances_at_height"}


def test_obsolete_and_unknown_keys_are_told_by_full_name() -> None:
    told: list[str] = []
    path = "waves.blockchain.custom"
    custom(
        described(
            functionality__require_sorted_transactions_after=0,
            functionality__delay_dleta=8,
            genesis__colour="red",
        ),
        path=path,
        warnings=told,
    )
    assert told == [
        f"{path}.functionality.require-sorted-transactions-after is obsolete and ignored",
        f"unknown setting {path}.functionality.delay-dleta",
        f"unknown setting {path}.genesis.colour",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"address_scheme_character": "RR"}, "address-scheme-character is 'RR'"),
        ({"address_scheme_character": ...}, "address-scheme-character is missing"),
        ({"address_scheme_character": "é"}, "one ASCII character"),
        ({"address_scheme_character": "W"}, r"transactions\[0\].recipient .* of this chain"),
        ({"fee_table": "free"}, "fee-table is 'free': expected one of waves, zbs, tn"),
        ({"functionality": 5}, "functionality is 5: expected a section"),
        ({"functionality__feature_check_blocks_period": 0}, "period is 0: .* from 1 to"),
        ({"functionality__blocks_for_feature_activation": 6}, "activation is 6: .* from 1 to 5"),
        ({"functionality__min_block_time": "11s"}, "min-block-time .*average-block-delay"),
        ({"functionality__min_block_time": "5 parsecs"}, "5 parsecs.*a duration"),
        ({"functionality__min_block_time": True}, "is True: expected a duration"),
        ({"functionality__delay_delta": 1.5}, "delay-delta is 1.5: expected a whole number"),
        ({"functionality__delay_delta": None}, "delay-delta is None"),
        ({"functionality__dao_address": "3P"}, "dao-address is '3P': expected an address"),
        ({"functionality__pre_activated_features": {"x": 0}}, "features.x is 0"),
        ({"functionality__pre_activated_features": {"1": "soon"}}, "features.1 is 'soon'"),
        ({"genesis__initial_balance": 701}, "initial-balance is 701: .*sum .* 700"),
        ({"genesis__average_block_delay": ...}, "average-block-delay is missing"),
        ({"genesis__initial_base_target": 2**63}, "initial-base-target"),
        ({"genesis__signature": "BASE58BLOCKSIGNATURE"}, "genesis.signature .* 64 bytes"),
        ({"genesis__transactions": "all"}, "genesis.transactions is 'all': expected a list"),
        ({"genesis__transactions": [7]}, "a section"),
        (
            {"genesis__transactions": [{"recipient": RECIPIENT, "amount": 0}]},
            r"genesis.transactions\[0\].amount is 0",
        ),
        ({"rewards__voting_interval": 7}, "voting-interval is 7: .* from 1 to 6"),
        ({"rewards__min_increment": 0}, "min-increment is 0"),
    ],
)
def test_wrong_values_are_refused_with_the_key(change: dict[str, object], message: str) -> None:
    with pytest.raises(NetworkError, match=f"blockchain.custom.*{message}"):
        custom(described(**change))


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("120m", 7_200_000),
        ("10000ms", 10_000),
        ("5s", 5_000),
        ("7", 7),
        (7, 7),
        ("1.5 h", 5_400_000),
        ("1 day", 86_400_000),
        ("1.001s", 1_001),
        ("2000000ns", 2),
    ],
)
def test_durations(text: object, milliseconds: int) -> None:
    network = custom(described(functionality__max_transaction_time_back_offset=text))
    assert network.functionality.max_transaction_time_back_offset_ms == milliseconds


def test_reference_page_has_every_preset_with_its_figures() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "networks.md").read_text()
    for name in names():
        network = load(name)
        assert re.search(
            rf"^\| `{name}` \| .* \| {network.coin} \| `{chr(network.chain_id)}` "
            rf"\({network.chain_id}\) \| {network.rest_port} \| {network.peer_port} "
            rf"\| {network.genesis.block_timestamp} \|$",
            page,
            re.MULTILINE,
        )
