"""What tests of the port share: a process that serves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.grpc_api.door import Door, door_of


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with door_of(tmp_path_factory.mktemp("chain")) as made:
        yield made
