"""Times that the signer chooses: equal requests are transactions of their own, after restarts, too.

What lives here: clocks that stand still or step, restarts, files of the log that are full. What
does not: processes that are killed under load (``test_shared_writes``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from soliton.signer.state import MAX_AHEAD_MS
from tests.signer.kept import APPROVED, BOT, NOW, TRANSFER, Place, as_caller

DAY = 24 * 60 * 60 * 1_000


@pytest.fixture(params=[False, True], ids=["one file", "a file a line"])
def files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether each line of the log begins a new file."""
    if request.param:
        monkeypatch.setattr("soliton.signer.journal.SEGMENT_BYTES", 1)


async def stamps(place: Place, count: int, now: int = NOW, **more: Any) -> list[int]:
    """The times of equal transfers that a run signs."""
    found = []
    async with place.serving(clock=lambda: now) as client:
        for _ in range(count):
            body = {"key": "hot", "transaction": {**TRANSFER, **more}}
            response = await client.post("/sign", json=body, headers=BOT)
            assert response.status_code == 200, response.text
            found.append(response.json()["signed"]["timestamp"])
    return found


@pytest.mark.usefixtures("files")
async def test_a_run_goes_on_from_the_last_time_of_the_one_before(tmp_path: Path) -> None:
    place = Place(tmp_path)
    given = [stamp for _ in range(3) for stamp in await stamps(place, 3)]
    assert given == list(range(NOW, NOW + 9))
    # The clock was set back a little between two runs.
    assert await stamps(place, 2, NOW - 1_000) == [NOW + 9, NOW + 10]


@pytest.mark.usefixtures("files")
async def test_what_waits_for_approval_has_times_of_its_own(tmp_path: Path) -> None:
    place = Place(tmp_path, APPROVED.replace("most = 150", "most = 1_000"))
    names, given = [], set()
    for _ in range(2):
        async with place.serving() as client:
            for _ in range(2):
                body = {"key": "hot", "transaction": TRANSFER}
                asked = await client.post("/sign", json=body, headers=BOT)
                assert asked.status_code == 202, asked.text
                names.append(asked.json()["pending"])
    async with place.serving() as client:
        for name in names:
            for who in ("alice", "bob"):
                await client.post(f"/pending/{name}/approve", headers=as_caller(who))
            told = (await client.get(f"/pending/{name}", headers=BOT)).json()
            given.add(told["signed"]["id"])
    assert len(given) == 4


@pytest.mark.usefixtures("files")
async def test_a_clock_that_was_wrong_is_not_gone_on_from(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert await stamps(place, 2, NOW + DAY) == [NOW + DAY, NOW + DAY + 1]
    assert await stamps(place, 2) == [NOW, NOW + 1]
    # The lines of the wrong clock stand before these.
    assert await stamps(place, 2) == [NOW + 2, NOW + 3]


async def test_a_clock_that_is_set_right_in_the_midst_of_a_run(tmp_path: Path) -> None:
    place = Place(tmp_path)
    ahead = NOW + MAX_AHEAD_MS - 1_000
    times = iter([NOW + DAY, NOW, NOW, ahead, NOW])
    clock = {"now": NOW}
    given = []
    async with place.serving(clock=lambda: clock["now"]) as client:
        for clock["now"] in times:
            body = {"key": "hot", "transaction": TRANSFER}
            response = await client.post("/sign", json=body, headers=BOT)
            given.append(response.json()["signed"]["timestamp"])
    # A node takes what is that far ahead, so it is gone on from: no time comes twice.
    assert given == [NOW + DAY, NOW, NOW + 1, ahead, ahead + 1]
    assert await stamps(place, 1) == [ahead + 2]


async def test_times_of_the_caller_do_not_count(tmp_path: Path) -> None:
    place = Place(tmp_path)
    given = NOW + 60_000
    assert await stamps(place, 2, timestamp=given) == [given, given]
    (chosen,) = await stamps(place, 1)
    assert NOW <= chosen < given
