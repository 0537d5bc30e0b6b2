"""What the other side answers decides what is signed within limits only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from soliton import (
    Account,
    AmountError,
    Asset,
    AsyncNode,
    ClockTooFar,
    EthereumAccount,
    FeeTooHigh,
    Node,
    NodeBroken,
    NodeRefused,
    OtherChain,
)
from soliton.chain.errors import FormatError
from soliton.client import matcher_routes, sending, signer_routes
from soliton.client.routes import accounts, assets, blocks, network, transactions
from soliton.client.steps import MAX_CLOCK_OFFSET, Core
from tests.client.scripted import Scripted, told

ALICE = Account.from_seed("soliton devnet account 1", "R")
BOB = Account.from_seed("soliton devnet account 2", "R")
WALLET = EthereumAccount("0x" + "01" * 32, "R")
GOLD = "DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p"
OTHER = "8LQW8f7P5d5PZM7GtZEBgaqRPGSzS3DfPuiXrURJ4AJS"


def words(fee: int, more: str = "") -> str:
    """As the Scala node words it."""
    return (
        "State check failed. Reason: Fee for TransferTransaction (100000 in WAVES) does not exceed "
        f"minimal value of {fee} WAVES{more}."
    )


class Greedy(BaseHTTPRequestHandler):
    """A node that names a fee of 90,000 coins and takes what pays it."""

    protocol_version = "HTTP/1.1"
    seen: list[dict[str, Any]]

    def do_GET(self) -> None:
        self._answer(404, {"error": 404, "message": "no such route"})

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        sent = json.loads(self.rfile.read(length))
        self.seen.append(sent)
        if sent["fee"] < 9 * 10**12:
            self._answer(400, {"error": 112, "message": words(9 * 10**12)})
        else:
            self._answer(200, sent)

    def _answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def greedy() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    seen: list[dict[str, Any]] = []
    handler = type("Handler", (Greedy,), {"seen": seen})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
        server.shutdown()
        thread.join(60)


def test_a_node_does_not_choose_the_fee(greedy: tuple[str, list[dict[str, Any]]]) -> None:
    url, seen = greedy
    payment = ALICE.transfer(BOB, "1")
    assert payment.max_fee == 1_800_000
    with Node(url) as node, pytest.raises(FeeTooHigh) as dear:
        node.send(payment)
    assert (dear.value.fee, dear.value.limit) == (9 * 10**12, 1_800_000)
    assert [each["fee"] for each in seen] == [100_000]
    with Node(url, max_fee="90000") as node:
        assert node.send(payment).transaction.fee == 9 * 10**12
    with Node(url, max_fee="90000") as node, pytest.raises(FeeTooHigh):
        node.send(payment, max_fee="1")


async def test_nor_that_of_the_asyncio_client(greedy: tuple[str, list[dict[str, Any]]]) -> None:
    url, seen = greedy
    async with AsyncNode(url) as node:
        with pytest.raises(FeeTooHigh):
            await node.send(ALICE.transfer(BOB, 1))
        assert len(seen) == 1
        sent = await node.send(ALICE.transfer(BOB, 1), max_fee="90000")
        assert sent.transaction.fee == 9 * 10**12


def test_nor_that_of_an_ethereum_wallet() -> None:
    error = {"code": 112, "message": words(9 * 10**12)}
    run = Scripted(told({"jsonrpc": "2.0", "id": 1, "error": error}))
    with pytest.raises(FeeTooHigh):
        run.run(sending.send, WALLET.transfer(BOB, 1))
    assert len(run.asked) == 1


def test_limits_follow_what_the_rules_can_ask() -> None:
    """Base fee, one surcharge for a script of the sender and of each asset, all twice."""
    assert ALICE.lease(BOB, 1).max_fee == 2 * 500_000
    assert ALICE.issue("Gold", 10).max_fee == 2 * 100_400_000
    assert ALICE.invoke(BOB, "f").max_fee == 2 * 900_000
    assert ALICE.invoke(BOB, "f", payments=[(1, None), (1, GOLD)]).max_fee == 2 * 1_700_000
    assert WALLET.transfer(BOB, 1).max_fee == 1_800_000
    assert WALLET.invoke(BOB, "f").max_fee == 2 * 4_900_000
    fees = [500_000, 900_000, 1_800_000]
    answers = [told({"error": 112, "message": words(fee)}, 400) for fee in fees]
    run = Scripted(*answers, told({}))
    sent = run.run(sending.send, ALICE.transfer(BOB, 1))
    assert sent.fee == 1_800_000
    # Each version that is signed can be mined: there are few of them.
    with pytest.raises(NodeRefused):
        Scripted(*answers, answers[-1]).run(sending.send, ALICE.transfer(BOB, 1), 10**10)


def test_a_fee_in_an_asset_has_a_limit() -> None:
    asked = told({"feeAssetId": GOLD, "feeAmount": 7})
    for answer in (asked, told({"feeAssetId": OTHER, "feeAmount": 7}), told({"feeAmount": 7})):
        run = Scripted(answer)
        with pytest.raises((FeeTooHigh, NodeBroken)):
            run.run(sending.send, ALICE.transfer(BOB, 1, fee_asset=GOLD))
        assert len(run.asked) == 1
    run = Scripted(asked, told({}))
    assert run.run(sending.send, ALICE.transfer(BOB, 1, fee_asset=GOLD), 7).fee == 7
    rated = Asset(GOLD, 2, min_sponsored_asset_fee=5)
    payment = ALICE.transfer(BOB, 1, fee_asset=rated)
    assert (payment.fee, payment.max_fee) == (5, 90)
    assert payment.renewed(timestamp=1, is_choice=True).max_fee == 90
    run = Scripted(asked, told({}))
    assert run.run(sending.send, payment).fee == 7
    with pytest.raises(FeeTooHigh):
        Scripted(told({"feeAssetId": GOLD, "feeAmount": 91})).run(sending.send, payment)
    # The amount in a refusal counts only if it is of the asset that pays.
    late = words(500_000, f" or 40 {GOLD}"), words(500_000, f" or 41 {OTHER}")
    run = Scripted(asked, told({"error": 112, "message": late[0]}, 400), told({}))
    assert run.run(sending.send, payment).fee == 40
    again = told({"feeAssetId": GOLD, "feeAmount": 25})
    run = Scripted(asked, told({"error": 112, "message": late[1]}, 400), again, told({}))
    assert run.run(sending.send, payment).fee == 25


def test_a_clock_is_followed_within_limits() -> None:
    refusal = told({"error": 303, "message": "Transaction timestamp is in the past"}, 400)
    most = int(MAX_CLOCK_OFFSET * 1_000)
    for offset in (most + 60_000, -most - 60_000, 2**62):
        payment = ALICE.transfer(BOB, 1)
        run = Scripted(refusal, told({"NTP": payment.timestamp + offset}))
        with pytest.raises(ClockTooFar):
            run.run(sending.send, payment)
        assert len(run.asked) == 2 and run.core.clock_offset == 0
    payment = ALICE.transfer(BOB, 1)
    now = payment.timestamp + 2 * most
    run = Scripted(refusal, told({"NTP": now}), refusal)
    run.core.max_clock_offset = 3 * most
    with pytest.raises(NodeRefused):
        run.run(sending.send, payment)
    assert len(run.asked) == 3
    for reply in ({"NTP": "1_000"}, {"NTP": 1.5}, {}):
        with pytest.raises(NodeBroken):
            Scripted(refusal, told(reply)).run(sending.send, payment)


def test_a_chain_is_an_address_of_it() -> None:
    consensus = {"base-target": 1, "generation-signature": "1"}
    header: dict[str, Any] = {"timestamp": 1, "version": 5, "reference": "1", "signature": "1"}
    header |= {"nxt-consensus": consensus}
    for generator in ("", "1", "0OIl", BOB.address[:-1] + "1", "1" * 5_000):
        with pytest.raises(NodeBroken):
            Scripted(told({**header, "generator": generator})).run(network.chain_id)
    run = Scripted(told({**header, "generator": BOB.address}))
    assert run.run(network.chain_id) == ord("R")
    with pytest.raises(OtherChain):
        run.run(sending.send, ALICE.on("W").transfer(BOB.on("W"), 1))
    with Node("http://127.0.0.1:1", chain_id="T") as node:
        assert node.chain_id == ord("T")
        with pytest.raises(OtherChain):
            node.send(ALICE.transfer(BOB, 1))


def test_an_answer_is_about_what_was_asked_for() -> None:
    asked, other = ALICE.transfer(BOB, 1).id, ALICE.transfer(BOB, 2).id
    info = {"type": 4, "id": other, "timestamp": 1, "height": 3, "confirmations": 9}
    state = {"id": other, "status": "confirmed", "height": 3, "confirmations": 9}
    details = {"issuer": BOB.address, "name": "x", "description": "", "quantity": 1}
    details |= {"assetId": OTHER, "decimals": 2, "reissuable": False}
    asks: list[tuple[Any, Callable[[Scripted], object]]] = [
        ([state], lambda run: run.run(sending.wait, asked)),
        ([state], lambda run: run.run(transactions.status, asked)),
        ([state], lambda run: run.run(transactions.statuses, [asked])),
        (info, lambda run: run.run(transactions.transaction, asked)),
        (info, lambda run: run.run(transactions.unconfirmed_transaction, asked)),
        ([info], lambda run: run.run(transactions.transactions, [asked])),
        (details, lambda run: run.run(assets.asset, GOLD)),
        ({**details, "assetId": GOLD, "decimals": 9}, lambda run: run.run(assets.asset, GOLD)),
        ([details], lambda run: run.run(assets.assets, [GOLD])),
        ({"id": other}, lambda run: run.run(accounts.lease, asked)),
        ([{"id": BOB.address, "balance": 5}], lambda run: run.run(accounts.balances, [ALICE])),
        ({"balance": -5}, lambda run: run.run(accounts.balance, ALICE)),
        ({"height": -5}, lambda run: run.run(blocks.height)),
        (
            {"key": "other", "type": "integer", "value": 5},
            lambda run: run.run(accounts.data_entry, ALICE, "key"),
        ),
        (
            {"key": "key", "type": "integer", "value": "1_000"},
            lambda run: run.run(accounts.data_entry, ALICE, "key"),
        ),
        (
            {"key": "key", "type": "binary", "value": "base64:\u00e4"},
            lambda run: run.run(accounts.data_entry, ALICE, "key"),
        ),
    ]
    for answer, ask in asks:
        with pytest.raises(NodeBroken):
            ask(Scripted(told(answer)))
    waiting = Scripted(told(state))
    waiting.core.is_soliton = True
    with pytest.raises(NodeBroken):
        waiting.run(sending.wait, asked)


def test_decimals_are_those_that_an_asset_can_have() -> None:
    for decimals in (-1, 9, 18, 2**40):
        with pytest.raises(AmountError, match="decimals"):
            ALICE.transfer(BOB, "1", Asset(GOLD, decimals))
        with pytest.raises(AmountError, match="decimals"):
            ALICE.buy(1, Asset(GOLD, decimals), "1", None, matcher=BOB.public_key)


def test_a_matcher_may_be_fixed() -> None:
    run = Scripted()
    run.core.matcher_key = BOB.public_key
    assert run.run(matcher_routes.public_key) == BOB.public_key
    order = ALICE.buy(1, GOLD, 10**8, None, matcher=ALICE.public_key)
    with pytest.raises(FormatError, match="not this one"):
        run.run(matcher_routes.place, order)
    for answer in ("", "1", BOB.address):
        with pytest.raises(NodeBroken):
            Scripted(told(answer)).run(matcher_routes.public_key)


def test_a_signer_returns_what_it_was_asked_to_sign() -> None:
    draft = ALICE.transfer(BOB, 5, timestamp=1, fee=100_000)
    order = ALICE.buy(1, GOLD, 10**8, None, matcher=BOB.public_key)
    same = told({"signed": draft.to_json()})
    assert Scripted(same).run(signer_routes.sign, draft) == draft
    others: list[Any] = [
        ALICE.transfer(BOB, 500, timestamp=1, fee=100_000).to_json(),
        ALICE.transfer(BOB, 5, timestamp=1, fee=10**8).to_json(),
        {"type": 4},
        "nonsense",
    ]
    for other in others:
        with pytest.raises(NodeBroken):
            Scripted(told({"signed": other})).run(signer_routes.sign, draft)
        with pytest.raises(NodeBroken):
            Scripted(told({"signed": other})).run(signer_routes.sign_and_broadcast, draft)
        with pytest.raises(NodeBroken):
            Scripted(told({"signed": [other]})).run(signer_routes.sign_all, [order])
    key = {"name": "hot", "address": ALICE.address, "publicKey": BOB.public_key, "locked": False}
    for address in (ALICE.address, "", "1", ALICE.on("W").address):
        keys = told({"keys": [{**key, "address": address}]})
        with pytest.raises(NodeBroken):
            Scripted(keys).run(signer_routes.account, "hot")


def test_what_the_sender_has_fixed_is_not_changed() -> None:
    core = Core(max_fee=10**10)
    fixed = ALICE.transfer(BOB, 1, fee=100_000, timestamp=5)
    steps = sending.send(core, fixed)
    next(steps)
    with pytest.raises(NodeRefused):
        steps.send(told({"error": 112, "message": words(500_000)}, 400))
    assert fixed.max_fee == 1_800_000
