"""The streams over real connections: what is sent at first, what changes, limits, the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from soliton.chain.addresses import Address
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.records import AddressReport, ServiceStatus
from soliton.matcher.settings import WebSockets
from soliton.matcher.websocket import subscriptions
from soliton.matching.pairs import AssetPair
from soliton.matching.placement import Restrictions
from tests.matcher.fakes import (
    ALICE,
    BOB,
    DOLLAR,
    GOLD,
    GOLD_WAVES,
    KEY,
    NOW,
    PICTURE,
    address_of,
    buy,
    cancel_body,
    sell,
    signature_headers,
    text_address,
)
from tests.matcher.websocket.streams import Place, Stream, eventually, served
from tests.matcher.websocket.test_tokens import SIGNER, pem, token

GOLD_NAME = base58.encode(GOLD)
PAIR = f"{GOLD_NAME}-WAVES"
QUICK = WebSockets(messages_interval_ms=1, internal_messages_interval_ms=1)
WITH_TOKENS = WebSockets(messages_interval_ms=1, jwt_public_key=pem(SIGNER))


# --- order books ----------------------------------------------------------------------------------


async def test_a_book_begins_with_all_of_it_and_goes_on_with_changes() -> None:
    async with served() as place, place.stream() as stream:
        await place.api.place(sell(BOB, 2 * 10**8, 3 * 10**8))
        place.core.limits[GOLD_WAVES] = Restrictions()
        await stream.send(T="obs", S=PAIR, d=1)
        assert await stream.next("ob") == {
            "T": "ob",
            "_": NOW,
            "U": 0,
            "N": 0,
            "S": PAIR,
            "a": [["3.0", "2.0"]],
            "s": {
                "m": {"t": "1.0E-8"},
                "r": {"a": ["1.0E-8", "1.0E-8", "1.0E9"], "p": ["1.0E-8", "1.0E-8", "1000000.0"]},
            },
        }
        await place.api.place(buy(ALICE, 10**8, 2 * 10**8))
        update = {"T": "ob", "_": NOW, "U": 1, "N": 1, "S": PAIR, "b": [["2.0", "1.0"]]}
        assert await stream.next("ob") == update
        await place.api.place(buy(ALICE, 2 * 10**8, 3 * 10**8))
        traded = await stream.next("ob")
        assert (traded["U"], traded["a"], traded["t"]) == (
            2,
            [["3.0", "0.0"]],
            ["3.0", "2.0", "buy"],
        )
        await stream.send(T="u", S=PAIR)
        await stream.silent()
        await place.api.place(buy(ALICE, 10**8, 10**8))
        await asyncio.sleep(0.02)
        await stream.silent()


async def test_changes_of_one_interval_come_together() -> None:
    slow = WebSockets(messages_interval_ms=50)
    async with served(web_sockets=slow) as place, place.stream() as stream:
        await place.api.place(buy(ALICE, 10**8, 10**8))
        await stream.send(T="obs", S=PAIR, d=1)
        await stream.next("ob")
        for price in (1, 2, 3):
            await place.api.place(buy(BOB, 10**8, price * 10**8))
        told = await stream.next("ob")
        assert told["b"] == [["3.0", "1.0"], ["2.0", "1.0"], ["1.0", "2.0"]]


async def test_a_book_that_is_opened_or_deleted_goes_on_with_changes() -> None:
    """One snapshot, whose number is 0, for each subscription; clients count from there."""
    async with served() as place, place.stream() as stream:
        await stream.send(T="obs", S=PAIR, d=1)
        assert "b" not in await stream.next("ob")
        await place.api.place(buy(ALICE, 10**8, 10**8))
        told = await stream.next("ob")
        assert (told["U"], told["b"]) == (1, [["1.0", "1.0"]])
        await place.core.canceling.delete_book(GOLD_WAVES)
        told = await stream.next("ob")
        assert (told["U"], told["b"], "s" in told) == (2, [["1.0", "0.0"]], False)
        await place.api.place(sell(ALICE, 10**8, 3 * 10**8))
        told = await stream.next("ob")
        assert (told["U"], told["a"], "b" in told) == (3, [["3.0", "1.0"]], False)


async def test_a_book_that_is_asked_for_twice_at_once_is_told_once() -> None:
    async with served() as place, place.stream() as stream:
        await asyncio.gather(*(stream.send(T="obs", S=PAIR, d=1) for _ in range(5)))
        assert (await stream.next("ob"))["U"] == 0
        await place.api.place(buy(ALICE, 10**8, 10**8))
        assert (await stream.next("ob"))["U"] == 1


async def test_who_comes_back_gets_what_was_missed() -> None:
    async with served() as place:
        await place.api.place(buy(ALICE, 10**8, 10**8))
        async with place.stream() as watcher, place.stream() as first:
            await watcher.send(T="obs", S=PAIR, d=1)
            await watcher.next("ob")
            await first.send(T="obs", S=PAIR, d=1)
            seen = (await first.next("ob"))["N"]
            await first.connection.close()
            missed = []
            for price in (2, 3):
                await place.api.place(buy(ALICE, 10**8, price * 10**8))
                missed.append((await watcher.next("ob"))["b"])
            async with place.stream() as again:
                await again.send(T="obs", S=PAIR, d=1, N=seen)
                told = [await again.next("ob") for _ in missed]
                assert [(m["U"], m["b"]) for m in told] == [(1, missed[0]), (2, missed[1])]
                await place.api.place(buy(ALICE, 10**8, 4 * 10**8))
                assert (await again.next("ob"))["U"] == 3
            for unknown in (0, 10**9):
                async with place.stream() as late:
                    await late.send(T="obs", S=PAIR, d=1, N=unknown - 1)
                    assert (await late.next("ob"))["U"] == 0


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"T": "obs", "S": f"WAVES-{GOLD_NAME}", "d": 1}, 9440771),
        ({"T": "obs", "S": "0-WAVES", "d": 1}, 11534337),
        ({"T": "obs", "S": f"{base58.encode(bytes(32))}-WAVES", "d": 1}, 11534345),
        ({"T": "obs", "S": PAIR, "d": 0}, 1048576),
        ({"T": "obs", "d": 1}, 1048577),
        ({"T": "rus", "S": "else"}, 1048577),
        ({"T": "aus", "S": "3M", "t": "jwt", "j": "a.b.c"}, 4194304),
        ({"T": "aus", "S": text_address(ALICE), "t": "jwt", "j": "a"}, 110100481),
        ({"T": "?"}, 1048577),
        ({}, 1048577),
    ],
)
async def test_wrong_messages_are_answered_and_the_connection_lives(
    message: dict[str, Any], code: int
) -> None:
    async with served() as place, place.stream() as stream:
        await stream.send(**message)
        error = await stream.next("e")
        assert error["c"] == code and error["m"] and error["_"] == NOW
        await stream.silent()


async def test_the_oldest_subscription_gives_way() -> None:
    limits = WebSockets(messages_interval_ms=1, max_order_books=1)
    async with served(web_sockets=limits) as place, place.stream() as stream:
        other = f"{base58.encode(DOLLAR)}-WAVES"
        await place.api.place(buy(ALICE, 10**8, 10**8))
        await stream.send(T="obs", S=PAIR, d=1)
        await stream.next("ob")
        await stream.send(T="obs", S=PAIR, d=1)  # Twice is once.
        await stream.send(T="obs", S=other, d=1)
        assert (await stream.next("ob"))["S"] == other
        error = await stream.next("e")
        assert (error["c"], PAIR in error["m"]) == (109079303, True)
        await place.api.place(buy(ALICE, 10**8, 2 * 10**8))
        await asyncio.sleep(0.02)
        await stream.silent()
        await place.api.place(buy(ALICE, 10**8, 1, pair=AssetPair(DOLLAR, None)))
        assert (await stream.next("ob"))["S"] == other


# --- accounts -------------------------------------------------------------------------------------


async def watch(stream: Stream, **more: Any) -> dict[str, Any]:
    await stream.send(T="aus", S=text_address(ALICE), t="jwt", j=token(**more))
    return await stream.next("au")


async def test_an_account_sees_its_balances_and_orders() -> None:
    async with served(web_sockets=WITH_TOKENS) as place, place.stream() as stream:
        resting = buy(ALICE, 10**8, 2 * 10**8)
        await place.api.place(resting)
        told = await watch(stream)
        assert (told["U"], told["S"]) == (0, text_address(ALICE))
        assert told["b"] == {"WAVES": ["9997.997", "2.003"], GOLD_NAME: ["100.0", "0.0"]}
        order = {
            "i": base58.encode(resting.id),
            "A": GOLD_NAME,
            "P": "WAVES",
            "S": "buy",
            "F": "WAVES",
        }
        full = {"t": NOW, "T": "limit", "p": "2.0", "a": "1.0", "f": "0.003", "s": "Accepted"}
        nothing = {"q": "0.0", "Q": "0.0", "r": "0.0", "E": "0.0"}
        assert told["o"] == [{**order, **full, **nothing}]
        await place.api.place(sell(BOB, 25 * 10**6, 10**8))
        told = await stream.next("au")
        assert told["U"] == 1
        (changed,) = told["o"]
        (match,) = changed.pop("m")
        assert changed == {
            **order,
            "s": "PartiallyFilled",
            "q": "0.25",
            "Q": "7.5E-4",
            "r": "2.0",
            "E": "0.5",
        }
        assert match == {"t": NOW, "p": "2.0", "A": "0.25", "P": "0.5", "mt": "m"}
        await place.api("POST /matcher/orderbook/cancel", cancel_body(ALICE, resting.id))
        told = await stream.next("au")
        assert told["o"] == [{**order, "s": "Cancelled"}]
        assert told["b"] == {"WAVES": ["10000.0", "0.0"]}
        new = buy(ALICE, 10**8, 10**8)
        await place.api.place(new)
        told = await stream.next("au")
        assert told["o"][0]["i"] == base58.encode(new.id) and told["o"][0]["a"] == "1.0"


def signed(keys: KeyPair, timestamp: int = NOW) -> dict[str, Any]:
    """What an account says to be let in by its own signature."""
    headers = signature_headers(keys, timestamp)
    key = base58.encode(keys.public_key)
    return {"t": "sig", "j": headers["Signature"], "k": key, "_": timestamp}


async def test_an_account_is_let_in_by_its_own_signature() -> None:
    async with served() as place, place.stream() as stream:
        await stream.send(T="aus", S=text_address(ALICE), **signed(ALICE))
        assert (await stream.next("au"))["S"] == text_address(ALICE)
        for wrong, code in (
            (signed(BOB), 3148801),
            (signed(BOB) | {"k": base58.encode(ALICE.public_key)}, 1051904),
            (signed(ALICE, NOW - 3_600_001), 1051904),
            (signed(ALICE) | {"_": NOW - 1}, 1051904),
            (signed(ALICE) | {"_": -1}, 1051904),
            (signed(ALICE) | {"k": "0"}, 3148801),
        ):
            await stream.send(T="aus", S=text_address(ALICE), **wrong)
            assert (await stream.next("e"))["c"] == code


async def test_who_wants_no_pictures_gets_none() -> None:
    async with (
        served() as place,
        place.stream() as stream,
        place.stream() as without,
    ):
        place.core.owned[PICTURE] = 1
        await stream.send(T="aus", S=text_address(ALICE), **signed(ALICE))
        flags = {"f": ["-nft"]}
        await without.send(T="aus", S=text_address(ALICE), b=flags, **signed(ALICE))
        picture = base58.encode(PICTURE)
        assert (await stream.next("au"))["b"][picture] == ["1.0", "0.0"]
        assert set((await without.next("au"))["b"]) == {"WAVES", GOLD_NAME}
        place.core.owned[PICTURE] = 0
        place.hub.subscriptions.on_balances(address_of(ALICE), frozenset([PICTURE]))
        assert (await stream.next("au"))["b"] == {picture: ["0.0", "0.0"]}
        await place.api.place(buy(ALICE, 10**8, 10**8))
        for each, number in ((stream, 2), (without, 1)):
            assert (await each.next("au"))["U"] == number


async def test_others_see_nothing_of_it() -> None:
    async with served(web_sockets=WITH_TOKENS) as place, place.stream() as stream:
        await watch(stream)
        await place.api.place(sell(BOB, 10**8, 2 * 10**8))
        await asyncio.sleep(0.02)
        await stream.silent()
        await stream.send(T="u", S=text_address(ALICE))
        await place.api.place(buy(ALICE, 10**8, 10**8))
        await asyncio.sleep(0.02)
        await stream.silent()


async def test_a_subscription_ends_with_its_token() -> None:
    async with served(web_sockets=WITH_TOKENS) as place, place.stream() as stream:
        place.core.time = int(time.time() * 1_000)
        await watch(stream, exp=int(time.time()) + 1)
        error = await stream.next("e")
        assert error["c"] == 110105088
        await place.api.place(buy(ALICE, 10**8, 10**8, timestamp=place.core.time))
        await asyncio.sleep(0.02)
        await stream.silent()


# --- rates and the operator -----------------------------------------------------------------------


async def test_rates() -> None:
    async with served() as place, place.stream() as stream:
        await stream.send(T="rus", S="ru")
        assert await stream.next("ru") == {"T": "ru", "_": NOW, "U": 0, "R": {"WAVES": "1"}}
        await place.api.keyed(f"PUT /matcher/settings/rates/{GOLD_NAME}", 0.5)
        assert (await stream.next("ru"))["R"] == {GOLD_NAME: "0.5"}
        await place.api.keyed(f"DELETE /matcher/settings/rates/{GOLD_NAME}")
        told = await stream.next("ru")
        assert (told["U"], told["R"]) == (2, {GOLD_NAME: "-1"})
        await stream.send(T="u", S="ru")
        await stream.silent()
        await place.api.keyed(f"PUT /matcher/settings/rates/{GOLD_NAME}", 0.5)
        await stream.silent()


async def test_a_rate_of_hundreds_of_digits_is_one_like_any_other() -> None:
    async with served() as place, place.stream() as stream:
        await stream.send(T="rus", S="ru")
        await stream.next("ru")
        for rate in (1.7976931348623157e308, 5e-324):
            reply = await place.api.keyed(f"PUT /matcher/settings/rates/{GOLD_NAME}", rate)
            assert reply.status in (200, 201)
            told = (await stream.next("ru"))["R"][GOLD_NAME]
            # At most 16 digits are shown behind the point, so the least one is none.
            assert float(told) == (rate if rate > 1 else 0)
        await place.api.keyed(f"PUT /matcher/settings/rates/{GOLD_NAME}", 1e308)
        async with place.stream() as other:
            await other.send(T="rus", S="ru")
            assert float((await other.next("ru"))["R"][GOLD_NAME]) == 1e308


async def refused_upgrade(place: Place, path: str, headers: dict[str, str] | None = None) -> Any:
    with pytest.raises(InvalidStatus) as caught:
        async with place.stream(path, headers):
            pass
    return caught.value.response


async def test_the_stream_of_everything_needs_the_key() -> None:
    async with served() as place:
        response = await refused_upgrade(place, "/ws/v0/internal")
        assert response.status_code == 403 and response.body == b""
        assert response.headers["X-Error-Code"] == "106954752"
        assert response.headers["X-Error-Message"] == "Provided API key is not correct"
        wrong = {"X-API-Key": "wrong"}
        assert (await refused_upgrade(place, "/ws/v0/internal", wrong)).status_code == 403
        async with place.stream("/ws/v0/internal", {"X-API-Key": KEY}) as stream:
            maker = sell(BOB, 10**8, 2 * 10**8)
            await place.api.place(maker)
            await place.api.place(buy(ALICE, 5 * 10**7, 2 * 10**8))
            told = await stream.next("osu")
            assert [(o["s"], o["o"], o["c"]) for o in told["o"]] == [
                ("PartiallyFilled", text_address(BOB), "0.5"),
                ("Filled", text_address(ALICE), "0.5"),
            ]
            await place.api("POST /matcher/orderbook/cancel", cancel_body(BOB, maker.id))
            cancelled = await stream.next("osu")
            assert cancelled["o"][0]["s"] == "Cancelled" and "c" not in cancelled["o"][0]
        path = f"/ws/v0/internal?N={told['N']}"
        async with place.stream(path, {"X-API-Key": KEY}) as stream:
            assert (await stream.next("osu"))["o"] == cancelled["o"]


async def test_connections_are_counted_and_closed() -> None:
    async with served() as place:
        path = "/ws/v0?a_os=Linux&a_client=test"
        async with place.stream(path) as first, place.stream(path) as second:
            told = (await place.api.keyed("GET /ws/v0/connections")).json()
            assert told == {"connections": 2, "clientAndOs": {"test, Linux": 2}}
            assert (await place.api("GET /ws/v0/connections")).status == 403
            reply = await place.api.keyed("DELETE /ws/v0/connections", {"oldest": 1})
            assert reply.json() == {"message": "In progress"}
            assert (await first.next("e"))["c"] == 109051922
            with pytest.raises(ConnectionClosed):
                await first.receive()
            await second.silent()
        await eventually(lambda: len(place.hub) == 0)


# --- the life of a connection ---------------------------------------------------------------------


async def test_pings_have_to_be_answered() -> None:
    settings = WebSockets(ping_interval_ms=50, pong_timeout_ms=500)
    async with served(web_sockets=settings) as place, place.stream() as stream:
        for number in range(8):
            ping = await stream.next("pp")
            await stream.send(**ping)
            place.core.time += number
        message = await stream.receive()
        while message["T"] == "pp":
            message = await stream.receive()
        assert (message["T"], message["c"]) == ("e", 109077772)
        with pytest.raises(ConnectionClosed):
            await stream.receive()


async def test_a_connection_has_a_longest_life() -> None:
    settings = WebSockets(max_connection_lifetime_ms=20)
    async with served(web_sockets=settings) as place, place.stream() as stream:
        assert (await stream.next("e"))["c"] == 109077767
        with pytest.raises(ConnectionClosed):
            await stream.receive()


async def test_binary_messages_end_the_connection() -> None:
    async with served() as place, place.stream() as stream:
        await stream.connection.send(b"{}")
        with pytest.raises(ConnectionClosed) as closed:
            await stream.receive()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1003


async def test_who_is_not_let_in() -> None:
    async with served(web_sockets=WebSockets(max_connections=1)) as place:
        async with place.stream():
            response = await refused_upgrade(place, "/ws/v0")
            assert (response.status_code, response.headers["X-Error-Code"]) == (503, "109051922")
        for status, code in ((ServiceStatus.STARTING, "13"), (ServiceStatus.STOPPING, "14")):
            place.core.status = status
            response = await refused_upgrade(place, "/ws/v0")
            assert (response.status_code, response.headers["X-Error-Code"]) == (503, code)
        place.core.status = ServiceStatus.WORKING
        assert (await refused_upgrade(place, "/ws/nowhere")).status_code == 404


async def test_all_connections_end_with_the_matcher() -> None:
    async with served() as place, place.stream() as stream:
        place.api.app.close()
        assert (await stream.next("e"))["c"] == 14
        with pytest.raises(ConnectionClosed):
            await stream.receive()


async def test_a_client_that_reads_nothing_is_let_go() -> None:
    async with served(web_sockets=QUICK) as place, place.stream() as stream:
        await stream.send(T="rus", S="ru")
        await stream.next("ru")
        stream.connection.transport.pause_reading()
        for number in range(200_000):
            place.core.rates.put(GOLD, 1 + number / 10**6)
            if number % 50 == 0:
                await asyncio.sleep(0)
            if not len(place.hub):
                break
        assert not len(place.hub)
        stream.connection.transport.abort()


async def test_strange_queries_are_left_aside() -> None:
    async with served() as place:
        many = "&".join(f"f{number}=1" for number in range(1_000))
        async with place.stream(f"/ws/v0?{many}&a_os=x") as stream:
            await stream.silent()


async def test_who_could_not_subscribe_may_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served() as place, place.stream() as stream:

        async def down(_owner: object) -> None:
            raise NodeUnavailable("the node of the test is down")

        with monkeypatch.context() as patch:
            patch.setattr(place.core, "report", down)
            await stream.send(T="aus", S=text_address(ALICE), **signed(ALICE))
            assert (await stream.next("e"))["c"] == 105906177
        await stream.send(T="aus", S=text_address(ALICE), **signed(ALICE))
        assert (await stream.next("au"))["S"] == text_address(ALICE)


@asynccontextmanager
async def held_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The balances of accounts are asked for when this begins, and told when it ends."""
    asked, told, report = asyncio.Event(), asyncio.Event(), place.core.report

    async def later(owner: Address) -> AddressReport:
        asked.set()
        await told.wait()
        return await report(owner)

    monkeypatch.setattr(place.core, "report", later)
    yield
    await asyncio.wait_for(asked.wait(), 60)
    monkeypatch.setattr(place.core, "report", report)
    told.set()


