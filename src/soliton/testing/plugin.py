"""The plugin for pytest: a chain in the tests' own process, and fixtures for it.

What a fixture, a test or an example of hypothesis did to the chain is reverted when it ends
(``frames``). The chain is created for the first test that uses it, so a run without such tests
costs nothing. With pytest-xdist each process has its own chain.

What lives here: options, fixtures and hooks. What does not: the objects of the fixtures (``kit``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final

import pytest

from soliton.testing.frames import FRAMES, Layer

if TYPE_CHECKING:
    from soliton.client.account import Account
    from soliton.client.matcher import Matcher
    from soliton.client.node import Node
    from soliton.testing.chain import Chain
    from soliton.testing.complexity import Complexities
    from soliton.testing.coverage import Coverage, Report, Rows
    from soliton.testing.dapps import Dapp
    from soliton.testing.kit import Kit

SHARED: Final = "soliton_shared"
"""The marker of a test after which the chain is not reverted."""
_REPORT: Final = "soliton_complexity"
_COVERAGE: Final = "soliton_coverage"
_costs: Final[pytest.StashKey[Complexities]] = pytest.StashKey()
_coverage: Final[pytest.StashKey[Coverage]] = pytest.StashKey()
_covered: Final[pytest.StashKey[list[Rows]]] = pytest.StashKey()
_coverage_report: Final[pytest.StashKey[Report]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the command line."""
    group = parser.getgroup("soliton", "tests of dApps and bots on a chain of Soliton")
    group.addoption(
        "--soliton-url",
        metavar="URL",
        help="run on this node, a devnet or another private node, and not in this process",
    )
    group.addoption(
        "--soliton-matcher-url", metavar="URL", help="the matcher of that node, for tests of orders"
    )
    group.addoption(
        "--soliton-api-key", metavar="KEY", default="waves-private-node", help="its API key"
    )
    group.addoption(
        "--soliton-seed",
        metavar="SEED",
        default="waves private node seed with waves tokens",
        help="the seed of an account there that has coins for all",
    )
    group.addoption(
        "--soliton-complexity",
        action="store_true",
        help="tell at the end what the calls of dApps cost",
    )
    group.addoption(
        "--ride-cov",
        action="store_true",
        help="tell at the end which lines and branches of deployed files were not reached",
    )
    group.addoption(
        "--ride-cov-fail-under",
        metavar="PERCENT",
        type=float,
        help="fail where fewer lines and branches were reached (this is --ride-cov, too)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the options and register the marker; starts nothing."""
    if _measures(config) and config.getoption("--soliton-url") is not None:
        raise pytest.UsageError("--ride-cov: scripts run elsewhere with --soliton-url")
    config.addinivalue_line("markers", f"{SHARED}: what this test does to the chain stays")
    FRAMES.make = lambda: _make(config)


def _make(config: pytest.Config) -> Kit:
    from soliton.testing.complexity import Complexities
    from soliton.testing.kit import Kit

    url = config.getoption("--soliton-url")
    if url is not None:
        key, seed = config.getoption("--soliton-api-key"), config.getoption("--soliton-seed")
        matcher = config.getoption("--soliton-matcher-url")
        return Kit.connect(str(url), str(key), str(seed), matcher and str(matcher))
    if config.getoption("--soliton-complexity"):
        config.stash[_costs] = Complexities()
    if _measures(config):
        from soliton.testing.coverage import Coverage

        config.stash[_coverage] = Coverage()
    return Kit.start(config.stash.get(_costs, None), config.stash.get(_coverage, None))


def _measures(config: pytest.Config) -> bool:
    under = config.getoption("--ride-cov-fail-under")
    return bool(config.getoption("--ride-cov")) or under is not None


def pytest_unconfigure() -> None:
    """Close the kit."""
    FRAMES.close()
    FRAMES.make = None


# --- isolation ------------------------------------------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def _soliton_session(request: pytest.FixtureRequest) -> Iterator[None]:
    with FRAMES.frame(_depth(request)):
        yield


@pytest.fixture(scope="module", autouse=True)
def _soliton_module(request: pytest.FixtureRequest) -> Iterator[None]:
    with FRAMES.frame(_depth(request)):
        yield


@pytest.fixture(scope="class", autouse=True)
def _soliton_class(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.cls is None:
        # pytest treats such a function as a class of its own.
        yield
        return
    with FRAMES.frame(_depth(request)):
        yield


@pytest.fixture(autouse=True)
def _soliton_test(request: pytest.FixtureRequest) -> Iterator[None]:
    with FRAMES.test(_depth(request), shared=_is_shared(request.node)):
        yield


def _depth(request: pytest.FixtureRequest) -> int:
    return len(request.node.listchain())


def _is_shared(node: pytest.Item) -> bool:
    return node.get_closest_marker(SHARED) is not None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """End the fixtures that this test requests with another parameter."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if not parameters:
        return
    names = getattr(item, "fixturenames", ())
    FRAMES.end_others(
        lambda layer: (
            layer.name in names
            and layer.name in parameters
            and not _is_same(layer.parameter, parameters[layer.name])
        )
    )


def _is_same(one: object, other: object) -> bool:
    """As pytest compares parameters: some have no truth value when they are compared."""
    try:
        return bool(one == other)
    except (ValueError, RuntimeError):
        return one is other


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Keep what a fixture does to the chain exactly as long as the fixture."""
    is_own = getattr(fixturedef.func, "__module__", "") == __name__
    is_of_a_test = fixturedef.scope == "function" or (
        isinstance(request.node, pytest.Item) and _is_shared(request.node)
    )
    if is_own or is_of_a_test:
        return (yield)
    layer = Layer(
        _depth(request),
        fixturedef.argname,
        partial(fixturedef.finish, request),  # type: ignore[arg-type]  # that of a fixture
        getattr(request, "param", None),
    )
    return (yield from FRAMES.set_up(layer, request.addfinalizer))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Revert the chain after each example of hypothesis, too."""
    handle = getattr(pyfuncitem.obj, "hypothesis", None)
    inner = getattr(handle, "inner_test", None)
    if inner is not None and not getattr(inner, "is_framed", False):
        handle.inner_test = _framed(inner)  # type: ignore[union-attr]  # it has an inner test
    return (yield)


def _framed(test: Callable[..., object]) -> Callable[..., object]:
    @wraps(test)
    def framed(*args: Any, **kwargs: Any) -> object:  # noqa: ANN401 - those of a test
        with FRAMES.frame():
            return test(*args, **kwargs)

    framed.is_framed = True  # type: ignore[attr-defined]  # of all functions
    return framed


# --- fixtures -------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def soliton_kit() -> Kit:
    """The objects that the other fixtures return."""
    return FRAMES.need()


@pytest.fixture(scope="session")
def chain(soliton_kit: Kit) -> Chain:
    """The chain's controls: blocks, time, snapshots, state edits."""
    return soliton_kit.chain


@pytest.fixture(scope="session")
def node(soliton_kit: Kit) -> Node:
    """The library's ``Node``."""
    return soliton_kit.node


@pytest.fixture(scope="session")
def accounts(soliton_kit: Kit) -> Sequence[Account]:
    """Ten accounts with coins, those with names (``alice`` and so on)."""
    return soliton_kit.accounts


@pytest.fixture(scope="session")
def new_account(soliton_kit: Kit) -> Callable[..., Account]:
    """``new_account(coins="10")``: a new account with coins."""
    return soliton_kit.new_account


@pytest.fixture(scope="session")
def deploy(soliton_kit: Kit) -> Callable[..., Dapp]:
    """``deploy(source, account=None)``: deploy a RIDE source, a ``Path`` or a text."""
    return soliton_kit.deploy


@pytest.fixture(scope="session")
def matcher(soliton_kit: Kit) -> Matcher:
    """The library's ``Matcher``, on the chain's own matcher."""
    found = soliton_kit.matcher
    if found is None:
        pytest.skip("no matcher is known there: --soliton-matcher-url")
    return found


def _named(number: int) -> Callable[[Sequence[Account]], Account]:
    def account(accounts: Sequence[Account]) -> Account:
        return accounts[number]

    account.__doc__ = f"Account number {number + 1} of ``accounts``."
    return account


alice = pytest.fixture(scope="session", name="alice")(_named(0))
bob = pytest.fixture(scope="session", name="bob")(_named(1))
carol = pytest.fixture(scope="session", name="carol")(_named(2))
dave = pytest.fixture(scope="session", name="dave")(_named(3))
erin = pytest.fixture(scope="session", name="erin")(_named(4))
frank = pytest.fixture(scope="session", name="frank")(_named(5))
grace = pytest.fixture(scope="session", name="grace")(_named(6))
heidi = pytest.fixture(scope="session", name="heidi")(_named(7))
ivan = pytest.fixture(scope="session", name="ivan")(_named(8))
judy = pytest.fixture(scope="session", name="judy")(_named(9))


# --- reports --------------------------------------------------------------------------------------


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the results of a pytest-xdist process; fail the session if coverage is too low."""
    config = session.config
    output = getattr(config, "workeroutput", None)
    costs, coverage = config.stash.get(_costs, None), config.stash.get(_coverage, None)
    if output is not None and costs is not None:
        output[_REPORT] = costs.rows
    rows = {}
    if coverage is not None:
        rows = coverage.rows()
        # Runs that are observed use the exact evaluator: this process may go on with others.
        coverage.close()
    if output is not None:
        output[_COVERAGE] = rows
    elif _measures(config):
        report = _report(config, rows)
        under = config.getoption("--ride-cov-fail-under")
        passed = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if under is not None and report.percent < under and passed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _report(config: pytest.Config, rows: Rows) -> Report:
    from soliton.testing.coverage import Report, merged

    others = config.stash.get(_covered, None) or []
    config.stash[_coverage_report] = report = Report(merged(others, rows), config.rootpath)
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # noqa: ANN401 - a process of pytest-xdist
    """Merge the results of a pytest-xdist process that has ended."""
    from soliton.testing.complexity import Complexities

    output = getattr(node, "workeroutput", {})
    if output.get(_REPORT):
        node.config.stash.setdefault(_costs, Complexities()).merge(output[_REPORT])
    if output.get(_COVERAGE):
        node.config.stash.setdefault(_covered, []).append(output[_COVERAGE])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the complexities of calls, and the coverage."""
    costs = config.stash.get(_costs, None)
    if costs is not None and costs.rows:
        terminalreporter.section("complexity of calls")
        for line in costs.table():
            terminalreporter.write_line(line)
    report = config.stash.get(_coverage_report, None)
    if report is not None:
        terminalreporter.section("coverage of RIDE")
        for line in report.table():
            terminalreporter.write_line(line)
        under = config.getoption("--ride-cov-fail-under")
        if under is not None and report.percent < under:
            terminalreporter.write_line(f"{report.percent:.1f}% is less than {under:g}%", red=True)
