"""Text tables of rules: what is different from a transaction that applies, and what happens.

A row reads `rules | changes | outcome`. `changes` are keyword arguments of ``run`` in Python; the
outcome is ``ok`` or the error's class and the beginning of its words.
"""

from __future__ import annotations

from typing import Any

import msgspec

from soliton.chain import networks
from soliton.chain.addresses import Address, Alias, from_public_key
from soliton.chain.networks import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.genesis import Genesis
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.payment import Payment
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import DataEntry
from soliton.crypto import keys
from soliton.errors import SolitonError
from soliton.ledger.context import Context
from soliton.ledger.environment import BlockEnvironment, BlockMeta
from soliton.ledger.rules_at import RuleBook, Rules
from soliton.ledger.state import (
    ALIASES,
    ASSET_BALANCES,
    ASSETS,
    LEASES,
    SPONSORSHIPS,
    WAVES,
    AssetInfo,
    LeaseBalance,
)
from soliton.ledger.transactions import apply_transaction
from tests.ledger.memory import MemoryState

COIN = 10**8
FEE = 100_000
TIME = 1_700_000_000_000
HEIGHT = 10
DEVNET = networks.load("devnet")
R = DEVNET.chain_id
SENDER, OTHER, ISSUER = (keys.key_pair(name) for name in ("sender", "other", "issuer"))
ME, YOU, SPONSOR = (from_public_key(pair.public_key, R) for pair in (SENDER, OTHER, ISSUER))
GOLD, PAPER = b"g" * 32, b"p" * 32


def network(
    features: range | tuple[int, ...], later: tuple[int, ...] = (), **settings: Any
) -> Network:
    """Devnet with these features only, some to become active later, and other settings."""
    functionality = msgspec.structs.replace(
        DEVNET.functionality,
        pre_activated_features=dict.fromkeys(features, -10) | dict.fromkeys(later, 1_000),
        **{"block_version_3_after_height": 1_000, **settings},
    )
    return msgspec.structs.replace(DEVNET, functionality=functionality)


NETWORKS = {
    "devnet": DEVNET,
    "old": network(()),
    "lax": network(
        (), allow_temporary_negative_until=2 * TIME, allow_unissued_assets_until=2 * TIME
    ),
    "future": network((), allow_transactions_from_future_until=TIME + 10**9),
    "protected": network((), block_version_3_after_height=HEIGHT - 1),
    "smart": network((4,)),
    "data": network((5,)),
    "fees": network((4, 5, 7)),
    "dapps": network(range(1, 12)),
    "approved": network(range(1, 15), (15,)),
    "v5": network(range(1, 16)),
    "calls": network(range(1, 17)),
    "finality": network(range(1, 26)),
    "ride 6": network(range(1, 18)),
    "unsponsored": network(range(1, 18), feature_check_blocks_period=1_000),
    "light": network(range(1, 23)),
    "adjusted": network((*range(1, 23), 26)),
}


def rules_of(name: str, height: int = HEIGHT) -> Any:
    return RuleBook(NETWORKS[name]).at(height)


def state_of(
    *,
    waves: int = 10 * COIN,
    lease_in: int = 0,
    lease_out: int = 0,
    gold: int = 1_000,
    known: tuple[bytes, ...] = (GOLD, PAPER),
    sponsored: int = 0,
    sponsor_waves: int = COIN,
    **_rest: Any,
) -> MemoryState:
    """A sender with coins and gold; gold may be sponsored, paper never is."""
    state = MemoryState()
    state.put(WAVES, ME, waves)
    state.put(WAVES, SPONSOR, sponsor_waves)
    state.put(LEASES, ME, LeaseBalance(lease_in, lease_out))
    state.put(ASSET_BALANCES, (ME, GOLD), gold)
    state.put(ALIASES, "known", YOU)
    state.put(SPONSORSHIPS, GOLD, sponsored)
    for asset_id in known:
        state.put(ASSETS, asset_id, AssetInfo(ISSUER.public_key, 2, False, asset_id, 1, 1))
    return state