async def test_who_comes_takes_no_news_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served() as place, place.stream() as stream, place.stream() as newcomer:
        await stream.send(T="aus", S=text_address(ALICE), **signed(ALICE))
        await stream.next("au")
        async with held_back(place, monkeypatch):
            await newcomer.send(T="aus", S=text_address(ALICE), **signed(ALICE))
            await asyncio.sleep(0.02)
            place.core.owned[GOLD] = 7 * 10**8
            place.hub.subscriptions.on_balances(address_of(ALICE), frozenset([GOLD]))
        assert (await newcomer.next("au"))["b"][GOLD_NAME] == ["7.0", "0.0"]
        assert (await stream.next("au"))["b"] == {GOLD_NAME: ["7.0", "0.0"]}


async def test_who_comes_when_the_last_one_leaves_hears_what_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with served() as place, place.stream() as stream, place.stream() as newcomer:
        await stream.send(T="aus", S=text_address(ALICE), **signed(ALICE))
        await stream.next("au")
        async with held_back(place, monkeypatch):
            await newcomer.send(T="aus", S=text_address(ALICE), **signed(ALICE))
            await asyncio.sleep(0.02)
            await stream.send(T="u", S=text_address(ALICE))
            await asyncio.sleep(0.02)
        await newcomer.next("au")
        await place.api.place(buy(ALICE, 10**8, 10**8))
        assert len((await newcomer.next("au"))["o"]) == 1


