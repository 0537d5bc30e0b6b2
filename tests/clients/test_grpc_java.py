"""gRPC asked by Java, with the stubs and messages of the ecosystem's package: every call once."""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.chain.transactions import codec
from tests.clients.scripts import HERE, JVM, run_client
from tests.clients.test_grpc import filled
from tests.grpc_api.test_process import process_of

DIRECTORY: Final = HERE / "java" / "grpc"
JARS: Final = DIRECTORY / "jars"
JAVAC: Final = shutil.which("javac")
JAVA: Final = shutil.which("java")
COMPILE_SECONDS: Final = 240

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(JAVAC is None or JAVA is None, reason="no Java compiler is installed"),
    pytest.mark.skipif(
        not (JARS / ".installed").exists(),
        reason="tests/clients/java/grpc/jars is missing (`make clients` makes it, with mvn)",
    ),
]


def compiled(directory: Path) -> Path:
    assert JAVAC is not None
    command = [JAVAC, *(f"-J{each}" for each in JVM)]
    command += ["-d", str(directory), "-cp", f"{JARS}/*", str(DIRECTORY / "Calls.java")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return directory


async def test_every_call_by_grpc_java(tmp_path: Path) -> None:
    classes = compiled(tmp_path / "classes")
    chain = filled(tmp_path / "chain")
    transaction = chain.transfer()
    sent = base64.b64encode(codec.encode_protobuf(transaction)).decode()
    assert JAVA is not None
    async with process_of(chain) as (service, _):
        ports = (str(service.settings.port), str(service.settings.updates_port))
        command = (JAVA, *JVM, "-cp", f"{classes}:{JARS}/*", "Calls", *ports, sent)
        told: Any = await asyncio.to_thread(run_client, *command)
        assert transaction.id in chain.node.pool
    assert told["called"] == told["methods"] and len(told["methods"]) == 23
    assert told["height"] == 3 and told["block"] == [2, 2] and told["range"] == [1, 2]
    assert told["balances"] == ["WAVES"] and told["data"] == [["answer", 42]]
    assert told["script"] == told["leases"] == told["nfts"] == told["changes"] == 0
    assert told["alias"] == {"status": "INVALID_ARGUMENT", "number": "302"}
    assert told["asset"] == {"status": "NOT_FOUND", "number": "311"}
    assert told["sign"] == {"status": "UNIMPLEMENTED", "number": ""}
    assert told["activation"] > 20 and told["target"] is True and told["score"] is True
    assert told["transactions"] == [[2, "SUCCEEDED"]] * 2
    assert told["snapshots"] == 2 and told["statuses"] == ["CONFIRMED", "CONFIRMED", "NOT_EXISTS"]
    assert told["sent"] is True and told["unconfirmed"] == 1
    assert told["update"] == 2 and told["updates"] == [1, 2] and told["events"] == [1, 2, 3]
