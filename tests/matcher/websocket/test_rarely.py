"""The streams in rarer cases: what the reference sends, from its sources."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.crypto import base58
from soliton.matcher.settings import WebSockets
from soliton.matcher.trading_settings import TradingSettings
from tests.matcher.fakes import ALICE, BOB, DOLLAR, GOLD, PICTURE, address_of, buy, text_address
from tests.matcher.websocket.streams import Stream, served
from tests.matcher.websocket.test_tokens import SIGNER, pem, token

GOLD_NAME = base58.encode(GOLD)
WITH_TOKENS = WebSockets(messages_interval_ms=1, jwt_public_key=pem(SIGNER))


async def watch(stream: Stream, **more: Any) -> dict[str, Any]:
    await stream.send(T="aus", S=text_address(ALICE), t="jwt", j=token(**more))
    return await stream.next("au")


async def test_the_tick_size_of_a_price_with_many_decimals() -> None:
    async with served() as place, place.stream() as stream:
        await stream.send(T="obs", S=f"{base58.encode(PICTURE)}-WAVES", d=1)
        assert (await stream.next("ob"))["s"] == {"m": {"t": "1.0E-8"}}


async def test_an_account_is_told_of_what_it_has() -> None:
    """``AddressActor``: ``mkWsBalances(balances.allAssets, includeEmpty = false)``."""
    async with served(web_sockets=WITH_TOKENS) as place, place.stream() as stream:
        place.core.owned |= {DOLLAR: 0, GOLD: 5}
        assert set((await watch(stream))["b"]) == {"WAVES", GOLD_NAME}
        place.core.owned |= {GOLD: 0}
        place.hub.subscriptions.on_balances(address_of(ALICE), frozenset((GOLD, DOLLAR)))
        assert (await stream.next("au"))["b"] == {GOLD_NAME: ["0.0", "0.0"]}


@pytest.mark.parametrize("provides", [False, True])
async def test_an_account_whose_stream_is_not_throttled(provides: bool) -> None:
    """``AddressActor.enableRealtimeWs``: listed by its public key, or a liquidity provider."""
    keys = frozenset((ALICE.public_key,))
    slow = WebSockets(
        messages_interval_ms=3_600_000,
        jwt_public_key=pem(SIGNER),
        realtime_accounts=frozenset() if provides else keys,
    )
    trading = TradingSettings(lp_accounts=keys if provides else frozenset())
    async with served(web_sockets=slow, trading=trading) as place, place.stream() as stream:
        await watch(stream)
        await stream.send(T="aus", S=text_address(BOB), t="jwt", j=token(a=text_address(BOB)))
        await stream.next("au")
        # What waits for its interval does not hold up the other.
        await place.api.place(buy(BOB, 10**8, 10**8))
        await place.api.place(buy(ALICE, 10**8, 10**8))
        told = await stream.next("au")
        assert (told["S"], told["U"], len(told["o"])) == (text_address(ALICE), 1, 1)
        await stream.silent()


@pytest.mark.parametrize("options", [None, {}, {"f": None}, {"f": []}])
async def test_options_that_are_none(options: Any) -> None:
    """``formatNullable`` of play-json reads null as nothing."""
    async with served(web_sockets=WITH_TOKENS) as place, place.stream() as stream:
        await stream.send(T="aus", S=text_address(ALICE), t="jwt", j=token(), b=options)
        assert (await stream.next("au"))["U"] == 0
