"""The responses of nodes, as typed records.

Members that only some nodes, networks or versions send are ``None`` (or empty) when absent; members
that a record does not declare are dropped. Amounts are in the smallest unit, times in milliseconds;
addresses and ids are base58 text, as the node writes them.

What lives here: the records of nodes. What does not: the requests that return them (``routes``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from soliton.chain.json_kinds import decode_base64
from soliton.client.amounts import MAX_DECIMALS
from soliton.client.errors import NodeBroken
from soliton.client.transaction import Transaction
from soliton.crypto import base58
from soliton.errors import InputError

_INTEGER: Final = re.compile(r"-?[0-9]{1,160}")
SUCCEEDED: Final = "succeeded"
"""The application status of a transaction that was executed."""


Natural = Annotated[int, msgspec.Meta(ge=0)]
Decimals = Annotated[int, msgspec.Meta(ge=0, le=MAX_DECIMALS)]


class Record(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the records: attributes are the JSON members in snake case."""


FINALIZED: Final = "finalized"
Confirmations: TypeAlias = int | Literal["finalized"]
"""How deep a block has to be: the number of blocks above it, or ``"finalized"``."""
DataValue: TypeAlias = int | bool | bytes | str | None


class BalanceDetails(Record, frozen=True):
    """An account's balances in the coin: ``regular`` is the whole balance, ``available`` the part
    that is not leased, ``effective`` the generating stake, ``generating`` its minimum over the last
    1,000 blocks.
    """

    address: str
    regular: int
    available: int
    effective: int
    generating: int


class HeightBalance(Record, frozen=True):
    """A balance since a height."""

    height: int
    balance: int


class ScriptInfo(Record, frozen=True):
    """The script of an account (``None`` if it has none) and its complexity."""

    address: str
    script: str | None = None
    script_text: str | None = None
    version: int | None = None
    complexity: int = 0
    verifier_complexity: int = 0
    callable_complexities: dict[str, int] = {}
    extra_fee: int = 0
    public_key: str | None = None


class AssetDetails(Record, frozen=True):
    """An asset. Pass this record as the asset to give amounts of it as decimal text."""

    asset_id: str
    issuer: str
    name: str
    description: str
    decimals: Decimals
    quantity: int
    reissuable: bool
    issue_height: int = 0
    issue_timestamp: int = 0
    issuer_public_key: str | None = None
    scripted: bool = False
    min_sponsored_asset_fee: int | None = None
    origin_transaction_id: str | None = None
    sequence_in_block: int | None = None


class AssetBalance(Record, frozen=True):
    """The balance of one asset of an account."""

    asset_id: str
    balance: int = 0
    reissuable: bool = False
    quantity: int = 0
    min_sponsored_asset_fee: int | None = None
    sponsor_balance: int | None = None


class AssetBalances(Record, frozen=True):
    """The assets of an account."""

    balances: list[AssetBalance]


class BalanceRecord(Record, frozen=True):
    """One balance."""

    balance: Natural


class BalanceOf(Record, frozen=True):
    """The balance of an account."""

    id: str
    balance: Natural


class Distribution(Record, frozen=True):
    """A page of the holders of an asset."""

    items: dict[str, Natural]
    has_next: bool = False
    last_item: str | None = None


class TimeRecord(Record, frozen=True):
    """The time of a node's clock."""

    ntp: int = msgspec.field(name="NTP")


class SizeRecord(Record, frozen=True):
    """A number of things."""

    size: int


class DelayRecord(Record, frozen=True):
    """A mean delay in milliseconds."""

    delay: int


class AliasRecord(Record, frozen=True):
    """The address of an alias or a public key."""

    address: str


class Lease(Record, frozen=True):
    """A lease and its present state: ``status`` is ``active`` or ``canceled``."""

    id: str
    sender: str | None = None
    recipient: str | None = None
    amount: int | None = None
    height: int | None = None
    status: str = "active"
    origin_transaction_id: str | None = None
    cancel_height: int | None = None
    cancel_transaction_id: str | None = None


class Consensus(msgspec.Struct, frozen=True, rename="kebab"):
    """The consensus values of a block."""

    base_target: int
    generation_signature: str


class ConflictEndorsement(Record, frozen=True):
    """An endorsement whose final block is not on the chain: the proof of a generator's fault."""

    endorser_index: int
    finalized_block_id: str
    finalized_height: int
    endorsed_block_id: str
    signature: str


