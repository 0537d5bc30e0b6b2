"""``/snapshot``: files that an operator offers, whole and in ranges, and no other ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from soliton.api.downloads import SLOTS, Downloads
from soliton.api.errors import ApiError
from soliton.web.answers import Stream, Whole
from tests.api.chain import PrivateChain
from tests.api.client import call

CONTENT = bytes(range(256)) * 3_000


@pytest.fixture
def offered(tmp_path: Path) -> Path:
    place = tmp_path / "snapshot"
    place.mkdir()
    (place / "manifest.json").write_bytes(b"{}")
    (place / "000009.sst").write_bytes(CONTENT)
    (place / "secret").write_bytes(b"x")
    (tmp_path / "other").write_bytes(b"x")
    (place / "000010.sst").symlink_to(tmp_path / "other")
    (place / "000011.sst").mkdir()
    return place


def offer(chain: PrivateChain, place: Path) -> None:
    rest = msgspec.structs.replace(chain.node.settings.rest_api, snapshot_directory=place)
    chain.node.settings = msgspec.structs.replace(chain.node.settings, rest_api=rest)


async def test_nothing_is_offered_by_default(chain: PrivateChain) -> None:
    assert (await chain.get("/snapshot/manifest.json")).status == 404


async def test_parts_and_ranges(chain: PrivateChain, offered: Path) -> None:
    offer(chain, offered)
    whole = await chain.get("/snapshot/000009.sst")
    assert (whole.status, whole.body) == (200, CONTENT)
    assert whole.headers[b"content-length"] == b"%d" % len(CONTENT)
    for header, start, end in (("bytes=5-", 5, None), ("bytes=5-9", 5, 10), ("bytes=0-", 0, None)):
        part = await call(chain.app, "GET /snapshot/000009.sst", headers={"Range": header})
        assert (part.status, part.body) == (206, CONTENT[start:end])
    for header in (f"bytes={len(CONTENT)}-", "bytes=9-5"):
        outside = await call(chain.app, "GET /snapshot/000009.sst", headers={"Range": header})
        assert outside.status == 416
    for header in ("bytes=-5", "bytes=1-2,5-6", "lines=1-", "bytes=" + "9" * 30 + "-"):
        asked = await call(chain.app, "GET /snapshot/000009.sst", headers={"Range": header})
        assert (asked.status, asked.body) == (200, CONTENT)


@pytest.mark.parametrize(
    "name",
    ["secret", "..%2Fother", "%2e%2e", "000010.sst", "000011.sst", "000012.sst", "CURRENT%00", "."],
)
async def test_other_files_are_not_sent(chain: PrivateChain, offered: Path, name: str) -> None:
    offer(chain, offered)
    assert (await chain.get(f"/snapshot/{name}")).status in (400, 404)


def test_a_few_are_sent_at_a_time(offered: Path) -> None:
    downloads = Downloads()

    def begun() -> AsyncIterator[bytes]:
        answer = downloads.answer(offered / "000009.sst", None)
        assert isinstance(answer, Stream)
        return answer.chunks

    async def work() -> None:
        sent = [begun() for _ in range(SLOTS)]
        for each in sent:
            assert await anext(each)
        with pytest.raises(ApiError):
            await anext(begun())
        # One that ends and one whose client is gone make room.
        assert b"".join([each async for each in sent[0]])
        await sent[1].aclose()  # type: ignore[attr-defined] # of a generator
        for _ in range(2):
            assert await anext(begun())

    asyncio.run(work())
    assert not isinstance(downloads.answer(offered, None), Whole)
