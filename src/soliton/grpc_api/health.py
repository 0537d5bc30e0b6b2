"""``grpc.health.v1.Health``: the health of services, for load balancers.

A service runs as long as its port, so its status never changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

from soliton.grpc_api.errors import Code, Refused
from soliton.grpc_api.proto import health_pb2 as pb

SERVICE: Final = pb.DESCRIPTOR.services_by_name["Health"]


class Health:
    """The health of services with these names; the empty name is that of the port."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = ("", *names)

    def methods(self) -> dict[str, object]:
        """Return the calls."""
        return {"Check": self.check, "List": self.list, "Watch": self.watch}

    def check(self, request: pb.HealthCheckRequest) -> pb.HealthCheckResponse:
        """Return the status of a service."""
        if request.service not in self._names:
            raise Refused(Code.NOT_FOUND, "")
        return _SERVING

    def list(self, _request: pb.HealthListRequest) -> pb.HealthListResponse:
        """Return the status of all services."""
        return pb.HealthListResponse(statuses=dict.fromkeys(self._names, _SERVING))

    async def watch(self, request: pb.HealthCheckRequest) -> AsyncIterator[pb.HealthCheckResponse]:
        """Send the status once and keep the stream open."""
        yield _SERVING if request.service in self._names else _UNKNOWN
        await asyncio.Event().wait()


_SERVING: Final = pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVING)
_UNKNOWN: Final = pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVICE_UNKNOWN)