class FinalizationVoting(Record, frozen=True):
    """The voting of a block on the one before it. ``endorser_indexes`` are places in the list of
    the period's generators; all of them have signed the final block at ``finalized_height``.
    """

    endorser_indexes: tuple[int, ...] = ()
    aggregated_endorsement_signature: str | None = None
    finalized_height: int = 0
    conflict_endorsements: tuple[ConflictEndorsement, ...] = ()


class BlockHeader(Record, frozen=True):
    """The header of a block. Nodes of the oldest generation send no ``id``: their blocks are
    identified by ``signature``. ``finalization_voting`` is ``None`` in a block without endorsements
    and on networks without deterministic finality.
    """

    version: int
    timestamp: int
    reference: str
    generator: str
    signature: str
    consensus: Consensus = msgspec.field(name="nxt-consensus")
    height: int = 0
    id: str = ""
    generator_public_key: str | None = None
    blocksize: int = 0
    transaction_count: int = 0
    transactions_root: str | None = None
    total_fee: int = 0
    reward: int | None = None
    reward_shares: dict[str, int] = {}
    desired_reward: int | None = None
    features: tuple[int, ...] = ()
    state_hash: str | None = None
    vrf: str | None = msgspec.field(default=None, name="VRF")
    finalization_voting: FinalizationVoting | None = None


class TransactionInfo(Record, frozen=True):
    """A transaction as a node shows it: the common members, and the whole object as ``json``.

    ``height`` is the height of its block, ``None`` while it is unconfirmed; ``application_status``
    is ``succeeded``, or ``script_execution_failed`` if it has only paid its fee.
    """

    type: int
    id: str
    timestamp: int
    fee: int = 0
    version: int | None = None
    sender: str | None = None
    sender_public_key: str | None = None
    fee_asset_id: str | None = None
    proofs: tuple[str, ...] = ()
    height: int | None = None
    application_status: str | None = None
    spent_complexity: int | None = None
    asset_id: str | None = None
    json: dict[str, Any] = msgspec.field(default_factory=dict, name="-")

    @property
    def state_changes(self) -> dict[str, Any] | None:
        """The effects of a dApp call, ``None`` if the node does not report them."""
        for place in (self.json, self.json.get("payload")):
            if isinstance(place, dict) and isinstance(place.get("stateChanges"), dict):
                changes: dict[str, Any] = place["stateChanges"]
                return changes
        return None

    def transaction(self, chain_id: int | str) -> Transaction:
        """Return the transaction itself, with its signed bytes; raises ``InputError`` for types
        that cannot be made from JSON.
        """
        return Transaction.from_json(self.json, chain_id)


class Block(msgspec.Struct, frozen=True):
    """A block: its header and its transactions."""

    header: BlockHeader
    transactions: tuple[TransactionInfo, ...]
    fee: int = 0


class Status(Record, frozen=True):
    """The status of a transaction: ``unconfirmed``, ``confirmed`` or ``not_found``. ``finalized``
    says whether its block is final, if the request has waited for that.
    """

    id: str
    status: str
    height: int | None = None
    confirmations: int | None = None
    application_status: str | None = None
    spent_complexity: int | None = None
    reason: str | None = None
    finalized: bool | None = None


class Mined(Record, frozen=True):
    """A confirmed transaction; for an issue, ``asset_id`` is the new asset."""

    id: str
    height: int
    confirmations: int = 0
    application_status: str = "succeeded"
    asset_id: str | None = None
    spent_complexity: int | None = None


class Fee(Record, frozen=True):
    """The minimum fee of a transaction, in an asset (``None``: the coin)."""

    fee_amount: Natural
    fee_asset_id: str | None = None


class MerkleProof(Record, frozen=True):
    """The Merkle proof that a transaction is in its block."""

    id: str
    merkle_proof: tuple[str, ...]
    transaction_index: int


class Compiled(Record, frozen=True):
    """A compiled script in base64, and its complexity."""

    script: str
    complexity: int = 0
    verifier_complexity: int = 0
    callable_complexities: dict[str, int] = {}
    extra_fee: int = 0


class Evaluated(Record, frozen=True):
    """The outcome of an expression or a call: ``result`` as the node writes it, ``value`` as a
    Python value.
    """

    result: dict[str, Any]
    complexity: int = 0
    state_changes: dict[str, Any] = {}
    trace: list[Any] = []

    @property
    def value(self) -> Any:  # noqa: ANN401 - any value of the language
        """The result as a Python value: ``int``, ``str``, ``bool``, ``bytes``, lists, tuples, and
        records as dictionaries.
        """
        return ride_value(self.result)


