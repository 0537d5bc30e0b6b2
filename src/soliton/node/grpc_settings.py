"""The settings of the gRPC interfaces: which of them are served, and where.

What lives here: the sections ``grpc`` and ``blockchain-updates``, and the list ``extensions`` by
which the ecosystem's nodes switch both on. What does not: serving (``soliton.grpc_api``).

Source: wavesplatform/Waves ``grpc-server/src/main/resources/application.conf``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.networks.sections import Section
from soliton.node.rest_settings import MAX_PORT, MAX_WORKERS, bind_address

NODE_API: Final = "com.wavesplatform.api.grpc.GRPCServerExtension"
UPDATES: Final = "com.wavesplatform.events.BlockchainUpdates"
_WITHOUT_EFFECT: Final = ("worker-threads",)


class GrpcSettings(msgspec.Struct, frozen=True):
    """Where the services of the node and the stream of updates are served; a port that is ``None``
    is not. ``workers`` processes serve them. Clients of the updates may ask whether the connection
    lives not more often than every ``keep_alive_ms``.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    updates_host: str = "0.0.0.0"  # noqa: S104 - as the ecosystem's nodes, where it is switched on
    updates_port: int | None = None
    keep_alive_ms: int = 300_000
    workers: int = 1

    @property
    def enable(self) -> bool:
        """Whether there is anything to serve."""
        return self.port is not None or self.updates_port is not None


def read(root: Section, notes: list[str]) -> GrpcSettings:
    """What the file says, below its root."""
    extensions = root.texts("extensions")
    known = (NODE_API, UPDATES)
    notes.extend(
        f"{root.full('extensions')}: there is no {each} here"
        for each in extensions
        if each not in known
    )
    own, updates = root.section("grpc"), root.section("blockchain-updates")
    notes.extend(
        f"{key} has no effect: grpc.workers says how many processes serve"
        for section in (own, updates)
        for key in section.written(*_WITHOUT_EFFECT)
    )
    port = own.whole("port", 6_870, 0, MAX_PORT)
    updates_port = updates.whole("grpc-port", 6_881, 0, MAX_PORT)
    return GrpcSettings(
        host=bind_address(own, "host"),
        port=port if own.truth("enable", NODE_API in extensions) else None,
        updates_host=bind_address(updates, "host", "0.0.0.0"),  # noqa: S104 - as above
        updates_port=updates_port if updates.truth("enable", UPDATES in extensions) else None,
        keep_alive_ms=updates.duration_ms("min-keep-alive", 300_000),
        workers=own.whole("workers", 1, 1, MAX_WORKERS),
    )
