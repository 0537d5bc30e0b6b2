"""What a worker says is what the matcher itself says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from soliton.chain import orders, typed_data
from soliton.chain.addresses import Address, from_public_key
from soliton.chain.orders import Order, PriceMode, Side
from soliton.crypto import base58, secp256k1
from soliton.crypto.keys import KeyPair
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.node_client import ScriptAnswer
from soliton.matcher.records import ServiceStatus
from soliton.matcher.rest.http_gate import FAILURES
from soliton.matcher.settings import RestApi
from soliton.matching import errors
from soliton.matching.account_checks import ScriptFault
from soliton.matching.errors import MatcherError
from soliton.matching.pairs import AssetPair
from tests.matcher import kit
from tests.matcher.fakes import (
    ALICE,
    BOB,
    GOLD,
    KEY,
    FakeCore,
    buy,
    cancel_body,
    sell,
    signature_headers,
    text_address,
)
from tests.matcher.rest.fronts import Pair, ask, pair, request
from tests.matcher.rest.test_limits import SOMEBODY
from tests.matcher.rest.test_placing import FORM, MALFORMED, changed, without

PLACE = "POST /matcher/orderbook"
JSON = {"content-type": "application/json"}
BOOK = f"/matcher/orderbook/{base58.encode(GOLD)}/WAVES"
ALICE_KEY = base58.encode(ALICE.public_key)


def placing(body: Any, headers: dict[str, str] | None = None, line: str = PLACE) -> bytes:
    """A request to place; a body that is no bytes goes as JSON."""
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return request(line, {**JSON, **(headers or {})}, data)


def place(order: Order) -> bytes:
    return placing(orders.to_json(order))


@pytest_asyncio.fixture
async def both(tmp_path: Path) -> AsyncIterator[Pair]:
    async with pair(FakeCore(), FakeCore(), tmp_path) as served:
        yield served


def core_of(both: Pair) -> FakeCore:
    """The matcher behind the worker."""
    core = both.behind.core
    assert isinstance(core, FakeCore)
    return core


# --- orders ---------------------------------------------------------------------------------------


async def test_an_order_is_taken_once(both: Pair) -> None:
    sent = [buy(ALICE, 10**8, 2 * 10**8, version=version) for version in (1, 2, 3, 4)]
    for order in sent:
        reply = await both.same(place(order))
        assert (reply.status, reply.json()["status"]) == (200, "OrderAccepted")
        again = await both.same(place(order))
        assert (again.status, again.json()["error"]) == (400, errors.ORDER_DUPLICATE.code)
    assert core_of(both).placed == sent


async def test_what_is_no_order_is_refused_in_the_same_words(both: Pair) -> None:
    for body, fields in MALFORMED:
        reply = await both.same(placing(body))
        assert (reply.status, reply.json()["error"]) == (400, errors.INVALID_JSON.code)
        assert reply.json().get("params", {}).get("invalidFields", []) == fields
    assert core_of(both).placed == []


def good(number: int) -> dict[str, Any]:
    """An order that will be taken; each number gives another one."""
    return orders.to_json(buy(ALICE, 10**8, 10**8 + number))


OTHERS: dict[str, tuple[bytes, int]] = {
    "as text": (placing(FORM, {"content-type": "text/plain"}), 400),
    "as nothing": (placing(FORM, {"content-type": ""}), 400),
    "as JSON in other letters": (
        placing(good(1), {"content-type": "Application/JSON; charset=utf-8"}),
        200,
    ),
    "without a type": (request(PLACE, None, msgspec.json.encode(FORM)), 400),
    "of a new version": (placing(changed(version=5)), 400),
    "with a short asset": (
        placing(changed(assetPair={"amountAsset": "111", "priceAsset": None})),
        404,
    ),
    "of the first version": (placing(changed(version=1)), 400),
    "that a wallet signed": (
        placing(changed(version=4, eip712Signature="0x" + "11" * 65, senderPublicKey=None)),
        400,
    ),
    "with a long key": (placing(changed(senderPublicKey=base58.encode(bytes(64)))), 400),
    "with a long key, version 4": (
        placing(changed(version=4, senderPublicKey=base58.encode(b"\1" * 64))),
        400,
    ),
    "forged": (placing(changed(proofs=[base58.encode(bytes(64))])), 400),
    "with a short proof": (placing(changed(proofs=["111"])), 400),
    "with a long proof": (placing(changed(proofs=[base58.encode(b"\1" * 80)])), 400),
    "without proofs": (placing(changed(proofs=[])), 400),
    "with other bytes": (placing(changed(amount=7)), 400),
    "of the same asset": (place(buy(ALICE, 1, 1, pair=AssetPair(None, None))), 400),
    "of a reversed pair": (place(buy(ALICE, 1, 1, pair=AssetPair(None, GOLD))), 400),
    "no UTF-8": (placing(b'{"amount":"\xff"}'), 400),
    "nothing": (placing(b""), 400),
    "with a query": (placing(good(2), line=f"{PLACE}?a=b"), 200),
    "with a slash": (placing(good(3), line=f"{PLACE}/"), 200),
    "in other letters": (placing(good(4), line="POST /matcher/%6frderbook"), 200),
    "with numbers as texts": (
        placing(good(5), {"accept": "application/json;large-significand-format=string"}),
        200,
    ),
    "without a version": (placing(without("version")), 400),
}


async def test_other_orders(both: Pair) -> None:
    for name, (sent, status) in OTHERS.items():
        assert (await both.same(sent)).status == status, name
    accepted = [status for _, status in OTHERS.values() if status == 200]
    assert len(core_of(both).placed) == len(accepted)


async def test_trouble_reads_the_same(both: Pair) -> None:
    for trouble, error in (
        (MatcherError(errors.CAN_NOT_PERSIST_EVENT), 25601),
        (MatcherError(errors.MATCHER_IS_STOPPING), errors.MATCHER_IS_STOPPING.code),
        (NodeUnavailable("gone"), 105906177),
        (RuntimeError("a bug"), 4),
        (TimeoutError(), errors.REQUEST_TIMEOUT.code),
    ):
        both.direct.core.fail_with = core_of(both).fail_with = trouble  # type: ignore[attr-defined]
        assert (await both.same(placing(FORM))).json()["error"] == error
    # What is counted is counted once, on the side where it happened.
    assert both.behind.counters.sum(FAILURES) == 1


# --- bodies ---------------------------------------------------------------------------------------

LIMIT = RestApi().max_body_bytes


@pytest.mark.parametrize("path", ["/matcher/orderbook", "/matcher/orderbook/market"])
async def test_bodies_of_any_length_and_in_pieces(both: Pair, path: str) -> None:
    line, form = f"POST {path}", msgspec.json.encode(FORM)
    assert (await both.same(placing(b" " * (LIMIT + 1), line=line))).status == 413
    assert (await both.same(placing(b" " * LIMIT, line=line))).status == 400
    for declared in (LIMIT + 1, 10**12):
        head = request(line, {**JSON, "content-length": str(declared)})
        assert (await both.same(head)).status == 413
    chunks = b"%x\r\n%s\r\n" % (LIMIT, b" " * LIMIT)
    chunked = {**JSON, "transfer-encoding": "chunked"}
    assert (await both.same(request(line, chunked, chunks * 2 + b"0\r\n\r\n"))).status == 413
    # The server asks for the body, and so it comes in a piece of its own.
    asking = {**JSON, "expect": "100-continue", "content-length": str(len(form))}
    assert (await both.same(request(line, asking), form)).status == 200
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (form[:50], form[50:]))
    again = await both.same(request(line, chunked, chunks + b"0\r\n\r\n"))
    assert again.json()["error"] == errors.ORDER_DUPLICATE.code
    assert len(core_of(both).placed) == 1


# --- everything else ------------------------------------------------------------------------------

ROUTES = f"""
200 GET /matcher
200 GET /matcher/settings
200 GET /matcher/settings/rates
200 GET /matcher/orderbook
200 GET {BOOK}
200 GET {BOOK}?depth=1
400 GET {BOOK}?depth=x
301 GET /matcher/orderbook/WAVES/{base58.encode(GOLD)}?depth=1
200 GET {BOOK}/status
200 GET {BOOK}/info
200 GET {BOOK}/{base58.encode(bytes(32))}
404 GET /matcher/orderbook/{base58.encode(bytes(32))}/WAVES
200 GET {BOOK}/tradableBalance/{text_address(ALICE)}
200 GET /api/v1/tickers
200 GET /api/v1/trades/{base58.encode(GOLD)}/WAVES?limit=1
200 GET /api/v1/candles/{base58.encode(GOLD)}/WAVES?interval=1h
403 GET /matcher/balance/reserved/{ALICE_KEY}
403 GET /matcher/orders/{text_address(ALICE)}
403 GET /matcher/debug/status
403 POST /matcher/debug/saveSnapshots
403 DELETE {BOOK}
403 GET /ws/v0/connections
405 GET {BOOK}/delete
404 HEAD /matcher
404 HEAD {BOOK}
200 OPTIONS {BOOK}
200 OPTIONS /nowhere
404 DELETE /matcher
404 PUT /matcher/orderbook
404 PATCH /matcher/orderbook
404 PROPFIND /matcher
404 GET /nowhere
404 GET //matcher
404 GET /matcher/{"a/" * 20}
404 GET /matcher/%FF%00
200 GET /
200 GET /pages/style.css
200 GET /api-docs/openapi.json
404 GET /api-docs/nothing.js
404 GET /ws/v0
400 CONNECT matcher:443
400 GET /matcher HTTP/1.1 and more
"""
KEYED = f"""
200 GET /matcher/orders/{text_address(ALICE)}
200 GET /matcher/balance/reserved/{ALICE_KEY}
200 GET /matcher/debug/status
200 GET /matcher/debug/config
200 GET /matcher/debug/allSnapshotOffsets
200 POST /matcher/debug/saveSnapshots
200 GET /ws/v0/connections
400 DELETE {BOOK}
404 DELETE {BOOK}/nothing
"""


def rows(table: str) -> list[tuple[int, str]]:
    """Status and line of each row."""
    split = (row.split(" ", 1) for row in table.strip().splitlines())
    return [(int(status), line) for status, line in split]


@pytest_asyncio.fixture
async def traded(both: Pair) -> Pair:
    """Both with orders, one of them executed in part."""
    for order in (sell(BOB, 10**8, 10**8), buy(ALICE, 3 * 10**8, 10**8)):
        assert (await both.same(place(order))).status == 200
    return both


async def test_the_same_answers(traded: Pair) -> None:
    for status, line in rows(ROUTES):
        for headers in (
            {},
            {"accept": "application/json;large-significand-format=string"},
            {"origin": "https://somebody.example", "access-control-request-method": "POST"},
            {"connection": "close", "te": "trailers", "keep-alive": "timeout=1", "date": "never"},
            {"x-soliton-client": SOMEBODY, "x-forwarded-for": SOMEBODY},
        ):
            assert (await traded.same(request(line, headers))).status == status, line


async def test_the_same_answers_to_the_operator(traded: Pair) -> None:
    for status, line in rows(KEYED):
        assert (await traded.same(request(line, {"x-api-key": "wrong"}))).status in (403, 404)
        assert (await traded.same(request(line, {"X-API-Key": KEY}))).status == status, line


async def test_accounts_show_who_they_are(traded: Pair) -> None:
    line = f"GET /matcher/orderbook/{ALICE_KEY}"
    (order,) = (await traded.same(request(line, signature_headers(ALICE)))).json()
    assert order["amount"] == 3 * 10**8
    assert (await traded.same(request(line, signature_headers(BOB)))).status == 400
    body = cancel_body(ALICE, base58.decode(order["id"]))
    reply = await traded.same(placing(body, line=f"POST {BOOK}/cancel"))
    assert reply.json()["status"] == "OrderCanceled"
    reply = await traded.same(placing(body, line=f"POST {BOOK}/cancel"))
    assert reply.json()["error"] == errors.ORDER_CANCELED.code


async def test_market_orders_go_to_the_matcher_as_they_are(traded: Pair) -> None:
    line = f"{PLACE}/market"
    order = sell(BOB, 10**8, 10**8, timestamp=core_of(traded).time - 1)
    assert (await traded.same(placing(orders.to_json(order), line=line))).status == 200
    info = core_of(traded).order_info(order.id)
    assert info is not None and info.is_market and info.filled == 10**8
    forged = {**orders.to_json(order), "proofs": [base58.encode(bytes(64))]}
    reply = await traded.same(placing(forged, line=line))
    assert reply.json()["error"] == errors.ORDER_INVALID_SIGNATURE.code
    for body, fields in MALFORMED[:8]:
        told = (await traded.same(placing(body, line=line))).json()
        assert told.get("params", {}).get("invalidFields", []) == fields


async def test_while_it_starts_and_stops(both: Pair) -> None:
    for status in (ServiceStatus.STARTING, ServiceStatus.STOPPING):
        both.direct.core.status = core_of(both).status = status  # type: ignore[misc]
        assert (await both.same(request(f"GET {BOOK}"))).status == 503
        keyed = request("GET /matcher/debug/status", {"x-api-key": KEY})
        assert (await both.same(keyed)).status == 200


@pytest.mark.parametrize("cors", [False, True])
async def test_headers_of_all_answers(tmp_path: Path, cors: bool) -> None:
    api = RestApi(cors=cors, api_key_different_host=True)
    first, second = (FakeCore(rest_api=api, id="ours, the best") for _ in range(2))
    async with pair(first, second, tmp_path) as both:
        asked = [request("GET /matcher"), request("OPTIONS /matcher"), placing(FORM), placing(b"")]
        replies = [await both.same(each) for each in asked]
    assert [reply.status for reply in replies] == [200, 200 if cors else 404, 200, 400]
    origins = {reply.header(b"access-control-allow-origin") for reply in replies}
    assert origins == {b"*" if cors else None}
    assert {reply.header(b"matcher-http-server") for reply in replies} == {b"ours, the best"}


@pytest.mark.parametrize("different_host", [False, True])
async def test_pages_of_other_origins(tmp_path: Path, different_host: bool) -> None:
    """Each header once, whichever way an answer came; kept answers, too, are for who asks now."""
    api = RestApi(api_key_different_host=different_host, max_body_bytes=1_000)
    async with pair(FakeCore(rest_api=api), FakeCore(rest_api=api), tmp_path) as both:
        await both.same(place(sell(BOB, 10**8, 10**8)))
        for origin in ("https://wallet.example", "http://localhost:3000"):
            page = {"origin": origin}
            asked = [
                *(request(f"GET {line}", page) for line in (BOOK, BOOK, "/matcher", "/nowhere")),
                request("OPTIONS /matcher", page),
                placing(b"x", page),
                placing(b"x" * 2_000, page),
            ]
            replies = [await both.same(each) for each in asked]
            assert [each.status for each in replies] == [200, 200, 200, 404, 200, 400, 413]
            for reply in replies:
                told = sorted(each for each in reply.headers if each[0].startswith(b"access-co"))
                assert told[0] == (b"access-control-allow-credentials", b"true")
                assert [value for name, value in told if name.endswith(b"-origin")] == [
                    origin.encode()
                ]
                assert len({name for name, _ in told}) == len(told)
                assert reply.header(b"vary") == b"Origin"
            names = replies[4].header(b"access-control-allow-headers")
            assert names is not None and (b"X-API-Key" in names) is different_host
        # Others are answered as by the reference.
        plain = await both.same(request(f"GET {BOOK}"))
        assert plain.header(b"access-control-allow-origin") == b"*"


async def test_answers_stay_in_the_order_of_requests(both: Pair) -> None:
    """One connection, nothing waited for: orders go one way and the rest another."""
    line = request("GET /matcher/orderbook", {"connection": "close"})
    sent = [place(buy(ALICE, 10**8, 10**8 + number)) for number in range(20)]
    sent[5] = sent[15] = request("GET /matcher")
    sent[10] = placing(b"{")
    told = []
    for port in (both.port, both.worker.port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"".join([*sent, line]))
        async with asyncio.timeout(20):
            text = await reader.read()
        writer.close()
        told.append([part for part in text.split(b"\r\n") if not part.startswith(b"date: ")])
    assert told[0] == told[1]
    assert len(core_of(both).placed) == 17


# --- signatures, with a real matcher --------------------------------------------------------------


class SlowNode(kit.FakeNode):
    """A node that says whether an account has a script when it is let to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()

    async def has_script(self, address: Address) -> bool:
        self.asked.set()
        await self.answers.wait()
        return await super().has_script(address)


