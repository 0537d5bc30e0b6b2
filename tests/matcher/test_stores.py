"""Which journal the settings lead to."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import msgspec
import pytest

from soliton.chain.networks.sections import Section
from soliton.matcher.errors import MatcherSettingsError
from soliton.matcher.journal.embedded import EmbeddedJournal
from soliton.matcher.journal.errors import WrongJournal
from soliton.matcher.journal.kafka import KafkaJournal
from soliton.matcher.journal.topic import Security
from soliton.matcher.settings import MatcherSettings, Queue, read
from soliton.matcher.stores import open_journal, open_snapshots
from tests.matcher.kit import NETWORK, settings_in

SEED = {"in-mem": {"seed-in-base-64": "c2VlZA=="}}


def read_queue(section: dict[str, object]) -> Queue:
    tree = {"account-storage": SEED, "events-queue": section}
    return read(Section(tree, "waves.dex", MatcherSettingsError), NETWORK, Path("x")).queue


def with_queue(directory: Path, queue: Queue) -> MatcherSettings:
    return msgspec.structs.replace(settings_in(directory), queue=queue)


def test_local_is_the_default() -> None:
    assert read_queue({}) == Queue()
    local = {"sync": "interval", "sync-interval": "50ms", "segment-bytes": 4096}
    assert read_queue({"type": "local", "local": local}) == Queue(
        sync="interval", sync_interval_ms=50, segment_bytes=4_096
    )


def test_kafka() -> None:
    kafka = {"servers": "a:1,b:2", "topic": "t", "group": "g", "lease": "3s", "role": "master"}
    queue = read_queue({"type": "kafka", "kafka": kafka})
    assert queue == Queue(
        type="kafka", servers="a:1,b:2", topic="t", group="g", lease_ms=3_000, role="master"
    )
    reading = {**kafka, "producer": {"enable": "no"}}
    assert read_queue({"type": "kafka", "kafka": reading}).role == "standby"


def test_kafka_without_its_package_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiokafka", None)
    settings = with_queue(tmp_path, Queue(type="kafka", servers="a:1", topic="t", group="g"))
    with pytest.raises(WrongJournal, match="pip install aiokafka, or `make setup EXTRAS=kafka`"):
        open_journal(settings)


def test_security() -> None:
    told = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "user": "u", "password": "secret"}
    queue = read_queue({"type": "kafka", "kafka": {"servers": "a:1", "security": told}})
    assert queue.security == Security("SASL_SSL", "SCRAM-SHA-512", "u", "secret")
    assert "secret" not in repr(queue)
    options = Security("SASL_SSL", "PLAIN", "u", "secret").options()
    assert options["sasl_plain_password"] == "secret"
    assert isinstance(options["ssl_context"], ssl.SSLContext)
    assert Security().options() == {"security_protocol": "PLAINTEXT"}
    assert "secret" not in repr(Security("SASL_SSL", "PLAIN", "u", "secret"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "pigeons"},
        {"type": "kafka"},
        {"local": {"sync": "sometimes"}},
        {"type": "kafka", "kafka": {"servers": "a:1", "role": "king"}},
        {"type": "kafka", "kafka": {"servers": "a:1", "security": {"protocol": "SASL_SSL"}}},
        {"type": "kafka", "kafka": {"servers": "a:1", "security": {"protocol": "HTTP"}}},
        {"type": "kafka", "kafka": {"servers": "a:1", "group": "n" * 257}},
    ],
)
def test_wrong_ones_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(MatcherSettingsError):
        read_queue(wrong)


async def test_they_are_opened(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    journal = open_journal(settings)
    assert isinstance(journal, EmbeddedJournal)
    await journal.append([b"x"])
    open_snapshots(settings).save(0, [b"state"])
    await journal.close()
    assert (tmp_path / "journal").is_dir() and (tmp_path / "snapshots").is_dir()

    other = msgspec.structs.replace(
        settings, account=msgspec.structs.replace(settings.account, public_key=bytes(32))
    )
    with pytest.raises(WrongJournal):
        open_journal(other)
    assert next(open_snapshots(other).all(), None) is None
    kafka = open_journal(with_queue(tmp_path, Queue(type="kafka", servers="127.0.0.1:1")))
    assert isinstance(kafka, KafkaJournal) and kafka._term is None
    await kafka.close()
