"""``soliton signer dry-run``: which past transactions a policy would have refused.

What lives here: reading the history of accounts from a node, and applying the policy to it in
order, windows included. What does not: policies (``soliton.signer``).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import click

from soliton.chain import networks
from soliton.chain.addresses import parse_address
from soliton.chain.errors import ChainError
from soliton.chain.transactions.json_reader import read_shown
from soliton.errors import EnvironmentProblem, InputError
from soliton.signer.measures import of_transaction, sentence
from soliton.signer.policy import Policy, Question, Refusal
from soliton.signer.policy_file import read_policy
from soliton.signer.windows import Windows
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble

PAGE: Final = 100
MAX_TRANSACTIONS: Final = 100_000
_DAY_MS: Final = 24 * 60 * 60 * 1_000


class HistoryUnknown(EnvironmentProblem):
    """The node does not return the history of an account."""


def run_dry_run(
    policy: Path, keys: tuple[str, ...], caller: str, days: int, network: str, node_url: str
) -> None:
    """Print the transactions that would have been refused, and the number of all."""
    chain_id = networks.load(network).chain_id
    rules = read_policy(policy, chain_id)
    named = dict(_named(each, chain_id) for each in keys)
    since = time.time_ns() // 1_000_000 - days * _DAY_MS
    history = asyncio.run(_history(node_url, named, since))
    # All keys together, in the order of signing: a window may belong to a rule for several keys.
    history.sort(key=lambda each: int(each[1]["timestamp"]))
    refused = _judge(rules, history, caller, chain_id)
    click.echo(f"{refused} of {len(history)} transactions would have been refused")


def _named(text: str, chain_id: int) -> tuple[str, str]:
    name, is_pair, address = text.partition("=")
    try:
        parse_address(address, chain_id)
    except ChainError as error:
        raise InputError(f"--key {text[:80]}: {error}") from None
    if not is_pair or not name:
        raise InputError("--key takes NAME=ADDRESS")
    return name, address


def _judge(
    rules: Policy, history: list[tuple[str, dict[str, Any]]], caller: str, chain_id: int
) -> int:
    windows, refused = Windows(), 0
    for key, fields in history:
        at = int(fields["timestamp"])
        try:
            transaction = read_shown(fields, chain_id)
        except ChainError as error:
            click.echo(f"{fields.get('id')}  cannot be read: {error}", err=True)
            refused += 1
            continue
        item = of_transaction(transaction)
        question = Question(item, key, item.sender, caller, chain_id, at)
        decided = rules.decide(question, windows, at)
        if isinstance(decided, Refusal):
            refused += 1
            click.echo(f"{fields['id']}  height {fields.get('height')}  {key}")
            click.echo(f"  {sentence(item, rules.decimals)}")
            click.echo(f"  {decided.words}")
        else:
            windows.charge(decided.charges, at)
    return refused


async def _history(
    node_url: str, named: dict[str, str], since: int
) -> list[tuple[str, dict[str, Any]]]:
    client = HttpClient(node_url, ClientLimits(2))
    found: list[tuple[str, dict[str, Any]]] = []
    try:
        for key, address in named.items():
            async for each in _pages(client, address):
                if each["timestamp"] < since:
                    break
                # The history includes transactions of other senders.
                if each.get("sender") == address:
                    found.append((key, each))
                if len(found) > MAX_TRANSACTIONS:
                    raise HistoryUnknown(f"more than {MAX_TRANSACTIONS} transactions: fewer --days")
    except HttpTrouble as error:
        raise HistoryUnknown(f"{node_url}: {error}") from error
    finally:
        client.close()
    return found


async def _pages(client: HttpClient, address: str) -> AsyncIterator[dict[str, Any]]:
    """The transactions of an account, the newest first."""
    after = ""
    while True:
        path = f"/transactions/address/{address}/limit/{PAGE}{after}"
        answer = await client.request("GET", path)
        try:
            (page,) = json.loads(answer.body, parse_float=Decimal)
        except (ValueError, TypeError, RecursionError):
            raise HistoryUnknown(f"the node answers {answer.status} for {address}") from None
        for each in page:
            if isinstance(each, dict) and type(each.get("timestamp")) is int:
                yield each
        if len(page) < PAGE:
            return
        after = f"?after={page[-1]['id']}"
