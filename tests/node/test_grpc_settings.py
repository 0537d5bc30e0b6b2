"""The settings of gRPC, as operators of the ecosystem's nodes write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from soliton.crypto import base58
from soliton.node.grpc_settings import GrpcLimits, GrpcSettings
from soliton.node.settings import SettingsError, load_settings
from tests.node.test_settings import Writer, write

__all__ = ["write"]


def test_grpc_as_operators_write_it(write: Writer) -> None:
    assert not load_settings(network="devnet").grpc.enable
    settings = write.load(
        """waves {
          extensions = [
            "com.wavesplatform.api.grpc.GRPCServerExtension"
            "com.wavesplatform.events.BlockchainUpdates"
            "com.example.Other"
          ]
          grpc { host = 0.0.0.0, port = 6899, worker-threads = 4 }
          blockchain-updates { grpc-port = 6898, min-keep-alive = 10s }
        }"""
    )
    assert settings.grpc == GrpcSettings("0.0.0.0", 6899, "0.0.0.0", 6898, 10_000, 1)
    told = [each for each in settings.warnings if "grpc" in each or "extensions" in each]
    assert told == [
        "waves.extensions: there is no com.example.Other here",
        "waves.grpc.worker-threads has no effect: grpc.workers says how many processes serve",
    ]
    grpc = write.load('waves { extensions = ["com.wavesplatform.events.BlockchainUpdates"] }').grpc
    assert (grpc.port, grpc.updates_port) == (None, 6881)
    assert write.load("soliton { grpc.enable = yes }").grpc.port == 6870


def test_limits_on_clients(write: Writer) -> None:
    assert write.load("waves {}").grpc.limits == GrpcLimits()
    text = """waves.grpc.limits {
      requests-per-client = 10, streams-per-client = 2, read-timeout = 5s, local-clients = yes
    }"""
    assert write.load(text).grpc.limits == GrpcLimits(10, 2, 5_000, True)
    with pytest.raises(SettingsError, match="streams-per-client is 0"):
        write.load("waves.grpc.limits.streams-per-client = 0")


def test_the_scala_matcher_s_extension_as_operators_write_it(write: Writer, tmp_path: Path) -> None:
    one, two, three = (bytes((number,)) * 32 for number in (1, 2, 3))
    file = tmp_path / "pools"
    file.write_text(f"{base58.encode(one)}\n\n{base58.encode(two)}\n")
    text = f"""waves {{
      extensions = [
        "com.wavesplatform.events.BlockchainUpdates"
        "com.wavesplatform.dex.grpc.integration.DEXExtension"
      ]
      dex {{
        id = "matcher-1"
        grpc.integration {{ host = 0.0.0.0, port = 6899 }}
        lp-accounts.file-path = "{file}"
        order-script-validation.allowed-blockchain-state-accounts = ["{base58.encode(three)}"]
      }}
    }}"""
    settings = write.load(text)
    grpc = settings.grpc
    assert (grpc.matcher_host, grpc.matcher_port, grpc.updates_port) == ("0.0.0.0", 6899, 6881)
    assert set(grpc.matcher_pools) == {one, two}
    assert set(grpc.matcher_allowed) == {three}
    # The matcher asks every few seconds whether the updates' connection lives.
    assert grpc.keep_alive_ms == 2_000 and settings.warnings == ()
    extension = "com.wavesplatform.dex.grpc.integration.DEXExtension"
    assert write.load(f'waves {{ extensions = ["{extension}"] }}').grpc.matcher_port == 6887
    with pytest.raises(SettingsError, match="a file with a public key"):
        write.load(text.replace(str(file), str(tmp_path / "absent")))
    with pytest.raises(SettingsError, match="a public key in base58"):
        write.load(text.replace(base58.encode(three), "x"))
    file.write_text("no key\n")
    with pytest.raises(SettingsError, match="a file with a public key"):
        write.load(text)
