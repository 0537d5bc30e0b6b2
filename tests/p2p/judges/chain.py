"""One private chain, written as each kind of node reads its settings.

What lives here: the chain and its files. What does not: the programs (``programs``).
"""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.genesis import genesis_block
from soliton.chain.networks.custom import custom
from soliton.chain.networks.model import Network
from soliton.chain.transactions import codec
from soliton.chain.transactions.commit_to_generation import commitment
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair, key_pair_from_account_seed

CHAIN_ID = ord("P")
PART = 3_000_000_000_000_000
MINERS = 3
BASE_TARGETS = {3: 5_200, 6: 720, 10: 380}
"""By the seconds between blocks: with these amounts they come so often from the beginning."""
FEATURES = tuple(range(1, 24))
PERIOD = 10
"""The length of generation periods, if feature 25 is voted for."""
MAX_ENDORSERS = 8
REWARD = 600_000_000
_GO_WALLET_SALT = b"E84265D411C08F99E092AE237F4EC250B2F20B2EAB7CFB2FCB0857880983DF44"

_GO_ZEROS = (
    "generation_balance_depth_from_50_to_1000_after_height", "block_version_3_after_height",
    "stolen_aliases_window_time_start", "stolen_aliases_window_time_end",
    "reissue_bug_window_time_start", "reissue_bug_window_time_end",
    "allow_multiple_lease_cancel_until_time", "allow_leased_balance_transfer_until_time",
    "check_temp_negative_after_time", "tx_changes_sorted_check_after_time",
    "tx_from_future_check_after_time", "unissued_asset_until_time",
    "invalid_reissue_in_same_block_until_time",
    "minimal_generating_balance_check_after_time", "payments_fix_after_height",
    "internal_invoke_payments_validation_after_height",
    "internal_invoke_correct_fail_reject_behaviour_after_height",
    "invoke_no_zero_payments_after_height", "delay_delta",
    "light_node_block_fields_absence_interval",
)  # fmt: skip


def account_seed(number: int) -> bytes:
    return f"judges: account {number}".encode()


def account(number: int) -> KeyPair:
    return key_pair_from_account_seed(account_seed(number))


def address(number: int) -> Address:
    return from_public_key(account(number).public_key, CHAIN_ID)


