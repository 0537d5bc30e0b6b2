"""What a fixture did to the chain lasts exactly as long as the fixture, whatever its scope, and
whenever it is set up.
"""

from __future__ import annotations

import pytest

from tests.amounts import only_long
from tests.e2e.programs import devnet
from tests.testing.test_plugin import run, run_apart

pytest_plugins = ["pytester"]

PAYING = """
import pytest

RUNS = []

def pay(node, alice, bob, coins):
    node.send(alice.transfer(bob, coins)).wait()

@pytest.fixture
def extra(node, bob):
    return lambda: node.balance(bob) - 10**14
"""
"""Fixtures pay bob; ``extra()`` is the sum of what has an effect now."""


def test_a_session_fixture_outlives_the_module_that_requests_it_first(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(
        PAYING
        + """
@pytest.fixture(scope="session")
def gold(node, alice):
    RUNS.append("gold")
    return node.send(alice.issue("Gold", "10.00", 2)).wait().asset_id

@pytest.fixture(scope="session", autouse=True)
def runs():
    yield RUNS
    assert RUNS.count("gold") == 1
"""
    )
    pytester.makepyfile(
        test_one="""
        import pytest
        from conftest import RUNS, pay

        @pytest.fixture(scope="module")
        def paid(node, alice, bob, extra_of_module):
            pay(node, alice, bob, 1)
            yield
            assert extra_of_module() == 1

        @pytest.fixture(scope="module")
        def extra_of_module(node, bob):
            return lambda: node.balance(bob) - 10**14

        def test_first(paid, extra):
            assert extra() == 1

        def test_late(gold, node, extra):
            assert node.asset(gold).name == "Gold" and extra() == 0

        def test_both(gold, paid, node, extra):
            assert node.asset(gold).name == "Gold" and extra() == 1
        """,
        test_two="""
        def test_two(gold, node, extra):
            assert node.asset(gold).name == "Gold" and extra() == 0
        """,
    )
    run(pytester).assert_outcomes(passed=4)


def test_each_scope_below_each_other(pytester: pytest.Pytester) -> None:
    paying = """
@pytest.fixture(scope="{scope}")
def {scope}_paid(node, alice, bob):
    pay(node, alice, bob, {coins})
    yield
    assert (node.balance(bob) - 10**14) // {coins} % 10 == 1
"""
    pytester.makeconftest(
        PAYING
        + "".join(
            paying.format(scope=scope, coins=coins)
            for scope, coins in (("session", 1), ("module", 100), ("class", 1000))
        )
    )
    # One of the whole package, where it is defined.
    of_a_package = PAYING + paying.format(scope="package", coins=10)
    # The narrowest first, each time with one more above it.
    tests = """
class TestLate:
    def test_class(self, class_paid, extra):
        assert extra() in (1000, 1001)
    def test_module(self, module_paid, extra):
        assert extra() % 1000 in (100, 101, 110, 111)
    def test_package(self, package_paid, extra):
        assert extra() % 100 in (10, 11)
    def test_session(self, session_paid, extra):
        assert extra() % 10 == 1
    def test_all(self, session_paid, class_paid, package_paid, module_paid, extra):
        assert extra() == 1111
    def test_again(self, class_paid, extra):
        assert extra() == 1111

def test_no_class_any_more(extra):
    assert extra() == 111

def test_class_of_one_function(class_paid, extra):
    assert extra() == 1111

def test_it_ended_with_the_function(extra):
    assert extra() == 111
"""
    second = """
def test_only_what_lives(extra, node, bob):
    assert extra() == {left}

def test_requested_again(module_paid, extra):
    assert extra() == {left} + 100
"""
    pytester.makepyfile(
        **{
            "one/__init__": "",
            "one/conftest": of_a_package,
            "one/test_first": tests,
            "one/test_second": second.format(left=11),
            "two/__init__": "",
            "two/test_third": second.format(left=1),
        }
    )
    run(pytester).assert_outcomes(passed=13)


def test_parameters_of_a_session_fixture_do_not_add_up(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        PAYING
        + """
@pytest.fixture(scope="session", params=[1, 2, 3])
def paid(request, node, alice, bob):
    pay(node, alice, bob, request.param)
    yield request.param

@pytest.fixture(scope="session")
def ten(node, alice, bob):
    pay(node, alice, bob, 10)

@pytest.fixture(scope="module")
def hundred(paid, node, alice, bob):
    pay(node, alice, bob, 100)
"""
    )
    tests = """
def test_one(paid, extra):
    assert extra() % 10 == paid

def test_with_another(ten, paid, extra):
    assert extra() % 100 == 10 + paid

def test_in_the_other_order(paid, ten, extra):
    assert extra() % 100 == 10 + paid

def test_below_a_module(hundred, paid, ten, extra):
    assert extra() == 110 + paid
"""
    pytester.makepyfile(test_one=tests, test_two=tests)
    run(pytester).assert_outcomes(passed=24)


def test_what_finalizers_do_ends_with_them(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        PAYING
        + """
@pytest.fixture(scope="package")
def quiet(node, alice, bob):
    yield
    pay(node, alice, bob, 5)

@pytest.fixture(scope="class")
def loud(node, alice, bob):
    pay(node, alice, bob, 7)
    yield
    pay(node, alice, bob, 5)

@pytest.fixture
def watching(node, bob):
    yield
    assert node.balance(bob) == 10**14 + 3
"""
    )
    tests = """
from conftest import pay

def test_quiet(quiet, extra):
    assert extra() == 0

def test_loud(loud, extra):
    assert extra() == 7

def test_nothing_is_left(extra):
    assert extra() == 0

def test_finalizers_see_the_test(watching, node, alice, bob):
    pay(node, alice, bob, 3)
"""
    pytester.makepyfile(
        **{"one/__init__": "", "one/test_a": tests, "two/__init__": "", "two/test_b": tests}
    )
    run(pytester).assert_outcomes(passed=8)


def test_a_fixture_that_a_test_requests_while_it_runs(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        PAYING
        + """
@pytest.fixture(scope="session")
def gold(node, alice):
    return node.send(alice.issue("Gold", "10.00", 2)).wait().asset_id
"""
    )
    tests = """
import pytest
from conftest import pay

@pytest.fixture(scope="module")
def treasury(request, node, alice, bob):
    pay(node, alice, bob, 1)
    return request.getfixturevalue("gold")

def test_in_the_middle(request, node, alice, bob, extra):
    pay(node, alice, bob, 5)
    assert node.asset(request.getfixturevalue("gold")).name == "Gold"
    assert extra() == 5

def test_in_a_narrower_fixture(treasury, node, extra):
    assert node.asset(treasury).name == "Gold" and extra() == 1

def test_requested_as_usual(gold, treasury, node, extra):
    assert gold == treasury and node.asset(gold).name == "Gold" and extra() == 1
"""
    pytester.makepyfile(test_one=tests, test_two=tests)
    run(pytester).assert_outcomes(passed=6)


def test_what_a_shared_test_did_is_not_lost(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        PAYING
        + """
@pytest.fixture(scope="session")
def ten(node, alice, bob):
    pay(node, alice, bob, 10)
"""
    )
    tests = """
import pytest
from conftest import pay

@pytest.mark.soliton_shared
def test_stays(node, alice, bob):
    pay(node, alice, bob, 1)

def test_late(ten, extra):
    assert extra() == 11
"""
    pytester.makepyfile(test_one=tests, test_two=tests.replace("extra() == 11", "extra() == 11"))
    run(pytester).assert_outcomes(passed=4)


def test_finalizers_that_fail_are_errors_and_the_chain_is_reverted(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(
        PAYING
        + """
@pytest.fixture(scope="module")
def bad(node, alice, bob):
    pay(node, alice, bob, 1)
    yield
    raise ValueError("a finalizer of a user")

@pytest.fixture(scope="session")
def ten(node, alice, bob):
    pay(node, alice, bob, 10)
"""
    )
    pytester.makepyfile("""
        def test_bad(bad, extra):
            assert extra() == 1

        def test_late(ten):
            raise AssertionError("not reached")

        def test_after(ten, extra):
            assert extra() == 10
    """)
    result = run(pytester)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines("*a finalizer of a user*")


@only_long
def test_processes_of_xdist(pytester: pytest.Pytester) -> None:
    test_a_fixture_of_each_process(pytester, "-n", "2", "--dist", "each")


def test_a_fixture_of_each_process(pytester: pytest.Pytester, *options: str) -> None:
    pytester.makeconftest(
        PAYING
        + """
@pytest.fixture(scope="session")
def ten(node, alice, bob):
    pay(node, alice, bob, 10)
"""
    )
    tests = """
import pytest
from conftest import pay

@pytest.fixture(scope="module")
def one(node, alice, bob):
    pay(node, alice, bob, 1)

def test_module(one, extra):
    assert extra() % 10 == 1

def test_late(ten, extra):
    assert extra() in (10, 11)
"""
    pytester.makepyfile(test_one=tests, test_two=tests)
    result = run_apart(pytester, *options)
    result.assert_outcomes(passed=8 if "each" in options else 4)


@pytest.mark.slow
@only_long
def test_on_a_devnet(pytester: pytest.Pytester) -> None:
    with devnet() as program:
        pytester.makeconftest(
            PAYING
            + """
@pytest.fixture(scope="session")
def gold(node, alice):
    RUNS.append("gold")
    return node.send(alice.issue("Gold", "10.00", 2)).wait().asset_id
"""
        )
        tests = """
import pytest
from conftest import RUNS, pay

@pytest.fixture(scope="module")
def one(node, alice, bob):
    pay(node, alice, bob, 1)

def test_module(one, extra):
    assert extra() == 1

def test_late(gold, node, extra):
    assert node.asset(gold).name == "Gold" and RUNS == ["gold"]

def test_both(one, gold, node, extra):
    assert node.asset(gold).name == "Gold" and extra() == 1
"""
        pytester.makepyfile(test_one=tests, test_two=tests)
        for _ in range(2):
            run(pytester, "--soliton-url", program.node_url).assert_outcomes(passed=6)
