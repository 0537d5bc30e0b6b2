"""Debugging for the operator, and snapshots on demand.

What lives here: the routes, and the settings without secrets. What does not: metrics.

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/routes/v0/DebugRoute.scala``.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from typing import Any, Final

import msgspec

from soliton.chain.addresses import from_public_key
from soliton.crypto import base58
from soliton.matcher.errors import DatabaseProblem, NodeUnavailable
from soliton.matcher.journal.errors import JournalProblem
from soliton.matcher.records import Unsettled
from soliton.matcher.rest import examples
from soliton.matcher.rest.answers import Answer, message, plain
from soliton.matcher.rest.balances import balances_json
from soliton.matcher.rest.requests import Request, invalid_json, read_address, read_json
from soliton.matcher.rest.routes import row, table
from soliton.matcher.service import Matcher
from soliton.matcher.settings import WebSockets
from soliton.matching.pairs import asset_text

MAX_MESSAGE_CHARS: Final = 4_096
MAX_UNSETTLED: Final = 1_000
"""The maximum number of executions in a response; ``/metrics`` counts all."""
MAX_QUARANTINED: Final = 1_000
"""The maximum number of commands in a response, the last ones; the file has all."""
HOCON: Final = b"application/hocon"

logger = logging.getLogger("soliton.matcher")
_background: Final[set[asyncio.Task[None]]] = set()


async def status(request: Request) -> Answer:
    """The state of the service, and the heights of the last block and of the last final one."""
    core = request.core
    blockchain: dict[str, Any] = {"status": "Working"}
    try:
        blockchain["height"] = (await core.node.status()).height
        blockchain["finalizedHeight"] = core.settlement.final
    except NodeUnavailable:
        blockchain["status"] = "Unavailable"
    quarantined = {"quarantined": len(core.quarantine)} if len(core.quarantine) else {}
    return plain({"service": core.status.value, "blockchain": blockchain} | quarantined)


async def config(request: Request) -> Answer:
    """The settings in force; JSON is valid HOCON."""
    body = {"waves": {"dex": settings_json(request.core)}}
    return Answer(msgspec.json.format(msgspec.json.encode(body), indent=2), content_type=HOCON)


def settings_json(core: Matcher) -> dict[str, Any]:
    """The settings under the names of the configuration file, without secrets."""
    settings = core.settings
    api, sockets, node = settings.rest_api, settings.web_sockets, settings.node
    return {
        "id": settings.id,
        "data-directory": str(settings.directory),
        "address-scheme-character": chr(settings.network.chain_id),
        "rest-api": {
            "address": api.address,
            "port": api.port,
            "cors": api.cors,
            "api-key-different-host": api.api_key_different_host,
            "signature-window": f"{api.signature_window_ms}ms",
            "cancel-all-window": f"{api.cancel_all_window_ms}ms",
            "request-timeout": f"{api.request_timeout_ms}ms",
            "max-body-bytes": api.max_body_bytes,
            "workers": api.workers,
            "trusted-proxies": [str(each) for each in api.proxies.networks],
            "forwarded-header": api.proxies.header,
            "limits": {
                "requests-per-second": api.limits.requests_per_second,
                "burst": api.limits.burst,
                "local-clients": api.limits.local_clients,
            },
        },
        "web-sockets": _web_sockets_json(settings.web_sockets),
        "node": {
            "url": node.url,
            "poll-interval": f"{node.poll_interval_ms}ms",
            "timeout": f"{node.timeout_ms}ms",
            "max-silence": f"{node.max_silence_ms}ms",
        },
        "events-queue": {"type": settings.queue.type},
        "exchange-transaction-broadcast": {
            "interval": f"{settings.settlement.interval_ms}ms",
            "parallelism": settings.settlement.parallelism,
            "max-pending-time": f"{settings.settlement.max_pending_ms}ms",
        },
        "address-actor": {
            "max-active-orders": settings.max_active_orders,
            "batch-cancel-timeout": f"{settings.batch_cancel_timeout_ms}ms",
            "realtime-ws-accounts": sorted(map(base58.encode, sockets.realtime_accounts)),
        },
        "order-db": {"max-orders": settings.max_finalized_orders},
        "order-book-http": {
            "depth-ranges": list(settings.depth_ranges),
            "default-depth": settings.default_depth,
        },
        "snapshots-interval": settings.snapshots_interval,
        "tickers": {code: base58.encode(each) for code, each in settings.tickers.items()},
    }


def _web_sockets_json(sockets: WebSockets) -> dict[str, Any]:
    return {
        "max-connections": sockets.max_connections,
        "internal-broadcast": {"messages-interval": f"{sockets.internal_messages_interval_ms}ms"},
        "health-check": {
            "ping-interval": f"{sockets.ping_interval_ms}ms",
            "pong-timeout": f"{sockets.pong_timeout_ms}ms",
        },
        "external-client-handler": {
            "messages-interval": f"{sockets.messages_interval_ms}ms",
            "max-connection-lifetime": f"{sockets.max_connection_lifetime_ms}ms",
            "subscriptions": {
                "max-order-book-number": sockets.max_order_books,
                "max-address-number": sockets.max_addresses,
            },
        },
    }


async def quarantine(request: Request) -> Answer:
    """The commands that could not be applied."""
    return plain(
        [
            {
                "offset": each.offset,
                "timestamp": each.timestamp,
                "reason": each.reason,
                "command": base64.b64encode(each.payload).decode(),
            }
            for each in request.core.quarantine.all()[-MAX_QUARANTINED:]
        ]
    )


async def unsettled(request: Request) -> Answer:
    """The executions that are neither executed on the chain nor in the node's pool."""
    return plain(
        [_unsettled_json(each) for each in request.core.settlement.unsettled(MAX_UNSETTLED)]
    )


