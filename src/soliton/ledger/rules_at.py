"""The rules in force at a height: one frozen record of switches and numbers.

A rule reads ``rules.sponsorship`` or ``rules.fees``; it never compares heights or feature numbers
itself. Heights between two switches share one record, so a look-up is a binary search in a short
list.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/settings/BlockchainSettings.scala``,
``state/Blockchain.scala`` (``blockVersionAt``), ``state/Sponsorship.scala``; for what begins with
an approval ``features/{ComplexityCheck,MultiPayment,OverdraftValidation}*Provider.scala``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Final

import msgspec

from soliton.chain import blocks
from soliton.chain.features import IMPLEMENTED, ONE_FORM, Feature
from soliton.chain.networks.model import Fees, Functionality, Network
from soliton.consensus.generation import GenerationPeriod, period_at
from soliton.consensus.header_check import HeaderRules
from soliton.consensus.pos import FAIR_1, NXT, Algorithm, PoS
from soliton.ledger import patches
from soliton.ride.environment import Switches
from soliton.ride.estimators import choice

MINIMUM_GENERATING_BALANCE: Final = 1_000_000_000_000
SMALLER_MINIMUM_GENERATING_BALANCE: Final = 100_000_000_000
SHORT_BALANCE_DEPTH: Final = 50
LONG_BALANCE_DEPTH: Final = 1_000
NEVER: Final = 2**63 - 1

MAX_TRANSACTIONS_BEFORE_NG: Final = 100
MAX_TRANSACTIONS_NG: Final = 6_000
MAX_TRANSACTION_BYTES_IN_BLOCK: Final = 1_048_576
MAX_COMPLEXITY_RIDE_4_DAPPS: Final = 1_000_000
MAX_COMPLEXITY_SYNCHRONOUS_CALLS: Final = 2_500_000


class Rules(msgspec.Struct, frozen=True):
    """The rules for the block at a height (and, as its parent's rules, for the next one).

    A few rules of feature 15 already apply when it is approved (``block_v5_approved``): those on
    the complexity of verifiers, on several payments, and on aliases in transfers of dApps.
    """

    chain_id: int
    coin: str
    features: frozenset[int]
    block_v5_approved: bool
    unknown_features: tuple[int, ...]
    block_version: int
    fees: Fees
    minimum_fees_enforced: bool
    balances_enforced: bool
    payments_allowed: bool
    block_version_3_after_height: int
    leased_coins_protected: bool
    sponsorship: bool
    ng: bool
    ng_carry: bool
    scripted_generators_refused: bool
    pos: PoS
    uses_vrf: bool
    minimum_generating_balance: int
    minimal_generating_balance_after: int
    generating_balance_depth: int
    average_block_delay_seconds: int
    state_hash_required: bool
    temporary_negative_until: int
    future_until: int
    unissued_assets_until: int
    invalid_reissue_until: int
    multiple_lease_cancel_until: int
    alias_ids_unique: bool
    disabled_aliases: frozenset[str]
    fixed_outcomes: Mapping[bytes, patches.FixedOutcome]
    estimation_overflow_checked: bool
    exchange_funds_checked: bool
    ethereum_payments_checked: bool
    dapp_actions_checked: bool
    payments_of_calls_checked: bool
    language: Switches
    estimation: choice.EstimationRules
    min_asset_info_update_interval: int
    max_time_back_ms: int
    max_time_forward_ms: int
    max_transactions: int | None
    max_transactions_bytes: int | None
    max_complexity: int | None

    def has(self, feature: Feature) -> bool:
        """Whether a feature is active."""
        return feature in self.features

    @property
    def refuses_variants(self) -> bool:
        """Whether signatures of Ethereum wallets have one form only (``ONE_FORM``)."""
        return not self.features.isdisjoint(ONE_FORM)


class RuleBook:
    """The rules of a network at every height, given the heights at which features became active."""

    __slots__ = (
        "_activations",
        "_approvals",
        "_headers",
        "_network",
        "_patches",
        "_records",
        "_starts",
    )

    def __init__(self, network: Network, approvals: Mapping[int, int] | None = None) -> None:
        """``approvals`` maps features to the heights at which votes approved them, in addition to
        the network's pre-activated features.
        """
        self._network = network
        self._approvals = dict(approvals or {})
        self._activations = dict(network.functionality.pre_activated_features)
        for feature, height in self._approvals.items():
            window = voting_window(network.functionality, height)
            self._activations[feature] = height + window
        self._patches = patches.by_height(network, self._activations)
        self._starts = sorted({0, *(height for height in self._switches() if height >= 0)})
        self._records = [self._make(start) for start in self._starts]
        self._headers: dict[tuple[int, int], HeaderRules] = {}

    def with_approvals(self, approvals: Mapping[int, int]) -> RuleBook:
        """Return the rule book of the same network with these approvals: ``self`` if they are
        equal, which is fast and keeps the identity of the records.
        """
        return self if approvals == self._approvals else RuleBook(self._network, approvals)

    def at(self, height: int) -> Rules:
        """Return the rules of the block at this height."""
        return self._records[bisect_right(self._starts, height) - 1]

    def header_at(self, height: int) -> HeaderRules:
        """Return the rules for the header of the block at this height."""
        index = bisect_right(self._starts, height) - 1
        below = bisect_right(self._starts, height - 1) - 1
        rules = self._headers.get((below, index))
        if rules is None:
            rules = self._headers[below, index] = _header_rules(
                self._records[below], self._records[index]
            )
        return rules

    def _is_approved(self, feature: Feature, height: int) -> bool:
        """Whether a feature was approved below this height; pre-activated ones always were."""
        if feature in self._network.functionality.pre_activated_features:
            return True
        approval = self._approvals.get(feature)
        return approval is not None and approval < height

    def patch_at(self, height: int) -> patches.Patches | None:
        """Return the patches at the beginning of a block, ``None`` for almost all blocks."""
        return self._patches.get(height)

    def activation_height(self, feature: Feature) -> int | None:
        """Return the height from which a feature is active, or ``None`` if that is not decided."""
        return self._activations.get(feature)

    def period_at(self, height: int) -> GenerationPeriod | None:
        """Return the generation period of a height, ``None`` before deterministic finality."""
        activation = self._activations.get(Feature.DETERMINISTIC_FINALITY)
        if activation is None:
            return None
        return period_at(height, activation, self._network.functionality.generation_period_length)

    def activations(self) -> Mapping[int, int]:
        """Return all features with the height from which they are active."""
        return self._activations

    def _switches(self) -> list[int]:
        settings = self._network.functionality
        # Rules of a block also depend on those of its parent, so each switch matters one block
        # later as well.
        heights = list(self._activations.values())
        heights += [height + 1 for height in heights]
        heights += [height + 1 for height in self._approvals.values()]
        heights += [
            1,
            2,
            settings.block_version_3_after_height + 1,
            settings.block_version_3_after_height + 2,
            settings.generation_balance_depth_from_50_to_1000_after_height,
            settings.minimum_fees_from_height,
            settings.strict_from_height,
            settings.disable_hijacked_aliases_height,
            *patches.switches(self._network),
            settings.estimation_overflow_fix_height,
            settings.estimator_sum_overflow_fix_height,
            settings.estimator_pre_check_height + 1,
            settings.eth_invoke_payments_check_height,
            settings.enforce_transfer_validation_after,
            settings.enforce_transfer_validation_after + 1,
            settings.payments_check_height,
            self._sponsorship_height(),
            self._state_hash_height(),
        ]
        return heights

    def _sponsorship_height(self) -> int:
        start = self._activations.get(Feature.FEE_SPONSORSHIP)
        if start is None:
            return NEVER
        return start + voting_window(self._network.functionality, start)

    def _state_hash_height(self) -> int:
        start = self._activations.get(Feature.LIGHT_NODE)
        if start is None:
            return NEVER
        return start + self._network.functionality.light_node_block_fields_absence_interval

    def _make(self, height: int) -> Rules:
        settings = self._network.functionality
        active = frozenset(
            feature for feature, start in self._activations.items() if start <= height
        )
        ng_start = self._activations.get(Feature.NG, NEVER)
        mass_transfer = Feature.MASS_TRANSFER in active
        approved = self._is_approved(Feature.BLOCK_V5, height)
        return Rules(
            chain_id=self._network.chain_id,
            coin=self._network.coin,
            features=active,
            block_v5_approved=approved,
            unknown_features=tuple(sorted(active - IMPLEMENTED)),
            block_version=self._block_version(height),
            fees=self._network.fees,
            minimum_fees_enforced=height >= settings.minimum_fees_from_height,
            balances_enforced=height >= settings.strict_from_height,
            payments_allowed=height <= settings.block_version_3_after_height,
            block_version_3_after_height=settings.block_version_3_after_height,
            leased_coins_protected=height > settings.block_version_3_after_height,
            sponsorship=height >= self._sponsorship_height(),
            ng=height >= ng_start,
            ng_carry=height > ng_start,
            scripted_generators_refused=_refuses_scripted_generators(active),
            pos=_pos(settings, active),
            uses_vrf=Feature.BLOCK_V5 in active,
            minimum_generating_balance=SMALLER_MINIMUM_GENERATING_BALANCE
            if Feature.SMALLER_MINIMAL_GENERATING_BALANCE in active
            else MINIMUM_GENERATING_BALANCE,
            minimal_generating_balance_after=settings.minimal_generating_balance_after,
            generating_balance_depth=LONG_BALANCE_DEPTH
            if height >= settings.generation_balance_depth_from_50_to_1000_after_height
            else SHORT_BALANCE_DEPTH,
            average_block_delay_seconds=self._network.genesis.average_block_delay_ms // 1000,
            state_hash_required=height >= self._state_hash_height(),
            temporary_negative_until=settings.allow_temporary_negative_until,
            future_until=settings.allow_transactions_from_future_until,
            unissued_assets_until=settings.allow_unissued_assets_until,
            invalid_reissue_until=settings.allow_invalid_reissue_in_same_block_until,
            multiple_lease_cancel_until=settings.allow_multiple_lease_cancel_until,
            alias_ids_unique=height >= settings.disable_hijacked_aliases_height,
            disabled_aliases=patches.disabled_aliases(self._network, height),
            fixed_outcomes=patches.fixed_outcomes(self._network, height),
            estimation_overflow_checked=height >= settings.estimation_overflow_fix_height,
            exchange_funds_checked=height >= settings.estimator_sum_overflow_fix_height,
            ethereum_payments_checked=height >= settings.eth_invoke_payments_check_height,
            dapp_actions_checked=height >= settings.enforce_transfer_validation_after,
            payments_of_calls_checked=height >= settings.payments_check_height,
            language=_language(height, settings, active),
            estimation=choice.rules_at(height, active, settings, block_v5_approved=approved),
            min_asset_info_update_interval=settings.min_asset_info_update_interval,
            max_time_back_ms=settings.max_transaction_time_back_offset_ms,
            max_time_forward_ms=settings.max_transaction_time_forward_offset_ms,
            max_transactions=None
            if mass_transfer
            else (MAX_TRANSACTIONS_NG if height >= ng_start else MAX_TRANSACTIONS_BEFORE_NG),
            max_transactions_bytes=MAX_TRANSACTION_BYTES_IN_BLOCK if mass_transfer else None,
            max_complexity=_max_complexity(active),
        )

    def _block_version(self, height: int) -> int:
        reward_start = self._activations.get(Feature.BLOCK_REWARD, NEVER)
        if height <= 1:
            return blocks.GENESIS_VERSION
        if height >= self._activations.get(Feature.BLOCK_V5, NEVER):
            return blocks.PROTOBUF_VERSION
        if height > reward_start:
            return blocks.REWARD_VERSION
        if (
            height == reward_start
            or height > self._network.functionality.block_version_3_after_height + 1
        ):
            return blocks.NG_VERSION
        return blocks.PLAIN_VERSION


def _refuses_scripted_generators(active: frozenset[int]) -> bool:
    # Before smart accounts there are no scripts.
    return Feature.SMART_ACCOUNTS in active and Feature.RIDE_V6 not in active


def _language(height: int, settings: Functionality, active: frozenset[int]) -> Switches:
    later = Feature.SYNCHRONOUS_CALLS in active
    precise = later and height > settings.enforce_transfer_validation_after
    return Switches(
        new_complexity=Feature.RIDE_V6 in active,
        lexical_scope=height >= settings.estimator_sum_overflow_fix_height,
        fixed_thrown_error=Feature.LIGHT_NODE in active,
        code_points=precise,
        new_pow_precision=precise,
        whole_script_field=Feature.CONSENSUS_IMPROVEMENTS in active,
        correct_object_version=later,
        vrf=Feature.BLOCK_V5 in active,
        light_node=Feature.LIGHT_NODE in active,
        ecrecover_fix=Feature.ECRECOVER_FIX in active,
    )


def _header_rules(parent: Rules, own: Rules) -> HeaderRules:
    return HeaderRules(
        version=own.block_version,
        pos=parent.pos,
        uses_vrf=own.uses_vrf,
        refuse_weak_keys=parent.has(Feature.RIDE_V6),
        target_delay_seconds=parent.average_block_delay_seconds,
        minimum_generating_balance=parent.minimum_generating_balance,
        minimum_applies_from=parent.minimal_generating_balance_after,
        state_hash_required=own.state_hash_required,
        too_early_tolerated=not own.balances_enforced,
    )


def _max_complexity(active: frozenset[int]) -> int | None:
    if Feature.SYNCHRONOUS_CALLS in active:
        return MAX_COMPLEXITY_SYNCHRONOUS_CALLS
    return MAX_COMPLEXITY_RIDE_4_DAPPS if Feature.RIDE_4_DAPPS in active else None


def voting_window(settings: Functionality, height: int) -> int:
    """Return the number of blocks in which votes for features are counted at a height."""
    doubled = height > settings.double_features_periods_after_height
    return settings.feature_check_blocks_period * (2 if doubled else 1)


def votes_needed(settings: Functionality, height: int) -> int:
    """Return how many blocks of a window must vote for a feature to approve it."""
    doubled = height > settings.double_features_periods_after_height
    return settings.blocks_for_feature_activation * (2 if doubled else 1)


def _pos(settings: Functionality, active: frozenset[int]) -> PoS:
    if Feature.FAIR_POS not in active:
        return NXT
    if Feature.BLOCK_V5 not in active:
        return FAIR_1
    least = settings.min_block_time_ms
    # The reference node compares whole seconds with those of its second edition.
    if least // 1000 == 15 and settings.delay_delta == 8:
        least = 15_000
    return PoS(Algorithm.FAIR, least, settings.delay_delta)
