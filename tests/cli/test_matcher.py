"""``soliton matcher init``, ``verify`` and ``replay`` as a user calls them."""

from __future__ import annotations

import asyncio
import re
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.orders import Side
from soliton.cli.main import cli
from soliton.cli.matcher_commands import books_hash
from soliton.cli.matcher_config import matcher_settings
from soliton.matcher.audit import RuleBroken
from soliton.matcher.errors import ExecutionsUnsettled, MatcherSettingsError, RecoveryFailed
from soliton.matcher.journal import Record
from soliton.matcher.journal.errors import JournalProblem
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.quarantine import Quarantine
from soliton.matcher.settings import MatcherSettings
from soliton.matcher.stores import open_journal, open_snapshots
from soliton.matching.commands import CancelOrder, CancelSource, Command, PlaceOrder, encode
from soliton.matching.engine import Engine
from soliton.matching.rules import MatchingSettings
from soliton.web.clock import wall_clock
from tests.matcher.kit import ALICE, BOB, COIN, PAIR, make_order

Begun = tuple[Path, MatcherSettings]


def call(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["matcher", *map(str, arguments)])


@pytest.fixture
def begun(tmp_path: Path) -> Begun:
    """A matcher that was set up, and its settings."""
    path = tmp_path / "matcher.conf"
    made = call("init", "--data-dir", tmp_path / "data", "--config", path)
    assert made.exit_code == 0, made.output
    return path, matcher_settings(path, None, None)


