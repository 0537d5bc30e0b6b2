"""``soliton peers``: inspect and control the peers of a running node over its REST API.

What lives here: the commands and their tables. What does not: the connections (``soliton.p2p``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from soliton.cli.helping import Commands
from soliton.cli.tables import table
from soliton.errors import EnvironmentProblem, InputError

if TYPE_CHECKING:
    from soliton.web.client import Answer

_NODE: Final = click.option(
    "--node", "url", default="http://127.0.0.1:6869", show_default=True, help="The node."
)
_KEY: Final = click.option(
    "--api-key", envvar="SOLITON_API_KEY", required=True, help="The API key, or SOLITON_API_KEY."
)
OK: Final = 200
MAX_TEXT_CHARS: Final = 400
"""Limit on the characters of an error response that are shown."""


class NodeRefused(EnvironmentProblem):
    """The node answered with an error."""


@click.group(cls=Commands)
def peers() -> None:
    """List the peers of a running node, connect to one, ban one."""


@peers.command("list")
@_NODE
def list_command(url: str) -> None:
    """Print the connected, known, banned and suspended peers."""
    connected, known, banned, suspended = asyncio.run(
        _get(url, "/peers/connected", "/peers/all", "/peers/blacklisted", "/peers/suspended")
    )
    rows = [
        (each["address"], each["peerName"], each["applicationVersion"], each["declaredAddress"])
        for each in connected["peers"]
    ]
    _table("connected", ("address", "name", "version", "declares"), rows)
    _table(
        "known",
        ("address", "last heard"),
        [(each["address"], _ago(each["lastSeen"])) for each in known["peers"]],
    )
    _table("banned", ("host", "why"), [(each["hostname"], each["reason"]) for each in banned])
    _table("not dialled for now", ("host",), [(each["hostname"],) for each in suspended])


@peers.command()
@click.argument("peer", metavar="HOST:PORT")
@_NODE
@_KEY
def connect(peer: str, url: str, api_key: str) -> None:
    """Make the node dial a peer."""
    from soliton.node.network_settings import parse_host_port

    try:
        where = parse_host_port(peer)
    except ValueError as error:
        raise InputError(str(error)) from error
    body = msgspec.json.encode({"host": where.host, "port": where.port})
    asyncio.run(_post(url, "/peers/connect", api_key, body))
    click.echo(f"the node dials {where}")


@peers.command()
@click.argument("host")
@_NODE
@_KEY
def ban(host: str, url: str, api_key: str) -> None:
    """Ban a host for a while, and close its connections."""
    asyncio.run(_post(url, "/debug/blacklist", api_key, host.encode()))
    click.echo(f"the node bans {host}")


@peers.command()
@_NODE
@_KEY
def clear(url: str, api_key: str) -> None:
    """Lift all bans."""
    asyncio.run(_post(url, "/peers/clearblacklist", api_key, b""))
    click.echo("the node bans no address")


async def _get(url: str, *paths: str) -> list[Any]:
    from soliton.web.client import HttpClient

    client = HttpClient(url)
    try:
        answers = [_checked(await client.request("GET", path), path) for path in paths]
    finally:
        client.close()
    try:
        return [msgspec.json.decode(each.body) for each in answers]
    except msgspec.DecodeError as error:
        raise NodeRefused(f"{url} is not a node") from error


async def _post(url: str, path: str, api_key: str, body: bytes) -> None:
    from soliton.web.client import HttpClient

    client = HttpClient(url, headers={"X-API-Key": api_key})
    try:
        answer = await client.request("POST", path, body)
    finally:
        client.close()
    _checked(answer, path)


def _checked(answer: Answer, path: str) -> Answer:
    if answer.status != OK:
        text = answer.body.decode(errors="replace")[:MAX_TEXT_CHARS]
        raise NodeRefused(f"the node answers {path} with {answer.status}: {text}")
    return answer


def _ago(at: int) -> str:
    return f"{max(0.0, time.time() - at / 1_000):.0f} s ago"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    click.echo(f"{title}: {len(rows) or 'none'}")
    if not rows:
        return
    for line in table(head, rows):
        click.echo(f"  {line}")
