"""The doors of the signing service beside its port: a unix socket, and TLS on the port.

What lives here: opening them as the settings say. What does not: who comes in (``signer.callers``).
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
        """End both: that on the port, which closes the application, last."""
        await self._second.stop()
        _remove(Path(self._second.host))
        await self._first.stop()


async def with_socket(server: RunningServer, app: Signer, path: Path) -> RunningService:
    """The service on a unix socket as well. Everybody on this machine may connect, as to a port:
    the system says who they are. Raises ``EnvironmentProblem``.
    """
    _make_room(path)
    second = await serve_locally(app, str(path), SERVER_LIMITS)
    _open_to_all(path)
    return _Both(server, second)


def _make_room(path: Path) -> None:
    """Take away the socket of a process that was killed: nobody listens on it."""
    with contextlib.suppress(OSError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return
        with socket.socket(socket.AF_UNIX) as plug:
            try:
                plug.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()


def _open_to_all(path: Path) -> None:
    path.chmod(0o666)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def server_tls(settings: SignerTls) -> ssl.SSLContext:
    """TLS with the service's certificate; clients have to show one where their file is named.
    Raises ``EnvironmentProblem``.
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
