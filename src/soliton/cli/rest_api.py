"""The context of a node's REST API, in the node's process and in worker processes.

What lives here: settings converted for the API and its server. What does not: serving (``run``,
``workers``).
"""

from __future__ import annotations

from typing import Final

from soliton.api.context import EXPOSED_HEADERS, ApiContext
from soliton.controls.control import Controls
from soliton.node.node import Node
from soliton.node.rest_settings import RestApi
from soliton.parallel.signatures import SignatureChecker
from soliton.web.cors import KEY_HEADERS, Cors
from soliton.web.server import ServerLimits

CHECKED_TOGETHER: Final = 8
"""Signatures of transactions that are checked on another core in one batch."""


def api_context(
    node: Node, signatures: SignatureChecker | None = None, controls: Controls | None = None
) -> ApiContext:
    """Return the context of a node's REST API, with the checker of its signatures and the controls
    of a private chain.
    """
    return ApiContext(
        title=f"{node.network.name} node",
        version=node.agent,
        check_api_key=node.settings.rest_api.check_api_key,
        is_api_key_hash=node.settings.rest_api.is_key_hash,
        scopes_of_key=node.settings.rest_api.scopes_of,
        limits=node.settings.rest_api.limits,
        cors=cors_of(node.settings.rest_api),
        clock=node.clock,
        network_clock=node.clock,
        node=node,
        controls=controls,
        obeys=controls is not None,
        signatures=signatures,
    )


def cors_of(settings: RestApi) -> Cors:
    """Return the CORS policy of a node's REST API."""
    cors_headers = settings.cors_headers
    headers = cors_headers.headers
    if settings.api_key_different_host:
        headers += tuple(name for name in KEY_HEADERS if name not in headers)
    return Cors(
        allows=settings.cors,
        origin=cors_headers.origin,
        request_headers=headers,
        methods=cors_headers.methods,
        credentials=cors_headers.credentials,
        exposed=EXPOSED_HEADERS,
    )


def signature_checker() -> SignatureChecker:
    """Return a checker of transaction signatures on another core; close it at the end."""
    return SignatureChecker(group=CHECKED_TOGETHER)


def server_limits(settings: RestApi) -> ServerLimits:
    """Return the limits of a REST API's server."""
    limits = settings.limits
    return ServerLimits(
        connections=limits.connections,
        connections_per_client=limits.connections_per_client,
        counts_local_clients=limits.local_clients,
        proxies=settings.proxies,
    )
