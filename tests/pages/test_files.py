"""The pages as answers: who gets the explorer at ``/``, under which policy, how large it is."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.api.explorer import reads_html
from soliton.pages.files import (
    file_answer,
    modules_of,
    page,
    page_answer,
    shipped,
    takes_gzip,
    version,
)
from tests.api.chain import PrivateChain
from tests.api.client import call
from tests.vectors import REPOSITORY

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
STATIC = REPOSITORY / "src" / "soliton" / "pages" / "static"
BAR = 120_000
SCRIPTS = sorted(STATIC.glob("*.js"))


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    yield made
    made.node.close()


@pytest.mark.parametrize("accept", [BROWSER, "text/html", "application/json, Text/HTML;q=0.1"])
def test_who_asks_for_html_reads_it(accept: str) -> None:
    assert reads_html(accept.encode())


@pytest.mark.parametrize(
    "accept", [None, "", "*/*", "application/json", "text/*", "text/html;q=0", "text/htmlx"]
)
def test_who_does_not_ask_for_html_is_led_to_the_console(accept: str | None) -> None:
    assert not reads_html(None if accept is None else accept.encode())


@pytest.mark.parametrize(
    ("said", "takes"),
    [(None, False), (b"", False), (b"gzip, deflate, br", True), (b"GZIP;q=0.5", True),
     (b"br, gzip;q=0", False), (b"gzip;q=0.000", False), (b"identity", False)],
)  # fmt: skip
def test_gzip_goes_to_who_says_so(said: bytes | None, takes: bool) -> None:
    assert takes_gzip(said) is takes


def test_a_file_comes_packed_and_is_not_sent_twice() -> None:
    plain = file_answer("style.css", {})
    packed = file_answer("style.css", {b"accept-encoding": b"gzip"})
    assert plain is not None and packed is not None
    assert gzip.decompress(packed.body) == plain.body == (STATIC / "style.css").read_bytes()
    tag = dict(plain.headers)[b"etag"]
    again = file_answer("style.css", {b"if-none-match": tag})
    assert again is not None and (again.status, again.body) == (304, b"")
    assert file_answer("style.css", {b"if-none-match": b'"another"'}) == plain


def test_what_the_version_names_is_kept_for_good_and_all_else_is_asked_for_again() -> None:
    def kept(name: str) -> bytes:
        answer = file_answer(name, {})
        assert answer is not None and answer.status == 200
        return dict(answer.headers)[b"cache-control"]

    assert b"immutable" in kept(f"{version()}/style.css")
    assert kept("style.css") == kept("0123456789ab/style.css") == b"no-cache"
    assert file_answer(f"{version()}/explorer.html", {}) is None


@pytest.mark.parametrize("name", ["explorer.html", "../files.py", "", "nothing.js"])
def test_nothing_else_is_a_file(name: str) -> None:
    assert file_answer(name, {}) is None


@pytest.mark.parametrize("name", ["explorer", "exchange", "signer"])
def test_all_that_a_page_loads_is_small(name: str) -> None:
    names = {f"{name}.js", "style.css", f"{name}.css", *modules_of(f"{name}.js")} - {"explorer.css"}
    assert names <= shipped().keys()
    assert sum(len(shipped()[name].packed) for name in names) < BAR


def painted_at_once(text: str, policy: str) -> str:
    """The style that stands in a page, and which its policy names and no other: what stands above
    the first script can be painted when the page is there.
    """
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    named = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{named}';" in policy
    assert 'rel="stylesheet"' not in text and " style=" not in text
    (script,) = re.finditer("<script", text)
    assert text.index("</header>") < script.start()
    return str(style)


@pytest.mark.parametrize("name", ["exchange", "signer"])
def test_a_page_is_painted_with_its_own_style_too(name: str) -> None:
    made = page(name, f"{name}.js", {})
    answer = page_answer(made, {})
    policy = dict(answer.headers)[b"content-security-policy"].decode()
    both = (STATIC / "style.css", STATIC / f"{name}.css")
    assert painted_at_once(answer.body.decode(), policy) == "".join(
        each.read_text("utf-8") for each in both
    )


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.name))
def test_no_script_makes_markup_or_code_of_texts(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|"
        r"createContextualFragment|DOMParser|\.srcdoc|setHTMLUnsafe|javascript:",
        text,
    )
    assert found == []
    assert text.startswith("// "), "says what lives here"


async def test_root_answers_by_what_the_client_reads(chain: PrivateChain) -> None:
    answer = await call(chain.app, "GET /", headers={"Accept": BROWSER})
    headers = dict(answer.headers)
    policy = headers[b"content-security-policy"].decode()
    assert answer.status == 200 and b"<main" in answer.body
    assert "script-src 'self';" in policy and "unsafe" not in policy
    assert b"onclick" not in answer.body and b"{{" not in answer.body
    assert painted_at_once(answer.body.decode(), policy) == (STATIC / "style.css").read_text(
        "utf-8"
    )
    addresses = re.findall(r'(?:src|href)="(pages/[^"]+)"', answer.body.decode())
    assert addresses and all(each.startswith(f"pages/{version()}/") for each in addresses)
    for each in addresses:
        file = await call(chain.app, f"GET /{each}")
        assert file.status == 200 and b"immutable" in dict(file.headers)[b"cache-control"]
    for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        answer = await call(chain.app, "GET /", headers=accept)
        assert answer.status == 308
        assert dict(answer.headers)[b"location"] == b"/api-docs/index.html"


@pytest.mark.parametrize(
    ("named", "added"),
    [("https://node.example:6869/x", " https://node.example:6869"), ("http://[::1]/", ""),
     ("https://a.example;script-src%20*", ""), ("javascript:x", ""), ("", "")],
)  # fmt: skip
async def test_another_node_stands_in_the_policy(
    chain: PrivateChain, named: str, added: str
) -> None:
    answer = await call(chain.app, f"GET /?node={named}", headers={"Accept": "text/html"})
    policy = dict(answer.headers)[b"content-security-policy"].decode()
    assert f"connect-src 'self'{added};" in policy
