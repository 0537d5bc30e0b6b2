"""``soliton matcher init``, ``verify`` and ``replay``.

What lives here: creating a new matcher, and assembling the audit of a journal. What does not:
finding its settings (``matcher_config``), the checks (``soliton.matcher``), the running service.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import os
import secrets
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from soliton.chain import networks
from soliton.chain.addresses import address_text, from_public_key
from soliton.cli.matcher_config import INIT_FILE, init_directory, matcher_settings
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.crypto.keys import account_seed, key_pair_from_account_seed
from soliton.matcher.account_file import write_account_seed
from soliton.matcher.assets import ChainKnowledge
from soliton.matcher.audit import Audit
from soliton.matcher.errors import ExecutionsUnsettled, MatcherSettingsError, RecoveryFailed
from soliton.matcher.exchanges import NATIVE
from soliton.matcher.fee_funds import LOW_EXCHANGES
from soliton.matcher.http_client import HttpNodeClient
from soliton.matcher.node_client import NodeClient
from soliton.matcher.quarantine import Quarantine
from soliton.matcher.recovery import check_ends
from soliton.matcher.renewal import final_height
from soliton.matcher.settings import MatcherSettings
from soliton.matcher.stores import open_snapshots, reading
from soliton.matching.arithmetic import decimal_text, denormalize_amount
from soliton.matching.commands import decode
from soliton.matching.engine import Engine
from soliton.matching.pairs import asset_text
from soliton.matching.rules import MatchingSettings
from soliton.node.settings import api_key_hash_text
from soliton.parallel.threads import cores

if TYPE_CHECKING:
    from soliton.matcher.settlement_audit import Fault, SettlementAudit

SEED_BYTES: Final = 32
API_KEY_BYTES: Final = 24
_NEW_FILE: Final = """\
# A matcher: start it with `soliton matcher run --config {path}`.
# The seed below is the matcher's account: it pays the fees of exchange transactions and receives
# those of orders. Whoever reads this file owns that account.
soliton {{
  blockchain.type = "{network}"
  matcher {{
    data-directory = "{directory}"
    account-storage {{
      type = in-mem
      in-mem.seed-in-base-64 = "{seed}"
    }}
    node.url = "{node}"
    rest-api {{
      address = "127.0.0.1"
      port = 6886
      # Processes that parse the clients' requests and check the signatures of orders in front of
      # the matcher: one, where there is more than one core and there are many clients.
      workers = {workers}
      # The hash of the API key that `soliton matcher init` printed.
      api-key-hashes = ["{key_hash}"]
    }}
    # Orders are accepted when the disk has confirmed them. `interval` and `never` are faster, and
    # may lose the last accepted orders when the power fails.
    events-queue.local.sync = always
  }}
}}
"""


# --- init -----------------------------------------------------------------------------------------


def run_init(
    network: str,
    data_dir: Path | None,
    config: Path | None,
    node_url: str,
    *,
    if_missing: bool = False,
) -> None:
    """Create the account, the API key and the settings of a new matcher, and print them."""
    chosen = networks.load(network)
    directory = init_directory(chosen.name, data_dir)
    path = config or directory / INIT_FILE
    seed = secrets.token_bytes(SEED_BYTES)
    api_key = base58.encode(secrets.token_bytes(API_KEY_BYTES))
    text = _NEW_FILE.format(
        path=path,
        network=chosen.name,
        directory=directory.absolute(),
        seed=base64.b64encode(seed).decode(),
        node=node_url,
        key_hash=api_key_hash_text(api_key),
        workers=int(cores() > 1),
    )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if if_missing:
            click.echo(f"settings    {path}, which is there already, and was not changed")
            return
        raise MatcherSettingsError(f"{path} is there already, and was not changed") from None
    except OSError as error:
        raise MatcherSettingsError(f"{path} cannot be made: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    settings = matcher_settings(path, None, None)
    public_key = key_pair_from_account_seed(seed).public_key
    assert settings.account.public_key == public_key
    click.echo(f"settings    {path}")
    click.echo(f"data        {directory}")
    click.echo(f"network     {chosen.name}")
    click.echo(f"address     {address_text(from_public_key(public_key, chosen.chain_id))}")
    click.echo(f"public key  {base58.encode(public_key)}")
    click.echo(f"API key     {api_key}   (kept nowhere: write it down)")
    fee = settings.trading.exchange_base_fee
    least = decimal_text(denormalize_amount(LOW_EXCHANGES * fee, NATIVE.decimals))
    each = decimal_text(denormalize_amount(fee, NATIVE.decimals))
    click.echo(
        f"coins       the address needs {chosen.coin}: {each} for each exchange, more if scripted; "
        f"send {least} for the first {LOW_EXCHANGES}; without coins nothing is matched"
    )
    click.echo(f"start it    soliton matcher run --config {path}")


def run_account_file(
    path: Path, text: str, seed_format: str, account_nonce: int | None, password: str
) -> None:
    """Write an encrypted file with an account seed, and print the account's public key."""
    try:
        match seed_format:
            case "base64":
                seed = base64.b64decode(text, validate=True)
            case "base58":
                seed = base58.decode(text)
            case _:
                seed = text.encode()
    except (binascii.Error, Base58Error) as error:
        # Without the input, which is secret.
        raise MatcherSettingsError(f"the seed is not in {seed_format}") from error
    if account_nonce is not None:
        seed = account_seed(seed, account_nonce)
    write_account_seed(path, seed, password)
    click.echo(f"account file  {path}")
    click.echo(f"public key    {base58.encode(key_pair_from_account_seed(seed).public_key)}")


