"""Who may connect, whom to dial, who is kept away."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.sync import peers as peers_module
from soliton.sync.model import Blame, Joined, Left, Received, Send, Tick
from soliton.sync.peers import SILENT_MS, Dial, PeerBook, PeerSettings
from soliton.wire.errors import PeerFault, Verdict
from soliton.wire.handshake import Handshake, PeerAddress
from soliton.wire.messages import GetPeers, Message, Peers
from soliton.wire.versions import Version

V = Version(1, 5, 7)


def at(last: int, port: int = 6868) -> PeerAddress:
    return PeerAddress(ipaddress.IPv4Address(f"10.0.0.{last}"), port)


def book(**settings: object) -> PeerBook:
    wanted = PeerSettings(**settings)  # type: ignore[arg-type]
    return PeerBook(wanted, lambda addresses: addresses[0], lambda most: most // 2)


def hello(nonce: int = 1, declared: PeerAddress | None = None) -> Handshake:
    return Handshake("wavesR", V, "n", nonce, declared, 0)


def meet(
    made: PeerBook, peer: int, address: PeerAddress, *, inbound: bool = False, now: int = 0
) -> None:
    """A connection, from its opening to its first message; the peer declares where it is."""
    made.opened(peer, address, inbound=inbound)
    made.introduced(peer, hello(peer, address), now)
    made.handle(Joined(peer, V), now)


def dialled(made: PeerBook, now: int) -> PeerAddress | None:
    for action in made.handle(Tick(), now):
        if isinstance(action, Dial):
            return action.address
    return None


def test_configured_peers_first_then_named_ones_then_known_ones() -> None:
    made = book(known_peers=(at(1), at(2)))
    made.remember([at(3), at(4)])
    assert dialled(made, 0) == at(1)
    assert dialled(made, 500) is None
    made.not_opened(at(1), 900)
    assert dialled(made, 1_000) == at(2)
    meet(made, 1, at(2), now=1_100)
    assert dialled(made, 2_000) == at(3)
    assert dialled(made, 6_999) is None
    assert dialled(made, 7_000) == at(4)
    # Everybody has had a turn; the first is not suspended any more after a minute.
    assert dialled(made, 12_000) is None
    assert dialled(made, 61_000) == at(1)


def test_nobody_is_dialled_who_is_connected_ourselves_or_kept_away() -> None:
    made = book(own_addresses=frozenset((at(1),)))
    made.remember([at(1), at(2), at(3), PeerAddress(ipaddress.IPv4Address(0), 1), at(4, 0)])
    meet(made, 7, at(2), inbound=True)
    made.ban(at(3).ip, "because", 0)
    assert dialled(made, 0) is None
    assert dialled(made, 900_001) == at(3)


def test_who_has_dialled_us_is_not_dialled() -> None:
    """Such a connection would be closed as a second one; but a port of somebody else's address may
    be declared by anybody, and keeps nobody from being dialled.
    """
    made = book(known_peers=(at(1), at(2)))
    made.opened(7, at(1, 50_000), inbound=True)
    made.introduced(7, hello(7, at(1)), 0)
    made.opened(8, at(9, 50_000), inbound=True)
    made.introduced(8, hello(8, at(2)), 0)
    assert dialled(made, 0) == at(2)
    assert dialled(made, 10_000) is None


def test_limits_of_connections() -> None:
    made = book(max_inbound=3, max_of_host=2, max_outbound=1)
    made.opened(1, at(1, 1), inbound=True)
    made.opened(2, at(1, 2), inbound=True)
    assert made.admit(at(1).ip, 0) == "there are too many connections from its address"
    assert made.admit(at(2).ip, 0) is None
    made.opened(3, at(2), inbound=True)
    for peer in (1, 2, 3):
        made.introduced(peer, hello(peer), 0)
    assert made.admit(at(3).ip, 0) == "there are too many connections"
    made.remember([at(8), at(9)])
    assert dialled(made, 0) == at(8)
    assert dialled(made, 10_000) is None
    made.not_opened(at(8), 10_000)
    assert dialled(made, 20_000) == at(9)


def test_the_idle_give_way_where_there_are_too_many() -> None:
    made = book(max_inbound=3, known_peers=(at(9),))
    for peer in (1, 2, 3):
        made.opened(peer, at(peer), inbound=True)
    assert made.admit(at(4).ip, 0) is None and made.gives_way(at(4).ip, 0) == 1
    for peer in (1, 2, 3):
        made.introduced(peer, hello(peer), peer)
    assert made.admit(at(4).ip, SILENT_MS) == "there are too many connections"
    assert made.gives_way(at(4).ip, SILENT_MS) is None
    made.handle(Received(1, GetPeers()), SILENT_MS)
    assert made.admit(at(4).ip, SILENT_MS + 2) is None
    assert made.gives_way(at(4).ip, SILENT_MS + 2) == 2
    # There is a reserve for this machine, and for those that the operator has named.
    for ip in (ipaddress.IPv4Address("127.0.0.1"), at(9).ip):
        assert made.admit(ip, 0) is None and made.gives_way(ip, 0) is None


def test_strangers_do_not_take_reserved_places() -> None:
    made = book(max_inbound=2, known_peers=(at(8), at(9)))
    for peer in (1, 2):
        made.opened(peer, at(peer), inbound=True)
        made.introduced(peer, hello(peer), 0)
    for peer in (8, 9):
        made.opened(peer, at(peer), inbound=True)
    # Those on them have been silent for longer than the strangers.
    for peer in (1, 2):
        made.handle(Received(peer, GetPeers()), SILENT_MS)
    assert made.admit(at(3).ip, SILENT_MS) == "there are too many connections"
    assert made.gives_way(at(3).ip, 2 * SILENT_MS) == 1


def test_all_addresses_of_one_network_have_one_owner() -> None:
    made = book(max_of_host=2)
    network = [ipaddress.IPv6Address(f"2001:db8:0:1:{each}::1") for each in range(3)]
    for number, ip in enumerate(network[:2]):
        assert made.admit(ip, 0) is None
        made.opened(number, PeerAddress(ip, 1), inbound=True)
    assert made.admit(network[2], 0) == "there are too many connections from its address"
    assert made.admit(ipaddress.IPv6Address("2001:db8:0:2::1"), 0) is None


def test_the_same_node_twice_is_closed() -> None:
    made = book()
    meet(made, 1, at(1), inbound=True)
    made.opened(2, at(1, 99), inbound=True)
    with pytest.raises(PeerFault) as raised:
        made.introduced(2, hello(1), 0)
    assert raised.value.verdict is Verdict.CLOSE
    made.opened(3, at(2), inbound=True)
    made.introduced(3, hello(1), 0)
    assert made.talking == 2


def test_only_who_declares_where_it_is_becomes_known() -> None:
    made = book(own_addresses=frozenset((at(6, 1),)))
    made.opened(2, at(2), inbound=False)
    made.introduced(2, hello(2), 0)
    meet(made, 3, at(3))
    for number, declared in enumerate((at(5), at(6, 1), at(6, 0)), 4):
        made.opened(number, at(6, 50_000 + number), inbound=True)
        made.introduced(number, hello(number, declared), 0)
    assert list(made.known(0)) == [at(3)]
    assert list(made.known(86_400_000)) == []
    made.handle(Received(3, GetPeers()), 100)
    assert list(made.known(86_400_000)) == [at(3)]


def test_who_dials_us_is_named_to_others() -> None:
    """Its port is the one that it declares, not that of its connection."""
    made = book()
    made.opened(1, at(1, 50_000), inbound=True)
    made.introduced(1, hello(1, at(1)), 0)
    made.opened(2, at(2, 50_000), inbound=True)
    made.introduced(2, hello(2, at(2)), 0)
    assert made.handle(Received(2, GetPeers()), 0) == [Send(2, Peers((at(1), at(2))))]
    other = book()
    meet(other, 1, at(9))
    other.handle(Received(1, Peers((at(1), at(2)))), 0)
    assert dialled(other, 0) == at(1)
    # Who is not there any more is forgotten when it has been tried.
    made.handle(Left(1), 1)
    assert dialled(made, 2) == at(1)
    made.not_opened(at(1), 3)
    assert list(made.known(4)) == [at(2)]


def test_one_host_does_not_fill_the_book() -> None:
    made = book()
    meet(made, 1, at(1))
    for port in range(1, 100):
        made.opened(2, at(2, 50_000), inbound=True)
        made.introduced(2, hello(port, at(2, port)), port)
        made.handle(Left(2), port)
    last = range(100 - peers_module.MAX_KNOWN_OF_OWNER, 100)
    assert list(made.known(100)) == [at(1), *(at(2, port) for port in last)]


def test_addresses_are_taken_from_whom_we_asked() -> None:
    made = book(max_candidates=2)
    made.opened(1, at(1), inbound=False)
    made.introduced(1, hello(1, at(1)), 0)
    answer = Peers((at(5), at(6), at(7)))
    assert made.handle(Received(1, answer), 0) == []
    assert dialled(made, 0) is None
    assert made.handle(Joined(1, V), 0) == [Send(1, GetPeers())]
    made.handle(Received(1, answer), 0)
    made.handle(Received(1, Peers((at(8),))), 0)
    assert [dialled(made, now) for now in (10_000, 20_000, 30_000)] == [at(6), at(7), None]
    assert Send(1, GetPeers()) in made.handle(Tick(), 120_000)


def test_who_asks_hears_of_known_peers_that_are_not_kept_away() -> None:
    made = book()
    meet(made, 1, at(1))
    meet(made, 2, at(2))
    assert made.handle(Received(1, GetPeers()), 0) == [Send(1, Peers((at(2), at(1))))]
    made.handle(Blame(2, "lies"), 0)
    assert made.handle(Received(1, GetPeers()), 0) == [Send(1, Peers((at(1),)))]


def test_without_exchange_nobody_asks_and_nobody_answers() -> None:
    made = book(exchange=False)
    made.opened(1, at(1), inbound=False)
    made.introduced(1, hello(1), 0)
    assert made.handle(Joined(1, V), 0) == []
    assert made.handle(Received(1, GetPeers()), 0) == []
    assert made.handle(Received(1, Peers((at(5),))), 0) == []
    assert dialled(made, 0) is None


@pytest.mark.parametrize(
    ("verdict", "blacklisted", "suspended"),
    [
        (Verdict.BLACKLIST, True, False),
        (Verdict.SUSPEND, False, True),
        (Verdict.CLOSE, False, False),
    ],
)
def test_verdicts(verdict: Verdict, blacklisted: bool, suspended: bool) -> None:
    made = book()
    meet(made, 1, at(1), inbound=True)
    made.remember([at(1, 7), at(2)])
    made.handle(Blame(1, "why", verdict), 10)
    made.handle(Left(1), 11)
    assert (at(1).ip in made.blacklisted(12)) is blacklisted
    assert (at(1).ip in made.suspended(12)) is suspended
    assert (made.admit(at(1).ip, 12) is None) is not blacklisted
    if blacklisted:
        kept = made.blacklisted(12)[at(1).ip]
        assert (kept.reason, kept.since, kept.until) == ("why", 10, 900_010)
        assert made.admit(at(1).ip, 900_010) is None
        made.clear_blacklist()
        assert made.admit(at(1).ip, 13) is None
        assert dialled(made, 13) == at(2)


def v6(text: str, port: int = 6868) -> PeerAddress:
    return PeerAddress(ipaddress.IPv6Address(text), port)


def test_all_addresses_of_an_owner_are_blacklisted() -> None:
    made = book()
    meet(made, 1, v6("2001:db8:1:2::1"), inbound=True)
    meet(made, 2, v6("2001:db8:1:2::77"), inbound=True)
    meet(made, 3, v6("2001:db8:1:3::1"), inbound=True)
    made.remember([v6("2001:db8:1:2::5"), v6("2001:db8:1:4::5")])
    made.handle(Blame(1, "why", Verdict.BLACKLIST), 10)
    for each in (1, 2, 3):
        made.handle(Left(each), 11)
    assert list(made.blacklisted(12)) == [v6("2001:db8:1:2::1").ip]
    assert made.admit(v6("2001:db8:1:2:ffff::9").ip, 12) == "it is blacklisted"
    assert made.admit(v6("2001:db8:1:3::9").ip, 12) is None
    assert list(made.known(12)) == [v6("2001:db8:1:3::1")]
    assert dialled(made, 12) == v6("2001:db8:1:4::5")
    # An address of IPv4 is the same in whichever form it comes.
    made.ban(at(1).ip, "by hand", 20)
    assert made.admit(ipaddress.IPv6Address("::ffff:10.0.0.1"), 21) == "it is blacklisted"
    assert made.admit(at(2).ip, 21) is None


def test_an_owner_has_some_of_the_known_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_module, "MAX_KNOWN_OF_OWNER", 2)
    made = book()
    for number in range(1, 9):
        meet(made, number, v6(f"2001:db8:1:2::{number}"), inbound=True, now=number)
    meet(made, 9, v6("2001:db8:1:3::1"), inbound=True, now=9)
    last = [v6("2001:db8:1:2::7"), v6("2001:db8:1:2::8"), v6("2001:db8:1:3::1")]
    assert list(made.known(10)) == last


def test_without_blacklisting_a_fault_suspends() -> None:
    made = book(blacklisting=False)
    meet(made, 1, at(1), inbound=True)
    made.handle(Blame(1, "why"), 0)
    assert made.blacklisted(0) == {}
    assert at(1).ip in made.suspended(0)


def test_a_dialled_peer_that_goes_is_suspended() -> None:
    made = book()
    meet(made, 1, at(1))
    meet(made, 2, at(2), inbound=True)
    made.handle(Left(1), 0)
    made.handle(Left(2), 0)
    assert list(made.suspended(0)) == [at(1).ip]


addresses = st.builds(at, st.integers(1, 5), st.integers(1, 2))


def test_who_connects_from_the_port_that_is_dialled_leaves_the_dialling_as_it_is() -> None:
    made = book(known_peers=(at(1),), max_outbound=2)
    assert dialled(made, 0) == at(1)
    made.opened(1, at(1), inbound=True)
    made.handle(Left(1), 1)
    assert dialled(made, 10_000) is None
    made.opened(2, at(1), inbound=False)
    assert made.connections[2].address == at(1)


peers = st.integers(1, 4)
said: st.SearchStrategy[Message] = st.just(GetPeers()) | st.builds(
    Peers, st.lists(addresses, max_size=4).map(tuple)
)


@given(st.data())
def test_any_order_of_events(data: st.DataObject) -> None:
    """Limits hold whatever happens, and nobody is dialled who must not be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peers_module, "MAX_KNOWN", 3)
        patch.setattr(peers_module, "MAX_RESTRICTIONS", 3)
        made = book(max_inbound=2, max_outbound=2, max_of_host=1, max_candidates=3)
        now = 0
        waiting: set[PeerAddress] = set()
        for _ in range(data.draw(st.integers(0, 40))):
            now += data.draw(st.integers(0, 100_000))
            peer = data.draw(peers)
            there = made.connections.get(peer)
            match data.draw(st.integers(0, 6)):
                case 0 if there is None:
                    address = data.draw(addresses)
                    if made.admit(address.ip, now) is None:
                        idle = made.gives_way(address.ip, now)
                        if idle is not None:
                            made.handle(Left(idle), now)
                        made.opened(peer, address, inbound=True)
                case 1 if there is None and waiting:
                    made.opened(peer, waiting.pop(), inbound=False)
                case 2 if there is not None and there.handshake is None:
                    try:
                        made.introduced(peer, hello(data.draw(peers), there.address), now)
                    except PeerFault:
                        made.handle(Left(peer), now)
                    else:
                        made.handle(Joined(peer, V), now)
                case 3 if there is not None and there.handshake is not None:
                    made.handle(Received(peer, data.draw(said)), now)
                case 4:
                    made.handle(Left(peer), now)
                case 5:
                    made.handle(Blame(peer, "why", data.draw(st.sampled_from(Verdict))), now)
                case 6:
                    kept = {*made.blacklisted(now), *made.suspended(now)}
                    connected = {each.address for each in made.connections.values()}
                    found = dialled(made, now)
                    if found is not None:
                        assert found.ip not in kept
                        assert found not in connected | waiting
                        waiting.add(found)
                    if len(waiting) == 2:
                        made.not_opened(waiting.pop(), now)
                case _:
                    pass
            inbound = [each for each in made.connections.values() if each.inbound]
            assert len(inbound) <= 2
            assert len({each.address.ip for each in inbound}) == len(inbound)
            assert len(made.known(now)) <= 3
            assert len(made.blacklisted(now)) <= 3
