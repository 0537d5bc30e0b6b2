"""The balances of accounts.

What lives here: the routes. What does not: the balances (``Queries``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/routes/v0/BalancesRoute.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.matcher.node_client import Balances
from soliton.matcher.rest import auth, examples
from soliton.matcher.rest.answers import Answer, Rejected, bounded, encode_json, plain
from soliton.matcher.rest.requests import (
    Request,
    owner_of,
    pair_or_redirect,
    read_address,
    read_public_key,
)
from soliton.matcher.rest.routes import row, table
from soliton.matching.arithmetic import decimal_text, denormalize_amount
from soliton.matching.pairs import asset_text


def balances_json(balances: Balances) -> dict[str, int]:
    """Amounts by the text of the asset."""
    return {asset_text(asset): bounded(amount) for asset, amount in balances.items()}


async def tradable_balance(request: Request) -> Answer:
    """What new orders can offer in a pair; positive amounts only."""
    owner = read_address(request.core, request.segments[5])
    pair = await pair_or_redirect(request)
    return plain(balances_json(await request.core.queries.tradable(owner, pair)))


async def reserved_balance(request: Request) -> Answer:
    """The amounts reserved for orders."""
    public_key = read_public_key(request.segments[3])
    try:
        auth.check_signature(request, public_key)
    except Rejected:
        auth.check_key(request)
        named = auth.named_user(request)
        if named is not None and named != public_key:
            raise auth.not_that_user() from None
    return plain(balances_json(request.core.queries.reserved(owner_of(request.core, public_key))))


async def all_balances(request: Request) -> Answer:
    """The tradable and the reserved amount of every asset, as decimal text."""
    core, public_key = request.core, read_public_key(request.segments[3])
    try:
        auth.check_signature(request, public_key)
    except Rejected:
        auth.check_key(request)
    report = await core.queries.report(owner_of(core, public_key))
    out = {}
    for asset in {**report.regular, **report.reserved}:
        decimals = (await core.queries.asset(asset)).decimals
        tradable, reserved = report.tradable.get(asset, 0), report.reserved.get(asset, 0)
        out[asset_text(asset)] = {
            "tradable": decimal_text(denormalize_amount(tradable, decimals)),
            "reserved": decimal_text(denormalize_amount(reserved, decimals)),
        }
    return Answer(encode_json(out))


ROUTES: Final = table("balances", "",
    row("GET /api/v1/balances/{publicKey} auth=signature_or_key", all_balances,
        "The tradable and reserved amounts of every asset", examples.ALL_BALANCES, own=True),
    row("GET /matcher/orderbook/{amount}/{price}/tradableBalance/{address}", tradable_balance,
        "What an account can offer in a pair", examples.BALANCES, redirects=True),
    row("GET /matcher/balance/reserved/{publicKey} auth=signature_or_key when=always",
        reserved_balance, "What is reserved for an account's orders", examples.BALANCES),
)  # fmt: skip
