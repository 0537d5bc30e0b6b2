"""How long a node dials another one that does not answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from soliton.node.network_settings import HostPort
from soliton.p2p.addresses import NAME_SECONDS
from tests.p2p.world import PATIENCE_SECONDS, peers, until

SILENT = HostPort("127.0.9.9", 9)


@pytest.mark.parametrize(("setting", "seconds"), [("7s", 7.0), ("0s", None)])
def test_the_settings_say_how_long_a_lonely_node_dials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, seconds: float | None
) -> None:
    """As in the reference, where it has no other time (``network/NetworkServer.scala``)."""
    waited: list[float | None] = []
    timeout = asyncio.timeout

    def at_once(delay: float | None) -> asyncio.Timeout:
        if delay in {PATIENCE_SECONDS, NAME_SECONDS}:
            return timeout(delay)
        waited.append(delay)
        return timeout(0)

    async def main() -> None:
        settings: dict[str, Any] = {"network__connection_timeout": setting}
        # A suspension that is over before anybody has looked is not seen.
        settings["network__suspension_residence_time"] = "10m"
        async with peers(tmp_path, 1, **settings) as (lonely,):
            monkeypatch.setattr(asyncio, "timeout", at_once)
            lonely.service.begin_to_connect(SILENT)
            await until(lambda: bool(lonely.service.suspended()))
            monkeypatch.undo()

    asyncio.run(main())
    assert waited == [seconds]