class PrivateChain:
    """A chain that begins now, or some seconds later; accounts 0 to 2 have all of it, by default in
    equal parts.
    """

    parts: tuple[int, ...] = (PART,) * MINERS

    def __init__(
        self,
        block_seconds: int = 3,
        features: tuple[int, ...] = FEATURES,
        parts: tuple[int, ...] = parts,
        later: int = 0,
    ) -> None:
        self.time = int((time.time() + later) * 1_000)
        self.block_seconds = block_seconds
        self.features = features
        self.parts = parts
        self.network: Network = custom(self._custom())

    def _custom(self) -> dict[str, Any]:
        return {
            "address-scheme-character": chr(CHAIN_ID),
            "functionality": {
                "feature-check-blocks-period": 5,
                "blocks-for-feature-activation": 5,
                "reset-effective-balances-at-height": 1,
                "generation-balance-depth-from-50-to-1000-after-height": 0,
                "block-version-3-after-height": 0,
                "last-time-based-fork-parameter": 0,
                "double-features-periods-after-height": 1_000_000_000,
                "max-transaction-time-back-offset": "120m",
                "max-transaction-time-forward-offset": "90m",
                "min-asset-info-update-interval": 2,
                "min-block-time": "1s",
                "delay-delta": 0,
                "light-node-block-fields-absence-interval": 0,
                "generation-period-length": PERIOD,
                "max-valid-endorsers": MAX_ENDORSERS,
                "pre-activated-features": {
                    str(each): -5 if each == 7 else 0 for each in self.features
                },
            },
            "genesis": {
                "average-block-delay": f"{self.block_seconds}s",
                "initial-base-target": BASE_TARGETS[self.block_seconds],
                "timestamp": self.time,
                "block-timestamp": self.time,
                "initial-balance": sum(self.parts),
                "transactions": [
                    {"recipient": address_text(address(number)), "amount": part}
                    for number, part in enumerate(self.parts)
                ],
            },
            "rewards": {
                "term": 6,
                "term-after-capped-reward-feature": 3,
                "initial": REWARD,
                "min-increment": 50_000_000,
                "voting-interval": 3,
            },
        }

    def settings(self, **others: Any) -> str:
        """The settings file of our node, and of the Scala node, which needs the signature too."""
        section = self._custom()
        section["genesis"]["signature"] = base58.encode(genesis_block(self.network).signature)
        tree = {
            "blockchain": {"type": "CUSTOM", "custom": section},
            "rewards": {"desired": REWARD},
        }
        lines = [f"waves {json.dumps(tree)}"]
        for key, value in others.items():
            lines.append(f"waves.{key} = {json.dumps(value)}")
        return "\n".join(lines) + "\n"

    def go_settings(self) -> str:
        """The file that the Go node reads (``-cfg-path``)."""
        return json.dumps(
            dict.fromkeys(_GO_ZEROS, 0)
            | {
                "features_voting_period": 5,
                "votes_for_feature_activation": 5,
                "preactivated_features": list(self.features),
                "double_features_periods_after_height": 1_000_000_000,
                "sponsorship_single_activation_period": True,
                "reset_effective_balance_at_height": 1,
                "max_tx_time_back_offset": 7_200_000,
                "max_tx_time_forward_offset": 5_400_000,
                "address_scheme_character": CHAIN_ID,
                "average_block_delay_seconds": self.block_seconds,
                "min_block_time": 1_000,
                "max_base_target": 1_000_000,
                "block_reward_term": 6,
                "block_reward_term_after_20": 3,
                "initial_block_reward": REWARD,
                "block_reward_increment": 50_000_000,
                "block_reward_voting_period": 3,
                "reward_addresses": None,
                "reward_addresses_after_21": None,
                "min_xtn_buy_back_period": 2**31 - 1,
                "block_reward_boost_period": 1_000,
                "min_update_asset_info_interval": 2,
                "generation_period": PERIOD,
                "max_endorsements": MAX_ENDORSERS,
                "type": 3,
                "genesis": self._go_genesis(),
            }
        )

    def _go_genesis(self) -> dict[str, Any]:
        block = genesis_block(self.network)
        pair = key_pair_from_account_seed(b"")
        transactions = [_go_genesis_transaction(each) for each in block.transactions]
        return {
            "version": 1,
            "timestamp": self.time,
            "reference": base58.encode(block.header.reference),
            "desiredReward": 0,
            "nxt-consensus": {
                "base-target": BASE_TARGETS[self.block_seconds],
                "generation-signature": base58.encode(block.header.generation_signature),
            },
            "transactionBlockLength": 1 + 47 * len(transactions),
            "transactionCount": len(transactions),
            "generatorPublicKey": base58.encode(pair.public_key),
            "signature": base58.encode(block.signature),
            "id": base58.encode(bytes(64)),
            "transactions": transactions,
        }

    def go_wallet(self, path: Path, number: int, password: str) -> None:
        """A wallet file of the Go node, with one account."""
        key = Argon2id(
            salt=_GO_WALLET_SALT, length=32, iterations=4, lanes=4, memory_cost=64 * 1024
        ).derive(password.encode())
        start = os.urandom(16)
        encryptor = Cipher(algorithms.AES(key), CFB(start)).encryptor()
        plain = json.dumps({"seeds": [base64.b64encode(account_seed(number)).decode()]})
        secret = encryptor.update(plain.encode()) + encryptor.finalize()
        path.write_bytes((1).to_bytes(4, "big") + start + secret)

    def transfer(self, sender: int, amount: int = 1) -> AnyTransaction:
        """A transfer of an account to the next one, signed now."""
        transaction = codec.build(
            type_by_id(4),
            Transfer(address((sender + 1) % MINERS), None, amount, b""),
            version=3,
            chain_id=CHAIN_ID,
            fee=100_000,
            timestamp=int(time.time() * 1_000),
            sender_public_key=account(sender).public_key,
        )
        return codec.sign(transaction, account(sender).private_key)

    def commitment(self, sender: int, period_start: int) -> AnyTransaction:
        """The commitment of an account, with the key that our nodes endorse with."""
        transaction = codec.build(
            type_by_id(19),
            commitment(account(sender).private_key, period_start),
            version=1,
            chain_id=CHAIN_ID,
            fee=10_000_000,
            timestamp=int(time.time() * 1_000),
            sender_public_key=account(sender).public_key,
        )
        return codec.sign(transaction, account(sender).private_key)


def _go_genesis_transaction(transaction: AnyTransaction) -> dict[str, Any]:
    found = codec.to_json(transaction)
    return {
        "type": 1,
        "version": 1,
        "id": found["id"],
        "signature": found["signature"],
        "timestamp": found["timestamp"],
        "recipient": found["recipient"],
        "amount": found["amount"],
    }
