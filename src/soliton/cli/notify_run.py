"""Running notices: the chain, the file, and the receiver, put together.

What lives here: putting the parts together. What does not: the parts (``soliton.export``).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from soliton.chain.addresses import parse_address
from soliton.cli.chain_source import Where
from soliton.cli.export_run import opened, stopping, tell
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.export.delivery import Receiver
    from soliton.export.notices import Interests


class Told(NamedTuple):
    """Who is told: a web server, or a program, and how long one attempt may take."""

    url: str | None
    secret_file: Path | None
    command: str | None
    seconds: float


def run_notify(
    told: Told,
    cursor: Path,
    interests: Interests,
    addresses: Sequence[str],
    where: Where,
    *,
    from_height: int | None,
    confirmations: int,
    once: bool,
) -> None:
    """Follow the chain and tell of it until stopped; ``addresses`` are those that were named.

    Raises ``InputError``.
    """
    from soliton.export.confirmed import Confirmed
    from soliton.export.delivery import Courier
    from soliton.export.notices import COMPLETE
    from soliton.export.outbox import Outbox
    from soliton.export.running import Export

    receiver = _receiver(told)
    with opened(where, COMPLETE) as chain, stopping() as stopped:
        for address in addresses:
            parse_address(address, chain.chain_id)
        source = Confirmed(chain, confirmations)
        courier = Courier(cursor, receiver, stopped, tell)
        courier.start()
        try:
            Export(
                source,
                lambda: Outbox.open(cursor, source, interests, from_height),
                stopped,
                tell,
                once=once,
            ).run()
        except BaseException:
            stopped.set()
            raise
        finally:
            courier.finish()


def _receiver(told: Told) -> Receiver:
    from soliton.export.delivery import NotifyCommand, Webhook, read_secrets

    if told.url is not None:
        assert told.secret_file is not None
        return Webhook(told.url, read_secrets(told.secret_file), told.seconds)
    try:
        words = shlex.split(told.command or "")
    except ValueError as error:
        raise InputError(f"--notify-cmd {told.command}: {error}") from error
    if not words:
        raise InputError("--notify-cmd names no program")
    return NotifyCommand(words, told.seconds)
