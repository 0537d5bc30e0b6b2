"""Running ``soliton notify``: the chain, the outbox, and the receiver.

What lives here: assembling the parts. What does not: the parts (``soliton.export``).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from soliton.chain.addresses import parse_address
from soliton.chain.errors import AddressError
from soliton.cli.chain_source import ChainSource
from soliton.cli.export_run import open_source, print_message, stopping
from soliton.cli.quantities import Confirmations
from soliton.cli.watching import Address, watched
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.export.delivery import Receiver
    from soliton.export.notices import Interests
    from soliton.export.sources import Source


class Destination(NamedTuple):
    """The receiver of notices, a web server or a program, and the time limit of an attempt."""

    url: str | None
    secret_file: Path | None
    command: str | None
    seconds: float


def run_notify(
    destination: Destination,
    cursor: Path,
    interests: Interests,
    addresses: Sequence[str],
    where: ChainSource,
    *,
    from_height: int | None,
    confirmations: Confirmations,
    once: bool,
    metrics: Address | None,
) -> None:
    """Send notices of the chain until stopped; ``addresses`` are all that the options name.

    Raises ``InputError``.
    """
    from soliton.export.confirmed import Confirmed, Finalized
    from soliton.export.delivery import Courier
    from soliton.export.metrics import Progress
    from soliton.export.notices import COMPLETE
    from soliton.export.outbox import Outbox
    from soliton.export.running import Export

    receiver = _receiver(destination)
    with open_source(where, COMPLETE) as chain, stopping() as stopped:
        for address in addresses:
            try:
                parse_address(address, chain.chain_id)
            except AddressError as error:
                raise AddressError(f"{address}: {error}") from error
        source: Source = (
            Confirmed(chain, confirmations) if isinstance(confirmations, int) else Finalized(chain)
        )
        progress = Progress()
        courier = Courier(cursor, receiver, stopped, print_message, progress)
        courier.start()
        try:
            with watched("notify", progress, metrics):
                Export(
                    source,
                    lambda: Outbox.open(cursor, source, interests, from_height),
                    stopped,
                    print_message,
                    once=once,
                    progress=progress,
                ).run()
        except BaseException:
            stopped.set()
            raise
        finally:
            courier.finish()


def _receiver(destination: Destination) -> Receiver:
    from soliton.export.delivery import NotifyCommand, Webhook, read_secrets

    if destination.url is not None:
        assert destination.secret_file is not None
        secrets = read_secrets(destination.secret_file)
        return Webhook(destination.url, secrets, destination.seconds)
    try:
        command = shlex.split(destination.command or "")
    except ValueError as error:
        raise InputError(f"--notify-cmd {destination.command}: {error}") from error
    if not command:
        raise InputError("--notify-cmd does not name a program")
    return NotifyCommand(command, destination.seconds)
