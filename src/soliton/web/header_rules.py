"""Rules about the headers of a request, whatever the version of HTTP.

What lives here: headers that may occur once, the combination of others, the form of a host. What
does not: parsing (``http1``, ``http2``).

Source: RFC 9110, sections 5.2 and 5.3; RFC 9112, section 3.2; RFC 3986, section 3.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

SINGLE: Final = frozenset(
    (
        *(b"host", b"origin", b"content-type", b"authorization"),
        *(b"x-api-key", b"api_key", b"x-user-public-key", b"timestamp", b"signature"),
        *(b"sec-websocket-key", b"sec-websocket-version"),
    )
)
"""Headers that a request has at most once: two of them may mean two things to two programs."""
_COOKIE: Final = b"cookie"
_AUTHORITY: Final = re.compile(
    rb"(\[[0-9A-Fa-f:.]+(?:%25[A-Za-z0-9._~-]+)?\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(:[0-9]{0,5})?"
)


def repeats_single(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether a header that may occur once occurs more often."""
    single = [name for name, _ in headers if name in SINGLE]
    return len(set(single)) < len(single)


def combined(headers: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return headers by their names; the values of those that occur repeatedly are one list."""
    fields = dict(headers)
    if len(fields) == len(headers):
        return fields
    values: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        values.setdefault(name, []).append(value)
    return {
        name: (b"; " if name == _COOKIE else b", ").join(parts) for name, parts in values.items()
    }


def is_authority(value: bytes) -> bool:
    """Whether a value has the form of a host with an optional port; it may be empty."""
    return _AUTHORITY.fullmatch(value) is not None
