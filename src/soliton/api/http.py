"""Requests as handlers of the REST API see them, and the JSON that they answer with.

What lives here: what a request has beside that of all services. What does not: choosing the handler
(``routes``), answering (``application``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from soliton.api.context import ApiContext
from soliton.api.errors import TOO_BIG_SEQUENCE_WITH_LIMIT
from soliton.api.json_reader import ObjectReader, parse_object, wrong_texts
from soliton.api.number_strings import with_strings
from soliton.web import request as web
from soliton.web.answers import APPLICATION_JSON, Whole
from soliton.web.clients import LOCAL
from soliton.web.number_strings import JSON_WITH_STRINGS, Accepted
from soliton.web.request import FORM_URLENCODED, MAX_FIELDS
from soliton.web.types import Headers

if TYPE_CHECKING:
    from soliton.api.fair_limits import FairLimits

encode_json = msgspec.json.Encoder().encode


def next_page(path: str, **query: str | None) -> Headers:
    """The header ``Link`` (RFC 8288) that leads to the next page of a list."""
    pairs = urlencode({name: value for name, value in query.items() if value is not None})
    return ((b"link", f'<{path}?{pairs}>; rel="next"'.encode()),)


def big_number(value: int) -> msgspec.Raw:
    """An integer beyond 64 bits (a block score) as a JSON number."""
    return msgspec.Raw(str(value).encode("ascii"))


def json_answer(
    value: object, wish: Accepted = Accepted.NUMBERS, status: int = 200, headers: Headers = ()
) -> Whole:
    """A value as JSON in the form that the client wishes."""
    encoded = encode_json(value)
    if wish is Accepted.STRINGS:
        return Whole(with_strings(encoded), JSON_WITH_STRINGS, status, headers)
    return Whole(encoded, APPLICATION_JSON, status, headers)


class Request(web.Request):
    """One request of a client.

    ``tag`` is the ``ETag`` of its answer, if that has one; ``client`` is who asks, as
    ``soliton.web.clients`` tells clients apart, and ``fair`` are the limits that clients have;
    ``wish`` is what the client can read.
    """

    __slots__ = ("_json", "client", "context", "fair", "tag", "wish")

    context: ApiContext
    fair: FairLimits | None

    def __init__(
        self,
        method: str,
        path: str,
        query_string: bytes = b"",
        headers: dict[bytes, bytes] | None = None,
        body: bytes = b"",
        host: str = "",
    ) -> None:
        super().__init__(method, path, query_string, headers, body, host)
        self.tag: bytes | None = None
        self.client = LOCAL
        self.fair = None
        self.wish = Accepted.NUMBERS
        self._json: dict[str, object] | None = None

    @property
    def query(self) -> dict[str, list[str]]:
        """All query parameters, each with its values in order; more than there may be are error
        10.
        """
        if self._query is None:
            self._query = parse_query(self.query_string)
        return self._query

    def charge(self, seconds: float) -> None:
        """Put what others work for this request, in whatever thread or process, on its client's
        account.
        """
        if self.fair is not None:
            self.fair.charge(self.client, seconds)

    def json(self) -> dict[str, object]:
        """The body as a JSON object, or error 1."""
        if self._json is None:
            self._json = parse_object(self.body)
        return self._json

    def reader(self) -> ObjectReader:
        """The body as a JSON object whose members are taken out one by one."""
        return ObjectReader(self.json())

    def listed(self, name: str, json_name: str) -> list[str]:
        """A list sent as query (GET), as form, or as the member ``json_name`` of a JSON object.

        Malformed JSON rejects the route, as in the reference (``CustomDirectives.anyParam``).
        """
        if self.method == "GET":
            return self.query.get(name, [])
        if self.content_type() in (FORM_URLENCODED, b""):
            # Without a type there is no body either: a form with nothing in it.
            return parse_query(self.body).get(name, [])
        values = self.json().get(json_name)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise wrong_texts(json_name, values)
        return [value for value in values if isinstance(value, str)]


def parse_query(query: bytes) -> dict[str, list[str]]:
    """The pairs of a query or form; a malformed escape rejects the request, and more than there may
    be are error 10.
    """
    try:
        return web.parse_query(query)
    except web.TooManyFieldsError:
        raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=MAX_FIELDS) from None
