"""The settings that a command's options lead to.

What lives here: loading them, setting up the log, telling notes. What does not: the options.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from soliton.cli.logs import use
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.node.settings import Settings


class UsageProblem(InputError):
    """A command that cannot be carried out as it was called."""


def chosen_settings(
    config: Path | None,
    network: str | None,
    data_dir: Path | None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """The settings of these options, with the log set up and notes told; raises
    ``SettingsError``.
    """
    from soliton.node.settings import load_settings

    settings = load_settings(config, network, data_dir=data_dir, overrides=overrides)
    use(settings.logging)
    if config is None and network is None:
        _tell_default(settings)
    for warning in settings.warnings:
        logging.getLogger("soliton.settings").warning("%s", warning)
    return settings


def _tell_default(settings: Settings) -> None:
    """Nobody has named a network: say which one that is, before its rules surprise."""
    from soliton.storage.directories import stored_network

    name, found = settings.network.name, stored_network(settings.data_directory)
    if found not in (None, name):
        raise UsageProblem(
            f"{settings.data_directory} holds the chain {found}; without --network and --config it "
            f"would be {name}, the default: give --network {found}, or its --config"
        )
    logging.getLogger("soliton.settings").info("no --network and no --config: %s", name)
