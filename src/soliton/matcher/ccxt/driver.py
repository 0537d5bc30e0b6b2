"""The common base of the driver's classes.

What lives here: the base class, and a decorator that adds the methods. What does not: the methods
(``steps``), and running them (``soliton.matcher.ccxt``, ``asynchronous``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ccxt.base.exchange import Exchange

from soliton.matcher.ccxt.description import DESCRIPTION, raise_for
from soliton.matcher.ccxt.signing import signed_url
from soliton.matcher.ccxt.steps import METHODS, Params, Steps, Unified

Run = Callable[[Any, Steps[Any], bool], Any]
"""Runs the steps of a method to their end; the flag tells whether to load the markets before."""
SomeDriver = TypeVar("SomeDriver", bound="type[Driver]")


class Driver(Exchange):
    """The matcher as an exchange of ccxt, without its methods."""

    def describe(self) -> Unified:
        """The description of the exchange."""
        described: Unified = self.deep_extend(super().describe(), DESCRIPTION)
        return described

    def sign(
        self,
        path: str,
        api: str = "public",
        method: str = "GET",
        params: Params = None,
        headers: dict[str, str] | None = None,
        body: str | None = None,
    ) -> Unified:
        """The request with URL, headers and signature."""
        return signed_url(self, path, api, method, params or {}, headers, body)

    def handle_errors(self, *arguments: object) -> None:
        """Turn the matcher's codes into ccxt's errors."""
        raise_for(arguments)


def with_methods(run: Run) -> Callable[[SomeDriver], SomeDriver]:
    """A class decorator that adds all methods, run by ``run``."""

    def decorate(driver: SomeDriver) -> SomeDriver:
        for steps in METHODS:
            setattr(driver, steps.__name__, _method(run, steps))
        return driver

    return decorate


def _method(run: Run, steps: Callable[..., Steps[Any]]) -> Callable[..., Any]:
    # `load_markets` calls `fetch_markets` itself.
    needs_markets = steps.__name__ != "fetch_markets"

    @wraps(steps)
    def method(self: Driver, *args: object, **named: object) -> object:
        return run(self, steps(self, *args, **named), needs_markets)

    return method
