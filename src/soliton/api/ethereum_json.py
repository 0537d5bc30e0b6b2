"""Blocks and transactions of the chain in the form of Ethereum's JSON-RPC.

What lives here: the JSON of blocks, of Ethereum transactions and of their receipts. What does not:
the methods (``ethereum_rpc``), and other transaction types, which Ethereum does not have.

Members without a meaning on this chain have a neutral value. Gas is counted in wavelets; a gas
price of 10 gwei makes the fee in wei correct. Blocks by number have no ``baseFeePerGas``, which
tells clients to send legacy transactions.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/eth/EthRpcRoute.scala``;
https://ethereum.github.io/execution-apis.
"""

from __future__ import annotations

from typing import Final

from soliton.api.json_transactions import Members
from soliton.chain.addresses import from_public_key, public_key_hash
from soliton.chain.transactions import ethereum
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import MAX_I64
from soliton.ledger.state import Status
from soliton.node.blockchain import Blockchain
from soliton.storage.layout import TransactionLocation

_HASH_BYTES: Final = 32
_BLOOM_BYTES: Final = 256
_NONCE_BYTES: Final = 8
_MS_PER_SECOND: Final = 1_000


def quantity(value: int) -> str:
    """A number in JSON-RPC: hexadecimal without leading zeros."""
    return hex(value)


def hexadecimal(data: bytes) -> str:
    """Bytes in JSON-RPC: hexadecimal with a prefix."""
    return "0x" + data.hex()


_NO_HASH: Final = hexadecimal(bytes(_HASH_BYTES))
_NO_BLOOM: Final = hexadecimal(bytes(_BLOOM_BYTES))


def block_json(chain: Blockchain, height: int, *, whole: bool) -> Members:
    """The block at a height, with its Ethereum transactions ``whole`` or only their hashes.

    The 64-byte ids of old blocks are truncated to 32 bytes, which clients expect. Raises
    ``KeyError`` if there is no such block.
    """
    block = chain.last_block if height == chain.height else chain.block_at(height)
    meta, header = chain.meta(height), block.header
    places = [
        (each, location)
        for each in block.transactions
        if each.type_id == ethereum.TYPE_ID
        and (location := chain.store.transaction_location(each.id)) is not None
    ]
    root = header.transactions_root
    return {
        "number": quantity(height),
        "hash": _hash(meta.id),
        "parentHash": _hash(header.reference),
        "timestamp": quantity(header.timestamp // _MS_PER_SECOND),
        "miner": hexadecimal(public_key_hash(from_public_key(header.generator, header.chain_id))),
        "gasLimit": quantity(MAX_I64),
        "gasUsed": quantity(sum(each.fee for each, _ in places)),
        "size": quantity(meta.size),
        "transactions": [
            transaction_json(each, location, chain) if whole else hexadecimal(each.id)
            for each, location in places
        ],
        "transactionsRoot": hexadecimal(root) if len(root) == _HASH_BYTES else _NO_HASH,
        "stateRoot": _hash(meta.snapshot_hash),
        "receiptsRoot": _NO_HASH,
        "mixHash": _NO_HASH,
        "sha3Uncles": _NO_HASH,
        "uncles": [],
        "nonce": hexadecimal(bytes(_NONCE_BYTES)),
        "difficulty": quantity(0),
        "totalDifficulty": quantity(0),
        "extraData": "0x",
        "logsBloom": _NO_BLOOM,
    }


def pending_json() -> Members:
    """The next block, which is unknown."""
    return {"number": None}


def _hash(name: bytes) -> str:
    return hexadecimal(name[:_HASH_BYTES].ljust(_HASH_BYTES, b"\0"))


def transaction_json(
    transaction: AnyTransaction, location: TransactionLocation | None, chain: Blockchain
) -> Members:
    """An Ethereum transaction; an unconfirmed one has no ``location``."""
    payload: ethereum.Ethereum = transaction.payload
    return {
        "hash": hexadecimal(transaction.id),
        **_place(location, chain),
        "from": _sender(transaction),
        "to": hexadecimal(payload.to),
        "nonce": quantity(transaction.timestamp),
        "value": quantity(payload.value),
        "gasPrice": quantity(payload.gas_price),
        "gas": quantity(transaction.fee),
        "input": hexadecimal(payload.data),
        "type": quantity(0),
        "chainId": quantity(transaction.chain_id),
        "v": quantity(payload.v),
        "r": quantity(payload.r),
        "s": quantity(payload.s),
        "standardV": quantity(ethereum.recovery_id(payload.v, transaction.chain_id)),
        "raw": hexadecimal(payload.encoded),
        "publickey": hexadecimal(transaction.sender_public_key),
    }


def receipt_json(
    transaction: AnyTransaction, location: TransactionLocation, chain: Blockchain
) -> Members:
    """The receipt of a confirmed Ethereum transaction."""
    payload: ethereum.Ethereum = transaction.payload
    return {
        "transactionHash": hexadecimal(transaction.id),
        **_place(location, chain),
        "from": _sender(transaction),
        "to": hexadecimal(payload.to),
        "cumulativeGasUsed": quantity(transaction.fee),
        "gasUsed": quantity(transaction.fee),
        "effectiveGasPrice": quantity(payload.gas_price),
        "contractAddress": None,
        "logs": [],
        "logsBloom": _NO_BLOOM,
        "status": quantity(int(location.status == Status.SUCCEEDED)),
        "type": quantity(0),
    }


def _place(location: TransactionLocation | None, chain: Blockchain) -> Members:
    if location is None:
        return dict.fromkeys(("blockHash", "blockNumber", "transactionIndex"))
    return {
        "blockHash": _hash(chain.meta(location.height).id),
        "blockNumber": quantity(location.height),
        "transactionIndex": quantity(location.index),
    }


def _sender(transaction: AnyTransaction) -> str:
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    return hexadecimal(public_key_hash(sender))
