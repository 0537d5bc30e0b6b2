"""``grpc.health.v1.Health``: whether services are there, for load balancers.

A service of a port is there from its start to its end, so what is said once stays true.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

from soliton.grpc_api.errors import Code, Refused
from soliton.grpc_api.proto import health_pb2 as pb

SERVICE: Final = pb.DESCRIPTOR.services_by_name["Health"]


class Health:
    """The health of services with these names; the empty one is that of the port."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = ("", *names)

    def methods(self) -> dict[str, object]:
        """The calls."""
        return {"Check": self.check, "List": self.list, "Watch": self.watch}

    def check(self, request: pb.HealthCheckRequest) -> pb.HealthCheckResponse:
        """Whether a service is there."""
        if request.service not in self._names:
            raise Refused(Code.NOT_FOUND, "")
        return _SERVING

    def list(self, _request: pb.HealthListRequest) -> pb.HealthListResponse:
        """All that are there."""
        return pb.HealthListResponse(statuses=dict.fromkeys(self._names, _SERVING))

    async def watch(self, request: pb.HealthCheckRequest) -> AsyncIterator[pb.HealthCheckResponse]:
        """Say it once, and nothing more as long as the client listens."""
        yield _SERVING if request.service in self._names else _UNKNOWN
        await asyncio.Event().wait()


_SERVING: Final = pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVING)
_UNKNOWN: Final = pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVICE_UNKNOWN)
