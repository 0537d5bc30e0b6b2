"""The settings that follow from a command's options.

What lives here: loading them, configuring the log, logging notes. What does not: the options.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from soliton.cli.logs import configure_log
from soliton.errors import InputError

if TYPE_CHECKING:
    from soliton.node.settings import Settings


class UsageProblem(InputError):
    """A command's options or arguments cannot be used together."""


def chosen_settings(
    config: Path | None,
    network: str | None,
    data_dir: Path | None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Load the settings, configure the log and log notes; raises ``SettingsError``."""
    from soliton.node.settings import load_settings

    settings = load_settings(config, network, data_dir=data_dir, overrides=overrides)
    configure_log(settings.logging)
    if config is None and network is None:
        _log_default_network(settings)
    for warning in settings.warnings:
        logging.getLogger("soliton.settings").warning("%s", warning)
    return settings


def _log_default_network(settings: Settings) -> None:
    """Log the default network; raises ``UsageProblem`` if the store has another one."""
    from soliton.storage.directories import stored_network

    name, found = settings.network.name, stored_network(settings.data_directory)
    if found not in (None, name):
        raise UsageProblem(
            f"{settings.data_directory} holds the chain {found}; without --network and --config it "
            f"would be {name}, the default: give --network {found}, or its --config"
        )
    logging.getLogger("soliton.settings").info("no --network and no --config: %s", name)
