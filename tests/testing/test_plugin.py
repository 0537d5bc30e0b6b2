"""The plugin as its users have it: pytest on files as they write them, in a process of its own
where the process is part of what is tested.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

# pytester forgets modules that a run in this process was the first to import, and a second instance
# of one is another.
import soliton.testing.kit
import soliton.testing.matching
import soliton.testing.plugin  # noqa: F401 - see above
from soliton.testing.frames import FRAMES, Frames
from tests.amounts import only_long
from tests.blocks import blocks
from tests.e2e.programs import devnet

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "soliton.testing.plugin", "-p", "no:cacheprovider", "-p", "no:asyncio")
NO_OTHERS = """
import socket, subprocess
import pytest

def refuse(*args, **kwargs):
    raise AssertionError("a port or a process")

@pytest.fixture(scope="session", autouse=True)
def alone():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("bind", "connect", "listen"):
            patch.setattr(socket.socket, name, refuse, raising=False)
        patch.setattr(subprocess.Popen, "__init__", refuse)
        yield
"""
SHOP = """
{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
{-# IMPORT prices.ride #-}

@Callable(i)
func buy(count: Int) = {
  let paid = i.payments[0].amount
  if (paid < count * price) then throw("not enough: " + paid.toString())
  else [IntegerEntry("sold", valueOrElse(getInteger("sold"), 0) + count)]
}

@Callable(i)
func open() = [IntegerEntry("opened", lastBlock.timestamp)]

@Callable(i)
func late() = {
  let opened = getIntegerValue("opened")
  if (lastBlock.timestamp < opened + 86400000) then throw("too early") else []
}
"""
PRICES = """
{-# STDLIB_VERSION 6 #-}
{-# SCRIPT_TYPE ACCOUNT #-}
{-# CONTENT_TYPE LIBRARY #-}
let price = 5
"""
TESTS = """
from datetime import timedelta
from pathlib import Path

import pytest
from soliton.testing import NotObeying, refused

@pytest.fixture(scope="module")
def shop(deploy):
    return deploy(Path(__file__).parent / "shop.ride")

def test_transfer(alice, bob, node):
    before = node.balance(bob)
    sent = node.send(alice.transfer(bob, "1.5"))
    assert sent.wait().height == node.height()
    assert node.balance(bob) == before + 150_000_000

def test_sold(shop, alice):
    shop.call(alice, "buy", 3, payments=[(15, None)])
    shop.call(alice, "buy", 2, payments=[(10, None)])
    assert shop.data() == {"sold": 5}
    assert shop.complexities().keys() == {"buy", "open", "late"}

class TestRefusals:
    def test_of_scripts(self, shop, alice):
        with refused("not enough: 14", function="buy") as refusal:
            shop.call(alice, "buy", 3, payments=[(14, None)])
        assert "14" in refusal.message

    def test_of_the_chain(self, alice, bob, node):
        with refused("negative waves balance"):
            node.send(alice.transfer(bob, 2**60))

def test_nothing_of_that_has_happened(shop):
    assert shop.data() == {}
"""
OBEYING = """
@pytest.fixture
def opened(shop, alice):
    shop.call(alice, "open")

def test_time_travel(opened, shop, alice, chain):
    with refused("too early"):
        shop.call(alice, "late")
    chain.travel(timedelta(days=1))
    shop.call(alice, "late")

def test_time_is_as_before(opened, shop, alice, chain):
    with refused("too early"):
        shop.call(alice, "late")

def test_controls(chain, node, alice, bob):
    chain.set_balance(bob, "7")
    assert node.balance(bob) == 7 * 10**8
    chain.set_data(bob, {"n": 1, "b": True, "s": "x", "d": b"y"})
    assert node.data(bob) == {"n": 1, "b": True, "s": "x", "d": b"y"}
    with chain.isolated():
        top = chain.mine(10, interval=60)
        assert chain.height == top
        chain.mining("manual")
        sent = node.send(alice.transfer(bob, 1))
        assert chain.drop() == [sent.id]
    assert chain.height == top - 10
    kept = chain.snapshot()
    chain.mine()
    chain.revert(kept)
    assert chain.height == top - 10
    with pytest.raises(KeyError):
        chain.revert("0x999999")

def test_nobody_else_has_a_new_account(new_account, node):
    first, second = new_account(), new_account("0.5")
    assert first.address != second.address
    assert node.balance(second) == 50_000_000
"""


def write(pytester: pytest.Pytester, tests: str = TESTS + OBEYING) -> None:
    pytester.makefile(".ride", shop=SHOP, prices=PRICES)
    pytester.makepyfile(test_shop=tests)


def run(pytester: pytest.Pytester, *options: object) -> pytest.RunResult:
    """Run the files in this process, which may have a chain of its own."""
    kept = dict(vars(FRAMES))
    vars(FRAMES).update(vars(Frames()))
    try:
        return pytester.runpytest_inprocess(*PLUGIN, *map(str, options))
    finally:
        vars(FRAMES).update(kept)


def run_apart(pytester: pytest.Pytester, *options: object) -> pytest.RunResult:
    """Run the files in a new process."""
    return pytester.runpytest_subprocess(*PLUGIN, *map(str, options))


def test_tests_need_no_port_and_no_process(pytester: pytest.Pytester) -> None:
    write(pytester)
    pytester.makeconftest(NO_OTHERS)
    run_apart(pytester).assert_outcomes(passed=9)


@only_long
def test_each_process_of_xdist_has_a_chain(pytester: pytest.Pytester) -> None:
    write(pytester)
    result = run_apart(pytester, "-n", 2, "--soliton-complexity")
    result.assert_outcomes(passed=9)
    (row,) = (each for each in result.outlines if re.match(r"shop\.buy ", each))
    # Three that went into blocks, in whichever process.
    assert row.split()[1] == "2", row


def test_what_calls_cost_is_told(pytester: pytest.Pytester) -> None:
    write(pytester)
    result = run(pytester, "--soliton-complexity", "-k", "sold or time_travel")
    result.assert_outcomes(passed=2, deselected=7)
    rows = {each.split()[0]: each.split()[1:] for each in result.outlines if "shop." in each}
    assert rows["shop.buy"][0] == "2" and rows["shop.late"][0] == "1"
    assert 0 < int(rows["shop.late"][1]) < int(rows["shop.buy"][3]) < 52_000


def test_the_same_commands_give_the_same_ids(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_other(alice, bob, node):
            node.send(alice.transfer(bob, 3)).wait()

        def test_ids(alice, new_account, node):
            gold = node.send(alice.issue("Gold", 1000, 2)).wait()
            account = new_account()
            print("ids", gold.asset_id, account.address, node.last_header().id)
    """)
    told = set()
    for runs, options in ((run_apart, ()), (run, ()), (run, ("-k", "test_ids"))):
        (line,) = (each for each in runs(pytester, "-s", *options).outlines if "ids " in each)
        told.add(line[line.index("ids ") :])
    assert len(told) == 1, told


def test_examples_and_state_machines_are_undone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        from hypothesis import given, settings, strategies as st
        from hypothesis.stateful import invariant, rule
        from soliton.testing import ChainMachine

        @settings(max_examples=20, deadline=None)
        @given(amount=st.integers(1, 10**8))
        def test_examples(amount, alice, bob, node):
            assert node.balance(bob) == 10**14
            node.send(alice.transfer(bob, amount)).wait()
            assert node.balance(bob) == 10**14 + amount

        class Payments(ChainMachine):
            def __init__(self):
                super().__init__()
                self.paid = 0

            @rule(amount=st.integers(1, 100))
            def pay(self, amount):
                alice, bob = self.kit.accounts[:2]
                self.node.send(alice.transfer(bob, amount)).wait()
                self.paid += amount

            @invariant()
            def it_has_arrived(self):
                assert self.node.balance(self.kit.accounts[1]) == 10**14 + self.paid

        Payments.TestCase.settings = settings(max_examples=10, stateful_step_count=5, deadline=None)
        TestPayments = Payments.TestCase

        def test_afterwards(bob, node, chain):
            assert node.balance(bob) == 10**14 and chain.height == 2
    """)
    run(pytester).assert_outcomes(passed=3)


def test_modules_and_classes_are_undone(pytester: pytest.Pytester) -> None:
    begins = """
        import pytest

        @pytest.fixture(scope="module", autouse=True)
        def paid(alice, bob, node):
            assert node.balance(bob) == 10**14
            node.send(alice.transfer(bob, 1)).wait()

        class TestClass:
            @pytest.fixture(scope="class", autouse=True)
            def paid_again(self, alice, bob, node):
                node.send(alice.transfer(bob, 1)).wait()

            @pytest.mark.parametrize("n", range(3))
            def test_in_class(self, n, alice, bob, node):
                assert node.balance(bob) == 10**14 + 2
                node.send(alice.transfer(bob, 1)).wait()

        @pytest.mark.soliton_shared
        def test_that_stays(alice, bob, node):
            assert node.balance(bob) == 10**14 + 1
            node.send(alice.transfer(bob, 5)).wait()

        def test_sees_it(bob, node):
            assert node.balance(bob) == 10**14 + 6
    """
    pytester.makepyfile(test_first=begins, test_second=begins)
    run(pytester, "--strict-markers").assert_outcomes(passed=10)


def test_times_have_all_their_milliseconds(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        from datetime import UTC, datetime, timedelta

        def test_travel(chain):
            before = chain.time
            assert chain.travel(1.001) == before + 1_001
            assert chain.travel(timedelta(seconds=1.001)) == before + 2_002
            # A time that no float has.
            moment = datetime(2038, 8, 19, 8, 59, 13, 719_000, tzinfo=UTC)
            assert chain.set_time(moment) == 2_165_821_153_719
    """)
    run(pytester).assert_outcomes(passed=1)


def test_a_height_that_does_not_come(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest
        from soliton import StillWaiting

        def test_height(chain, node):
            assert node.wait_for_height(chain.height).height == chain.height
            with pytest.raises(StillWaiting):
                node.wait_for_height(chain.height + 1, timeout=300)
    """)
    pytester.runpytest_subprocess(*PLUGIN, timeout=240).assert_outcomes(passed=1)


def test_in_coroutines(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import asyncio

        def test_in_a_loop(alice, bob, node, deploy):
            async def main():
                shop = deploy('{-# STDLIB_VERSION 6 #-}\\n{-# CONTENT_TYPE DAPP #-}\\nlet x = 6')
                await asyncio.sleep(0)
                node.send(alice.transfer(bob, 1)).wait()
                return shop.evaluate("x * 7")

            assert asyncio.run(main()).value == 42
    """)
    run(pytester).assert_outcomes(passed=1)


def test_refusals_name_the_place(pytester: pytest.Pytester) -> None:
    tests = """
        from pathlib import Path
        from soliton.testing import refused

        def test_place(deploy, alice):
            shop = deploy(Path(__file__).parent / "shop.ride")
            with refused("not enough") as refusal:
                shop.call(alice, "buy", 3, payments=[(14, None)])
            line = Path("shop.ride").read_text().splitlines()[refusal.error.line - 1]
            assert line[refusal.error.column - 1 :].startswith("throw(")
    """
    write(pytester, tests)
    run(pytester).assert_outcomes(passed=1)


def test_a_failure_shows_what_has_happened(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_fails(alice, bob, node):
            node.send(alice.transfer(bob, 1)).wait()
            node.send(alice.transfer(bob, 2**60)).wait()
    """)
    result = run(pytester)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "alice: transfer of 0.00000001 WAVES to bob, fee 0.001 WAVES" in text
    assert "refused: alice: transfer of 11529215046.06846976 WAVES to bob" in text


def test_runs_without_a_chain_start_none(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys

        def test_nothing():
            assert not [each for each in sys.modules if each.startswith("soliton.node")]
    """)
    run_apart(pytester).assert_outcomes(passed=1)


def test_scripts_that_do_not_compile_say_where(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makepyfile("""
        import pytest
        from pathlib import Path
        from soliton.ride.compiler.errors import CompileError

        def test_text(deploy):
            with pytest.raises(CompileError, match="line 1, column 5"):
                deploy("let = 5")

        def test_file(deploy):
            with pytest.raises(CompileError, match="cannot read"):
                deploy(Path("nowhere.ride"))
    """)
    run(pytester).assert_outcomes(passed=2)


def test_the_page_about_it_does_what_it_says(pytester: pytest.Pytester) -> None:
    page = "docs/how-to/test-a-dapp.md"
    (ride,), (shop, market) = blocks(page, "ride"), blocks(page, "python")
    pytester.makefile(".ride", shop=ride)
    pytester.makepyfile(test_shop=shop, test_market=market)
    run(pytester).assert_outcomes(passed=7)


@pytest.mark.slow
@only_long
def test_the_same_file_runs_on_a_devnet(pytester: pytest.Pytester) -> None:
    write(pytester)
    with devnet() as program:
        for _ in range(2):
            run(pytester, "--soliton-url", program.node_url).assert_outcomes(passed=9)
