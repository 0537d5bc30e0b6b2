"""Every file of vectors and every kind in it is read by a test, or stands here with the reason."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.vectors import REPOSITORY, shared_root

TRANSACTIONS: Final = "tests/chain/transactions/test_vectors.py"
COMPILER: Final = "tests/ride/compiler/test_vectors.py"
ESTIMATORS: Final = "tests/ride/estimators/test_vectors.py"
VERSION_9: Final = "tests/ride/test_version_9.py"
CURVE: Final = "tests/crypto/test_curve25519.py"

READ_BY: Final[dict[str, str]] = {
    "addresses": "tests/chain/test_addresses.py",
    "block_rewards": "tests/consensus/test_rewards.py",
    "block_score": "tests/consensus/test_pos.py",
    "blocks_private_chains": "tests/node/test_recorded_chains.py",
    "consensus_pos": "tests/consensus/test_pos.py",
    "consensus_vrf_pos_scala": "tests/consensus/test_pos.py",
    "ecrecover": "tests/crypto/test_secp256k1.py",
    "genesis_settings": "tests/chain/test_genesis.py",
    "groth16": "tests/crypto/test_groth16.py",
    "hashes": "tests/crypto/test_hashes.py",
    "keys": "tests/crypto/test_keys.py",
    "matcher-orders": "tests/matching/test_vectors.py",
    "merkle": "tests/crypto/test_merkle.py",
    "orders": "tests/chain/test_orders.py",
    "p2p_capture": "tests/wire/test_vectors.py",
    "p2p_messages": "tests/wire/test_vectors.py",
    "ride9/ride_ecrecover_fix": VERSION_9,
    "ride9/ride_v9_compile": VERSION_9,
    "ride9/ride_v9_eval": VERSION_9,
    "ride_calls_with_env": "tests/ride/test_evaluator_vectors.py",
    "ride_compile": COMPILER,
    "ride_compile_disagree": COMPILER,
    "ride_compile_errors": COMPILER,
    "ride_compile_gowaves_literals": COMPILER,
    "ride_estimate": ESTIMATORS,
    "ride_estimate_literals": ESTIMATORS,
    "ride_estimate_tests": ESTIMATORS,
    "ride_eval": "tests/ride/test_evaluator.py",
    "ride_functions": "tests/ride/functions/test_vectors.py",
    "ride_parse": "tests/ride/test_serialization.py",
    "ride_source_near_base64": COMPILER,
    "rsa": "tests/crypto/test_rsa.py",
    "signature_edge_cases": CURVE,
    "signatures_curve25519": CURVE,
    "snapshot_hash_gowaves": "tests/ledger/test_snapshot_hashes.py",
    "snapshot_hash_scala": "tests/chain/test_snapshots.py",
    "tx_ethereum": "tests/chain/transactions/test_ethereum.py",
    "tx_gowaves_tests": TRANSACTIONS,
    "tx_js_protobuf": TRANSACTIONS,
    "tx_mainnet_payment": TRANSACTIONS,
    "tx_private_chain": TRANSACTIONS,
    "tx_real_network": TRANSACTIONS,
    "tx_scala_bytes_json": TRANSACTIONS,
    "tx_scala_json": TRANSACTIONS,
    "tx_validation": TRANSACTIONS,
    "vrf": "tests/crypto/test_vrf.py",
}
"""A module that tells the results of each file; others may read it as well."""
UNREAD: Final[dict[str, str]] = {
    "ride_stdlib_catalogue": "a list of names and costs without inputs: ride_functions calls them",
}
KINDS: Final[dict[str, set[str]]] = {
    "addresses": {"alias", "from_ethereum", "from_public", "parse"},
    "consensus_pos": {"base_target", "delay", "hit", "nxt_generation_signature"},
    "merkle": {"legacy_checkMerkleProof", "rebuild", "root"},
    "vrf": {"compute", "sign", "verify"},
}
"""The kinds of rows that a module tells apart by name."""
ALSO_READ_BY: Final = {"merkle": "tests/crypto/test_scrypto_merkle.py"}
"""A second module with further kinds."""
ALIKE: Final[dict[str, str]] = {
    "ride_calls_with_env": "run as scripts: the environment that results need is not in the file",
}
"""Files whose kinds are all read in one way, and why."""


def files() -> list[Path]:
    directory = shared_root() / "vectors"
    if not directory.is_dir():
        pytest.skip(f"there are no vectors in {directory}")
    return [
        path
        for folder in (directory, directory / "ride9")
        for path in sorted(folder.glob("*.json*"))
    ]


def name_of(path: Path) -> str:
    name = path.name.removesuffix(".gz").removesuffix(".json")
    return f"ride9/{name}" if path.parent.name == "ride9" else name


def rows_of(path: Path) -> list[Any]:
    raw = path.read_bytes()
    document = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    rows: list[Any] = document.get("vectors", []) if isinstance(document, dict) else document
    return rows


def test_every_file_is_read_by_the_module_that_is_named() -> None:
    assert {name_of(path) for path in files()} == READ_BY.keys() | UNREAD.keys()
    for name, module in READ_BY.items():
        text = (REPOSITORY / module).read_text(encoding="utf-8")
        assert f'"{name}"' in text or f'"{name}.json"' in text, f"{module} does not read {name}"


def test_every_kind_of_rows_is_read() -> None:
    for path in files():
        name = name_of(path)
        kinds = {row["kind"] for row in rows_of(path) if isinstance(row, dict) and "kind" in row}
        if name in ALIKE:
            assert kinds, f"{name} has no kinds any more"
            continue
        assert kinds == KINDS.get(name, set()), name
        modules = [READ_BY[name], ALSO_READ_BY.get(name, READ_BY[name])] if kinds else []
        text = "".join((REPOSITORY / each).read_text(encoding="utf-8") for each in modules)
        assert all(f'"{kind}"' in text for kind in kinds), name
