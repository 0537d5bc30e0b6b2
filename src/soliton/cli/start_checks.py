"""What a start would refuse, found without starting: for ``soliton config check``.

What lives here: the checks of settings that were read, one for each thing that stops ``soliton
run``. What does not: reading settings (``soliton.node.settings``), and the report
(``config_reports``).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from soliton.chain.features import IMPLEMENTED
from soliton.chain.genesis import genesis_block
from soliton.cli.run import TOO_OLD_EXIT_CODE
from soliton.errors import SolitonError
from soliton.ledger.rules_at import RuleBook
from soliton.node.chain_writer import ChainWriter
from soliton.node.settings import Settings
from soliton.node.wallet import Wallet
from soliton.storage.directories import check_stored
from soliton.storage.store import Store
from soliton.web.temporary import TemporaryPlace

FIRST_OWN_HEIGHT: Final = 2
"""The first block that a node makes or receives."""
_FEATURES: Final = "blockchain.custom.functionality.pre-activated-features"


class Finding(NamedTuple):
    """A fact about the settings at ``key`` (without the root); whether it ``stops`` the start."""

    key: str
    text: str
    stops: bool = True


def start_findings(settings: Settings, invalid: Collection[str]) -> Iterator[Finding]:
    """Yield what a start with these settings would refuse. A check is left out where one of the
    settings that it depends on is among the ``invalid`` ones (full names), or would only repeat
    what another one has found.
    """
    for check in _CHECKS:
        if not any(_is_at(key, place) for key in invalid for place in check.places):
            yield from check.run(settings)


def _is_at(key: str, place: str) -> bool:
    name = key.partition(".")[2].replace("[", ".[")
    return f"{name}.".startswith(f"{place}.") or f"{place}.".startswith(f"{name}.")


def _chain(settings: Settings) -> Iterator[Finding]:
    """The genesis block of a private chain, and features of which the node knows nothing."""
    if settings.network.name != "custom":
        return
    yield from _genesis(settings)
    for feature, start in sorted(RuleBook(settings.network).activations().items()):
        if feature in IMPLEMENTED:
            continue
        key = f"{_FEATURES}.{feature}"
        unknown = f"feature {feature} is not implemented by this version: the node stops"
        if start <= FIRST_OWN_HEIGHT:
            yield Finding(key, f"{unknown} with code {TOO_OLD_EXIT_CODE}")
        else:
            yield Finding(key, f"{unknown} before height {start}", stops=False)


def _genesis(settings: Settings) -> Iterator[Finding]:
    try:
        genesis_block(settings.network)
    except SolitonError as error:
        yield Finding("blockchain.custom.genesis.signature", str(error))
        return
    place = TemporaryPlace("soliton-check-")
    try:
        store = Store(place.path / "data", settings.network.name, durable=False)
        try:
            ChainWriter(settings.network, store)
        finally:
            store.close()
    except SolitonError as error:
        yield Finding("blockchain.custom.genesis", str(error))
    finally:
        place.close()


def _store(settings: Settings) -> Iterator[Finding]:
    """Where the chain is or will be."""
    directory = settings.data_directory
    problem = _unusable(directory)
    if problem is not None:
        yield Finding("directory", problem)
        return
    try:
        check_stored(directory, settings.network.name)
    except SolitonError as error:
        yield Finding("directory", str(error))


def _unusable(directory: Path) -> str | None:
    """Why a directory cannot be made or written, if so."""
    existing = next(each for each in (directory, *directory.absolute().parents) if each.exists())
    if not existing.is_dir():
        return f"{existing} is no directory"
    if not os.access(existing, os.W_OK | os.X_OK):
        return f"{existing} cannot be written"
    return None


def _wallet(settings: Settings) -> Iterator[Finding]:
    """The wallet's file, or the files for its signer."""
    wallet = settings.wallet
    if wallet.signer:
        from soliton.cli.wallet_signer import check_files

        try:
            check_files(wallet)
        except SolitonError as error:
            yield Finding("wallet.signer", str(error))
        return
    if wallet.file is None:
        return
    problem = None if wallet.file.exists() else _unusable(wallet.file.parent)
    if problem is not None:
        yield Finding("wallet.file", problem)
        return
    try:
        Wallet.check(wallet.file, wallet.password, wallet.seed)
    except SolitonError as error:
        yield Finding("wallet.file", str(error))


def _ports(settings: Settings) -> Iterator[Finding]:
    """Addresses that this machine does not have, and two services at one port."""
    taken: dict[int, str] = {}
    for key, host, port in listeners(settings):
        problem = _not_here(host)
        if problem is not None:
            yield Finding(f"{key}.{_HOST_KEYS[key]}", problem)
        elif port and port in taken:
            yield Finding(f"{key}.{_PORT_KEYS[key]}", f"port {port} is that of {taken[port]}, too")
        taken.setdefault(port, key)


_HOST_KEYS: Final = {
    "rest-api": "bind-address", "network": "bind-address", "grpc": "host",
    "blockchain-updates": "host", "dex.grpc.integration": "host",
}  # fmt: skip
_PORT_KEYS: Final = {**dict.fromkeys(_HOST_KEYS, "port"), "blockchain-updates": "grpc-port"}


def listeners(settings: Settings) -> Iterator[tuple[str, str, int]]:
    """Yield the section, address and port of each service that a node has."""
    rest, peers, grpc = settings.rest_api, settings.peers, settings.grpc
    if rest.enable:
        yield "rest-api", rest.bind_address, rest.port
    if peers.enable and peers.bind_address is not None and peers.only_peer is None:
        yield "network", peers.bind_address, peers.port
    for key, host, port in (
        ("grpc", grpc.host, grpc.port),
        ("blockchain-updates", grpc.updates_host, grpc.updates_port),
        ("dex.grpc.integration", grpc.matcher_host, grpc.matcher_port),
    ):
        if port is not None:
            yield key, host, port


def _not_here(host: str) -> str | None:
    """Why no service can listen on an address, whatever the port; ``None`` if one can."""
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        with socket.socket(family, kind, protocol) as tried:
            tried.bind(address)
    except OSError as error:
        return f"no service can listen on {host} here: {error.strerror or error}"
    return None


def _signer(settings: Settings) -> Iterator[Finding]:
    """What stops ``soliton signer``, which may read the same file."""
    from soliton.cli.signer_doors import server_tls
    from soliton.signer.policy_file import read_policy

    signer = settings.signer
    if signer.tls is not None:
        try:
            server_tls(signer.tls)
        except SolitonError as error:
            yield Finding("signer.tls", str(error))
    if signer.keys is None:
        return
    try:
        policy = read_policy(signer.keys.policy_file, settings.network.chain_id)
    except SolitonError as error:
        yield Finding("signer.policy-file", str(error))
        return
    if policy.hash != signer.keys.policy_hash:
        yield Finding("signer.policy-hash", f"the policy file has the hash {policy.hash}")


class _Check(NamedTuple):
    run: Callable[[Settings], Iterator[Finding]]
    places: tuple[str, ...]


_CHECKS: Final = (
    _Check(_chain, ("blockchain",)),
    _Check(_store, ("blockchain", "directory", "data-directory", "db.directory")),
    _Check(_wallet, ("wallet", "directory")),
    _Check(_ports, tuple(_HOST_KEYS)),
    _Check(_signer, ("signer", "blockchain")),
)
