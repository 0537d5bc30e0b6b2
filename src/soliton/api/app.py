"""The whole REST API: the groups of routes, and the application made of them.

What lives here: the list of groups. What does not: the routes (one module of ``rest`` for each
group, with its ``ROUTES``), and serving (``soliton.web``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import msgspec

from soliton.api.application import Application
from soliton.api.context import ApiContext
from soliton.api.openapi import documentation_routes
from soliton.api.rest import (
    account_data,
    addresses,
    alias,
    assets,
    blockchain,
    blocks,
    consensus,
    debug,
    devnet,
    ethereum,
    evaluation,
    events,
    finality,
    health,
    leasing,
    messages,
    node,
    operations,
    peers,
    proofs,
    requests,
    scripts,
    simulation,
    snapshot,
    transactions,
    utils,
    waiting,
    wallet,
)
from soliton.api.routes import Reads, Route

NODE_GROUPS: tuple[ModuleType, ...] = (
    addresses, account_data, wallet, node, blocks, transactions, proofs, assets, alias, leasing,
    ethereum, messages, requests, peers, consensus, blockchain, finality, debug, operations,
    scripts, evaluation, events, waiting, health, simulation, snapshot,
    devnet,
)  # fmt: skip
GROUPS: tuple[ModuleType, ...] = (*NODE_GROUPS, utils)
"""Modules with ``ROUTES`` and, where a whole path prefix needs the API key, ``GUARDED``."""


def all_routes() -> tuple[Route, ...]:
    """The routes of all groups, in order of precedence."""
    guarded = guarded_prefixes()
    return tuple(
        msgspec.structs.replace(route, guarded=route.path.startswith(guarded))
        for group in GROUPS
        for route in group.ROUTES
    )


def guarded_prefixes() -> tuple[str, ...]:
    """The path prefixes below which all that is not answered needs the API key."""
    return tuple(prefix for group in GROUPS for prefix in getattr(group, "GUARDED", ()))


def routes_for(context: ApiContext) -> tuple[Route, ...]:
    """The routes of an API with this context."""
    if context.node is None:
        return utils.ROUTES
    family = context.node.network.family
    routes = tuple(route for route in all_routes() if route.is_of(family))
    if not context.obeys:
        others = tuple(route for route in routes if route.tag != devnet.TAG)
        return (*others, *devnet.refused(context.no_controls)) if context.no_controls else others
    # Only the process that has the controls knows the time of such a chain.
    return tuple(
        msgspec.structs.replace(route, reads=Reads.NODE) if route.reads is Reads.CHAIN else route
        for route in routes
    )


def build_app(
    context: ApiContext,
    adapt: Callable[[Sequence[Route]], Sequence[Route]] = lambda routes: routes,
) -> Application:
    """The application for a server. ``adapt`` may replace the handlers of its routes."""
    routes = routes_for(context)
    guarded = guarded_prefixes() if context.node is not None else ()
    return Application(context, adapt((*routes, *documentation_routes(context, routes))), guarded)
