"""The start of a fork: the node's last block or an earlier one, and the rules in force there.

What lives here: determining them, and what cannot be forked. What does not: reading the state
(``chain``).
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.addresses import address_text
from soliton.chain.features import IMPLEMENTED, Feature
from soliton.chain.networks.model import Functionality, Network
from soliton.chain.networks.presets import load
from soliton.crypto import base58
from soliton.devnet.fork.chain import Fork
from soliton.devnet.fork.history import History
from soliton.devnet.fork.options import ForkOptions
from soliton.devnet.fork.remote import PATIENCE_SECONDS, Height, Remote
from soliton.devnet.fork.since import Seen, Since
from soliton.errors import InputError
from soliton.ledger.edits import BalanceEdit, Edit
from soliton.node.node import Node

SILENCE_SECONDS: Final = 3
"""How long a node may be silent at the start before each line about it."""
_log = logging.getLogger(__name__)

_PRESETS: Final = {
    ord("W"): "waves-mainnet",
    ord("T"): "waves-testnet",
    ord("S"): "waves-stagenet",
}
_NEVER: Final = 1_000_000_000
"""Blocks until the next vote: a fork has no votes, and earlier votes are not read."""
LEAST: Final = 10 * 10**8
"""Accounts with a lower balance get that of a devnet's accounts."""
_NEEDED: Final = (Feature.NG, Feature.BLOCK_V5)


class ForkRefused(InputError):
    """The node cannot be forked, or does not have the height."""


class _Header(msgspec.Struct, frozen=True):
    generator: str
    height: int


class _Feature(msgspec.Struct, frozen=True, rename="camel"):
    id: int
    activation_height: int | None = None


class _Features(msgspec.Struct, frozen=True, rename="camel"):
    voting_interval: int
    voting_threshold: int
    features: list[_Feature]


class _Period(msgspec.Struct, frozen=True):
    start: Height
    end: Height


class _Finality(msgspec.Struct, frozen=True, rename="camel"):
    next_generation_period: _Period | None = None


class _Rewards(msgspec.Struct, frozen=True, rename="camel"):
    dao_address: str | None = None
    xtn_buyback_address: str | None = None


def open_fork(options: ForkOptions) -> Fork:
    """Open the chain of a node up to the block of the fork.

    Raises ``ForkRefused`` or ``RemoteTrouble``.
    """
    remote = Remote(options.url)
    with _reporting_silence(remote):
        return _open(remote, options)


@contextlib.contextmanager
def _reporting_silence(remote: Remote) -> Iterator[None]:
    """Log while the node does not answer: the start waits for it."""
    ended = threading.Event()

    def watch() -> None:
        waited, known = 0, -1
        while not ended.wait(SILENCE_SECONDS):
            waited = waited + 1 if remote.questions == known else 0
            known = remote.questions
            if waited:
                _log.warning(
                    "%s has not answered for %d s; waiting for up to %d s", remote.url,
                    waited * SILENCE_SECONDS, PATIENCE_SECONDS,
                )  # fmt: skip

    _log.info("forking %s", remote.url)
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _open(remote: Remote, options: ForkOptions) -> Fork:
    path = "/blocks/headers/last"
    head = remote.ask(path, _Header)
    chain_id = remote.binary(path, head.generator, 26)[1]
    history = History(remote, chain_id)
    if options.height is None:
        top = history.last()
    elif 1 <= options.height <= head.height:
        top = history.block(options.height)
    else:
        raise ForkRefused(f"--height {options.height}: {options.url} has 1 to {head.height}")
    network = _network(remote, chain_id, top.height)
    try:
        seen = msgspec.convert(dict(top.members), Seen)
    except msgspec.ValidationError as error:
        raise remote.trouble("/blocks", str(error)) from error
    since = Since(remote, chain_id, seen, takes_newer=options.takes_newer)
    place = f"{chain_id}-{top.height}-{base58.encode(top.block.id)[:16]}"
    return Fork(remote, network, top, since, (options.cache or _cache()) / place)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "soliton" / "forks"


def _network(remote: Remote, chain_id: int, height: int) -> Network:
    status = remote.ask("/activation/status", _Features)
    active = {
        each.id: each.activation_height
        for each in status.features
        if each.activation_height is not None
    }
    for feature in _NEEDED:
        if not active.get(feature, _NEVER) <= height:
            raise ForkRefused(
                f"{remote.url} has no feature {int(feature)} at height {height}: a fork needs it"
            )
    unknown = {each for each, at in active.items() if at <= height + 1} - IMPLEMENTED
    if unknown:
        raise ForkRefused(f"{remote.url} has features {sorted(unknown)}, a newer version is needed")
    preset = load(_PRESETS.get(chain_id, "devnet"))
    rules = preset.functionality
    if chain_id not in _PRESETS:
        rewards = remote.find("/blockchain/rewards", _Rewards) or _Rewards()
        rules = msgspec.structs.replace(
            rules,
            dao_address=rewards.dao_address,
            xtn_buyback_address=rewards.xtn_buyback_address,
        )
    sponsorship = active.get(Feature.FEE_SPONSORSHIP)
    if sponsorship is not None:
        # It is active one voting interval after its activation; a fork's interval never ends.
        active[Feature.FEE_SPONSORSHIP] = sponsorship + status.voting_interval - _NEVER
    rules = msgspec.structs.replace(
        rules,
        pre_activated_features=active,
        feature_check_blocks_period=_NEVER,
        blocks_for_feature_activation=_NEVER,
        double_features_periods_after_height=_NEVER,
    )
    rules = _with_periods(remote, rules, height)
    terms = msgspec.structs.replace(preset.rewards, term=_NEVER, term_after_capped_reward=_NEVER)
    return msgspec.structs.replace(preset, chain_id=chain_id, functionality=rules, rewards=terms)


def _with_periods(remote: Remote, rules: Functionality, height: int) -> Functionality:
    """Return the rules with the generation periods of the node."""
    start = rules.pre_activated_features.get(Feature.DETERMINISTIC_FINALITY)
    if start is None or start > height:
        return rules
    _log.warning(
        "commitments to generation are not read from %s: everybody may make blocks here, and a "
        "deposit counts as leased out", remote.url,
    )  # fmt: skip
    found = remote.find("/blockchain/finality", _Finality)
    coming = None if found is None else found.next_generation_period
    if coming is None or coming.end < coming.start:
        return rules
    return msgspec.structs.replace(rules, generation_period_length=coming.end - coming.start + 1)


def missing_funds(node: Node, balance: int) -> list[Edit]:
    """Return the edits that fund those of the wallet's accounts that have next to nothing on the
    node.
    """
    accounts = node.wallet.accounts(node.network.chain_id)
    poor = [each for each in accounts if node.chain.balance(each) < LEAST]
    return [BalanceEdit(address=address_text(each), amount=balance) for each in poor]