@pytest_asyncio.fixture
async def node() -> SlowNode:
    made = SlowNode()
    for keys in (kit.ALICE, kit.BOB, kit.CAROL):
        made.fund(keys)
    made.scripted.add(kit.address_of(kit.BOB))
    return made


@pytest_asyncio.fixture
async def real(tmp_path: Path, node: SlowNode) -> AsyncIterator[Pair]:
    """One matcher that is asked directly and through a worker."""
    async with (
        kit.running(kit.settings_in(tmp_path / "data"), node) as matcher,
        pair(matcher, matcher, tmp_path) as served,
    ):
        yield served


def draft(keys: KeyPair, step: int = 0, version: int = 3) -> Order:
    """One that is right."""
    return kit.make_order(keys, Side.SELL, kit.COIN, 250 + step, version=version)


def with_proofs(order: Order, *proofs: bytes) -> Order:
    return msgspec.structs.replace(order, proofs=proofs)


def of_wallet(secret: bytes, version: int = 4) -> Order:
    """An order that an Ethereum wallet has signed."""
    unsigned = draft(kit.ALICE, version=version)
    r, s, recovery = secp256k1.sign(secret, typed_data.order_hash(unsigned))
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((27 + recovery,))
    return orders.build(msgspec.structs.replace(unsigned, eip712_signature=signature))


