"""Notices in a file: whatever the way, what counts of them is what the chain holds."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from soliton.chain.addresses import address_text
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair
from soliton.export import outbox
from soliton.export.confirmed import Confirmed
from soliton.export.errors import AnotherExport, DatabaseAway, SourceAway, WrongChain
from soliton.export.follower import Follower
from soliton.export.notices import Interests
from soliton.export.outbox import Outbox, WaitingNotices
from soliton.node.chain_writer import ChainWriter
from tests.export.following import OwnChain, catch_up
from tests.export.receiver import Got, folded
from tests.node.chains import RICH, address_of, mine, now, open_chain, person, signed
from tests.node.scenario import ALL_VERSIONS, Scenario
from tests.node.test_own_chain import add_microblock

FRIENDS = {number: address_of(person(f"friend {number}")) for number in range(4)}
FRIEND_ALIASES = {f"friend-{number}": address for number, address in FRIENDS.items()}
INTERESTS = Interests(payments_to=frozenset(map(address_text, FRIENDS.values())))


def expected(chain: ChainWriter, first: int = 1) -> list[tuple[str, int, str, int]]:
    """Payments to the friends, from the transactions as they are in the blocks."""
    found = []
    for height in range(first, chain.height + 1):
        for each in chain.block_at(height).transactions:
            payload: Any = each.payload
            items = payload.transfers if each.type_id == 11 else [payload]
            if each.type_id not in (2, 4, 11) and not hasattr(payload, "action"):
                continue
            for item in items:
                item = getattr(item, "action", item)
                to = getattr(item, "recipient", None)
                address = FRIEND_ALIASES.get(getattr(to, "name", ""), to)
                if address in FRIENDS.values():
                    row = base58.encode(each.id), height, address_text(address), item.amount
                    found.append(row)
    return found


def pay(chain: ChainWriter, to: KeyPair, amount: int) -> AnyTransaction:
    payload = Transfer(address_of(to), None, amount, b"")
    return signed(RICH, 4, payload, version=2, timestamp=now(chain))


def drain(path: Path, got: list[Got], count: int = 1_000_000) -> None:
    """Take so many notices out."""
    waiting = WaitingNotices(path)
    for each in waiting.next(count):
        got.append(Got(each.name, json.loads(each.body)))
        waiting.done(each.number)
    waiting.close()


def counted(got: list[Got]) -> list[tuple[str, int, str, int]]:
    rows = [
        (each["height"], each["index"], each["transaction"], each["recipient"], each["amount"])
        for each in folded(got).values()
    ]
    return [(name, height, to, amount) for height, _, name, to, amount in rows]


@contextmanager
def followed(
    path: Path, chain: ChainWriter, first: int | None, confirmations: int = 0
) -> Iterator[Follower]:
    source = Confirmed(OwnChain(chain), confirmations)
    file = Outbox.open(path, source, INTERESTS, first)
    yield Follower(source, file)
    file.close()


@pytest.mark.parametrize("seed", range(2))
def test_any_way_leads_to_what_the_chain_holds(tmp_path: Path, seed: int) -> None:
    """Steps of the chain, of the file and of its reader by turns, and rollbacks."""
    chance = random.Random(seed)
    chain, path = open_chain(tmp_path / "chain"), tmp_path / "cursor"
    got: list[Got] = []
    for number in range(2):
        for batch in Scenario(chain, ALL_VERSIONS, number).batches():
            with followed(path, chain, 1) as follower:
                mine(chain, batch[: chance.randint(0, len(batch))])
                follower.step()
                for transaction in batch[len(chain.last_block.transactions) :]:
                    add_microblock(chain, transaction)
                    if chance.random() < 0.7:
                        follower.step()
                drain(path, got, chance.randint(0, 5))
        with followed(path, chain, 1) as follower:
            catch_up(follower)
        chain.rollback(max(1, chain.height - chance.choice((22, 26, 30))))
    with followed(path, chain, 1) as follower:
        catch_up(follower)
    drain(path, got)
    assert counted(got) == expected(chain)
    assert len(counted(got)) > 5
    assert any(each.notice["event"] == "rollback" for each in got)
    assert len(dict(got)) == len(got)
    chain.store.close()


def test_it_begins_with_what_comes_next_and_waits_for_blocks_on_top(tmp_path: Path) -> None:
    chain, path = open_chain(tmp_path / "chain"), tmp_path / "cursor"
    friend = person("friend 0")
    mine(chain)
    mine(chain, [pay(chain, friend, 11)])
    got: list[Got] = []
    with followed(path, chain, None, 2) as follower:
        catch_up(follower)
        mine(chain, [pay(chain, friend, 12)])
        mine(chain)
        catch_up(follower)
        drain(path, got)
        begins = chain.height
        # Its own beginning was 2 blocks below: the payment of 11 counts, that of 12 does not yet.
        assert [row[3] for row in counted(got)] == [11]
        chain.rollback(begins - 2)
        mine(chain, [pay(chain, friend, 13)])
        for _ in range(2):
            mine(chain)
        catch_up(follower)
        drain(path, got)
    assert [row[3] for row in counted(got)] == [11, 13]
    assert {each.notice["event"] for each in got} == {"payment"}
    chain.store.close()


def test_it_waits_for_the_height_where_it_begins(tmp_path: Path) -> None:
    chain, path = open_chain(tmp_path / "chain"), tmp_path / "cursor"
    friend, begins = person("friend 0"), 4
    got: list[Got] = []
    while chain.height < begins:
        mine(chain, [pay(chain, friend, chain.height + 1)])
        if chain.height < begins - 1:
            with (
                pytest.raises(SourceAway, match=f"at height {chain.height}, not at 3 yet"),
                followed(path, chain, begins, 0),
            ):
                pass
        else:
            with followed(path, chain, begins, 0) as follower:
                catch_up(follower)
            drain(path, got)
    assert [row[3] for row in counted(got)] == [begins]
    chain.store.close()


def test_what_waits_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_WAITING", 2)
    chain, path = open_chain(tmp_path / "chain"), tmp_path / "cursor"
    friend = person("friend 0")
    got: list[Got] = []
    with followed(path, chain, None) as follower:
        for amount in (1, 2, 3):
            mine(chain, [pay(chain, friend, amount)])
            if amount < 3:
                catch_up(follower)
        with pytest.raises(DatabaseAway, match="2 notices wait for their receiver"):
            catch_up(follower)
        drain(path, got)
        catch_up(follower)
    drain(path, got)
    assert [row[3] for row in counted(got)] == [1, 2, 3]
    chain.store.close()


def test_a_file_is_for_one_and_for_one_chain(tmp_path: Path) -> None:
    chain, path = open_chain(tmp_path / "chain"), tmp_path / "cursor"
    mine(chain)
    with (
        followed(path, chain, None),
        pytest.raises(AnotherExport),
        followed(path, chain, None),
    ):
        pass
    other = open_chain(tmp_path / "other")
    mine(other)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE rows SET id = 'something else'")
        database.execute("UPDATE state SET value = 'other' WHERE name = 'key'")
    database.close()
    with followed(path, other, None) as follower, pytest.raises(WrongChain):
        follower.step()
    path.write_bytes(b"no database" * 100)
    with pytest.raises(WrongChain, match="is not a cursor"):
        Outbox.open(path, OwnChain(chain), INTERESTS)
    with pytest.raises(DatabaseAway):
        Outbox.open(tmp_path / "nowhere" / "cursor", OwnChain(chain), INTERESTS)
    chain.store.close()
    other.store.close()
