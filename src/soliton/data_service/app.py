"""The data service: routing, and error responses.

What lives here: routes, envelopes of errors. What does not: the content of responses (the other
modules), sockets (``soliton.web``).

Source: wavesplatform/data-service ``src/http``.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import unquote

from soliton import __version__
from soliton.data_service.assets import Aliases, Assets
from soliton.data_service.candles import Candles, Market
from soliton.data_service.errors import BadRequest, DatabaseAway, NotFound, QueryTimeout
from soliton.data_service.formats import Format, encode_json, read_format
from soliton.data_service.kinds import BY_PATH, Kind
from soliton.data_service.metrics import METRICS, Monitored
from soliton.data_service.openapi import document
from soliton.data_service.pairs import Pairs
from soliton.data_service.parameters import MAX_TEXT, Query, read_values
from soliton.data_service.pool import Pool
from soliton.data_service.rates import Rates, RateSettings
from soliton.data_service.transactions import Transactions
from soliton.web.answers import Answer, Awaited, BodyLimits, Unread, Whole
from soliton.web.cors import Cors, with_cors
from soliton.web.monitoring import ROUTES, Monitor, figures
from soliton.web.request import RejectionError, Request
from soliton.web.routing import Router
from soliton.web.traffic import RouteName, Traffic

MAX_BODY_BYTES: Final = 1024 * 1024
_PREFIX: Final = "/v0"
_ALL: Final = "all"
_ALIASES: Final = "/aliases"
_JSON: Final = b"application/json; charset=utf-8"
_REQUEST_ID: Final = b"x-request-id"
_MAX_REQUEST_ID: Final = 128
_METHODS: Final = ("GET", "HEAD", "POST", "OPTIONS")
_MISSING: Final = "required"
_UNDEFINED: Final = "undefined"

_log = logging.getLogger(__name__)

Handler = Callable[[Query, Format, tuple[str, ...]], Awaitable[object]]


class DataServiceSettings(NamedTuple):
    """``matcher`` is the default matcher of pairs and candles; the service is not ready when the
    database's newest block is older than ``max_block_age`` seconds (0: however old it is).
    """

    matcher: str = ""
    rates: RateSettings = RateSettings()
    max_block_age: float = 0.0


class _Route(NamedTuple):
    handler: Handler
    posts: bool
    number: int


class DataService:
    """The service."""

    request_class = Request

    def __init__(self, pool: Pool, settings: DataServiceSettings) -> None:
        self.cors = Cors(
            methods=_METHODS, request_headers=("Content-Type", "Accept", "X-Request-Id")
        )
        self.body_limits = BodyLimits(MAX_BODY_BYTES)
        self._matcher = settings.matcher
        self._assets = Assets(pool)
        self._aliases = Aliases(pool)
        self._pairs = Pairs(pool, self._assets)
        self._candles = Candles(pool, self._assets)
        self._rates = Rates(pool, self._assets, settings.rates)
        self._transactions = Transactions(pool, self._assets, self._aliases)
        routes = self._routes()
        self._router = Router(routes)
        names = [RouteName("GET,POST" if it.posts else "GET", path) for path, it in routes]
        self.traffic = Traffic(routes=[*names, *ROUTES])
        monitored = Monitored(pool, settings.max_block_age)
        self._monitor = Monitor(
            "data-service",
            self.traffic,
            monitored.check,
            partial(figures, METRICS, monitored),
            first_route=len(names) + 1,
        )

    def _routes(self) -> list[tuple[str, _Route]]:
        found: list[tuple[str, Handler, bool]] = [
            ("/", self._version, False),
            ("/version", self._version, False),
            ("/openapi.json", self._document, False),
            ("/assets", lambda query, shape, _: self._assets.many(query, shape), True),
            ("/assets/{id}", lambda _, shape, path: self._assets.one(path[0], shape), False),
            ("/aliases", lambda query, shape, _: self._aliases.many(query, shape), True),
            ("/aliases/{alias}", lambda _, shape, path: self._aliases.one(path[0], shape), False),
            ("/pairs", self._list_pairs, True),
            ("/pairs/{amount}/{price}", self._pair, False),
            ("/candles/{amount}/{price}", self._list_candles, False),
            ("/last_candle/{amount}/{price}", self._last_candle, False),
            ("/matchers/{matcher}/pairs", self._matchers_pairs, True),
            ("/matchers/{matcher}/pairs/{amount}/{price}", self._matchers_pair, False),
            ("/matchers/{matcher}/candles/{amount}/{price}", self._matchers_candles, False),
            ("/matchers/{matcher}/last_candle/{amount}/{price}", self._matchers_last, False),
            (
                "/matchers/{matcher}/rates",
                lambda query, shape, path: self._rates.many(path[0], query, shape),
                True,
            ),
            ("/transactions/{kind}", self._list_transactions, True),
            ("/transactions/{kind}/{id}", self._transaction, False),
        ]
        return [
            (path, _Route(handler, posts, number))
            for number, (path, handler, posts) in enumerate(found, 1)
        ]

    # --- requests ---------------------------------------------------------------------------------

    def respond(self, request: Request) -> Answer:
        """Return the response to a request."""
        found = self._monitor.respond(request)
        if found is not None:
            return found
        if request.method == "OPTIONS":
            return self._finished(request, Whole(b"", b"text/plain", 204))
        try:
            route, path = self._find(request)
            query, shape = Query(read_values(request)), read_format(request.header("accept") or "")
        except BadRequest as error:
            return self._finished(request, _bad(error))
        except NotFound:
            return self._finished(request, _NOT_FOUND)
        request.route = route.number
        self.traffic.begin(route.number)
        return Awaited(self._answer(request, route.handler(query, shape, path), shape))

    def refuse(self, request: Request, reason: Unread) -> Whole:
        """Return the response to a request whose body was not read."""
        text = "Body is too long" if reason is Unread.TOO_LONG else "Body is too slow"
        return self._finished(request, _bad(BadRequest(text)))

    def _find(self, request: Request) -> tuple[_Route, tuple[str, ...]]:
        path = request.path
        if path == _PREFIX or path.startswith(f"{_PREFIX}/"):
            path = path.removeprefix(_PREFIX)
        path = path.rstrip("/") or "/"
        try:
            found = self._router.find(path)
        except RejectionError as error:
            raise NotFound(path) from error
        for route, values in found:
            if request.method in ("GET", "HEAD") or (request.method == "POST" and route.posts):
                texts = tuple(map(unquote, values))
                if any(len(each) > MAX_TEXT or "\0" in each for each in texts):
                    raise NotFound(path)
                return route, texts
        raise NotFound(path)

    async def _answer(self, request: Request, work: Awaitable[object], shape: Format) -> Whole:
        try:
            body = encode_json(await work)
            # The reference declares this format for aliases, whatever was requested.
            declared = shape._replace(strings=True) if _ALIASES in request.path else shape
            return self._finished(request, Whole(body, declared.content_type))
        except BadRequest as error:
            return self._finished(request, _bad(error))
        except NotFound:
            return self._finished(request, _NOT_FOUND)
        except QueryTimeout:
            return self._finished(request, _plain(504, "A Timeout Occurred"))
        except DatabaseAway:
            return self._finished(request, _plain(500, "Internal Server Error"))
        except Exception:  # noqa: BLE001 - the last resort; the error is logged
            _log.exception("%s %s", request.method, request.path)
            return self._finished(request, _plain(500, "Internal Server Error"))

    def _finished(self, request: Request, answer: Whole) -> Whole:
        given = request.headers.get(_REQUEST_ID, b"")
        is_usable = 0 < len(given) <= _MAX_REQUEST_ID and given.isascii() and b"\r" not in given
        name = given if is_usable else secrets.token_hex(8).encode()
        headers = with_cors(
            ((_REQUEST_ID, name),), self.cors, request.method, request.headers.get(b"origin")
        )
        return Whole(answer.body, answer.content_type, answer.status, headers)

    # --- routes -----------------------------------------------------------------------------------

    async def _version(self, _query: Query, _shape: Format, _path: tuple[str, ...]) -> object:
        return {"version": __version__}

    async def _document(self, _query: Query, _shape: Format, _path: tuple[str, ...]) -> object:
        return document()

    async def _list_transactions(
        self, query: Query, shape: Format, path: tuple[str, ...]
    ) -> object:
        kind = _kind(path[0])
        return await self._transactions.many(kind, query, shape)

    async def _transaction(self, _query: Query, shape: Format, path: tuple[str, ...]) -> object:
        return await self._transactions.one(_kind(path[0]), path[1], shape)

    def _matcher_of(self, query: Query) -> str:
        return query.text("matcher") or self._matcher

    async def _list_pairs(self, query: Query, shape: Format, _path: tuple[str, ...]) -> object:
        matcher = self._matcher_of(query)
        return await self._pairs.many(matcher, query, shape, by_names="matcher" in query)

    async def _pair(self, query: Query, shape: Format, path: tuple[str, ...]) -> object:
        return await self._pairs.one(Market(path[0], path[1], self._matcher_of(query)), shape)

    async def _list_candles(self, query: Query, shape: Format, path: tuple[str, ...]) -> object:
        market = Market(path[0], path[1], self._matcher_of(query))
        return await self._candles.many(market, query, shape, missing=_MISSING)

    async def _last_candle(self, query: Query, shape: Format, path: tuple[str, ...]) -> object:
        market = Market(path[0], path[1], self._matcher_of(query))
        return await self._candles.last(market, query, shape, missing=_MISSING)

    async def _matchers_pairs(self, query: Query, shape: Format, path: tuple[str, ...]) -> object:
        return await self._pairs.many(path[0], query, shape, by_names=True)

    async def _market(self, path: tuple[str, ...]) -> Market:
        """Return a pair at a matcher; raises ``BadRequest`` if its assets do not exist."""
        matcher, amount, price = path
        known = await self._assets.find([amount, price])
        missing = [each for each in (amount, price) if each not in known]
        if missing:
            raise BadRequest("Assets do not exist in the blockchain", assets=missing)
        return Market(amount, price, matcher)

    async def _matchers_pair(self, _query: Query, shape: Format, path: tuple[str, ...]) -> object:
        return await self._pairs.one(await self._market(path), shape)

    async def _matchers_candles(self, query: Query, shape: Format, path: tuple[str, ...]) -> object:
        market = await self._market(path)
        return await self._candles.many(market, query, shape, missing=_UNDEFINED)

    async def _matchers_last(self, query: Query, shape: Format, path: tuple[str, ...]) -> object:
        market = await self._market(path)
        return await self._candles.last(market, query, shape, missing=_UNDEFINED)


def _kind(name: str) -> Kind | None:
    """Return the kind of a path, ``None`` for all kinds."""
    if name == _ALL:
        return None
    found = BY_PATH.get(name)
    if found is None:
        raise NotFound(name)
    return found


def _plain(status: int, message: str) -> Whole:
    return Whole(encode_json({"message": message}), _JSON, status)


def _bad(error: BadRequest) -> Whole:
    return Whole(encode_json({"message": "Bad Request", "meta": [error.meta]}), _JSON, 400)


_NOT_FOUND: Final = _plain(404, "Not Found")
