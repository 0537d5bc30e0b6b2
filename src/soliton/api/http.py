"""The request class of the REST API, and JSON responses.

What lives here: what a request has in addition to ``soliton.web.request``. What does not: choosing
the handler (``routes``), responding (``application``).
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

encode_json = msgspec.json.Encoder(decimal_format="number").encode


def next_page(path: str, **query: str | None) -> Headers:
    """The header ``Link`` (RFC 8288) to the next page of a list."""
    pairs = urlencode({name: value for name, value in query.items() if value is not None})
    return ((b"link", f'<{path}?{pairs}>; rel="next"'.encode()),)


def big_number(value: int) -> msgspec.Raw:
    """An integer beyond 64 bits (a block score) as a JSON number."""
    return msgspec.Raw(str(value).encode("ascii"))


def json_answer(
    value: object, accepts: Accepted = Accepted.NUMBERS, status: int = 200, headers: Headers = ()
) -> Whole:
    """A value as JSON, with long numbers in the form that the client accepts."""
    encoded = encode_json(value)
    if accepts is Accepted.STRINGS:
        return Whole(with_strings(encoded), JSON_WITH_STRINGS, status, headers)
    return Whole(encoded, APPLICATION_JSON, status, headers)


class Request(web.Request):
    """One request of a client.

    ``tag`` is the ``ETag`` of the response, if it has one. ``client`` is the client's key
    (``soliton.web.clients``), and ``fair`` the limits on clients. ``accepts`` is the form of JSON
    that the client accepts.
    """

    __slots__ = ("_json", "accepts", "client", "context", "fair", "tag")

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
        self.accepts = Accepted.NUMBERS
        self._json: dict[str, object] | None = None

    @property
    def query(self) -> dict[str, list[str]]:
        """All query parameters, each with its values in order. Too many raise error 10."""
        if self._query is None:
            self._query = parse_query(self.query_string)
        return self._query

    def charge(self, seconds: float) -> None:
        """Charge the client for working time of another thread or process."""
        if self.fair is not None:
            self.fair.charge(self.client, seconds)

    def json(self) -> dict[str, object]:
        """The body as a JSON object; raises error 1 if it is none."""
        if self._json is None:
            self._json = parse_object(self.body)
        return self._json

    def reader(self) -> ObjectReader:
        """A reader of the body's JSON object."""
        return ObjectReader(self.json())

    def listed(self, name: str, json_name: str, limit: int | None = None) -> list[str]:
        """A list from the query (GET), a form, or the member ``json_name`` of a JSON object.

        Malformed JSON rejects the route, as in the reference (``CustomDirectives.anyParam``). More
        than ``limit`` items raise error 10.
        """
        found = self._listed(name, json_name)
        if limit is not None and len(found) > limit:
            raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=limit)
        return found

    def _listed(self, name: str, json_name: str) -> list[str]:
        if self.method == "GET":
            return self.query.get(name, [])
        if self.content_type() in (FORM_URLENCODED, b""):
            # Without a content type there is no body: an empty form.
            return parse_query(self.body).get(name, [])
        values = self.json().get(json_name)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise wrong_texts(json_name, values)
        return [value for value in values if isinstance(value, str)]


def parse_query(query: bytes) -> dict[str, list[str]]:
    """The pairs of a query or form. A malformed escape rejects the request; too many pairs raise
    error 10.
    """
    try:
        return web.parse_query(query)
    except web.TooManyFieldsError:
        raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=MAX_FIELDS) from None
