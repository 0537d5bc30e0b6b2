"""The commands of ``soliton signer`` besides running it: policy, keys, approvals and audit log.

What lives here: requests to a running signer, and reading its files. What does not: the options
(``signer``), the service (``soliton.signer``), ``dry-run`` (``signer_dry_run``).
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

import click

from soliton.chain import networks
from soliton.cli.helping import printable
from soliton.cli.keys import warn_if_open
from soliton.errors import EnvironmentProblem, InputError
from soliton.node.settings import Settings
from soliton.signer.journal import read_all
from soliton.signer.policy_file import read_policy
from soliton.signer.records import Event, line_hash
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble

API_KEY_VARIABLE: Final = "SOLITON_SIGNER_KEY"
MAX_SECRET_BYTES: Final = 4_096
ANSWER_SECONDS: Final = 120.0
_COLUMNS: Final = ("number", "at", "event", "caller", "key", "rule", "told", "ids", "reason")
_EXPORTED: Final = frozenset(Event) - {Event.START, Event.CHECKPOINT}


class SignerRefused(InputError):
    """The signer answered with an error."""


class SignerUnavailable(EnvironmentProblem):
    """The signer did not answer, or with an invalid response."""


class AuditDiffers(InputError):
    """The log is consistent, but does not contain the given hash."""


def run_check(policy: Path, network: str) -> None:
    """Print the hash of a policy, or raise what is wrong with it."""
    read = read_policy(policy, networks.load(network).chain_id)
    click.echo(f'policy-hash = "{read.hash}"')
    click.echo(f"{len(read.rules)} rules: {', '.join(rule.name for rule in read.rules)}", err=True)


def run_reload(settings: Settings, url: str | None, api_key_file: Path | None) -> None:
    """Make a signer reload its policy, with the hash that the settings have now."""
    keys = settings.signer.keys
    if keys is None:
        raise InputError("the settings have no signer.keys-directory: there are no rules")
    path = "/policy/reload"
    rules = _request(settings, url, api_key_file, "POST", path, policyHash=keys.policy_hash)
    click.echo(f"{len(rules['rules'])} rules of {rules['file']} are in force, hash {rules['hash']}")


def run_unlock(
    settings: Settings,
    url: str | None,
    api_key_file: Path | None,
    keys: tuple[str, ...],
    seconds: int,
    password_file: Path | None,
) -> None:
    """Unlock keys for a time."""
    api_key = _api_key(api_key_file)
    password = _secret(password_file, "", "password of the keys")
    body = {"password": password, "keys": list(keys), "seconds": seconds}
    _show_keys(_request(settings, url, api_key, "POST", "/keys/unlock", **body))


def run_lock(
    settings: Settings, url: str | None, api_key_file: Path | None, keys: tuple[str, ...]
) -> None:
    """Lock keys."""
    _show_keys(_request(settings, url, api_key_file, "POST", "/keys/lock", keys=list(keys)))


def _show_keys(reply: Any) -> None:  # noqa: ANN401 - JSON
    for key in reply["keys"]:
        state = "locked" if key["locked"] else f"unlocked for {key['unlockedFor']} s"
        click.echo(f"{key['name']}\t{key['address']}\t{state}")


def run_pending(
    settings: Settings, url: str | None, api_key_file: Path | None, pending: str | None
) -> None:
    """List the pending requests, or show one of them."""
    api_key = _api_key(api_key_file)
    if pending is not None:
        _check_id(pending)
        _show_pending(_request(settings, url, api_key, "GET", f"/pending/{pending}"))
        reply = _request(settings, url, api_key, "GET", f"/pending/{pending}/simulation")
        for each in reply["simulated"]:
            _lines("on the chain: ", each["told"] or ["nothing changes"])
        return
    for each in _request(settings, url, api_key, "GET", "/pending")["pending"]:
        if each["state"] == "waiting":
            each = _request(settings, url, api_key, "GET", f"/pending/{each['pending']}")
        _show_pending(each)


def _check_id(pending: str) -> None:
    if not pending.isalnum():
        raise InputError("an id of what waits has letters and digits")


def run_decision(
    settings: Settings, url: str | None, api_key_file: Path | None, pending: str, verb: str
) -> None:
    """Approve or refuse a request."""
    _check_id(pending)
    _show_pending(_request(settings, url, api_key_file, "POST", f"/pending/{pending}/{verb}"))


def _show_pending(each: Any) -> None:  # noqa: ANN401 - JSON
    names = f" ({', '.join(each['approved'])})" if each["approved"] else ""
    approved = f"{len(each['approved'])} of {each['needed']} approve{names}"
    left = f", {each['expiresIn'] // 1_000} s left" if each["state"] == "waiting" else ""
    click.echo(f"{each['pending']}  {each['state']}, {approved}{left}")
    click.echo(f"  {each['caller']} with the key {each['key']}, by the rule {each['rule']}")
    _lines("", each["told"])
    _lines("sum: ", [it["told"] for it in each.get("totals", [])])
    _lines("window: ", [it["told"] for it in each.get("windows", [])])
    if "refusal" in each:
        _lines("would be refused now: ", [each["refusal"]["message"]])
    if "broadcast" in each:
        _lines("broadcast: ", [each["broadcast"].get("message", "the node has taken it")])


def _lines(name: str, texts: list[str]) -> None:
    for text in texts:
        click.echo(f"  {name}{printable(text)}")


# --- the audit log --------------------------------------------------------------------------------


def run_verify(directory: Path, head: str | None) -> None:
    """Check a log, and print its last line's number and hash."""
    first = last = 0
    found, hashed = head is None, ""
    signed = 0
    for entry, line in read_all(directory):
        first, last = first or entry.number, entry.number
        hashed = line_hash(line)
        found = found or hashed == head
        signed += len(entry.ids) if entry.event is Event.SIGN else 0
    if not found:
        raise AuditDiffers(f"no line of {directory} has the hash {head}")
    begins = "" if first <= 1 else f", from line {first} on: older files are not there"
    click.echo(f"{last} lines are as they were written{begins}; {signed} signatures; head {hashed}")


