"""Chains that other nodes recorded: their settings and their blocks."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from soliton.chain import networks
from soliton.chain.networks import Functionality, Genesis, GenesisTransfer, Network, Rewards
from soliton.node.settings_file import read_file

JsonObject = dict[str, Any]


def records(path: Path) -> Iterator[bytes]:
    """The blocks of a file of ``u32 length ‖ block`` records."""
    data = path.read_bytes()
    offset = 0
    while offset < len(data):
        length = int.from_bytes(data[offset : offset + 4], "big")
        yield data[offset + 4 : offset + 4 + length]
        offset += 4 + length


def lines(path: Path) -> list[JsonObject]:
    """The objects of a file with one in each line."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def load(path: Path) -> Any:
    """A compressed JSON file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def go_settings(folder: Path) -> JsonObject:
    """The settings with which the Go node recorded a chain."""
    settings: JsonObject = json.loads((folder / "chain.json").read_text())
    return settings


def go_network(name: str, settings: JsonObject) -> Network:
    """The network of a chain that the Go node recorded, from its settings."""
    # That node's features are active from its first block on, not before.
    features = dict.fromkeys(settings["preactivated_features"], 1)
    if 7 in features:
        # This node's sponsorship begins with its feature, ours a voting period later.
        features[7] = -settings["features_voting_period"]
    genesis = settings["genesis"]
    transfers = genesis["transactions"]
    return msgspec.structs.replace(
        networks.load("waves-mainnet"),
        name=name,
        chain_id=settings["address_scheme_character"],
        functionality=Functionality(
            feature_check_blocks_period=settings["features_voting_period"],
            blocks_for_feature_activation=settings["votes_for_feature_activation"],
            double_features_periods_after_height=1_000_000_000,
            pre_activated_features=features,
            min_block_time_ms=settings["min_block_time"],
            delay_delta=settings["delay_delta"],
            min_asset_info_update_interval=settings["min_update_asset_info_interval"],
            light_node_block_fields_absence_interval=settings[
                "light_node_block_fields_absence_interval"
            ],
            xtn_buyback_reward_period=settings["min_xtn_buy_back_period"],
            block_reward_boost_period=settings["block_reward_boost_period"],
        ),
        genesis=Genesis(
            average_block_delay_ms=settings["average_block_delay_seconds"] * 1_000,
            initial_base_target=genesis["nxt-consensus"]["base-target"],
            transaction_timestamp=transfers[0]["timestamp"],
            block_timestamp=genesis["timestamp"],
            initial_balance=sum(transfer["amount"] for transfer in transfers),
            transactions=tuple(
                GenesisTransfer(transfer["recipient"], transfer["amount"]) for transfer in transfers
            ),
            signature=genesis["signature"],
        ),
        rewards=Rewards(
            term=settings["block_reward_term"],
            term_after_capped_reward=settings["block_reward_term_after_20"],
            initial=settings["initial_block_reward"],
            min_increment=settings["block_reward_increment"],
            voting_interval=settings["block_reward_voting_period"],
        ),
    )


def configured_network(path: Path) -> Network:
    """The network of a configuration file with a ``waves.blockchain.custom`` section."""
    tree: Any = read_file(path).tree
    return networks.custom(tree["waves"]["blockchain"]["custom"])
