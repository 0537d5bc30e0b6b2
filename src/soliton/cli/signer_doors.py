"""The signing service's Unix socket, and TLS on its port.

What lives here: opening them as the settings say. What does not: authentication
(``signer.callers``).
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import stat
from pathlib import Path

from soliton.errors import EnvironmentProblem
from soliton.node.signer_settings import SignerTls
from soliton.signer.app import Signer
from soliton.signer.settings import SERVER_LIMITS
from soliton.web.server import RunningServer, RunningService, serve_locally


class _Both:
    """A service on a port and on a unix socket."""

    def __init__(self, first: RunningServer, second: RunningServer) -> None:
        self.host, self.port = first.host, first.port
        self._first, self._second = first, second

    async def stop(self) -> None:
        """End both, the one on the port last: it closes the application."""
        await self._second.stop()
        Path(self._second.host).unlink(missing_ok=True)  # noqa: ASYNC240 - quick
        await self._first.stop()


async def with_socket(server: RunningServer, app: Signer, path: Path) -> RunningService:
    """Serve on a Unix socket as well. Every user of this machine may connect, as to a port; the
    system identifies them. Raises ``EnvironmentProblem``.
    """
    _remove_stale(path)
    second = await serve_locally(app, str(path), SERVER_LIMITS)
    path.chmod(0o666)  # noqa: ASYNC240 - quick
    return _Both(server, second)


def _remove_stale(path: Path) -> None:
    """Remove the socket of a process that was killed, on which nobody listens."""
    with contextlib.suppress(OSError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return
        with socket.socket(socket.AF_UNIX) as plug:
            try:
                plug.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()


def server_tls(settings: SignerTls) -> ssl.SSLContext:
    """Return a TLS context with the service's certificate, which requires client certificates if a
    file of their authorities is configured. Raises ``EnvironmentProblem``.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(settings.certificate_file, settings.key_file)
        if settings.clients_file is not None:
            context.load_verify_locations(settings.clients_file)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        raise EnvironmentProblem(f"signer.tls: a file cannot be used: {error}") from error
    return context
