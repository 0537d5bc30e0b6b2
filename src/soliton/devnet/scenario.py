"""Scenarios: the initial content of a private chain, written as TOML.

What lives here: the records, reading and checking them. What does not: executing them (``playing``
on the chain, ``market`` in the matcher).
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from soliton.errors import InputError

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
MAX_ITEMS: Final = 1_000
"""Limit on each list: accounts, tokens, dApps, steps, markets, orders."""
EVERYBODY: Final = "all"
"""The name for all funded accounts as recipients."""
COIN: Final = "WAVES"
_FUNDED: Final = "account "
"""Prefix of funded accounts' names, followed by a number: ``account 1``."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Text = Annotated[str, msgspec.Meta(max_length=1_000)]
Count = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=31_536_000)]
Number = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,19}(\.[0-9]{1,8})?$")]
"""A decimal number of whole units of an asset."""


class ScenarioRefused(InputError):
    """A scenario that cannot be read or executed; the message says where and why."""


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A table of the file."""


class AccountPlan(_Record, frozen=True):
    """A named account with its own seed, and its coins."""

    name: Name
    seed: Text | None = None
    coins: Number = "100"


class TokenPlan(_Record, frozen=True):
    """An asset, identified by its ticker in the scenario, and its initial distribution."""

    ticker: Name
    name: Name
    quantity: Number
    issuer: Name
    decimals: Annotated[int, msgspec.Meta(ge=0, le=8)] = 8
    description: Text = ""
    reissuable: bool = False
    sponsored: Number | None = None
    give: dict[Name, Number] = {}


class DappPlan(_Record, frozen=True):
    """The script of an account: a file next to the scenario, or a source text."""

    name: Name
    account: Name
    file: Text | None = None
    source: str | None = None


class Transfer(_Record, frozen=True, tag_field="do", tag="transfer"):
    """A transfer from one account to another, a dApp or an address."""

    by: Name
    to: Name
    amount: Number
    asset: Name = COIN


class Invoke(_Record, frozen=True, tag_field="do", tag="invoke"):
    """A call of a dApp; payments are pairs of amount and ticker."""

    by: Name
    dapp: Name
    function: Name | None = None
    args: list[int | bool | str] = []
    payments: list[tuple[Number, Name]] = []


class Data(_Record, frozen=True, tag_field="do", tag="data"):
    """Entries of an account's data."""

    by: Name
    entries: dict[str, int | bool | str]


class Alias(_Record, frozen=True, tag_field="do", tag="alias"):
    """An alias for an account."""

    by: Name
    alias: Name


class Lease(_Record, frozen=True, tag_field="do", tag="lease"):
    """A lease of coins."""

    by: Name
    to: Name
    amount: Number


class Mine(_Record, frozen=True, tag_field="do", tag="mine"):
    """Blocks, ``interval`` seconds apart."""

    blocks: Count = 1
    interval: Seconds = 60


Step = Transfer | Invoke | Data | Alias | Lease | Mine


class OrderPlan(_Record, frozen=True):
    """An initial order of a book."""

    by: Name
    side: Literal["buy", "sell"]
    amount: Number
    price: Number


class MakerPlan(_Record, frozen=True):
    """A market maker: ``levels`` orders on each side, ``step`` percent apart, ``amount`` in each;
    ``every`` so many seconds the price moves a little and ``taker`` trades.
    """

    account: Name
    taker: Name
    amount: Number
    levels: Annotated[int, msgspec.Meta(ge=1, le=50)] = 5
    step: Annotated[float, msgspec.Meta(gt=0, le=10)] = 0.2
    every: Annotated[float, msgspec.Meta(ge=0.5, le=3_600)] = 5.0


class MarketPlan(_Record, frozen=True):
    """A pair by its tickers, its initial price, and the orders of its book."""

    amount: Name
    price: Name
    start: Number
    maker: MakerPlan | None = None
    orders: list[OrderPlan] = []

    @property
    def title(self) -> str:
        """The usual notation of the pair: ``BTC/USD``."""
        return f"{self.amount}/{self.price}"


class Scenario(_Record, frozen=True):
    """A scenario file."""

    name: Name
    description: Text = ""
    accounts: list[AccountPlan] = []
    tokens: list[TokenPlan] = []
    dapps: list[DappPlan] = []
    history: list[Step] = []
    markets: list[MarketPlan] = []


class Loaded(msgspec.Struct, frozen=True):
    """A scenario, and the sources of its dApps by name, each with its imports."""

    scenario: Scenario
    sources: dict[str, tuple[str, dict[str, str]]] = {}


