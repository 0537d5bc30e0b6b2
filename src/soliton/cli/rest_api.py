"""What the REST API of a node is told, in the node's process and in those that serve beside it.

What lives here: settings turned into what the API and its server take. What does not: serving
(``run``, ``workers``).
"""

from __future__ import annotations

from typing import Final

from soliton.api.context import EXPOSED_HEADERS, ApiContext
from soliton.controls.control import Controls
from soliton.node.node import Node
from soliton.node.rest_settings import ApiLimits, RestApi
from soliton.parallel.signatures import SignatureChecker
from soliton.web.cors import KEY_HEADERS, Cors
from soliton.web.server import ServerLimits

CHECKED_TOGETHER: Final = 8
"""Signatures of transactions that go to another core at once, while the next ones are read."""


def api_context(
    node: Node, signatures: SignatureChecker | None = None, controls: Controls | None = None
) -> ApiContext:
    """What the REST API needs of a node, who checks signatures for it, and what a private chain is
    told by.
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
    """Which pages of other origins may read a node's answers."""
    told = settings.cors_headers
    headers = told.headers
    if settings.api_key_different_host:
        headers += tuple(name for name in KEY_HEADERS if name not in headers)
    return Cors(
        allows=settings.cors,
        origin=told.origin,
        request_headers=headers,
        methods=told.methods,
        credentials=told.credentials,
        exposed=EXPOSED_HEADERS,
    )


def signature_checker() -> SignatureChecker:
    """Who checks signatures of transactions on another core, to be closed at the end."""
    return SignatureChecker(group=CHECKED_TOGETHER)


def server_limits(limits: ApiLimits) -> ServerLimits:
    """What the server of a REST API accepts."""
    return ServerLimits(
        connections=limits.connections,
        connections_per_client=limits.connections_per_client,
        counts_local_clients=limits.local_clients,
    )