def commands_of(settings: MatcherSettings) -> list[Command]:
    sells = [make_order(ALICE, Side.SELL, COIN, 200 + n, matcher=settings.account) for n in (0, 1)]
    buy = make_order(BOB, Side.BUY, COIN // 2, 205, matcher=settings.account)
    return [
        *(PlaceOrder(order) for order in (*sells, buy)),
        CancelOrder(PAIR, sells[1].id, CancelSource.REQUEST),
    ]


def write(settings: MatcherSettings, commands: list[Command]) -> None:
    async def main() -> None:
        journal = open_journal(settings)
        await journal.append([encode(command) for command in commands])
        await journal.close()

    asyncio.run(main())


def test_init_makes_a_matcher_that_can_be_used(begun: Begun, tmp_path: Path) -> None:
    path, settings = begun
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert settings.network.name == "devnet"
    assert settings.directory == tmp_path / "data" / "matcher"
    again = call("init", "--data-dir", tmp_path / "data", "--config", path)
    assert isinstance(again.exception, MatcherSettingsError)
    assert matcher_settings(path, None, None).account == settings.account


@pytest.mark.parametrize("options", [(), ("--network", "waves-testnet"), ("--data-dir", "x")])
def test_what_init_has_made_is_found_without_being_named(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    missing = call("replay", "--no-chain", *options)
    assert "seed-in-base-64 is missing" in str(missing.exception)
    made = call("init", *options)
    assert made.exit_code == 0
    assert re.search(
        r"^start it +soliton matcher run --config \S+matcher\.conf$", made.output, re.MULTILINE
    )
    found = call("replay", "--no-chain", *options)
    assert "there is no journal in" in str(found.exception)


@pytest.mark.parametrize(("count", "workers"), [(1, 0), (2, 1), (64, 1)])
def test_init_knows_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, workers: int
) -> None:
    monkeypatch.setattr("soliton.cli.matcher_commands.cores", lambda: count)
    path = tmp_path / "m.conf"
    assert call("init", "--config", path, "--data-dir", tmp_path).exit_code == 0
    assert matcher_settings(path, None, None).rest_api.workers == workers
    more = matcher_settings(path, None, None, {"rest-api.workers": 3})
    assert more.rest_api.workers == 3


def test_init_tells_what_coins_the_address_needs(tmp_path: Path) -> None:
    text = call("init", "--network", "waves-testnet", "--data-dir", tmp_path).output
    assert re.search(r"^address +3\w{34}$", text, re.MULTILINE)
    assert re.search(r"^coins +.*WAVES: 0\.003 .* 0\.3 for the first 100;", text, re.MULTILINE)


def test_init_prints_the_key_once(tmp_path: Path) -> None:
    path = tmp_path / "m.conf"
    text = call("init", "--network", "waves-testnet", "--config", path, "--data-dir", tmp_path)
    found = re.search(r"^API key +(\S+)", text.output, re.MULTILINE)
    assert found is not None
    assert found[1] not in path.read_text()
    settings = matcher_settings(path, None, None)
    assert settings.network.name == "waves-testnet"
    assert settings.rest_api.check_api_key(found[1])
    assert not settings.rest_api.check_api_key(found[1] + "x")


def test_replay_tells_the_books(begun: Begun) -> None:
    path, settings = begun
    write(settings, commands_of(settings))
    whole = call("replay", "--config", path, "--no-chain")
    assert whole.exit_code == 0, whole.output
    assert "offsets   0 to 3" in whole.output
    assert "1 orders, bid -, ask 200" in whole.output
    part = call("replay", "--config", path, "--no-chain", "--to-offset", 1)
    assert "offsets   0 to 1" in part.output
    assert "2 orders, bid -, ask 200" in part.output

    def books(result: Result) -> str:
        return result.output.splitlines()[-1]

    assert books(part) != books(whole) == books(call("replay", "--config", path, "--no-chain"))


def test_books_end_behind_what_was_set_aside(begun: Begun) -> None:
    """Where the snapshot of the matcher does, to the byte."""
    path, settings = begun
    commands = commands_of(settings)
    write(settings, commands)

    async def spoilt() -> list[Record]:
        journal = open_journal(settings)
        await journal.append([b"no command"])
        found = [each async for batch in journal.records(0) for each in batch]
        await journal.close()
        return found

    *records, last = asyncio.run(spoilt())
    Quarantine(settings.directory).add(*last, "why")
    engine = Engine(MatchingSettings())
    for record, command in zip(records, commands, strict=True):
        engine.apply(record.offset, record.timestamp, command)
    engine.skip(last.offset, last.timestamp)
    for name in ("replay", "verify"):
        result = call(name, "--config", path, "--no-chain")
        assert result.exit_code == 0, result.exception
        assert f"0 to {last.offset}\n" in result.output
        assert books_hash(engine) in result.output


def test_verify_proves_or_names_the_offset(begun: Begun) -> None:
    path, settings = begun
    commands = commands_of(settings)
    write(settings, commands)
    proof = call("verify", "--config", path, "--no-chain")
    assert proof.exit_code == 0, proof.output
    assert "orders         3\n" in proof.output
    assert "priority and conservation hold" in proof.output
    write(settings, [commands[0]])
    told = call("verify", "--config", path, "--no-chain").exception
    assert isinstance(told, RuleBroken)
    assert (told.rule, told.offset) == ("journal", 4)


def test_without_its_beginning_a_snapshot_is_needed(begun: Begun) -> None:
    path, settings = begun
    commands, before = commands_of(settings), wall_clock()

    async def long_journal() -> None:
        small = open_journal(settings)
        small._settings = type(small._settings)(segment_bytes=200)  # type: ignore[attr-defined]
        for command in commands:
            await small.append([encode(command)])
        await small.truncate_before(2)
        assert small.first_offset == 2
        await small.close()

    asyncio.run(long_journal())
    assert "no snapshot reaches it" in str(call("replay", "--config", path, "--no-chain").exception)
    engine = Engine(MatchingSettings())
    for offset, command in enumerate(commands[:2]):
        engine.apply(offset, before, command)
    open_snapshots(settings).save(1, [engine.snapshot()])
    for name in ("replay", "verify"):
        result = call(name, "--config", path, "--no-chain")
        assert result.exit_code == 0, result.exception
        assert "2 to 3" in result.output


def test_there_is_no_journal(begun: Begun) -> None:
    path, _ = begun
    assert isinstance(call("verify", "--config", path, "--no-chain").exception, JournalProblem)


def test_verify_tells_that_the_journals_end_is_missing(begun: Begun) -> None:
    """The matcher refuses to start then: what is left must not be called whole."""
    path, settings = begun
    sell = make_order(ALICE, Side.SELL, 3 * COIN, 200, matcher=settings.account)
    write(settings, [PlaceOrder(sell)])
    _database_up_to(settings, 0)
    assert call("verify", "--config", path).exit_code == 0
    _database_up_to(settings, 2)
    result = call("verify", "--config", path)
    assert isinstance(result.exception, RecoveryFailed)
    assert "the journal ends at 0, but the orders database knows" in str(result.exception)
    assert "settlement hold" not in result.output
    # What stands there was set aside, and is not read with the others.
    Quarantine(settings.directory).add(2, 1, b"", "why")
    assert call("verify", "--config", path).exit_code == 0


def _database_up_to(settings: MatcherSettings, offset: int) -> None:
    """As if all that follows from the commands was written, but what they have led to."""

    async def write_it() -> None:
        chain_id = settings.network.chain_id
        owner = address_text(from_public_key(settings.account.public_key, chain_id))
        kept = OrdersDatabase(settings.directory / "orders", owner, chain_id, 9, durable=False)
        kept.mark(offset)
        await kept.close()

    asyncio.run(write_it())


def test_verify_names_every_execution_that_is_not_settled(begun: Begun) -> None:
    path, settings = begun
    sell = make_order(ALICE, Side.SELL, 3 * COIN, 200, matcher=settings.account)
    amounts = (COIN, 2 * COIN)
    buys = [make_order(BOB, Side.BUY, each, 205, matcher=settings.account) for each in amounts]
    write(settings, [PlaceOrder(order) for order in (sell, *buys)])

    _database_up_to(settings, 2)
    result = call("verify", "--config", path)
    assert isinstance(result.exception, ExecutionsUnsettled)
    assert str(result.exception).endswith("2 of 2 executions are not settled")
    lines = [line for line in result.output.splitlines() if line.startswith("not settled")]
    assert len(lines) == 2
    assert "offset 1, execution 0: 100000000 of WAVES" in lines[0]
    assert "offset 2, execution 0: 200000000 of WAVES" in lines[1]
