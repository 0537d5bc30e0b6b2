"""Whatever is sent, the answer is an answer: never error 0, never a broken connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soliton.api.app import all_routes
from soliton.chain.transactions import codec
from soliton.web.parameters import Place
from tests.amounts import examples
from tests.api.chain import JSON, OTHER_ADDRESS, RICH_ADDRESS, WITH_KEY, PrivateChain
from tests.api.client import call

ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=12),
        st.sampled_from([RICH_ADDRESS, "alias:R:x", "base64:", "1" * 32, "0"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
MEMBERS = st.sampled_from(
    ["type", "version", "sender", "senderPublicKey", "fee", "feeAssetId", "timestamp", "proofs",
     "signature", "chainId", "recipient", "amount", "assetId", "attachment", "data"]
)  # fmt: skip
PLACES = [
    ("/transactions/broadcast", {}),
    ("/transactions/sign", WITH_KEY),
    ("/transactions/calculateFee", {}),
]


QUERIES = sorted({p.name for r in all_routes() for p in r.parameters if p.place is Place.QUERY})


@pytest.fixture(scope="module")
def shared_chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path_factory.mktemp("node"))
    yield made
    made.node.close()


def as_json(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except OverflowError:
        return repr(value).encode()


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.sampled_from(PLACES),
    kind=st.sampled_from([2, 3, 4, 7, 12, 16]),
    changes=st.dictionaries(MEMBERS, ANYTHING, max_size=4),
)
def test_transactions_of_any_shape(
    shared_chain: PrivateChain,
    place: tuple[str, dict[str, str]],
    kind: int,
    changes: dict[str, Any],
) -> None:
    body: dict[str, Any] = codec.to_json(shared_chain.transfer()) | {"type": kind} | changes
    path, headers = place
    answer = asyncio.run(call(shared_chain.app, f"POST {path}", as_json(body), JSON | headers))
    assert answer.status in (200, 400, 501), answer.body


PATHS = sorted({route.path for route in all_routes() if "GET" in route.methods})


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(PATHS),
    values=st.lists(
        st.one_of(
            st.text(max_size=40),
            st.sampled_from([OTHER_ADDRESS, "1" * 32, "1" * 64, "0", "1", "2147483647", "-1"]),
            st.integers(-(2**65), 2**65).map(str),
        ),
        min_size=3,
        max_size=3,
    ),
    query=st.dictionaries(
        st.sampled_from(QUERIES),
        st.text(max_size=10),
        max_size=2,
    ),
)
def test_paths_and_queries_of_any_text(
    shared_chain: PrivateChain, path: str, values: list[str], query: dict[str, str]
) -> None:
    segments = [
        quote(values.pop(), safe="") if part.startswith("{") and values else part
        for part in path.split("/")
    ]
    query = query | ({"timeout": "0"} if "/wait/" in path else {})
    pairs = "&".join(f"{name}={quote(text)}" for name, text in query.items())
    target = "/".join(segments) + (f"?{pairs}" if pairs else "")
    # Event streams end with their client.
    asked = call(shared_chain.app, f"GET {target}", headers=WITH_KEY, leaves=True)
    answer = asyncio.run(asked)
    # The one text that the reference answers so: an asset id that is no base58.
    allowed = (200, 400, 403, 404, 405, 410) if query.get("asset") is None else (200, 400, 404, 500)
    # A chain that rests says that it is not ready; that is no fault.
    is_unready = path == "/readyz" and answer.status == 503
    assert is_unready or answer.status in allowed, (target, answer.body)
