"""The files of the web pages (markup, styles and scripts) as HTTP responses.

What lives here: the files of ``static`` with their types, compressed once; the version in their
URLs, which makes them cacheable for ever; pages with inline styles; the content security policy.
What does not: the routes (each service has its own), and what the pages do (the files themselves,
plain modules without a build).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import re
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.resources import files
from typing import Final

import msgspec

from soliton.web.answers import Whole
from soliton.web.types import Headers

FOLDER: Final = "static"
_STYLE: Final = "style.css"
HTML: Final = b"text/html; charset=UTF-8"
_TYPES: Final = {
    ".js": b"text/javascript; charset=UTF-8",
    ".css": b"text/css; charset=UTF-8",
}
_POLICY: Final = (
    "default-src 'none'; img-src 'self' data:; style-src 'sha256-{style}'; script-src 'self'; "
    "connect-src 'self'{others}; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?(?=/|$)")
_IMPORT: Final = re.compile(r'^(?:import|export) .* from "\./([a-z_]+\.js)";$', re.MULTILINE)
_FOR_GOOD: Final = b"public, max-age=31536000, immutable"
_SMALL: Final = 500
"""Smaller bodies are not compressed."""


class File(msgspec.Struct, frozen=True, dict=True):
    """A file, plain and gzipped."""

    body: bytes
    content_type: bytes
    tag: bytes

    @cached_property
    def packed(self) -> bytes:
        """Made at the first request: that of all files takes longer than the start of a service."""
        return _packed(self.body)


class Page(msgspec.Struct, frozen=True):
    """A page, plain and gzipped; ``style`` is the SHA-256 of its inline style, in base64."""

    body: bytes
    packed: bytes
    style: str


@cache
def shipped() -> Mapping[str, File]:
    """All scripts and styles by name; cached."""
    found: dict[str, File] = {}
    for each in files("soliton.pages").joinpath(FOLDER).iterdir():
        suffix = each.name[each.name.rfind(".") :]
        if suffix in _TYPES:
            body = each.read_bytes()
            tag = b'"%s"' % hashlib.sha256(body).hexdigest()[:20].encode("ascii")
            found[each.name] = File(body, _TYPES[suffix], tag)
    return found


@cache
def version() -> str:
    """A digest of all files, which changes with any of them."""
    tags = (name.encode("ascii") + each.tag for name, each in sorted(shipped().items()))
    return hashlib.sha256(b"".join(tags)).hexdigest()[:12]


def _packed(body: bytes) -> bytes:
    return gzip.compress(body, 9, mtime=0) if len(body) > _SMALL else body


def takes_gzip(accept_encoding: bytes | None) -> bool:
    """Whether ``Accept-Encoding`` contains gzip."""
    for part in (accept_encoding or b"").lower().split(b","):
        name, _, quality = part.replace(b" ", b"").partition(b";q=")
        if name == b"gzip":
            return quality.strip(b"0.") != b"" or quality == b""
    return False


def file_answer(name: str, headers: Mapping[bytes, bytes]) -> Whole | None:
    """The response with a file, or 304; ``None`` if there is no such file. ``name`` may begin with
    a version; files of the current version never change.
    """
    prefix, _, name = name.rpartition("/")
    file = shipped().get(name)
    if file is None:
        return None
    # Without the current version, a browser has to revalidate each time.
    more: Headers = (
        (b"cache-control", _FOR_GOOD if prefix == version() else b"no-cache"),
        (b"etag", file.tag),
        (b"x-content-type-options", b"nosniff"),
    )
    if headers.get(b"if-none-match") == file.tag:
        return Whole(b"", file.content_type, 304, more)
    return _sent(file.body, file.packed, file.content_type, more, headers)


def _sent(
    body: bytes, packed: bytes, kind: bytes, more: Headers, headers: Mapping[bytes, bytes]
) -> Whole:
    more = ((b"vary", b"Accept-Encoding"), *more)
    if packed is not body and takes_gzip(headers.get(b"accept-encoding")):
        return Whole(packed, kind, headers=((b"content-encoding", b"gzip"), *more))
    return Whole(body, kind, headers=more)


def page(
    name: str, entry: str, values: Mapping[str, str], markup: Mapping[str, str] | None = None
) -> Page:
    """Fill in a page. Its style is inline, so that the page is painted at once. The modules that
    ``entry`` imports are listed, so that they are fetched in parallel after the first paint.
    ``values`` are escaped, ``markup`` is trusted.
    """
    text = files("soliton.pages").joinpath(FOLDER, f"{name}.html").read_text(encoding="utf-8")
    modules = " ".join(sorted({entry, *modules_of(entry)}))
    style = "".join(shipped()[each].body.decode("utf-8") for each in styles_of(name))
    values = {"version": version(), "entry": entry, "modules": modules, **values}
    for key, value in values.items():
        text = text.replace("{{" + key + "}}", html.escape(value))
    for key, value in {"style": style, **(markup or {})}.items():
        text = text.replace("{{" + key + "}}", value)
    body = text.encode("utf-8")
    hashed = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    return Page(body, _packed(body), hashed)


def styles_of(name: str) -> tuple[str, ...]:
    """The styles of a page: the common one, and its own if there is one."""
    return tuple(each for each in (_STYLE, f"{name}.css") if each in shipped())


def modules_of(entry: str) -> set[str]:
    """The modules that a module imports, directly or indirectly."""
    found: set[str] = set()
    pending = [entry]
    while pending:
        text = shipped()[pending.pop()].body.decode("utf-8")
        new = set(_IMPORT.findall(text)) - found
        found |= new
        pending += new
    return found


def page_answer(
    content: Page, headers: Mapping[bytes, bytes], also: str = "", more: Headers = ()
) -> Whole:
    """The response with a page and its policy; ``also`` is another server that it may call."""
    origin = _ORIGIN.match(also)
    others = f" {origin[0]}" if origin else ""
    policy = _POLICY.format(style=content.style, others=others)
    more = (
        (b"content-security-policy", policy.encode("ascii")),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-cache"),
        *more,
    )
    return _sent(content.body, content.packed, HTML, more, headers)
