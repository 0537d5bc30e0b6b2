"""A real Kafka broker in a process of its own: one node in KRaft mode, on free ports.

``make clients`` fetches it. Where it is missing, ``unavailable`` says why, and tests are skipped
with these words.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.ports import free_port
from tests.stopping import stop

JARS: Final = Path(__file__).parent / "jars"
START_SECONDS: Final = 300
"""Far more than a start takes: it only ends one that hangs."""
_QUICK: Final = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""It lives for seconds: what pays off later costs more than it saves."""
_JAVA: Final = ("java", *_QUICK, "-cp", f"{JARS}/*")
USER: Final = "matcher"
PASSWORD: Final = "only for tests"
_CLUSTER: Final = "c29saXRvbi1mb3ItdGVzdA"
_PROPERTIES: Final = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT
controller.listener.names=CONTROLLER
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


def unavailable() -> str | None:
    """Why there can be no broker here, None where there can."""
    if shutil.which("java") is None:
        return "no Kafka broker: there is no java"
    if not (JARS / ".installed").exists():
        return "no Kafka broker: `make clients` fetches it, with Maven"
    return None


class Broker:
    """One broker; its data stay in ``directory`` when it is stopped and started again."""

    def __init__(self, directory: Path) -> None:
        """Prepare a directory; nothing is started."""
        self.port, sasl, controller = free_port(), free_port(), free_port()
        self.servers = f"127.0.0.1:{self.port}"
        self.guarded = f"127.0.0.1:{sasl}"
        """Where ``USER`` has to give ``PASSWORD``."""
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        properties = directory / "server.properties"
        properties.write_text(
            _PROPERTIES.format(
                port=self.port,
                sasl=sasl,
                controller=controller,
                data=directory / "data",
                user=USER,
                password=PASSWORD,
            )
        )
        formatting = [
            *(*_JAVA, "kafka.tools.StorageTool"),
            *("format", "-t", _CLUSTER, "-c", str(properties)),
        ]
        subprocess.run(formatting, check=True, capture_output=True, timeout=START_SECONDS)

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(*_JAVA, "kafka.Kafka", str(self._directory / "server.properties")),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + START_SECONDS
        while not _answers(self.port):
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self._directory / "log").read_text(errors="replace")[-2_000:])
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Let it hang: connections stay open, nothing answers."""
        assert self._process is not None
        stop(self._process.pid)

    def go_on(self) -> None:
        """The end of ``pause``."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(number)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


@contextlib.contextmanager
def running(directory: Path) -> Iterator[Broker]:
    """A broker that is started, and stopped afterwards."""
    broker = Broker(directory)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
