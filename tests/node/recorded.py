"""Chains that other nodes recorded: their settings, their blocks, and scripts that answer by heart.

No script is run here: ``Remembered`` knows what the recording node answered, so that everything
around scripts can be replayed to the end of a chain that is full of them.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from soliton.chain import networks
from soliton.chain.addresses import Address, parse_address
from soliton.chain.json_kinds import read_data_entry
from soliton.chain.networks import Functionality, Genesis, GenesisTransfer, Network, Rewards
from soliton.chain.orders import Order
from soliton.chain.scripts import is_dapp
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.ledger import assets, fees
from soliton.ledger.context import Context
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.scripts import (
    Estimate,
    FailedTransaction,
    NotAllowedByScript,
    ScriptHead,
    ScriptsNotSupported,
)
from soliton.ledger.state import (
    ALIASES,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    DATA,
    ERC20,
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    SPONSORSHIPS,
    WAVES,
    AccountScript,
    AssetInfo,
    AssetName,
    AssetScript,
    AssetVolume,
    LeaseInfo,
    LeaseState,
    Overlay,
    State,
)
from soliton.node.settings_file import read_file

JsonObject = dict[str, Any]
COSTLY = 2_000
"""More than what fails for free."""


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
    tree: Any = read_file(path)
    return networks.custom(tree["waves"]["blockchain"]["custom"])


class OnlyTrue:
    """Knows the head of a script, and runs the one script that says nothing but "true"."""

    def inspect(self, script: bytes, /) -> ScriptHead:
        return ScriptHead(script[2] if script[0] == 0 else script[0], is_dapp(script))

    def estimate(self, _script: bytes, _for_asset: bool, _context: Context, /) -> Estimate:
        return Estimate(1)

    def run_account(
        self,
        script: AccountScript,
        _subject: AnyTransaction | Order,
        _state: State,
        _context: Context,
        /,
    ) -> int:
        return self._run(script.script)

    def run_asset(
        self,
        _asset_id: AssetId,
        script: AssetScript,
        _transaction: AnyTransaction,
        _state: State,
        _context: Context,
        /,
    ) -> int:
        return self._run(script.script)

    def _run(self, script: bytes) -> int:
        # Version 6 put the kind of the script after its version.
        if script[2 if script[0] >= 6 else 1 : -4] != b"\6":
            raise ScriptsNotSupported(script.hex())
        return 1

    def invoke(
        self,
        _dapp: Address,
        _transaction: AnyTransaction,
        _overlay: Overlay,
        _portfolio: Portfolio,
        _context: Context,
        /,
    ) -> int:
        raise ScriptsNotSupported("a dApp is called")


class Remembered:
    """Answers as the recording node did: complexities by script, outcomes by transaction."""

    def __init__(self, folder: Path, chain_id: int) -> None:
        self._chain_id = chain_id
        self._outcomes: dict[bytes, JsonObject] = {}
        self._complexities: dict[bytes, int] = {}
        for line in lines(folder / "transactions-snapshot.jsonl.gz"):
            transaction_id = base58.decode(line["path"].rsplit("/", 1)[1], 100)
            self._outcomes[transaction_id] = line["body"]
            for item in line["body"]["accountScripts"]:
                if item.get("script"):
                    self._complexities[_base64(item["script"])] = item["verifierComplexity"]
        self._generators = {
            block["height"]: parse_address(block["generator"], chain_id)
            for block in load(folder / "blocks.json.gz")
        }

    def inspect(self, script: bytes, /) -> ScriptHead:
        return ScriptHead(script[2] if script[0] == 0 else script[0], is_dapp(script))

    def estimate(self, script: bytes, _for_asset: bool, _context: Context, /) -> Estimate:
        return Estimate(self._complexities.get(script, 0))

    def run_account(
        self,
        _script: AccountScript,
        _subject: AnyTransaction | Order,
        _state: State,
        _context: Context,
        /,
    ) -> int:
        return COSTLY

    def run_asset(
        self,
        asset_id: AssetId,
        _script: AssetScript,
        transaction: AnyTransaction,
        _state: State,
        _context: Context,
        /,
    ) -> int:
        if self._failed(transaction):
            raise NotAllowedByScript(asset_id, COSTLY)
        return COSTLY

    def _failed(self, transaction: AnyTransaction) -> bool:
        outcome = self._outcomes[transaction.id]
        return bool(outcome["applicationStatus"] == "script_execution_failed")

    def invoke(
        self,
        _dapp: Address,
        transaction: AnyTransaction,
        overlay: Overlay,
        portfolio: Portfolio,
        context: Context,
        /,
    ) -> int:
        if self._failed(transaction):
            raise FailedTransaction(1, "as recorded", COSTLY)
        outcome = self._outcomes[transaction.id]
        self._write(transaction, outcome, overlay, context)
        self._balance(transaction, outcome, overlay, portfolio, context)
        return COSTLY

    def _balance(
        self,
        transaction: AnyTransaction,
        outcome: JsonObject,
        overlay: Overlay,
        portfolio: Portfolio,
        context: Context,
    ) -> None:
        """The differences to the recorded balances, which the fee and its share are part of."""
        others = Portfolio()
        fees.add_fee(transaction, others, overlay, context.rules)
        asset_id, fee = fees.generator_fee(transaction, overlay, context.rules)
        others.add(self._generators[context.height], asset_id, fees.current_part(fee))
        for item in outcome["balances"]:
            address, asset = self._address(item["address"]), _asset(item["asset"])
            if asset is None:
                expected = others.waves.get(address, 0)
                before = overlay.get(WAVES, address)
            else:
                expected = others.assets.get((address, asset), 0)
                before = overlay.get(ASSET_BALANCES, (address, asset))
            portfolio.add(address, asset, item["balance"] - before - expected)

    def _write(
        self, transaction: AnyTransaction, outcome: JsonObject, overlay: Overlay, context: Context
    ) -> None:
        height = context.height
        self._write_assets(transaction, outcome, overlay, height)
        for item in outcome["sponsorships"]:
            overlay.put(SPONSORSHIPS, _id(item["id"]), item["minSponsoredAssetFee"])
        for item in outcome["leaseBalances"]:
            old = overlay.get(LEASES, self._address(item["address"]))
            new = old._replace(lease_in=item["in"], lease_out=item["out"])
            overlay.put(LEASES, self._address(item["address"]), new)
        for item in outcome["newLeases"]:
            info = LeaseInfo(
                _id(item["sender"]),
                self._address(item["recipient"]),
                item["amount"],
                transaction.id,
                height,
            )
            overlay.put(LEASE_INFO, _id(item["id"]), info)
            overlay.put(LEASE_STATES, _id(item["id"]), LeaseState(True, 0, b""))
        for item in outcome["cancelledLeases"]:
            state = LeaseState(False, height, transaction.id)
            overlay.put(LEASE_STATES, _id(item["id"]), state)
        for item in outcome["aliases"]:
            overlay.put(ALIASES, item["alias"], self._address(item["address"]))
        for item in outcome["accountData"]:
            for entry in map(read_data_entry, item["data"]):
                overlay.put(DATA, (self._address(item["address"]), entry.key), entry.value)

    def _write_assets(
        self, transaction: AnyTransaction, outcome: JsonObject, overlay: Overlay, height: int
    ) -> None:
        for item in outcome["assetStatics"]:
            asset_id = _id(item["id"])
            sequence = overlay.count_written(ASSETS) + 1
            info = AssetInfo(
                _id(item["issuer"]),
                item["decimals"],
                item["nft"],
                transaction.id,
                height,
                sequence,
            )
            overlay.put(ASSETS, asset_id, info)
            overlay.put(ASSET_SCRIPTS, asset_id, None)
            overlay.put(ERC20, assets.erc20_address(asset_id), asset_id)
        for item in outcome["assetVolumes"]:
            volume = AssetVolume(item["isReissuable"], int(item["volume"]))
            overlay.put(ASSET_VOLUMES, _id(item["id"]), volume)
        for item in outcome["assetNamesAndDescriptions"]:
            name = AssetName(item["name"].encode(), item["description"].encode(), height)
            overlay.put(ASSET_NAMES, _id(item["id"]), name)

    def _address(self, text: str) -> Address:
        return parse_address(text, self._chain_id)


def _id(text: str) -> bytes:
    return base58.decode(text, 100)


def _asset(text: str | None) -> AssetId | None:
    return None if text is None else _id(text)


def _base64(text: str) -> bytes:
    return base64.b64decode(text.removeprefix("base64:"))
