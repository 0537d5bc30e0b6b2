"""The parameters of a network, which nodes must share to follow the same chain.

The records are filled from the preset files in this directory (``*.toml``) or from a ``custom``
section of a configuration file. The rules that follow from them at a height are in
``soliton.ledger.rules_at``.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/settings/BlockchainSettings.scala``.
"""

from __future__ import annotations

import msgspec


class Fees(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Minimum fees in wavelets (the smallest unit of the native coin).

    ``base`` maps a transaction type to its minimum. ``unit`` is the granularity of fees: a mass
    transfer costs one additional unit per started pair of recipients, a data transaction one per
    started KiB after the first.
    """

    unit: int
    base: dict[int, int]
    script_extra: int
    nft_issue: int
    reissue_after_block_v5: int
    sponsor_fee_after_block_v5: int


class GenesisTransfer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One genesis transaction: ``recipient`` in base58, ``amount`` in wavelets."""

    recipient: str
    amount: int


class Genesis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The genesis block: times in ms; ``signature`` in base58, computed if it is ``None``."""

    average_block_delay_ms: int
    initial_base_target: int
    transaction_timestamp: int
    block_timestamp: int
    initial_balance: int
    transactions: tuple[GenesisTransfer, ...]
    signature: str | None = None


class Rewards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Block reward parameters: lengths in blocks, amounts in wavelets."""

    term: int = 100_000
    term_after_capped_reward: int = 50_000
    initial: int = 600_000_000
    min_increment: int = 50_000_000
    voting_interval: int = 10_000


class Functionality(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Heights, times (ms) and counts at which rules of this network change.

    Below ``minimum_fees_from_height`` any positive fee is valid; below ``strict_from_height``
    balances may be negative, leased coins may be spent and blocks may be too early.
    """

    feature_check_blocks_period: int
    blocks_for_feature_activation: int
    double_features_periods_after_height: int
    pre_activated_features: dict[int, int] = {}
    generation_balance_depth_from_50_to_1000_after_height: int = 0
    block_version_3_after_height: int = 0
    reset_effective_balances_at_height: int = 0
    minimum_fees_from_height: int = 0
    strict_from_height: int = 0
    max_transaction_time_back_offset_ms: int = 7_200_000
    max_transaction_time_forward_offset_ms: int = 5_400_000
    allow_temporary_negative_until: int = 0
    minimal_generating_balance_after: int = 0
    allow_transactions_from_future_until: int = 0
    allow_unissued_assets_until: int = 0
    allow_invalid_reissue_in_same_block_until: int = 0
    allow_multiple_lease_cancel_until: int = 0
    estimator_pre_check_height: int = 0
    estimation_overflow_fix_height: int = 0
    estimator_sum_overflow_fix_height: int = 0
    enforce_transfer_validation_after: int = 0
    eth_invoke_payments_check_height: int = 0
    payments_check_height: int = 0
    disable_hijacked_aliases_height: int = 0
    min_asset_info_update_interval: int = 100_000
    min_block_time_ms: int = 15_000
    delay_delta: int = 8
    light_node_block_fields_absence_interval: int = 1_000
    lease_expiration: int = 1_000_000
    dao_address: str | None = None
    xtn_buyback_address: str | None = None
    xtn_buyback_reward_period: int = 100_000
    block_reward_boost_period: int = 300_000
    generation_period_length: int = 10_000
    max_valid_endorsers: int = 128


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A network: its name, its chain id, ports, and all parameters above.

    ``family`` determines the REST interface and its messages (``waves``, ``zbs`` or ``tn``);
    ``coin`` is the name of the native coin in messages and asset pairs; ``application_name`` is the
    name of nodes in the handshake.
    """

    name: str
    family: str
    chain_id: int
    coin: str
    rest_port: int
    peer_port: int
    known_peers: tuple[str, ...]
    application_name: str
    fees: Fees
    genesis: Genesis
    functionality: Functionality
    rewards: Rewards = Rewards()

    @property
    def is_public_waves(self) -> bool:
        """Whether this is one of the public Waves networks, not a private chain or another family:
        the newer reference node's defaults hold there.
        """
        return self.family == "waves" and bool(self.known_peers)