def _unsettled_json(found: Unsettled) -> dict[str, Any]:
    transaction_id = found.transaction_id
    return {
        "status": "GivenUp" if found.given_up else "Waiting",
        "transactionId": None if transaction_id is None else base58.encode(transaction_id),
        "amountAsset": asset_text(found.pair.amount_asset),
        "priceAsset": asset_text(found.pair.price_asset),
        "amount": found.amount,
        "buyOrderId": base58.encode(found.buy_order_id),
        "sellOrderId": base58.encode(found.sell_order_id),
        "timestamp": found.timestamp,
        "message": found.message,
    }


async def current_offset(request: Request) -> Answer:
    """The offset of the last applied command."""
    return plain(request.core.offsets.current)


async def last_offset(request: Request) -> Answer:
    """The offset of the last command in the journal."""
    return plain(request.core.offsets.last)


async def oldest_snapshot_offset(request: Request) -> Answer:
    """The offset of the oldest snapshot, -1 if there is none."""
    return plain(request.core.offsets.oldest_snapshot)


async def all_snapshot_offsets(request: Request) -> Answer:
    """The offset of the newest snapshot for each book; a snapshot contains all books."""
    core = request.core
    offset = core.offsets.newest_snapshot
    return plain({pair.key: offset for pair in core.queries.pairs()} if offset >= 0 else {})


async def save_snapshots(request: Request) -> Answer:
    """Start writing a snapshot."""
    task = asyncio.create_task(_save(request.core))
    _background.add(task)
    task.add_done_callback(_background.discard)
    return message("Saving started")


async def _save(core: Matcher) -> None:
    try:
        await core.snapshots.save()
    except (JournalProblem, DatabaseProblem) as error:
        logger.error("no snapshot: %s", error)


async def address_state(request: Request) -> Answer:
    """The whole state of an account."""
    report = await request.core.queries.report(read_address(request.core, request.segments[3]))
    return plain(
        {
            "regular": balances_json(report.regular),
            "reserved": balances_json(report.reserved),
            "allTradableBalance": balances_json(report.tradable),
            "unconfirmed": balances_json(report.unconfirmed),
            "outgoingLeasing": report.leased_out,
            "notCreatedTxs": 0,
            "notObservedTxs": report.not_observed_transactions,
            "placementQueue": [base58.encode(order_id) for order_id in report.placement_queue],
        }
    )


async def check_address(request: Request) -> Answer:
    """Whether an account is one of the matcher's liquidity providers."""
    address = read_address(request.core, request.segments[3])
    chain_id = request.core.settings.network.chain_id
    accounts = request.core.engine.settings.lp_accounts
    listed = any(from_public_key(key, chain_id) == address for key in accounts)
    return plain({"matcher": listed, "blockchain": listed})


async def print_message(request: Request) -> Answer:
    """Write a message to the log."""
    body = read_json(request)
    text = body.get("message") if isinstance(body, dict) else None
    if not isinstance(text, str):
        raise invalid_json("/message")
    logger.warning("the operator says: %r", text[:MAX_MESSAGE_CHARS])
    return message("Message logged")


ROUTES: Final = table("debug", "",
    row("GET /matcher/debug/status auth=key when=always", status, "Whether the matcher works",
        {"service": "Working", "blockchain": {"status": "Working", "height": 42,
            "finalizedHeight": 40}}),
    row("GET /matcher/debug/config auth=key when=always", config,
        "The service's settings in force, without secrets", "waves { … }",
        content_type="application/hocon"),
    row("GET /matcher/debug/quarantine auth=key when=always", quarantine,
        "Commands of the journal that could not be applied and were skipped, and why",
        [examples.SET_ASIDE], own=True),
    row("GET /matcher/debug/unsettled auth=key", unsettled,
        "Executions that are neither executed on the chain nor in the node's pool, and why",
        [examples.UNSETTLED], own=True),
    row("GET /matcher/debug/currentOffset auth=key when=always", current_offset,
        "The last applied command", 1024),
    row("GET /matcher/debug/lastOffset auth=key when=always", last_offset,
        "The last command in the journal", 1024),
    row("GET /matcher/debug/oldestSnapshotOffset auth=key when=always", oldest_snapshot_offset,
        "The oldest snapshot, -1 if there is none", -1),
    row("GET /matcher/debug/allSnapshotOffsets auth=key when=always", all_snapshot_offsets,
        "Snapshots by book", {f"{examples.ASSET}-WAVES": 1000}),
    row("POST /matcher/debug/saveSnapshots auth=key when=always", save_snapshots,
        "Write a snapshot",
        examples.done("Saving started")),
    row("GET /matcher/debug/address/{address} auth=key when=always", address_state,
        "The state of an account", examples.ADDRESS_STATE),
    row("GET /matcher/debug/address/{address}/check when=always", check_address,
        "Whether an account provides liquidity", {"matcher": False, "blockchain": False}),
    row("POST /matcher/debug/print auth=key when=always", print_message, "Write to the log",
        documented=False),
)  # fmt: skip
