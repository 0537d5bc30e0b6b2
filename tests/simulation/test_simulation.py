"""Whole networks in virtual time: they agree whatever goes wrong, and who does not is found."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from soliton.cli.main import cli
from soliton.ledger import finality as rules
from soliton.node.events import BlockAppended
from soliton.p2p.receiving import Receiver
from soliton.simulation.finality import FinalityWatch
from soliton.simulation.host import Host
from soliton.simulation.links import LinkSettings
from soliton.simulation.plan import FINALITY_LIES, LIES
from soliton.simulation.world import World, simulate
from soliton.sync.endorsements import Endorsements
from soliton.sync.peers import PeerBook
from tests.amounts import times
from tests.simulation.seeds import ALONE, finality, mixed, quick


@pytest.mark.parametrize("fault", ALONE)
def test_each_fault_alone_leaves_all_honest_hosts_in_agreement(fault: str) -> None:
    summary, _ = simulate(quick(seed=7, seconds=times(70, 100), **ALONE[fault]))
    assert summary.faults == ()
    assert summary.height > 3


def test_a_liar_with_the_best_score_does_not_keep_forks_apart() -> None:
    """The seed did not agree as long as a huge score was believed whatever stood behind it."""
    plan = quick(nodes=4, seed=4, seconds=150, partition=40_000, lies=("scores",), patience=120)
    assert simulate(plan)[0].faults == ()


def test_a_crowd_that_claims_more_and_more_does_not_keep_a_host_behind() -> None:
    """The seed did not agree as long as each of a crowd was asked in turn for a minute."""
    assert simulate(mixed(259))[0].faults == ()


def test_wrong_state_hashes_are_challenged_and_all_agree(tmp_path: Path) -> None:
    """Not with each seed: somebody must have an earlier turn than the liar, with both balances."""

    class Watched(World):
        """A world that notes which blocks of honest hosts challenge others."""

        challenges: ClassVar[set[bytes]] = set()

        def block(self, host: Host, event: BlockAppended) -> None:
            if event.block.header.challenged is not None:
                self.challenges.add(event.block.id)
            super().block(host, event)

    for seed in range(30):
        plan = quick(seed=seed, lies=("invalid-microblocks",), transactions=20)
        assert Watched(plan, tmp_path / str(seed)).run().faults == ()
        if Watched.challenges:
            return
    pytest.fail("nobody was challenged")


def test_many_seeds_with_faults_mixed() -> None:
    for seed in range(times(len(LIES), 25)):
        plan = quick(
            seed=seed,
            seconds=60,
            links=LinkSettings(loss=0.03),
            partition=20_000,
            crashes=1,
            skew=50,
            duplicates=seed % 2 == 0,
            transactions=10,
            lies=(LIES[seed % len(LIES)],),
        )
        summary, _ = simulate(plan)
        assert summary.faults == (), f"seed {seed}"


def test_the_same_seed_is_the_same_run() -> None:
    plan = quick(
        seconds=60,
        links=LinkSettings(loss=0.05),
        partition=20_000,
        crashes=2,
        duplicates=True,
        transactions=30,
        lies=("equivocation", "eclipse"),
    )
    first, marks = simulate(plan)
    assert (first, marks) == simulate(plan)
    assert first.lost > 0
    assert first != simulate(quick(seed=2))[0]


def test_partitions_make_forks_that_end() -> None:
    summary, _ = simulate(quick(nodes=4, seconds=300, partition=60_000))
    assert summary.faults == ()
    assert sum(summary.forks.values()) > 0
    assert summary.broken > 0


def test_hosts_that_keep_their_forks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Receiver, "_is_better", lambda *_: False)
    summary, _ = simulate(quick(nodes=4, seconds=150, partition=60_000, patience=100))
    assert any("do not agree" in each for each in summary.faults)
    assert summary.agree_seconds is None


def test_a_host_that_bans_an_honest_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = PeerBook._closed

    def resent(self: PeerBook, peer: int, now: int) -> None:
        connection = self.connections.get(peer)
        if connection is not None:
            self.ban(connection.address.ip, "it has gone", now)
        closed(self, peer, now)

    monkeypatch.setattr(PeerBook, "_closed", resent)
    summary, _ = simulate(quick(crashes=3, patience=60))
    assert any("refuses honest" in each for each in summary.faults)


def test_the_command_prints_a_summary_and_draws(tmp_path: Path) -> None:
    svg = tmp_path / "t.svg"
    faults = "--loss 5% --partition 30s"
    arguments = f"simulate --nodes 3 --seconds 120 --block-time 10s {faults} --seed 42 --svg"
    result = CliRunner().invoke(cli, [*arguments.split(), str(svg)])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("seed 42: ")
    names = {each.text for each in ET.parse(svg).iter() if each.tag.endswith("text")}
    assert {"host 0", "host 1", "host 2"} <= names


def test_the_command_names_the_seed_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Receiver, "_is_better", lambda *_: False)
    arguments = "simulate --nodes 4 --seconds 150 --block-time 10s --partition 60s --patience 60s"
    result = CliRunner().invoke(cli, arguments.split())
    assert result.exit_code == 1
    assert "1 of 1 seeds failed; to repeat: --seed 1" in result.output
    assert "FAILED" in result.output


@pytest.mark.parametrize(
    ("option", "text"),
    [("--loss", "60%"), ("--loss", "x"), ("--partition", "1 year"), ("--lies", "nonsense")],
)
def test_wrong_options_are_refused(option: str, text: str) -> None:
    result = CliRunner().invoke(cli, ["simulate", option, text])
    assert result.exit_code != 0


@pytest.mark.parametrize("lie", FINALITY_LIES)
def test_nobody_finalizes_two_blocks_of_one_height_whoever_lies(lie: str) -> None:
    plan = quick(lies=(lie,), seconds=60, transactions=20, generation_period=4)
    assert simulate(plan)[0].faults == ()


def test_nobody_does_with_faults_of_all_kinds() -> None:
    for seed in range(times(1, 25)):
        assert simulate(finality(seed))[0].faults == (), f"seed {seed}"


def test_conflicting_endorsements_cost_deposits_and_nobody_else_loses_one() -> None:
    lies = ("conflicting-endorsements",)
    summary, _ = simulate(quick(lies=lies, transactions=20, generation_period=4))
    assert summary.faults == ()
    assert summary.punished > 0
    assert summary.finalized > 3


def test_parts_without_two_thirds_finalize_nothing_until_they_meet() -> None:
    plan = quick(nodes=4, seconds=300, partition=60_000, transactions=20, generation_period=12)
    summary, _ = simulate(plan)
    assert summary.faults == ()
    assert summary.forks
    assert summary.finalized > 3


def test_two_final_blocks_of_one_height_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "is_final", lambda *_: True)
    plan = quick(nodes=4, seconds=150, partition=60_000, patience=60, generation_period=12)
    faults = simulate(plan)[0].faults
    assert any(" finalizes " in each and " is final" in each for each in faults)


def test_a_network_in_which_nothing_becomes_final_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Endorsements, "voting", lambda *_: None)
    faults = simulate(quick(transactions=20, patience=60, generation_period=4))[0].faults
    assert any("has no final block" in each for each in faults)


def test_lies_about_endorsements_need_periods() -> None:
    arguments = "simulate --nodes 2 --seconds 10 --block-time 10s --lies forged-endorsements"
    result = CliRunner().invoke(cli, arguments.split())
    assert result.exit_code != 0
    assert "needs --generation-period" in str(result.exception)


def test_partitions_in_which_each_part_gets_its_own_generators_are_refused() -> None:
    """No rule of the reference keeps two parts from finalizing that have different generators."""
    arguments = "simulate --nodes 2 --block-time 10s --generation-period 8 --partition 41s"
    result = CliRunner().invoke(cli, arguments.split())
    assert result.exit_code != 0
    assert "half a generation period" in str(result.exception)


@pytest.mark.parametrize(
    ("nodes", "lies", "split_at"),
    [
        (5, ("false-votings", "equivocation", "two-faced-endorsements"), 7),
        (7, ("false-votings", "equivocation", "two-faced-endorsements"), 0),
        (5, ("false-votings", "equivocation", "withheld-endorsements"), 0),
    ],
)
def test_two_final_blocks_are_no_fault_if_a_third_votes_for_both(
    nodes: int, lies: tuple[str, ...], split_at: int
) -> None:
    watch = FinalityWatch(quick(nodes=nodes, lies=lies, generation_period=8))
    watch.block(with_final_blocks(0, b"one"))
    watch.block(with_final_blocks(1, b"other"))
    assert watch.split_at == split_at
    fault = next(iter(watch.faults_of([])), "")
    assert ("at height 7" in fault) == (not split_at)


def with_final_blocks(number: int, block_id: bytes) -> Any:
    """A host whose chain has a final block at height 7, and the same ones as others below."""
    chain = SimpleNamespace(
        voted_height=7, meta=lambda at: SimpleNamespace(id=block_id if at == 7 else b"same")
    )
    return SimpleNamespace(
        name=f"host {number}",
        node=SimpleNamespace(chain=chain),
        place=SimpleNamespace(number=number),
    )