async def placed_by_worker(real: Pair, order: Order) -> None:
    reply = await ask(real.worker.port, place(order))
    assert reply.status == 200, reply.body
    info = real.behind.core.queries.order_info(order.id)
    assert info is not None


async def refused_by_both(real: Pair, order: Order, kind: errors.ErrorKind) -> None:
    reply = await real.same(place(order))
    assert reply.json()["error"] == kind.code
    assert real.behind.core.queries.order_info(order.id) is None


async def test_one_signature_of_an_account_without_script(real: Pair) -> None:
    for version in (1, 2, 3, 4):
        order = draft(kit.ALICE, version, version)
        other = draft(kit.CAROL, version, version)
        for proofs in ((bytes(64),), other.proofs, (order.proofs[0][:63],)):
            if version > 1 or len(proofs[0]) == 64:
                forged = with_proofs(order, *proofs)
                await refused_by_both(real, forged, errors.ORDER_INVALID_SIGNATURE)
        if version > 1:
            twice = with_proofs(order, *order.proofs, *order.proofs)
            await refused_by_both(real, twice, errors.ORDER_INVALID_SIGNATURE)
            await refused_by_both(real, with_proofs(order), errors.ORDER_INVALID_SIGNATURE)
        await placed_by_worker(real, order)


async def test_the_proofs_of_an_account_with_a_script(real: Pair, node: SlowNode) -> None:
    good = draft(kit.BOB)
    await refused_by_both(real, draft(kit.BOB, version=1), errors.ACCOUNT_NOT_SUPPORT_ORDER_VERSION)
    node.script_answer = ScriptAnswer(ScriptFault.DENIED)
    for order in (good, with_proofs(good, *good.proofs, b"\1")):
        await refused_by_both(real, order, errors.ACCOUNT_SCRIPT_DENIED_ORDER)
    node.script_answer = ScriptAnswer()
    for step, proofs in enumerate([(b"\1", b"\2"), (bytes(64),), ()]):
        await placed_by_worker(real, with_proofs(draft(kit.BOB, step), *proofs))


