"""What tests of a chain work with: a node, a chain that obeys, and accounts with coins.

What lives here: putting it together, for a chain in this process or for a node at a URL. What does
not: fixtures (``plugin``).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from soliton.chain.addresses import Address
from soliton.client.account import Account
from soliton.client.amounts import Amount, units
from soliton.client.matcher import Matcher
from soliton.client.node import Node
from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import RICH_SEED, Funding
from soliton.devnet.options import API_KEY
from soliton.devnet.players import Player
from soliton.testing.chain import Chain
from soliton.testing.dapps import Dapp, compiled_of, source_of
from soliton.testing.local import LocalChain, LocalNode
from soliton.testing.orders import NotingMatcher

if TYPE_CHECKING:
    from soliton.testing.complexity import Complexities
    from soliton.testing.coverage import Coverage

NAMES: Final = (
    *("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy"),
)
"""Of the funded accounts, in their order."""
PLENTY: Final = 1_000 * 10**8
"""What an account has at least, on a chain that gives it nothing."""
ENOUGH: Final = 100 * 10**8
NEW_COINS: Final = "10"
ACTIVITY: Final = "soliton.activity"
_CHAIN_PREFIX: Final = "soliton test account"


class Kit:
    """All of it, for one chain."""

    def __init__(self, node: Node, rich: str, funding: Funding, local: LocalChain | None) -> None:
        """``start`` and ``connect`` make one."""
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
        """On a chain in this process; who gathers costs and coverage is told of what happens."""
        from soliton.controls.activity import Activity

        local = LocalChain()
        kit = cls(LocalNode(local), RICH_SEED, local.funding, local)
        names = dict(zip((each.address_bytes for each in kit.accounts), NAMES, strict=True))
        logger = logging.getLogger(ACTIVITY)
        if logger.level == logging.NOTSET:
            # What happened is shown with a test that fails.
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
        """On a node that runs: a devnet, or another private node, on which the account of ``seed``
        has coins for all; and its matcher, if there is one.
        """
        kit = cls(Node(url, api_key=api_key), seed, Funding(), None)
        if matcher_url is not None:
            kit._matcher = NotingMatcher(matcher_url)
        kit._give_coins()
        return kit

    @property
    def matcher(self) -> Matcher | None:
        """The chain's matcher: in this process always, elsewhere if its URL was given."""
        if self._matcher is None and self._local is not None:
            # Half of a second to import, which tests without orders need not wait for.
            from soliton.testing.matching import LocalMatcher, Matching

            matching = Matching(self._local, key_pair(self._local.funding.phrases()[-1]))
            self._local.controls.snapshots.beside = matching
            self._matcher = LocalMatcher(matching)
        return self._matcher

    def enter(self) -> Callable[[], None] | None:
        """Remember everything; what is returned brings it back, as far as the chain can."""
        leave_chain = self.chain.enter() if self.chain.obeys else None
        matcher = self._matcher
        if not isinstance(matcher, NotingMatcher):
            return leave_chain
        placed = len(matcher.placed)

        def leave() -> None:
            matcher.take_back(placed, self._everybody)
            if leave_chain is not None:
                leave_chain()

        return leave

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
        """An account that nobody else has, with some coins of the rich one."""
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
        """A dApp of a RIDE source, which is a file or a text, on a new account or another one.

        Raises ``CompileError``, with the place in the source.
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
        """End it."""
        self.node.close()
        if self._matcher is not None:
            self._matcher.close()
        if self._local is not None:
            self._local.close()