def run_anchor(
    settings: Settings, url: str | None, api_key_file: Path | None, key: str, entry: str, fee: int
) -> None:
    """Have a data transaction signed and broadcast that holds the number and the hash of the last
    line, if the policy allows it. Once for each line.
    """
    api_key = _api_key(api_key_file)
    head = _request(settings, url, api_key, "GET", "/policy")["audit"]
    value = f"{head['lines']}:{head['head']}"
    data = [{"key": entry, "type": "string", "value": value}]
    transaction = {"type": 12, "version": 2, "fee": fee, "data": data}
    body = {"key": key, "id": f"anchor-{head['lines']}", "transaction": transaction}
    reply = _request(settings, url, api_key, "POST", "/sign-and-broadcast", **body)
    if "signed" not in reply:
        click.echo(f"line {value} waits for approval as {reply['pending']}")
        return
    click.echo(f"line {value} is in transaction {reply['signed']['id']}")


def run_export(directory: Path, as_csv: bool, since: int) -> None:
    """Print a log, checked line by line."""
    table = csv.writer(sys.stdout)
    if as_csv:
        table.writerow(_COLUMNS)
    for entry, line in read_all(directory):
        if entry.at < since or entry.event not in _EXPORTED:
            continue
        if as_csv:
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry.at // 1_000))
            row = (entry.number, at, entry.event.value, entry.caller, entry.key, entry.rule)
            texts = (" | ".join(entry.sentences), " ".join(entry.ids), entry.reason)
            table.writerow(tuple(map(_cell, (*row, *texts))))
        else:
            click.echo(line)


def _cell(value: object) -> object:
    """Return a cell that no spreadsheet interprets as a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


# --- requests -------------------------------------------------------------------------------------


def _request(
    settings: Settings,
    url: str | None,
    api_key: Path | str | None,
    method: str,
    path: str,
    **body: Any,  # noqa: ANN401 - JSON
) -> Any:  # noqa: ANN401 - JSON
    """Send a request and return the response; raises ``SignerRefused`` or ``SignerUnavailable``."""
    key = api_key if isinstance(api_key, str) else _api_key(api_key)
    host = settings.signer.bind_address
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    own = f"[{host}]" if ":" in host else host
    where = url or f"http://{own}:{settings.signer.port}"
    return asyncio.run(_send(where, key, method, path, body))


async def _send(url: str, key: str, method: str, path: str, body: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    limits = ClientLimits(1, answer_seconds=ANSWER_SECONDS)
    client = HttpClient(url, limits, {"X-API-Key": key})
    try:
        data = json.dumps(body).encode() if method == "POST" else b""
        answer = await client.request(method, path, data, may_repeat=False)
        reply = json.loads(answer.body)
    except HttpTrouble as error:
        raise SignerUnavailable(f"{url}: {error}") from error
    except (ValueError, RecursionError):
        raise SignerUnavailable(f"{url} answers, but not as a signer does") from None
    finally:
        client.close()
    if answer.status >= 400:
        message = reply.get("message") if isinstance(reply, dict) else None
        raise SignerRefused(f"the signer says {answer.status}: {message}")
    return reply


def _api_key(file: Path | None) -> str:
    found = _secret(file, API_KEY_VARIABLE, "API key")
    if not found.isascii() or not found.isprintable():
        raise InputError("an API key has visible characters only")
    return found


def _secret(file: Path | None, variable: str, what: str) -> str:
    if file is not None:
        warn_if_open(file)
        with file.open("rb") as opened:
            text = opened.read(MAX_SECRET_BYTES)
        return text.decode("utf-8", "surrogateescape").rstrip("\r\n")
    given = os.environ.get(variable) if variable else None
    if given:
        return given
    if not sys.stdin.isatty():
        raise InputError(f"the {what} is needed: in a file, or at a terminal")
    return str(click.prompt(what, hide_input=True, err=True))