def built_in() -> list[str]:
    """Return the names of the built-in scenarios."""
    found = files("soliton.devnet").joinpath("scenarios").iterdir()
    return sorted(each.name.removesuffix(".toml") for each in found if each.name.endswith(".toml"))


def load_scenario(name: str, funded: int) -> Loaded:
    """Load a built-in scenario, or a file; ``funded`` is the number of funded accounts. Raises
    ``ScenarioRefused``.
    """
    if name in built_in():
        text = files("soliton.devnet").joinpath("scenarios", f"{name}.toml").read_text("utf-8")
        return read_scenario(text, funded, None)
    path = Path(name)
    if not name.endswith(".toml"):
        known = ", ".join(built_in())
        raise ScenarioRefused(f"unknown scenario {name!r}: {known}, or a file FILE.toml")
    return read_scenario(_file_text(path), funded, path.parent)


def read_scenario(text: str, funded: int, directory: Path | None) -> Loaded:
    """Read the text of a scenario, whose files are in ``directory``. Raises ``ScenarioRefused``."""
    try:
        scenario = msgspec.toml.decode(text, type=Scenario)
    except msgspec.MsgspecError as error:
        raise ScenarioRefused(f"the scenario cannot be read: {error}") from error
    _check(scenario, funded)
    sources = {}
    for each in scenario.dapps:
        sources[each.name] = _source(each, directory)
    return Loaded(scenario, sources)


def _source(plan: DappPlan, directory: Path | None) -> tuple[str, dict[str, str]]:
    if (plan.file is None) == (plan.source is None):
        raise ScenarioRefused(f"the dApp {plan.name} wants a `file` or a `source`")
    if plan.source is not None:
        return plan.source, {}
    if directory is None or plan.file is None:
        raise ScenarioRefused(f"the dApp {plan.name}: there is no directory for its file")
    path = directory / plan.file
    text = _file_text(path)
    from soliton.ride.compiler.directives import read_directives

    try:
        names = read_directives(text).imports
    except InputError as error:
        raise ScenarioRefused(f"{path}: {error}") from error
    return text, {name: _file_text(path.parent / name) for name in names}


def _file_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise ScenarioRefused(f"{path} has more than {MAX_FILE_BYTES} bytes")
        return data.decode()
    except OSError as error:
        raise ScenarioRefused(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ScenarioRefused(f"{path} is not text: {error}") from error


# --- names ----------------------------------------------------------------------------------------


def funded_names(count: int) -> list[str]:
    """Return the names of the funded accounts."""
    return [f"{_FUNDED}{number}" for number in range(1, count + 1)]


def _check(scenario: Scenario, funded: int) -> None:
    """Check that every name in use is defined exactly once."""
    for what in ("accounts", "tokens", "dapps", "history", "markets"):
        if len(getattr(scenario, what)) > MAX_ITEMS:
            raise ScenarioRefused(f"more than {MAX_ITEMS} {what}")
    own = [each.name for each in scenario.accounts]
    people = {*funded_names(funded), *own, "rich"}
    tickers = {COIN, *(each.ticker for each in scenario.tokens)}
    dapps = {each.name for each in scenario.dapps}
    _once([*funded_names(funded), EVERYBODY, "rich", *own, *(d.name for d in scenario.dapps)])
    _once([COIN, *(each.ticker for each in scenario.tokens)])
    for token in scenario.tokens:
        _known([token.issuer], people, "an account")
        _known(token.give, {*people, EVERYBODY}, "an account")
    _known((each.account for each in scenario.dapps), people, "an account")
    for step in scenario.history:
        if not isinstance(step, Mine):
            _known([step.by], people, "an account")
        if isinstance(step, Transfer):
            _known([step.asset], tickers, "a token")
        if isinstance(step, Invoke):
            _known([step.dapp], dapps, "a dApp")
            _known((ticker for _, ticker in step.payments), tickers, "a token")
    for market in scenario.markets:
        _known([market.amount, market.price], tickers, "a token")
        if market.amount == market.price:
            raise ScenarioRefused(f"a market of {market.amount} against itself")
        if len(market.orders) > MAX_ITEMS:
            raise ScenarioRefused(f"more than {MAX_ITEMS} orders for {market.title}")
        _known((each.by for each in market.orders), people, "an account")
        if market.maker is not None:
            _known([market.maker.account, market.maker.taker], people, "an account")


def _once(names: list[str]) -> None:
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise ScenarioRefused(f"the name {twice[0]!r} is there twice")


def _known(names: Iterable[str], known: set[str], kind: str) -> None:
    for each in names:
        if each not in known:
            raise ScenarioRefused(f"{each!r} is not {kind} of the scenario")
