"""The head of a request: its headers, and their validation.

What lives here: reading and checking headers. What does not: decoding (``hpack``), and requests
(the applications).

Source: RFC 9113, section 8.
"""

from __future__ import annotations

from typing import Final

from soliton.web.header_rules import is_authority, repeats_single
from soliton.web.http2.hpack import Header
from soliton.web.http2.limits import HEADER_LIST_BYTES

_PSEUDO: Final = frozenset((b":method", b":scheme", b":path", b":authority"))
_NEEDED: Final = frozenset((b":method", b":scheme", b":path"))
_OF_CONNECTIONS: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)
_NAME_BYTES: Final = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
_NO_VALUE_BYTES: Final = (b"\0", b"\r", b"\n")
_MOST_DIGITS: Final = 18


class Head:
    """A decoded header block, which many requests may share."""

    __slots__ = (
        "fields",
        "is_bad",
        "is_bad_behind",
        "is_too_large",
        "length",
        "made",
        "method",
        "path",
    )

    def __init__(self, headers: list[Header], size: int) -> None:
        """``size`` is that of all headers, including those left out."""
        pseudo = {name: value for name, value in headers if name.startswith(b":")}
        self.fields = [each for each in headers if not each[0].startswith(b":")]
        """The headers without pseudo-headers, in order."""
        self.method = pseudo.get(b":method", b"")
        self.path = pseudo.get(b":path", b"")
        self.is_too_large = size > HEADER_LIST_BYTES
        self.length: int | None = None
        """The content length."""
        has_good_fields = self._has_good_fields()
        self.is_bad = not self.is_too_large and not (
            has_good_fields and self._keeps_rules(headers, pseudo)
        )
        self.is_bad_behind = not has_good_fields or len(self.fields) != len(headers)
        """Whether it is invalid as trailers."""
        self.made: object = None
        """The application's cached interpretation."""

    def _keeps_rules(self, headers: list[Header], pseudo: dict[bytes, bytes]) -> bool:
        first = [name for name, _ in headers[: len(pseudo)]]
        count = len(headers) - len(self.fields)
        if count != len(pseudo) or set(first) != pseudo.keys() or not pseudo.keys() <= _PSEUDO:
            return False
        if not pseudo.keys() >= _NEEDED or not self.path or not self.method:
            return False
        return self._names_one_host(pseudo.get(b":authority")) and all(
            map(_is_value, pseudo.values())
        )

    def _names_one_host(self, authority: bytes | None) -> bool:
        """Whether headers that may occur once do, and ``:authority`` and the host agree, if a
        client sends them: clients of gRPC may omit both.
        """
        if repeats_single(self.fields):
            return False
        hosts = [authority] if authority is not None else []
        hosts += [value for name, value in self.fields if name == b"host"]
        return len({host.lower() for host in hosts}) < 2 and all(map(is_authority, hosts))

    def _has_good_fields(self) -> bool:
        for name, value in self.fields:
            if not is_field(name, value) or (name == b"te" and value != b"trailers"):
                return False
            if name == b"content-length":
                if not value.isdigit() or len(value) > _MOST_DIGITS:
                    return False
                if self.length not in (None, int(value)):
                    return False
                self.length = int(value)
        return True


def is_field(name: bytes, value: bytes) -> bool:
    """Whether a header is valid in a request or its trailers."""
    return (
        bool(name)
        and name not in _OF_CONNECTIONS
        and _NAME_BYTES.issuperset(name)
        and _is_value(value)
    )


def _is_value(value: bytes) -> bool:
    if value[:1] in (b" ", b"\t") or value[-1:] in (b" ", b"\t"):
        return False
    return not any(each in value for each in _NO_VALUE_BYTES)
