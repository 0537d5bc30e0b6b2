"""The record of the final blocks that this node's accounts have named in endorsements.

Two endorsements that name final blocks of different chains cost the account its deposit. So the
highest final block that each account has named is written to a file before the endorsement leaves
the node. The file is beside the chain and the wallet, not in the chain's store: neither a rollback
nor a chain that is imported anew changes it.

What lives here: the record and its file. What does not: the decision to endorse (``endorser``).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from soliton.chain.addresses import Address, address_text, parse_address
from soliton.chain.errors import AddressError
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.errors import EnvironmentProblem
from soliton.storage.files import replace_file

_log = logging.getLogger(__name__)

FILE_NAME: Final = "endorsed.json"
MAX_ACCOUNTS: Final = 11_000
"""The accounts of a full wallet, and mining keys of the settings."""
MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Four times what so many accounts need."""
MAX_ID_CHARS: Final = 100
"""An id of 64 bytes has at most 88 characters."""


class RecordProblem(EnvironmentProblem):
    """The record cannot be written."""


class Named(NamedTuple):
    """A final block that an account has named."""

    height: int
    block_id: bytes


class _Entry(msgspec.Struct, frozen=True):
    height: int
    block: str


class EndorsedBlocks:
    """The highest final block that each account has named, by address."""

    def __init__(
        self, path: Path | None, chain_id: int, *, is_new: bool = True, syncs: bool = True
    ) -> None:
        """Read the record in ``path``; without one it is in memory.

        ``is_new`` if the chain is, so that nothing was endorsed before; the record is begun then.
        Without ``syncs`` it survives the end of the process, not of the machine.
        """
        self._path = path
        self._syncs = syncs
        self._named: dict[Address, Named] = {}
        self.is_complete = is_new
        """Whether all that was named is known: false if the file is missing or damaged."""
        if path is None:
            return
        try:
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
            self._named, self.is_complete = _decode(data, chain_id), True
        except FileNotFoundError:
            if is_new:
                # What cannot be written now, cannot be either when it matters.
                with contextlib.suppress(RecordProblem):
                    self.add({})
        except (OSError, ValueError) as error:
            self.is_complete = False
            reason = error.strerror if isinstance(error, OSError) else error
            _log.error(
                "the record of endorsed blocks in %s cannot be read: %s; accounts of this node "
                "endorse no blocks before the chain's final block is newer than this start", path,
                reason,
            )  # fmt: skip

    def __getitem__(self, address: Address) -> Named | None:
        """Return the highest final block that an account has named."""
        return self._named.get(address)

    def add(self, named: Mapping[Address, Named]) -> None:
        """Add blocks, and write the record before returning; raises ``RecordProblem``, and nothing
        has changed then.
        """
        whole = {**self._named, **named}
        if len(whole) > MAX_ACCOUNTS:
            raise RecordProblem(f"the record of endorsed blocks is full: {MAX_ACCOUNTS} accounts")
        if self._path is not None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(self._path, [_encode(whole)], syncs=self._syncs)
            except OSError as error:
                raise RecordProblem(
                    f"the record of endorsed blocks in {self._path} cannot be written: "
                    f"{error.strerror}"
                ) from error
        self._named = whole


def _encode(named: Mapping[Address, Named]) -> bytes:
    entries = {
        address_text(address): _Entry(each.height, base58.encode(each.block_id))
        for address, each in named.items()
    }
    return msgspec.json.encode(entries)


def _decode(data: bytes, chain_id: int) -> dict[Address, Named]:
    """Return the content of a file; raises ``ValueError``."""
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"more than {MAX_FILE_BYTES} bytes")
    try:
        entries = msgspec.json.decode(data, type=dict[str, _Entry])
        return {
            parse_address(address, chain_id): Named(each.height, _id_of(each.block))
            for address, each in entries.items()
        }
    except (msgspec.DecodeError, AddressError, Base58Error) as error:
        raise ValueError(str(error)) from error


def _id_of(text: str) -> bytes:
    if len(text) > MAX_ID_CHARS:
        raise ValueError("an id that is none")
    return base58.decode(text)