async def test_a_script_that_comes_while_the_order_is_under_way(real: Pair, node: SlowNode) -> None:
    """The worker has looked at a signature that does not matter any more."""
    node.answers.clear()
    node.asked.clear()
    node.script_answer = ScriptAnswer(ScriptFault.DENIED)
    good = draft(kit.ALICE)
    sent = [asyncio.create_task(ask(real.worker.port, place(good)))]
    await node.asked.wait()
    node.scripted.add(kit.address_of(kit.ALICE))
    node.answers.set()
    reply = await sent[0]
    assert reply.json()["error"] == errors.ACCOUNT_SCRIPT_DENIED_ORDER.code
    node.script_answer = ScriptAnswer()
    await placed_by_worker(real, with_proofs(good, b"not a signature"))


async def test_what_a_wallet_signed(real: Pair, node: SlowNode) -> None:
    order = of_wallet(bytes(31) + b"\7")
    owner = from_public_key(order.sender_public_key, kit.CHAIN_ID)
    node.balances[owner] = {None: 10**6 * kit.COIN, kit.USD: 10**12}
    await placed_by_worker(real, order)
    # Of other content it is somebody else's signature, if anybody's at all.
    for amount in range(kit.COIN + 1, kit.COIN + 5):
        changed_form = {**orders.to_json(of_wallet(bytes(31) + b"\7")), "amount": amount}
        reply = await real.same(placing(changed_form))
        assert reply.json()["error"] in (
            errors.BALANCE_NOT_ENOUGH.code,
            errors.ORDER_INVALID_SIGNATURE.code,
        )


async def test_prices_in_other_decimals_were_not_signed(real: Pair) -> None:
    right = draft(kit.ALICE, version=4)
    for mode in (PriceMode.DEFAULT, PriceMode.FIXED_DECIMALS):
        other = orders.build(msgspec.structs.replace(right, price_mode=mode, proofs=()))
        signed = orders.sign(other, kit.ALICE.private_key)
        await refused_by_both(real, signed, errors.ORDER_INVALID_SIGNATURE)
    await placed_by_worker(real, right)
