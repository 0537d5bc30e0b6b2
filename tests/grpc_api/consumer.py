"""A consumer of updates that believes nothing: each value before is compared with what it holds."""

from __future__ import annotations

from typing import Any

from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.grpc_api.proto.events_pb2 import BlockchainUpdated, StateUpdate
from soliton.ledger.state import (
    ACCOUNT_SCRIPTS,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    DATA,
    LEASES,
    SPONSORSHIPS,
    WAVES,
    Missing,
)
from soliton.node.node import Node
from soliton.storage import layout


class Consumer:
    """What an indexer knows of a chain from its updates alone."""

    def __init__(self) -> None:
        self.balances: dict[tuple[bytes, bytes], int] = {}
        self.leasing: dict[bytes, tuple[int, int]] = {}
        self.data: dict[tuple[bytes, str], Any] = {}
        self.assets: dict[bytes, bytes] = {}
        self.scripts: dict[bytes, bytes] = {}
        self.chain: list[tuple[int, bytes]] = []
        self.transactions: list[bytes] = []
        self.kinds: dict[str, int] = {}

    def take(self, update: BlockchainUpdated) -> None:
        """Follow one update."""
        if update.HasField("append"):
            self._append(update)
        else:
            self._roll_back(update)

    def _append(self, update: BlockchainUpdated) -> None:
        append = update.append
        kind = append.WhichOneof("body")
        assert kind is not None
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if kind == "block":
            header = append.block.block.header
            if self.chain:
                assert header.reference == self.chain[-1][1]
                assert update.height == self.chain[-1][0] + 1
            assert len(append.block.block.transactions) == len(append.transaction_ids)
        else:
            micro = append.micro_block.micro_block
            assert micro.micro_block.reference == self.chain[-1][1]
            assert micro.total_block_id == update.id and micro.signature
            assert update.height == self.chain[-1][0]
            assert len(micro.micro_block.transactions) == len(append.transaction_ids)
        self.chain.append((update.height, update.id))
        self.transactions += append.transaction_ids
        assert len(append.transaction_state_updates) == len(append.transaction_ids)
        assert len(append.transactions_metadata) == len(append.transaction_ids)
        self.apply(append.state_update)
        for each in append.transaction_state_updates:
            self.apply(each)

    def _roll_back(self, update: BlockchainUpdated) -> None:
        rollback = update.rollback
        kind = "micro back" if rollback.type else "block back"
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        removed = list(rollback.removed_transaction_ids)
        assert removed == self.transactions[len(self.transactions) - len(removed) :][::-1]
        del self.transactions[len(self.transactions) - len(removed) :]
        ids = [name for _, name in self.chain]
        if rollback.type and update.id == ids[-1]:
            # The last microblock is named itself.
            self.chain.pop()
        elif rollback.type:
            del self.chain[ids.index(update.id) + 1 :]
        else:
            [block] = rollback.removed_blocks
            assert block.header.reference == update.id
            while self.chain and self.chain[-1][0] > update.height:
                self.chain.pop()
        self.apply(rollback.rollback_state_update)

    def apply(self, update: StateUpdate) -> None:
        """Check all values before, and take those after."""
        for each in update.balances:
            key = each.address, each.amount_after.asset_id
            assert self.balances.get(key, 0) == each.amount_before
            self.balances[key] = each.amount_after.amount
        for leased in update.leasing_for_address:
            before = leased.in_before, leased.out_before
            assert self.leasing.get(leased.address, (0, 0)) == before
            self.leasing[leased.address] = leased.in_after, leased.out_after
        for entry in update.data_entries:
            place = entry.address, entry.data_entry.key
            assert entry.data_entry_before.key == entry.data_entry.key
            assert self.data.get(place) == _value(entry.data_entry_before)
            self.data[place] = _value(entry.data_entry)
        for asset in update.assets:
            name = asset.after.asset_id or asset.before.asset_id
            old = _details(asset.before) if asset.HasField("before") else b""
            assert self.assets.get(name, b"") == old
            self.assets[name] = _details(asset.after) if asset.HasField("after") else b""
        for script in update.scripts:
            assert self.scripts.get(script.address, b"") == script.before
            self.scripts[script.address] = script.after

    def compare(self, node: Node) -> None:
        """It holds exactly what the node's store holds."""
        store = node.chain.store

        def stored(table: Any) -> dict[Any, Any]:
            row = layout.ROWS[table]
            return {key: row.decode(value) for key, value in store.scan(row.prefix, row.prefix)}

        balances = {(key[1:], b""): value for key, value in stored(WAVES).items() if value}
        for key, value in stored(ASSET_BALANCES).items():
            if value:
                address, asset_id = layout.decode_asset_balance_key(key)
                balances[address, asset_id] = value
        assert {key: value for key, value in self.balances.items() if value} == balances
        leases = {key[1:]: tuple(value) for key, value in stored(LEASES).items() if any(value)}
        assert {key: value for key, value in self.leasing.items() if any(value)} == leases
        data = {
            layout.decode_data_key(key): value
            for key, value in stored(DATA).items()
            if value is not None and not isinstance(value, Missing)
        }
        assert {key: value for key, value in self.data.items() if value is not None} == data
        scripts = {
            key[1:]: value.script
            for key, value in stored(ACCOUNT_SCRIPTS).items()
            if value is not None and value.script
        }
        assert {key: value for key, value in self.scripts.items() if value} == scripts
        names, volumes = stored(ASSET_NAMES), stored(ASSET_VOLUMES)
        assets = {name: each for name, each in self.assets.items() if each}
        assert {row_key(ASSETS, name) for name in assets} == stored(ASSETS).keys()
        for name, raw in assets.items():
            shown = StateUpdate.AssetDetails.FromString(raw)
            volume, called = (
                volumes[row_key(ASSET_VOLUMES, name)],
                names[row_key(ASSET_NAMES, name)],
            )
            assert (shown.reissuable, shown.volume) == (volume.reissuable, volume.quantity)
            assert (shown.name.encode(), shown.last_updated) == (called.name, called.height)
            assert shown.sponsorship == store.get(SPONSORSHIPS, AssetId(name))
            script = store.get(ASSET_SCRIPTS, AssetId(name))
            assert shown.script_info.script == (b"" if script is None else script.script)
        ids: list[AnyTransaction] = []
        for height in range(1, node.chain.height + 1):
            ids += node.chain.block_at(height).transactions
        assert self.transactions == [each.id for each in ids]
        assert self.chain[-1] == (node.chain.height, node.chain.last_block.id)


def row_key(table: Any, name: bytes) -> bytes:
    """Where the store keeps it."""
    return layout.ROWS[table].prefix + name


def _value(entry: Any) -> Any:
    kind = entry.WhichOneof("value")
    return None if kind is None else (kind, getattr(entry, kind))[1]


def _details(asset: StateUpdate.AssetDetails) -> bytes:
    """What of an asset is compared: its place is told in two ways by the reference."""
    copy = StateUpdate.AssetDetails()
    copy.CopyFrom(asset)
    copy.ClearField("sequence_in_block")
    copy.ClearField("issue_height")
    return copy.SerializeToString(deterministic=True)
