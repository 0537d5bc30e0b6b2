"""The whole REST API: which groups of routes there are, and the application made of them.

What lives here: the list of groups. What does not: the routes (one module of ``rest`` for each
group, with its ``ROUTES``), and serving (``server``).
"""

from __future__ import annotations

from types import ModuleType

from soliton.api.asgi import Application
from soliton.api.context import ApiContext
from soliton.api.openapi import documentation_routes
from soliton.api.rest import utils
from soliton.api.routes import Route

GROUPS: tuple[ModuleType, ...] = (utils,)
"""Modules with ``ROUTES`` and, where a whole path prefix needs the API key, ``GUARDED``."""


def all_routes() -> tuple[Route, ...]:
    """The routes of all groups in their order of precedence."""
    return tuple(route for group in GROUPS for route in group.ROUTES)


def build_app(context: ApiContext) -> Application:
    """The application that a server serves."""
    routes = all_routes()
    guarded = tuple(prefix for group in GROUPS for prefix in getattr(group, "GUARDED", ()))
    return Application(context, (*routes, *documentation_routes(context, routes)), guarded)
