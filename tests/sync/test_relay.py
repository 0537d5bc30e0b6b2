"""Which transactions are checked, and who hears of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from soliton.sync.model import ChainMoved, Joined, Left, Received
from soliton.sync.relay import (
    Accepted,
    Checked,
    CheckTransaction,
    Relay,
    RelaySettings,
    RelayTransaction,
)
from soliton.wire.messages import LegacyTransaction, ProtobufTransaction
from soliton.wire.versions import Version


def relay(**settings: Any) -> Relay:
    made = Relay(RelaySettings(**settings))
    made.is_ready = True
    return made


def heard(peer: int, data: bytes = b"tx") -> Received:
    return Received(peer, ProtobufTransaction(data))


def check(peer: int, data: bytes = b"tx") -> CheckTransaction:
    return CheckTransaction(peer, ProtobufTransaction(data))


def test_a_new_one_goes_to_all_but_those_who_sent_it() -> None:
    made = relay()
    assert made.handle(heard(1)) == [check(1)]
    assert made.handle(heard(2)) == []
    assert made.handle(heard(3)) == []
    made.handle(Left(3))
    assert made.handle(Checked(check(1), b"id", is_new=True)) == [
        RelayTransaction(b"id", frozenset((1, 2)))
    ]
    assert made.handle(heard(4)) == []
    assert made.waiting == 0


def test_the_other_form_of_the_same_goes_nowhere() -> None:
    made = relay()
    made.handle(heard(1))
    legacy = CheckTransaction(2, LegacyTransaction(b"form"))
    assert made.handle(Received(2, legacy.message)) == [legacy]
    assert len(made.handle(Checked(check(1), b"id", is_new=True))) == 1
    assert made.handle(Checked(legacy, b"id", is_new=True)) == []


def test_what_is_refused_goes_nowhere_until_the_chain_moves() -> None:
    made = relay()
    made.handle(heard(1))
    assert made.handle(Checked(check(1))) == []
    assert made.handle(heard(2)) == []
    made.handle(ChainMoved())
    assert made.handle(heard(2)) == [check(2)]


def test_what_a_client_of_ours_sent_goes_to_all() -> None:
    made = relay()
    assert made.handle(Accepted(b"id")) == [RelayTransaction(b"id")]
    assert made.handle(Accepted(b"id")) == []
    made.handle(ChainMoved())
    assert made.handle(Accepted(b"id")) == [RelayTransaction(b"id")]
    assert made.handle(Accepted(b"id")) == []
    made.handle(Joined(1, Version(1, 5, 0)))
    assert made.handle(Accepted(b"id")) == [RelayTransaction(b"id")]


def test_nothing_is_looked_at_before_the_chain_is_there() -> None:
    made = Relay()
    assert made.handle(heard(1)) == []
    made.is_ready = True
    assert made.handle(heard(1)) == [check(1)]


def test_the_queue_has_an_end_for_all_and_for_each() -> None:
    made = relay(queue=3, queue_of_peer=2)
    for number in range(4):
        made.handle(heard(1, bytes((number,))))
    assert made.waiting == 2
    assert made.handle(heard(2, b"a")) == [check(2, b"a")]
    assert made.handle(heard(2, b"b")) == []
    made.handle(Checked(check(1, b"\0")))
    assert made.handle(heard(2, b"b")) == [check(2, b"b")]


def test_the_oldest_are_forgotten() -> None:
    made = relay(seen=2)
    for data in (b"a", b"b", b"c"):
        made.handle(heard(1, data))
        made.handle(Checked(check(1, data)))
    assert made.handle(heard(1, b"c")) == []
    assert made.handle(heard(1, b"a")) == [check(1, b"a")]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.binary(max_size=1))))
def test_every_check_is_asked_for_once_and_answered(
    script: list[tuple[int, int, bytes]],
) -> None:
    made = relay(queue=4, queue_of_peer=2)
    open_checks: list[CheckTransaction] = []
    for what, peer, data in script:
        if what == 0:
            for action in made.handle(heard(peer, data)):
                assert isinstance(action, CheckTransaction)
                assert action.message not in [each.message for each in open_checks]
                open_checks.append(action)
        elif what == 1 and open_checks:
            made.handle(Checked(open_checks.pop(0), data, is_new=True))
        elif what == 2:
            made.handle(ChainMoved())
        else:
            made.handle(Left(peer))
        assert made.waiting == len(open_checks) <= 4
