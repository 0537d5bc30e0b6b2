"""The objects of tests on a chain: a node, the chain's controls, and accounts with coins.

What lives here: creating them, for a chain in this process or for a node at a URL. What does not:
fixtures (``plugin``).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from soliton.chain.addresses import Address
from soliton.chain.values import MAX_I64
from soliton.client.account import Account
from soliton.client.amounts import Amount, units
from soliton.client.matcher import Matcher
from soliton.client.node import Node
from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import RICH_SEED, Funding
from soliton.devnet.options import API_KEY
from soliton.devnet.players import Player
from soliton.testing.chain import Chain, State
from soliton.testing.dapps import Dapp, compiled_of, source_of
from soliton.testing.local import ANY_CLOCK, LocalChain, LocalNode
from soliton.testing.orders import NotingMatcher

if TYPE_CHECKING:
    from soliton.testing.complexity import Complexities
    from soliton.testing.coverage import Coverage

NAMES: Final = (
    *("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy"),
)
"""The names of the funded accounts, in order."""
PLENTY: Final = 1_000 * 10**8
"""The coins that an account gets on a chain that does not fund it."""
ENOUGH: Final = 100 * 10**8
NEW_COINS: Final = "10"
ACTIVITY: Final = "soliton.activity"
_CHAIN_PREFIX: Final = "soliton test account"


class Kit:
    """The objects of one chain."""

    def __init__(self, node: Node, rich: str, funding: Funding, local: LocalChain | None) -> None:
        """Use ``start`` or ``connect``."""
        self.node, self._local = node, local
        self._names: dict[Address, str] = {}
        self._matcher: Matcher | None = None
        self._everybody: dict[str, Account] = {}
        self._coverage: Coverage | None = None
        self.chain = Chain(node, local)
        self.rich = self._account(rich)
        self.accounts: Sequence[Account] = [self._account(each) for each in funding.phrases()]

    @classmethod
    def start(
        cls, complexities: Complexities | None = None, coverage: Coverage | None = None
    ) -> Kit:
        """A kit for a new chain in this process, with optional statistics and coverage."""
        from soliton.controls.activity import Activity

        local = LocalChain()
        kit = cls(LocalNode(local), RICH_SEED, local.funding, local)
        names = dict(zip((each.address_bytes for each in kit.accounts), NAMES, strict=True))
        logger = logging.getLogger(ACTIVITY)
        if logger.level == logging.NOTSET:
            # pytest shows the log of a failed test.
            logger.setLevel(logging.INFO)
        activity = Activity(local.controls, logger, {**names, kit.rich.address_bytes: "rich"})
        kit._names = activity.names
        kit._coverage = coverage
        if complexities is not None:
            complexities.watch(local, activity.names)
        return kit

    @classmethod
    def connect(
        cls,
        url: str,
        api_key: str = API_KEY,
        seed: str = RICH_SEED,
        matcher_url: str | None = None,
    ) -> Kit:
        """A kit for a running devnet or private node, on which the account of ``seed`` has coins
        for all; and for its matcher, if there is one.
        """
        node = Node(url, api_key=api_key, max_fee=MAX_I64, max_clock_offset=ANY_CLOCK)
        kit = cls(node, seed, Funding(), None)
        if matcher_url is not None:
            kit._matcher = NotingMatcher(matcher_url)
        kit._give_coins()
        return kit

    @property
    def matcher(self) -> Matcher | None:
        """The chain's matcher: always in this process, elsewhere if its URL is known."""
        if self._matcher is None and self._local is not None:
            # The import takes half a second, which tests without orders save.
            from soliton.testing.matching import LocalMatcher, Matching

            matching = Matching(self._local, key_pair(self._local.funding.phrases()[-1]))
            self._local.controls.snapshots.companion = matching
            self._matcher = LocalMatcher(matching)
        return self._matcher

    @property
    def can_jump(self) -> bool:
        """Whether states can be restored in any order: orders on a matcher elsewhere cannot."""
        return self.chain.obeys and not isinstance(self._matcher, NotingMatcher)

    def state(self) -> State:
        """The present state; to restore it goes as far as the chain can."""
        state = self.chain.state() if self.chain.obeys else None
        matcher = self._matcher
        if not isinstance(matcher, NotingMatcher):
            return state or State(_do_nothing, _do_nothing)
        placed = len(matcher.placed)

        def restore() -> None:
            matcher.take_back(placed, self._everybody)
            if state is not None:
                state.restore()

        return State(restore, _do_nothing if state is None else state.forget)

    def token(self) -> object:
        """A value that differs where the chain, its controls, or its matcher have changed."""
        matcher = self._matcher
        placed = len(matcher.placed) if isinstance(matcher, NotingMatcher) else 0
        return placed, self.chain.token()

    def _account(self, seed: str) -> Account:
        if self._local is not None:
            return Player(seed, self.node.chain_id, self._local.tick)
        account = Account(key_pair(seed), self.node.chain_id)
        self._everybody[account.public_key] = account
        return account

    def _give_coins(self) -> None:
        poor = [each for each in self.accounts if self.node.balance(each.address) < ENOUGH]
        if poor:
            gifts = [(each, PLENTY) for each in poor]
            self.node.send(self.rich.mass_transfer(gifts)).wait()

    def new_account(self, coins: Amount = NEW_COINS, name: str | None = None) -> Account:
        """A new account with coins from the rich account."""
        if self._local is not None:
            self._local.made += 1
            account = self._account(f"{_CHAIN_PREFIX} {self._local.made}")
        else:
            account = self._account(f"{_CHAIN_PREFIX} {secrets.token_hex(16)}")
        if name is not None:
            self._names[account.address_bytes] = name
        if units(coins):
            self.node.send(self.rich.transfer(account, units(coins))).wait()
        return account

    def deploy(
        self, source: str | Path, account: Account | None = None, *, coins: Amount = NEW_COINS
    ) -> Dapp:
        """Compile a RIDE source (a file or a text) and set it on an account, by default a new one.

        Raises ``CompileError`` with the position in the source.
        """
        text = source_of(source)
        compiled = compiled_of(text)
        if self._local is not None:
            self._local.sources.remember(compiled.script.source, text)
        if self._coverage is not None and isinstance(source, Path):
            self._coverage.deployed(source, text, compiled.script)
        if account is None:
            account = self.new_account(coins, source.stem if isinstance(source, Path) else None)
        self.node.send(account.set_script(compiled.script.source)).wait()
        return Dapp(account, self.node, compiled)

    def close(self) -> None:
        """Close the node, the matcher and the chain."""
        self.node.close()
        if self._matcher is not None:
            self._matcher.close()
        if self._local is not None:
            self._local.close()


def _do_nothing() -> None:
    pass