def payload_of(
    kind: str,
    *,
    amount: int = COIN,
    to: Address | Alias = YOU,
    asset: bytes | None = None,
    attachment: bytes = b"",
    entries: tuple[DataEntry, ...] = (DataEntry("key", 1),),
    **_rest: Any,
) -> tuple[int, Any]:
    match kind:
        case "genesis":
            assert not isinstance(to, Alias)
            return 1, Genesis(to, amount)
        case "payment":
            assert not isinstance(to, Alias)
            return 2, Payment(to, amount)
        case "transfer":
            return 4, Transfer(to, asset, amount, attachment)
        case _:
            return 12, Data(entries)


def make(kind: str, given: dict[str, Any]) -> AnyTransaction:
    type_id, payload = payload_of(kind, **given)
    version = {"transfer": 1, "data": 1}.get(kind, 1)
    transaction = codec.build(
        type_by_id(type_id),
        payload,
        version=given.get("version", version),
        chain_id=given.get("chain_id", R),
        sender_public_key=b"" if kind == "genesis" else given.get("key", SENDER.public_key),
        fee=0 if kind == "genesis" else given.get("fee", FEE),
        fee_asset_id=given.get("fee_asset"),
        timestamp=TIME + given.get("later", 0),
    )
    if kind == "genesis":
        return transaction
    signed = codec.sign(transaction, given.get("signer", SENDER).private_key)
    return codec.with_proofs(signed, given.get("proofs", signed.proofs))


def parent_at(timestamp: int, **given: Any) -> BlockMeta:
    """What is known of a block at this time, of which nothing else matters."""
    blank = BlockMeta(
        *(b"", 0, b"", b"", (), 0, 0, (), 0, 0, b"", 0, 0, b"", b""),
        sections={},
    )
    return msgspec.structs.replace(blank, timestamp=timestamp, **given)


def context_at(
    height: int, timestamp: int, parent_timestamp: int | None, rules: Rules, **given: Any
) -> Context:
    """A transaction is applied in a block at this time above a parent at that."""
    parent = None if parent_timestamp is None else parent_at(parent_timestamp)
    return Context(BlockEnvironment(height, timestamp, rules, rules, parent), **given)


def run(kind: str, rules: str, **given: Any) -> str:
    """Check and apply a transaction: `ok`, or the error as text."""
    state = state_of(**given)
    height = given.get("height", HEIGHT)
    try:
        transaction = make(kind, given)
        if given.get("seen_at"):
            state.transactions[transaction.id] = given["seen_at"]
        codec.validate(transaction)
        context = context_at(height, TIME, TIME - 1_000, rules_of(rules, height))
        apply_transaction(transaction, state, context)
    except SolitonError as error:
        return f"{type(error).__name__} {getattr(error, 'details', None) or error}"
    return "ok"


NAMES = {
    "COIN": COIN,
    "FEE": FEE,
    "ME": ME,
    "YOU": YOU,
    "GOLD": GOLD,
    "PAPER": PAPER,
    "OTHER": OTHER,
    "HEIGHT": HEIGHT,
    "TIME": TIME,
    "Alias": Alias,
    "E": DataEntry,
    "R": R,
    "range": range,
    "str": str,
    "bytes": bytes,
    "tuple": tuple,
    "dict": dict,
}


def rows(table: str) -> list[tuple[str, str, str]]:
    found = []
    for line in table.strip().splitlines():
        rules, changes, outcome = (cell.strip() for cell in line.split("|"))
        found.append((rules, changes, outcome))
    return found


def check(kind: str, rules: str, changes: str, outcome: str) -> None:
    given = eval(f"dict({changes})", dict(NAMES))
    found = run(kind, rules, **given)
    assert found == outcome if outcome == "ok" else found.startswith(outcome), found
