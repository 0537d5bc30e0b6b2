"""A devnet on top of another one: the second reads the state of the first, and is read like it.

What is expected of the fork is what the node that it was forked from says itself.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

from soliton import Account, Node, Transaction
from soliton.api.thread_pool import THREADS
from soliton.client.errors import NodeRefused
from soliton.crypto import base58
from soliton.devnet.fork import beginning, remote
from soliton.devnet.fork.options import ForkOptions
from tests.blocks import blocks, typed
from tests.e2e.programs import WAIT_SECONDS, Program, call, devnet, run

pytestmark = pytest.mark.slow

COIN = 10**8
DAPP = """
{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
func sent() = valueOrElse(getString("sent"), "")
@Callable(i)
func count(step: Int) = {
  let at = valueOrElse(getInteger("count"), 0)
  let paid = if (size(i.payments) == 0) then 0 else i.payments[0].amount
  strict old = if (isDataStorageUntouched(this)) then throw("untouched") else 0
  ([IntegerEntry("count", at + step), IntegerEntry("paid", paid),
    IntegerEntry("height", height), ScriptTransfer(i.caller, 7, unit)], at + step)
}
@Callable(i)
func blocks() = [
  BinaryEntry("generator", value(blockInfoByHeight(2)).generatorPublicKey),
  IntegerEntry("sent", value(transferTransactionById(fromBase58String(sent()))).amount)
]
"""
WORKER = """
{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
@Callable(i)
func work(to: String, helper: String) = {
  let asset = Issue("Made", "by a dApp", 100, 2, true, unit, 3)
  let id = asset.calculateAssetId()
  let other = Address(fromBase58String(to))
  let kept = Lease(other, 5, 1)
  let ended = Lease(other, 6, 2)
  strict inner = invoke(Address(fromBase58String(helper)), "note", [-1, "a", base58'2', [true]],
    [AttachedPayment(unit, 4)])
  [asset, Reissue(id, 10, false), Burn(id, 1), SponsorFee(id, 2), ScriptTransfer(other, 3, unit),
    ScriptTransfer(other, 8, id), kept, ended, LeaseCancel(ended.calculateLeaseId()),
    StringEntry("s", "x"), BinaryEntry("b", base58'2'), BooleanEntry("t", true),
    DeleteEntry("none")]
}
@Callable(i)
func note(n: Int, s: String, b: ByteVector, l: List[Boolean]) = [IntegerEntry(s, n)]
"""
ALICE, BOB, DAPP_ACCOUNT, CAROL, WORKER_ACCOUNT, HELPER = (
    Account.from_seed(f"soliton devnet account {number}", "R") for number in (1, 2, 3, 4, 5, 6)
)


LIST = f"/transactions/address/{ALICE.address}/limit/100"


class Made(NamedTuple):
    """What there is at the node that is forked."""

    program: Program
    node: Node
    gold: str
    nft: str
    lease: str
    sent: str
    called: str
    height: int


def make(program: Program) -> Made:
    node = Node(program.node_url)
    gold = node.send(ALICE.issue("Gold", 1_000_000, decimals=2, reissuable=True))
    nft = node.send(ALICE.issue("Only", 1, decimals=0, reissuable=False))
    gold.wait(), nft.wait()
    node.send(ALICE.sponsor(gold.id, 5)).wait()
    node.send(ALICE.transfer(BOB, 50_000, asset=gold.id)).wait()
    sent = node.send(ALICE.transfer(BOB, 12 * COIN))
    sent.wait()
    lease = node.send(ALICE.lease(BOB, 40 * COIN))
    lease.wait()
    node.send(BOB.alias("bobby")).wait()
    node.send(ALICE.data({"n": -5, "ok": True, "raw": b"\1\2", "text": "ü/?"})).wait()
    node.send(DAPP_ACCOUNT.data({"count": 41, "sent": sent.id})).wait()
    script = node.compile(DAPP).script
    node.send(DAPP_ACCOUNT.set_script(script)).wait()
    for each in (WORKER_ACCOUNT, HELPER):
        node.send(each.set_script(node.compile(WORKER).script)).wait()
    called = node.send(
        CAROL.invoke(WORKER_ACCOUNT, "work", CAROL.address, HELPER.address, fee=100_500_000)
    )
    called.wait()
    names = gold.id, nft.id, lease.id, sent.id, called.id
    return Made(program, node, *names, node.height())


@pytest.fixture(scope="module")
def made() -> Iterator[Made]:
    with devnet() as program:
        yield make(program)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forks")


@pytest.fixture(scope="module")
def fork(made: Made, cache: Path) -> Iterator[Program]:
    """As its page begins one, and looks at it."""
    (page,) = blocks("docs/how-to/fork-a-chain.md")
    starting, looking = page.splitlines()
    url, port = "https://nodes-testnet.wavesnodes.com", "http://127.0.0.1:6869"
    _, command, *options = starting.replace(url, made.program.node_url).split()
    assert command == "devnet"
    with devnet(*options, "--fork-cache", cache) as program:
        told = typed(looking, cache, {port: program.node_url})
        assert json.loads(told)["fork"]["url"] == made.program.node_url
        yield program


def told(url: str, path: str) -> Any:
    answer = call(url + path)
    assert answer.status == 200, (path, answer.body)
    return answer.json()


def entries(url: str) -> dict[str, Any]:
    """What the dApp keeps."""
    rows = told(url, f"/addresses/data/{DAPP_ACCOUNT.address}")
    return {each["key"]: each["value"] for each in rows}


def paths(made: Made) -> list[str]:
    a, b, d = ALICE.address, BOB.address, DAPP_ACCOUNT.address
    worker = WORKER_ACCOUNT.address
    blocks = [f"/blocks/at/{height}" for height in range(1, made.height + 1)]
    return [
        *(f"/addresses/balance/details/{each}" for each in (a, b, d)),
        *(f"/assets/balance/{each}" for each in (a, b, d)),
        *(f"/assets/balance/{each}/{made.gold}" for each in (a, b, d)),
        f"/assets/nft/{a}/limit/10",
        f"/assets/details/{made.gold}?full=true",
        f"/assets/details/{made.nft}",
        f"/addresses/data/{a}",
        f"/addresses/data/{d}",
        f"/addresses/data/{a}/n",
        f"/addresses/data/{a}?key=raw&key=none",
        f"/addresses/scriptInfo/{d}",
        f"/addresses/scriptInfo/{a}",
        "/alias/by-alias/bobby",
        f"/alias/by-address/{b}",
        *(f"/leasing/active/{each}" for each in (b, CAROL.address)),
        f"/leasing/info/{made.lease}",
        f"/transactions/info/{made.sent}",
        f"/transactions/info/{made.called}",
        f"/transactions/address/{worker}/limit/100",
        f"/transactions/address/{CAROL.address}/limit/100",
        f"/transactions/address/{a}/limit/100",
        f"/transactions/address/{b}/limit/2",
        f"/eth/assets?id=0x{base58.decode(made.gold)[:20].hex()}",
        *blocks,
        "/blocks/headers/seq/1/3",
    ]


def test_the_fork_says_what_the_node_says(made: Made, fork: Program) -> None:
    for path in paths(made):
        assert told(fork.node_url, path) == told(made.program.node_url, path), path


def test_it_says_what_it_is(made: Made, fork: Program) -> None:
    state = told(fork.node_url, "/devnet")
    block = told(made.program.node_url, f"/blocks/headers/at/{made.height}")["id"]
    url = made.program.node_url
    assert state["fork"] == {"url": url, "height": made.height, "block": block}
    assert state["changedByHand"] == made.height + 1
    assert f"fork of       {url} at height {made.height}" in fork.output
    refused = call(f"{fork.node_url}/devnet/state")
    assert refused.status == 400 and url in refused.json()["message"]


def test_life_goes_on_upon_it_and_the_node_hears_nothing(made: Made, fork: Program) -> None:
    before = [told(made.program.node_url, path) for path in (*paths(made), "/blocks/last")]
    node = Node(fork.node_url)
    start = node.height()
    number = call(f"{fork.node_url}/devnet/snapshots", "").json()["id"]

    paid = node.send(BOB.invoke(DAPP_ACCOUNT, "count", 2, payments=[(1_500, made.gold)]))
    assert paid.wait().height == start + 1
    data = entries(fork.node_url)
    assert (data["count"], data["paid"], data["height"]) == (43, 1_500, start + 1)
    node.send(BOB.invoke(DAPP_ACCOUNT, "blocks")).wait()
    data = entries(fork.node_url)
    assert data["sent"] == 12 * COIN
    assert node.balance(DAPP_ACCOUNT.address, made.gold) == 1_500

    # The node's alias, its sponsor, its lease.
    bob, alice = node.balance(BOB.address), node.balance(ALICE.address)
    node.send(CAROL.transfer("alias:R:bobby", COIN)).wait()
    assert node.balance(BOB.address) == bob + COIN
    node.send(BOB.transfer(CAROL, 100, asset=made.gold, fee_asset=made.gold, fee=5)).wait()
    assert node.balance(BOB.address, made.gold) == 50_000 - 1_500 - 105
    assert node.balance(ALICE.address) == alice - 100_000
    assert node.balance(ALICE.address, made.gold) == 950_000 + 5
    node.send(ALICE.cancel_lease(made.lease)).wait()
    assert told(fork.node_url, f"/leasing/info/{made.lease}")["status"] == "canceled"
    assert told(fork.node_url, f"/leasing/active/{BOB.address}") == []
    node.send(ALICE.reissue(made.gold, 5)).wait()
    assert told(fork.node_url, f"/assets/details/{made.gold}")["quantity"] == 1_000_005
    ids = [each["id"] for each in told(fork.node_url, LIST)[0]]
    before_fork = [each["id"] for each in told(made.program.node_url, LIST)[0]]
    assert ids[len(ids) - len(before_fork) :] == before_fork
    # The sponsor's list has the transfer, too.
    assert len(ids) == len(before_fork) + 3
    again = told(made.program.node_url, f"/transactions/info/{made.sent}")
    with pytest.raises(NodeRefused, match="already in the state"):
        node.send(Transaction.from_json(again, "R"))
    with pytest.raises(NodeRefused, match="already"):
        node.send(ALICE.alias("bobby"))

    # And back: what was read from the node is there again.
    assert call(f"{fork.node_url}/devnet/snapshots/{number}/revert", "").json()["done"]
    test_the_fork_says_what_the_node_says(made, fork)
    node.send(BOB.transfer(CAROL, 1)).wait()
    call(f"{fork.node_url}/devnet/reset", "")
    assert node.height() == start
    test_the_fork_says_what_the_node_says(made, fork)
    assert [told(made.program.node_url, path) for path in (*paths(made), "/blocks/last")] == before


# --- a node that moves, lies, or is gone ----------------------------------------------------------


def test_what_the_node_has_changed_since_is_named(tmp_path: Path) -> None:
    with devnet() as program:
        made = make(program)
        options = ("--fork", program.node_url, "--fork-cache", tmp_path / "cache")
        with devnet(*options) as fork, devnet(*options, "--fork-newer") as newer:
            sent = made.node.send(ALICE.data({"n": 6, "later": 1}))
            at = sent.wait().height
            path = f"/addresses/data/{ALICE.address}"
            refused = call(f"{fork.node_url}{path}/n")
            assert (refused.status, refused.json()["error"]) == (404, 4101)
            message = refused.json()["message"]
            words = f"n) was changed in block {at} of {program.node_url}"
            assert words in message and "--fork-newer" in message
            assert told(fork.node_url, f"{path}/ok")["value"] is True
            # Of balances nodes say what they were.
            made.node.send(ALICE.transfer(CAROL, 7, asset=made.gold)).wait()
            held = f"/assets/balance/{ALICE.address}/{made.gold}"
            assert told(fork.node_url, held)["balance"] == 950_000
            assert told(program.node_url, held)["balance"] == 949_993
            assert call(fork.node_url + path).status == 404
            assert call(f"{fork.node_url}/transactions/info/{sent.id}").status == 404
            assert told(newer.node_url, f"{path}/n")["value"] == 6
            newer.wait_for(words)

            # A call that would read it is not said to be wrong.
            made.node.send(DAPP_ACCOUNT.data({"count": 7})).wait()
            counting = BOB.invoke(DAPP_ACCOUNT.address, "count", [1]).to_json()
            for tried in ("/transactions/simulate", "/debug/validate", "/transactions/broadcast"):
                refused = call(f"{fork.node_url}{tried}", counting)
                assert (refused.status, refused.json()["error"]) == (404, 4101), tried
                assert ") was changed in block" in refused.json()["message"]

            # Who comes later begins where it is told to, or on the last block.
            with devnet(*options[:2], "--height", made.height) as earlier:
                assert told(earlier.node_url, "/devnet")["fork"]["height"] == made.height
                assert words in call(f"{earlier.node_url}{path}/n").json()["message"]
                assert told(earlier.node_url, f"{path}/ok")["value"] is True
            with devnet(*options) as later:
                assert told(later.node_url, f"{path}/n")["value"] == 6

            # What was read stays, when the node is gone.
            told(fork.node_url, f"/addresses/balance/details/{BOB.address}")
            program.kill()
            told(fork.node_url, f"/addresses/balance/details/{BOB.address}")
            assert told(fork.node_url, f"{path}/ok")["value"] is True
            gone = call(f"{fork.node_url}/addresses/data/{BOB.address}/x")
            assert (gone.status, gone.json()["error"]) == (503, 5042)
            assert program.node_url in gone.json()["message"]


class _Held:
    """Questions with these words in them wait until they are let go."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.has_come, self.may_go = threading.Event(), threading.Event()


class _Liar(BaseHTTPRequestHandler):
    """Passes questions on, holds some of them for a while, and changes some answers."""

    protocol_version = "HTTP/1.1"
    behind: ClassVar[str]
    held: ClassVar[_Held | None]
    lies: ClassVar[dict[str, Callable[[Any], Any]]]
    posted: ClassVar[list[str]]

    def do_GET(self) -> None:
        self._pass_on(None)

    def do_POST(self) -> None:
        self.posted.append(self.path)
        self._pass_on(self.rfile.read(int(self.headers["Content-Length"])))

    def _pass_on(self, data: bytes | None) -> None:
        held = self.held
        if held is not None and held.words in self.path:
            held.has_come.set()
            assert held.may_go.wait(WAIT_SECONDS)
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.behind + self.path, data, headers)
        try:
            with urllib.request.urlopen(request) as response:
                status, body = response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                status, body = error.code, error.read()
        for part, lie in self.lies.items():
            if part in self.path and status == 200:
                told = lie(json.loads(body))
                body = told if isinstance(told, bytes) else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def lying(url: str) -> Iterator[tuple[str, type[_Liar]]]:
    kind = type("Liar", (_Liar,), {"behind": url, "held": None, "lies": {}, "posted": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", kind
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _more(block: Any) -> Any:
    for each in block["transactions"]:
        each["amount" if each["type"] == 1 else "fee"] += 1
    return block


def test_a_lying_node_is_named(made: Made, tmp_path: Path) -> None:
    with (
        lying(made.program.node_url) as (url, liar),
        devnet("--fork", url, "--fork-cache", tmp_path) as fork,
    ):
        for part, path, lie, words in lies_about(made):
            liar.lies = {part: lie}
            answer = call(fork.node_url + path)
            assert (answer.status, answer.json()["error"]) == (503, 5042), (path, answer.body)
            assert words in answer.json()["message"] and url in answer.json()["message"]
            liar.lies = {}
            assert told(fork.node_url, path) == told(made.program.node_url, path), path
        assert set(liar.posted) <= {"/transactions/snapshot"}
        # The block that all stands on is not there any more.
        liar.lies = {"/blocks/headers/last": _other_id, "/blocks/seq/": _other_ids}
        gone = call(f"{fork.node_url}/addresses/data/{BOB.address}/none")
        assert "is not there any more" in gone.json()["message"]


def _other_id(header: Any) -> Any:
    return {**header, "id": header["reference"]}


def _other_ids(blocks: Any) -> Any:
    return [{**each, "id": each["reference"], "reference": each["id"]} for each in blocks]


def _too_much(transaction: Any) -> Any:
    changes = transaction.get("stateChanges")
    if changes:
        changes["data"][0] = {"key": "n", "type": "integer", "value": 2**70}
    return transaction


def _in_debt(balances: Any) -> Any:
    return {**balances, "balance": -1}


def lies_about(made: Made) -> list[tuple[str, str, Callable[[Any], Any], str]]:
    """Whose answers are changed, what is asked, the lie, and the words for it."""
    dapp, alice, bob = DAPP_ACCOUNT.address, ALICE.address, BOB.address
    script, asset = f"/addresses/scriptInfo/{dapp}", f"/assets/details/{made.gold}"
    other = {"address": "3P274YB5qseSE9DTTL3bpSjosZrYBPDpJ8k"}
    return [
        ("/blocks/at/", "/blocks/at/3", _more, "not those it was made of"),
        ("/blocks/at/", "/blocks/at/1", _more, "not what its generator has signed"),
        ("/assets/balance/", f"/assets/balance/{bob}/{made.gold}", _in_debt, ">= 0"),
        ("/assets/details", asset, lambda it: {**it, "assetId": made.nft}, "another asset"),
        ("/scriptInfo/", script, lambda it: {**it, "publicKey": ALICE.public_key}, "public key"),
        (
            "/addresses/data/",
            f"/addresses/data/{alice}/n",
            lambda it: [{**each, "key": "other"} for each in it],
            "another entry",
        ),
        ("/by-alias/", "/alias/by-alias/bobby", lambda _: other, "no address of this chain"),
        ("/transactions/info/", f"/transactions/info/{made.called}", _too_much, "cannot be"),
        (
            "/leasing/",
            f"/leasing/info/{made.lease}",
            lambda _: b"<html>",
            "invalid response from the node",
        ),
        ("/assets/nft/", f"/assets/nft/{alice}/limit/10", lambda it: it * 1_001, "at most 1000"),
        ("/transactions/address/", LIST, lambda it: [it[0] * 101], "at most 100 are due"),
    ]


# --- a node that takes its time -------------------------------------------------------------------

MANY = 10


@contextmanager
def slow(liar: type[_Liar], words: str, ask: Callable[[], object]) -> Iterator[None]:
    """Ask what needs an answer of the node that is held as long as this lasts; then it succeeds."""
    held = liar.held = _Held(words)
    with ThreadPoolExecutor(1) as clients:
        asked = clients.submit(ask)
        try:
            assert held.has_come.wait(WAIT_SECONDS), (words, asked.result())
            yield
            assert not asked.done() and not held.may_go.is_set()
        finally:
            liar.held = None
            held.may_go.set()
        asked.result()


def goes_on(fork: str) -> None:
    """A chain on which everything else is answered, and blocks are made."""
    node = Node(fork)
    for _ in range(MANY):
        assert call(f"{fork}/devnet").status == 200
        assert call(f"{fork}/addresses/balance/{CAROL.address}").status == 200
    height = node.height()
    assert node.send(CAROL.transfer(BOB, 1)).wait().height == height + 1


class Behind(NamedTuple):
    """A fork, and what stands between it and its node."""

    fork: str
    matcher: str
    liar: type[_Liar]


@pytest.fixture
def behind_proxy(made: Made, tmp_path: Path) -> Iterator[Behind]:
    with (
        lying(made.program.node_url) as (url, liar),
        devnet("--fork", url, "--fork-cache", tmp_path) as fork,
    ):
        # What the others need is read.
        Node(fork.node_url).send(CAROL.transfer(BOB, 1)).wait()
        yield Behind(fork.node_url, fork.matcher_url, liar)


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("/addresses/data/", f"/addresses/data/{DAPP_ACCOUNT.address}/count"),
        ("/addresses/data/", f"/addresses/data/{DAPP_ACCOUNT.address}"),
        ("/transactions/snapshot", f"/addresses/scriptInfo/{DAPP_ACCOUNT.address}"),
        ("/blocks/at/3", "/blocks/seq/1/4"),
        ("/transactions/address/", LIST),
        ("/assets/details/", "/assets/details/{gold}"),
    ],
)
def test_others_are_answered_while_the_node_is_slow(
    made: Made, behind_proxy: Behind, words: str, path: str
) -> None:
    fork, _, liar = behind_proxy
    path = path.replace("{gold}", made.gold)
    if words == "/transactions/snapshot":
        # The fork has to look at what this block has written.
        made.node.send(CAROL.transfer(ALICE, 1)).wait()
    expected = call(made.program.node_url + path).json()
    with slow(liar, words, lambda: told(fork, path)):
        goes_on(fork)
    assert told(fork, path) == expected


def test_blocks_are_made_while_a_transaction_waits_for_the_node(
    behind_proxy: Behind,
) -> None:
    fork, _, liar = behind_proxy
    node = Node(fork)
    for words, transaction in [
        (f"/scriptInfo/{DAPP_ACCOUNT.address}", CAROL.invoke(DAPP_ACCOUNT, "count", 2)),
        # What it overwrites and has not read.
        ("?key=fresh", BOB.data({"fresh": 1})),
    ]:
        with slow(liar, words, lambda sent=transaction: node.send(sent).wait()):  # type: ignore[misc]
            goes_on(fork)
    assert entries(fork)["count"] == 43
    assert told(fork, f"/addresses/data/{BOB.address}")[0]["value"] == 1


def test_other_doors_are_open_while_the_node_is_slow(made: Made, behind_proxy: Behind) -> None:
    fork, matcher, liar = behind_proxy
    who = Account.from_seed("nobody has asked for this one", "R").address
    pair = f"{matcher}/matcher/orderbook/WAVES/{made.gold}"
    with slow(liar, ALICE.address, lambda: told(pair, f"/tradableBalance/{ALICE.address}")):
        assert call(f"{matcher}/matcher").status == 200
        goes_on(fork)
    question = {"jsonrpc": "2.0", "id": 1, "method": "eth_getBalance"}
    question["params"] = ["0x" + base58.decode(who)[2:22].hex()]
    with slow(liar, who, lambda: call(f"{fork}/eth", question)):
        goes_on(fork)
    # An order by hand, which changes what nobody has read.
    other = Account.from_seed("nor for this one", "R").address
    edits = {"edits": [{"kind": "balance", "address": other, "amount": 5}]}
    with slow(liar, other, lambda: call(f"{fork}/devnet/edits", edits)):
        goes_on(fork)
    assert told(fork, f"/addresses/balance/{other}")["balance"] == 5


def test_evaluations_that_wait_for_the_node_hold_no_thread(behind_proxy: Behind) -> None:
    fork, _, liar = behind_proxy
    path = f"{fork}/utils/script/evaluate/{DAPP_ACCOUNT.address}"

    def value(expression: str) -> object:
        # A busy machine has no room at once, or takes longer than the node is waited for.
        limit = time.monotonic() + 2 * WAIT_SECONDS
        while (answer := call(path, {"expr": expression})).status == 503:
            assert time.monotonic() < limit, answer.body
            time.sleep(0.1)
        assert answer.status == 200, answer.body
        return answer.json()["result"]["value"]

    def ask(_: int) -> object:
        return value('getIntegerValue(this, "count") + 1')

    def ask_all() -> None:
        with ThreadPoolExecutor(2 * THREADS) as clients:
            assert set(clients.map(ask, range(2 * THREADS))) == {42}

    with slow(liar, "?key=count", ask_all):
        for _ in range(MANY):
            assert value("1 + 1") == 2
        goes_on(fork)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--fork", "http://127.0.0.1:1"), "cannot be reached"),
        (("--fork", "ftp://node"), "an address looks like"),
        (("--fork", "http://127.0.0.1:1", "--scenario", "dex"), "--fork and --scenario"),
        (("--fork", "http://127.0.0.1:1", "--workers", 1), "--fork and --workers"),
        (("--height", 3), "--height goes with --fork"),
    ],
)
def test_what_cannot_be_forked(options: tuple[object, ...], words: str) -> None:
    ended = run("devnet", *options)
    assert ended.returncode != 0 and words in ended.stderr + ended.stdout


def test_a_height_that_is_not_there(made: Made, tmp_path: Path) -> None:
    ended = run("devnet", "--fork", made.program.node_url, "--height", 10_000)
    assert ended.returncode != 0 and f"has 1 to {made.node.height()}" in ended.stderr + ended.stdout


def test_a_silent_node_is_reported_while_the_start_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(beginning, "SILENCE_SECONDS", 0.01)
    monkeypatch.setattr(remote, "ANSWER_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent, caplog.at_level(logging.INFO):
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(remote.RemoteTrouble):
            beginning.open_fork(ForkOptions(url))
    assert f"forking {url}" in caplog.text
    assert f"{url} has not answered for" in caplog.text
