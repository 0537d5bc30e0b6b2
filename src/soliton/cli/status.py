"""``soliton status``: node, matcher and signer at a glance.

What lives here: the command. What does not: the requests (``soliton.client``).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from soliton.cli.ranges import Seconds
from soliton.cli.tables import facts

if TYPE_CHECKING:
    from soliton.client.transport import Transport

NODE: Final = "http://127.0.0.1:6869"
MATCHER: Final = "http://127.0.0.1:6886"
SIGNER: Final = "http://127.0.0.1:6888"
_MS: Final = 1_000
_SERVER_ERROR: Final = 500

Facts = dict[str, Any]
_SHOWN: Final[tuple[tuple[str, str, Callable[[Any], object]], ...]] = (
    ("version", "version", str),
    ("chainId", "chain", str),
    ("height", "height", str),
    ("lastBlockAge", "last block", lambda age: f"{age} s ago"),
    ("finalizedHeight", "final up to", str),
    ("pool", "in the pool", str),
    ("peers", "peers", str),
    ("ready", "ready", lambda ready: "yes" if ready else "no"),
    ("reasons", "why not", lambda reasons: "; ".join(reasons)),
    ("publicKey", "public key", str),
    ("markets", "markets", str),
)
"""Members with their names on a terminal and their forms there."""


@click.command()
@click.option("--node", envvar="SOLITON_NODE", metavar="URL", help=f"The node (default: {NODE}).")
@click.option("--matcher", metavar="URL", help=f"The matcher (default: {MATCHER}).")
@click.option("--signer", metavar="URL", help=f"The signer (default: {SIGNER}).")
@click.option(
    "--timeout",
    type=Seconds(0.1, 600),
    default=3.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of an answer.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(
    node: str | None, matcher: str | None, signer: str | None, timeout: float, as_json: bool
) -> None:
    """Print the state of a node, a matcher and a signer.

    Exits with code 1 if the node, or a service that an option names, does not answer.
    """
    from soliton.client.errors import ClientError

    asked: tuple[tuple[str, str, Callable[[str, float], Facts], bool], ...] = (
        ("node", node or NODE, _node, True),
        ("matcher", matcher or MATCHER, _matcher, matcher is not None),
        ("signer", signer or SIGNER, _signer, signer is not None),
    )
    found: dict[str, Facts] = {}
    fails = False
    for name, url, read, is_wanted in asked:
        try:
            found[name] = {"url": url, "up": True, **read(url, timeout)}
        except ClientError as error:
            found[name] = {"url": url, "up": False, "problem": str(error)}
            fails = fails or is_wanted
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        for name, values in found.items():
            _print(name, values)
    if fails:
        sys.exit(1)


def _print(name: str, values: Facts) -> None:
    state = "up" if values["up"] else f"no answer: {values['problem']}"
    rows: list[tuple[str, object]] = [(name, f"{values['url']}: {state}")]
    rows += [
        (f"  {label}", form(values[key]))
        for key, label, form in _SHOWN
        if values.get(key) not in (None, [])
    ]
    for line in facts(rows):
        click.echo(line)


def _node(url: str, timeout: float) -> Facts:
    from soliton.client.errors import NodeRefused
    from soliton.client.node import Node

    with Node(url, timeout=timeout, retries=0) as node:
        last = node.last_header()
        found: Facts = {
            "version": node.node_version(),
            "chainId": chr(node.chain_id),
            "height": last.height or node.height(),
            "lastBlockAge": max(0, int(time.time()) - last.timestamp // _MS),
            "finalizedHeight": node.finalized_height(),
            "pool": node.unconfirmed_size(),
        }
        try:
            found["peers"] = len(node.peers())
        except NodeRefused:
            # Some nodes require the API key.
            found["peers"] = None
        if node.is_soliton():
            ready = node.readiness()
            found |= {"ready": ready.status == "ready", "reasons": list(ready.reasons)}
    return found


def _matcher(url: str, timeout: float) -> Facts:
    from soliton.client.matcher import Matcher

    with Matcher(url, timeout=timeout, retries=0) as matcher:
        return {"publicKey": matcher.public_key(), "markets": len(matcher.markets())}


def _signer(url: str, timeout: float) -> Facts:
    """A signer answers nobody without a key: that it refuses tells that it is up."""
    from soliton.client.errors import NodeBroken
    from soliton.client.steps import Request
    from soliton.client.transport import Transport as Opened

    transport: Transport = Opened(url, timeout=timeout)
    try:
        answer = transport.exchange(Request("GET", "/"))
    finally:
        transport.close()
    if answer.status >= _SERVER_ERROR:
        raise NodeBroken(f"it answers with status {answer.status}")
    return {}