# --- verify ---------------------------------------------------------------------------------------


def run_verify(settings: MatcherSettings, *, chain: bool, signatures: bool) -> None:
    """Check the journal, and print what was checked.

    Raises ``RuleBroken`` at the first command that breaks a rule; after printing all unsettled
    executions, ``RecoveryFailed`` if commands are missing at the journal's end, and
    ``ExecutionsUnsettled``.
    """
    _show_quarantined(settings)
    asyncio.run(_verify(settings, chain=chain, signatures=signatures))


async def _final_height(node: HttpNodeClient) -> int:
    return final_height((await node.status()).height, await node.finalized_height())


async def _verify(settings: MatcherSettings, *, chain: bool, signatures: bool) -> None:
    from soliton.matcher.orders_db import OrdersDatabase
    from soliton.matcher.settlement_audit import SettlementAudit

    node = HttpNodeClient(settings.node, settings.network.chain_id) if chain else None
    database = None
    try:
        settlement = None
        if node is not None:
            owner = from_public_key(settings.account.public_key, settings.network.chain_id)
            database = OrdersDatabase(
                *(settings.directory / "orders", address_text(owner)),
                *(settings.network.chain_id, settings.max_finalized_orders),
                durable=True,
            )
            settlement = SettlementAudit(database, node, partial(_final_height, node))
        async with reading(settings) as (first, batches):
            engine = await _engine_at(settings, first, node)
            audit = Audit(engine, settings.account.public_key, signatures=signatures)
            begin = engine.last_offset + 1
            async for batch in batches:
                for record in batch:
                    if record.offset < begin:
                        continue
                    executions = audit.take(record)
                    if settlement is not None:
                        await settlement.take(record.offset, executions)
                        for correction in audit.corrections:
                            settlement.correct(record.offset, correction)
            _pass_quarantined(settings, engine)
            audit.finish()
            if settlement is not None:
                await settlement.finish()
    finally:
        if database is not None:
            await database.close()
        if node is not None:
            await node.close()
    counts = audit.counts
    click.echo(f"offsets        {begin} to {engine.last_offset}")
    click.echo(f"commands       {counts.commands}")
    click.echo(
        f"orders         {counts.orders}"
        + (f", {counts.unsigned} without a valid signature" if counts.unsigned else "")
    )
    click.echo(f"executions     {counts.executions}")
    click.echo(f"cancellations  {counts.cancellations}")
    if counts.corrections:
        click.echo(f"corrections    {counts.corrections}")
    if settlement is not None:
        found = settlement.counts
        click.echo(
            f"transactions   {found.confirmed} on the chain ({found.final} final), "
            f"{found.waiting} in the pool"
            + (f", {found.taken_back} not executed and taken back" if found.taken_back else "")
        )
    click.echo(f"books          {books_hash(engine)}")
    if settlement is not None and settlement.faults:
        _show_unsettled(settlement.faults)
    if database is not None:
        check_ends(engine.last_offset, database)
    if settlement is not None and settlement.faults:
        raise ExecutionsUnsettled(
            f"priority and conservation hold, but {len(settlement.faults)} of "
            f"{counts.executions} executions are not settled"
        )
    _show_verdict(settlement)