async def test_what_could_not_be_told_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node was away for a moment: nothing of what happened then is missing."""
    monkeypatch.setattr(subscriptions, "_RETRY_MS", 10)
    async with served() as place, place.stream() as stream:
        await stream.send(T="aus", S=text_address(ALICE), **signed(ALICE))
        await stream.next("au")
        resting = buy(ALICE, 10**8, 10**8)

        async def down(_owner: object) -> None:
            raise NodeUnavailable("the node of the test is down")

        with monkeypatch.context() as patch:
            patch.setattr(place.core, "report", down)
            await place.api.place(resting)
            await asyncio.sleep(0.05)
            await place.api("POST /matcher/orderbook/cancel", cancel_body(ALICE, resting.id))
            await asyncio.sleep(0.05)
        (order,) = (await stream.next("au"))["o"]
        assert (order["i"], order["s"], order["a"]) == (
            *(base58.encode(resting.id), "Cancelled", "1.0"),
        )


async def test_who_was_away_for_long_gets_the_whole_book() -> None:
    """Not so many changes at once that the connection is taken for one that does not read."""
    async with served() as place:
        await place.api.place(sell(BOB, 10**8, 3 * 10**8))
        async with place.stream() as watcher:
            await watcher.send(T="obs", S=PAIR, d=1)
            seen = (await watcher.next("ob"))["N"]
            feed = place.hub.subscriptions._books[GOLD_WAVES]
            for step in range(1, 151):
                await place.api.place(sell(BOB, 10**8, 3 * 10**8 + 10 * step))
                feed.flush()
                assert (await watcher.next("ob"))["U"] == step
            async with place.stream() as again:
                await again.send(T="obs", S=PAIR, d=1, N=seen)
                whole = await again.next("ob")
                assert whole["U"] == 0 and len(whole["a"]) > 100
                await again.silent()
