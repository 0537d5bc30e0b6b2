"""Executing a scenario on a chain that has only its genesis block.

Its blocks have timestamps shortly after the genesis block, independent of the present time, so the
same scenario gives the same transactions, assets and blocks.

What lives here: the chain's part. What does not: the matcher's part (``market``), and the file
(``scenario``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, assert_never

import msgspec

from soliton.client.account import Account
from soliton.client.amounts import Asset, AssetLike
from soliton.client.transaction import Transaction
from soliton.controls.clock import ClockState
from soliton.controls.control import Controls
from soliton.devnet.accounts import RICH_SEED, Funding
from soliton.devnet.players import Player
from soliton.devnet.scenario import (
    COIN,
    EVERYBODY,
    Alias,
    DappPlan,
    Data,
    Invoke,
    Lease,
    Loaded,
    Mine,
    ScenarioRefused,
    Step,
    TokenPlan,
    Transfer,
    funded_names,
)
from soliton.errors import InputError
from soliton.ride.compiler.compile import compile_source

FIRST_MS: Final = 60_000
"""Time between the genesis block and the scenario's first block."""
_STEP_MS: Final = 1_000
_MOST_LINES: Final = 100
"""Limit on the recipients of a mass transfer."""


class Token(msgspec.Struct, frozen=True, rename="camel"):
    """An asset of a scenario."""

    ticker: str
    name: str
    id: str | None
    decimals: int

    @property
    def asset(self) -> AssetLike:
        """The asset for the library's methods."""
        return None if self.id is None else Asset(self.id, self.decimals)


class Person(msgspec.Struct, frozen=True, rename="camel"):
    """An account of a scenario, with its seed."""

    name: str
    address: str
    public_key: str
    seed: str


class Played(msgspec.Struct, frozen=True, rename="camel"):
    """The result of a scenario: its accounts, tokens, dApps, markets."""

    scenario: str
    description: str
    accounts: list[Person]
    tokens: list[Token]
    dapps: dict[str, str]
    markets: list[str]


