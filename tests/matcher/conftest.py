"""What several tests of the matcher share: one Kafka broker, started when the first asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.matcher.kafka.broker import Broker, running, unavailable


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker; skips where there can be none."""
    if (reason := unavailable()) is not None:
        pytest.skip(reason)
    with running(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