def _show_verdict(settlement: SettlementAudit | None) -> None:
    if settlement is None:
        click.echo("priority and conservation hold")
    elif not settlement.counts.unknown:
        click.echo("priority, conservation and settlement hold")
    else:
        click.echo(
            f"priority and conservation hold; the orders database does not know the last "
            f"{settlement.counts.unknown} executions yet: start the matcher, then verify again"
        )


def _show_unsettled(faults: Sequence[Fault]) -> None:
    for fault in faults:
        click.echo(
            f"not settled    offset {fault.offset}, execution {fault.index}: {fault.amount} of "
            f"{asset_text(fault.pair.amount_asset)} in {fault.pair.key}: {fault.why}"
        )


def _show_quarantined(settings: MatcherSettings) -> None:
    for each in Quarantine(settings.directory).all():
        click.echo(f"passed over    offset {each.offset}: {each.reason}")


def _pass_quarantined(
    settings: MatcherSettings, engine: Engine, to_offset: int | None = None
) -> None:
    """Advance the books past the quarantined commands, which are not read with the others."""
    for each in Quarantine(settings.directory).all():
        if to_offset is None or each.offset <= to_offset:
            engine.skip(each.offset, each.timestamp)


# --- replay ---------------------------------------------------------------------------------------


def run_replay(settings: MatcherSettings, to_offset: int | None, node: bool) -> None:
    """Apply the journal to empty books and print them."""
    asyncio.run(_replay(settings, to_offset, node=node))


async def _replay(settings: MatcherSettings, to_offset: int | None, *, node: bool) -> None:
    client = HttpNodeClient(settings.node, settings.network.chain_id) if node else None
    commands = events = 0
    try:
        async with reading(settings) as (first, batches):
            engine = await _engine_at(settings, first, client)
            begin = engine.last_offset + 1
            started = time.perf_counter()
            async for batch in batches:
                for offset, timestamp, payload in batch:
                    if offset < begin or (to_offset is not None and offset > to_offset):
                        continue
                    events += len(engine.apply(offset, timestamp, decode(payload)))
                    commands += 1
            _pass_quarantined(settings, engine, to_offset)
            seconds = time.perf_counter() - started
    finally:
        if client is not None:
            await client.close()
    click.echo(f"offsets   {begin} to {engine.last_offset}")
    click.echo(f"commands  {commands} in {seconds:.2f} s, {commands / max(seconds, 1e-9):,.0f}/s")
    click.echo(f"events    {events}")
    for book in engine.books():
        best = book.status()
        bid = "-" if best.best_bid is None else str(best.best_bid.price)
        ask = "-" if best.best_ask is None else str(best.best_ask.price)
        click.echo(f"book      {book.pair.key}: {len(book)} orders, bid {bid}, ask {ask}")
    click.echo(f"books     {books_hash(engine)}")


def books_hash(engine: Engine) -> str:
    """Return one hash of all books, which covers every order and its place."""
    return hashlib.sha256(engine.snapshot()).hexdigest()


async def _engine_at(settings: MatcherSettings, first: int, node: NodeClient | None) -> Engine:
    """Return an engine for the rest of the journal: empty, or from the oldest usable snapshot."""
    engine = Engine(await _rules(settings, node))
    if first == 0:
        return engine
    usable = [each for each in open_snapshots(settings).all() if each.offset >= first - 1]
    if not usable:
        raise RecoveryFailed(f"the journal begins at offset {first}, and no snapshot reaches it")
    engine.restore(usable[-1].body)
    return engine


async def _rules(settings: MatcherSettings, node: NodeClient | None) -> MatchingSettings:
    trading = settings.trading
    assets = trading.tick_size_assets()
    if node is None:
        if assets - {None}:
            raise MatcherSettingsError("tick sizes depend on the node: it has to be asked")
        return trading.matching(lambda _: 8)
    owner = from_public_key(settings.account.public_key, settings.network.chain_id)
    knowledge = ChainKnowledge(node, owner)
    await knowledge.learn(assets)
    return trading.matching(knowledge.decimals)