class NodeStatus(Record, frozen=True):
    """Height and time of a node's last block."""

    blockchain_height: int
    state_height: int
    updated_timestamp: int


class Readiness(Record, frozen=True):
    """Whether a Soliton node is ready for requests: ``status`` is ``ready`` or ``unready``, for the
    ``reasons``. The age of its last block is in seconds, the ``lag`` in blocks.
    """

    status: str
    reasons: tuple[str, ...] = ()
    height: int = 0
    last_block_age: int = 0
    lag: int = 0


class Feature(Record, frozen=True):
    """A protocol feature, and the state of the vote on it."""

    id: int
    description: str
    blockchain_status: str
    node_status: str
    activation_height: int | None = None
    supporting_blocks: int | None = None


class FeatureList(Record, frozen=True):
    """All features, and the window of the vote on them: its length, the last height of it, and the
    number of votes that approves one.
    """

    features: list[Feature]
    height: int = 0
    voting_interval: int = 0
    voting_threshold: int = 0
    next_check: int = 0


class Reward(Record, frozen=True):
    """The block reward at a height, and the vote on it."""

    height: int
    current_reward: int
    total_waves_amount: int = 0
    min_increment: int = 0
    term: int = 0
    next_check: int = 0


class Peer(Record, frozen=True):
    """A peer of the node."""

    address: str
    declared_address: str | None = None
    peer_name: str | None = None
    peer_nonce: int | None = None
    application_name: str | None = None
    application_version: str | None = None


class PeerList(Record, frozen=True):
    """A list of peers."""

    peers: list[Peer]


class Simulation(Record, frozen=True):
    """The simulated effects of a transaction: whether the node would accept it (``error`` if not),
    the fee it would pay and the changes it would make.
    """

    valid: bool
    signed: bool = False
    error: dict[str, Any] | None = None
    fee: dict[str, Any] | None = None
    changes: dict[str, Any] | None = None
    state_changes: dict[str, Any] | None = None
    trace: list[Any] | None = None


class Validation(Record, frozen=True):
    """The result of validating a signed transaction. ``state_changes`` are the effects of a valid
    call, ``fault`` the place of a script's failure as in ``ScriptRefused``; empty where the node
    does not report them.
    """

    valid: bool
    error: str | None = None
    validation_time: int | None = None
    trace: list[Any] = []
    state_changes: dict[str, Any] = {}
    fault: dict[str, Any] = {}
    application_status: str | None = None


def transaction_info(value: Mapping[str, Any]) -> TransactionInfo:
    """Convert a transaction's JSON object; raises ``msgspec.ValidationError``."""
    found = msgspec.convert(value, TransactionInfo)
    return msgspec.structs.replace(found, json=dict(value))


def block(value: Mapping[str, Any]) -> Block:
    """Convert a block's JSON object; raises ``msgspec.ValidationError``."""
    rows = value.get("transactions", ())
    return Block(
        msgspec.convert(value, BlockHeader),
        tuple(map(transaction_info, rows)),
        value.get("fee", 0),
    )


def data_value(kind: str, value: object) -> DataValue:
    """Return the value of a data entry as a Python value; raises ``NodeBroken``."""
    if kind == "integer" and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind == "string" and isinstance(value, str):
        return value
    if kind == "binary" and isinstance(value, str):
        try:
            return decode_base64(value)
        except InputError as error:
            raise NodeBroken(f"invalid response from the node: {error}") from error
    raise NodeBroken(f"invalid response from the node: a data entry of type {kind!r:.40}")


def ride_value(node: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any value of the language
    """Convert a value of the script language, as nodes write it, to a Python value.

    >>> ride_value({"type": "Array", "value": [{"type": "Int", "value": 5}]})
    [5]
    """
    value = node.get("value")
    match node.get("type"):
        case "Array" if isinstance(value, list):
            return [ride_value(each) for each in value]
        case "Tuple" if isinstance(value, dict):
            return tuple(ride_value(each) for each in value.values())
        case "Unit":
            return None
        case "ByteVector" if isinstance(value, str):
            return _bytes(value)
        case "BigInt" if isinstance(value, int) or _INTEGER.fullmatch(str(value)):
            return int(str(value))
        case _ if isinstance(value, dict):
            return {
                name: ride_value(each) if isinstance(each, dict) else each
                for name, each in value.items()
            }
    return value


def _bytes(text: str) -> bytes:
    return decode_base64(text) if text.startswith("base64:") else base58.decode(text)