class Playing:
    """One scenario on one chain."""

    def __init__(self, loaded: Loaded, controls: Controls, funding: Funding) -> None:
        self.scenario, self._sources = loaded.scenario, loaded.sources
        self._controls, self._node = controls, controls.node
        chain_id = self._node.network.chain_id
        self.seeds = {"rich": RICH_SEED}
        self.seeds |= zip(funded_names(funding.count), funding.phrases(), strict=True)
        for each in self.scenario.accounts:
            self.seeds[each.name] = each.seed or f"soliton scenario {each.name}"
        self.people: dict[str, Account] = {
            name: Player(seed, chain_id, self._tick) for name, seed in self.seeds.items()
        }
        self._funded = funded_names(funding.count)
        self.tokens: dict[str, Token] = {}
        self.dapps: dict[str, Account] = {}
        self._now = 0

    def _tick(self) -> int:
        self._now += _STEP_MS
        self._controls.clock.state = ClockState(frozen_at=self._now)
        return self._now

    def play(self) -> None:
        """Execute the scenario. Raises ``ScenarioRefused``."""
        self._now = self._node.chain.block_at(1).header.timestamp + FIRST_MS
        coin = self._node.network.coin
        self.tokens = {COIN: Token(COIN, coin, None, 8)}
        before = self._controls.clock.state
        try:
            self._tick()
            self._node.mine(self._controls.account)
            self._give_coins()
            for token in self.scenario.tokens:
                self._issue(token)
            for dapp in self.scenario.dapps:
                self._deploy(dapp)
            for number, step in enumerate(self.scenario.history, 1):
                self._step(step, f"step {number} of the history")
        finally:
            self._controls.clock.state = before

    def played(self) -> Played:
        """Return the result."""
        own = [each.name for each in self.scenario.accounts]
        return Played(
            self.scenario.name,
            self.scenario.description,
            [
                Person(
                    name, self.people[name].address, self.people[name].public_key, self.seeds[name]
                )
                for name in own
            ],
            list(self.tokens.values()),
            {name: account.address for name, account in self.dapps.items()},
            [each.title for each in self.scenario.markets],
        )

    # --- steps ------------------------------------------------------------------------------------

    def _give_coins(self) -> None:
        lines = [
            (self.people[each.name], each.coins)
            for each in self.scenario.accounts
            if each.coins.strip("0.")
        ]
        self._pay(self.people["rich"], lines, None, "the accounts' coins")

    def _pay(
        self, by: Account, lines: list[tuple[Account, str]], asset: AssetLike, what: str
    ) -> None:
        for start in range(0, len(lines), _MOST_LINES):
            batch = lines[start : start + _MOST_LINES]
            self._do(what, [by.mass_transfer(batch, asset)])

    def _issue(self, plan: TokenPlan) -> None:
        what = f"the token {plan.ticker}"
        issuer = self.people[plan.issuer]
        try:
            issue = issuer.issue(
                plan.name,
                plan.quantity,
                plan.decimals,
                plan.description,
                reissuable=plan.reissuable,
            )
        except InputError as error:
            raise ScenarioRefused(f"{what}: {error}") from error
        (issue,) = self._do(what, [issue])
        token = Token(plan.ticker, plan.name, issue.id, plan.decimals)
        self.tokens[plan.ticker] = token
        given: dict[str, str] = {}
        for name, amount in plan.give.items():
            given |= dict.fromkeys(self._funded if name == EVERYBODY else [name], amount)
        given |= {name: amount for name, amount in plan.give.items() if name != EVERYBODY}
        lines = [(self.people[name], amount) for name, amount in given.items()]
        self._pay(issuer, lines, token.asset, what)
        if plan.sponsored is not None:
            self._do(what, [issuer.sponsor(token.asset, plan.sponsored)])

    def _deploy(self, plan: DappPlan) -> None:
        what = f"the dApp {plan.name}"
        text, libraries = self._sources[plan.name]
        try:
            script = compile_source(text, libraries=libraries).script.source
        except InputError as error:
            raise ScenarioRefused(f"{what}: {error}") from error
        account = self.people[plan.account]
        self._do(what, [account.set_script(script)])
        self.dapps[plan.name] = account

    def _step(self, step: Step, what: str) -> None:
        if isinstance(step, Mine):
            for _ in range(step.blocks):
                self._now += int(step.interval * 1_000)
                self._tick()
                self._node.mine(self._controls.account)
            return
        by = self.people[step.by]
        try:
            made = self._made(step, by)
        except InputError as error:
            raise ScenarioRefused(f"{what}: {error}") from error
        self._do(what, [made])

    def _made(self, step: Transfer | Invoke | Data | Alias | Lease, by: Account) -> Transaction:
        match step:
            case Transfer():
                return by.transfer(self._whom(step.to), step.amount, self.tokens[step.asset].asset)
            case Invoke():
                payments = [(amount, self.tokens[name].asset) for amount, name in step.payments]
                return by.invoke(
                    self.dapps[step.dapp], step.function, *step.args, payments=payments
                )
            case Data():
                return by.data(step.entries)
            case Alias():
                return by.alias(step.alias)
            case Lease():
                return by.lease(self._whom(step.to), step.amount)
            case _:
                assert_never(step)

    def _whom(self, name: str) -> Account | str:
        found: Mapping[str, Account] = {**self.people, **self.dapps}
        return found.get(name, name)

    def _do(self, what: str, made: Iterable[Transaction]) -> list[Transaction]:
        """Broadcast transactions and put them into a block."""
        done = []
        for each in made:
            paid = self._with_fee(each)
            try:
                self._node.broadcast(paid.inner)
                done.append(paid)
            except InputError as error:
                raise ScenarioRefused(f"{what}: {error}") from error
        block = self._node.mine(self._controls.account)
        inside = {each.id: each for each in block.transactions}
        for paid in done:
            found = self._controls.chain.transaction(paid.inner.id)
            if paid.inner.id not in inside or found is None or found.status:
                raise ScenarioRefused(f"{what}: its transaction has failed")
        return done

    def _with_fee(self, made: Transaction) -> Transaction:
        """Raise the fee to what scripts and sponsorship require."""
        least = self._node.minimum_fee(made.inner).amount
        return made if least <= made.fee else made.renewed(fee=least, timestamp=made.timestamp)
