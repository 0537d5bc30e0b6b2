"""Parameters of requests: lists, booleans, dates, pages.

What lives here: from texts to values, with the words of the reference for what is none. What does
not: which parameters a route has.

Source: wavesplatform/data-service ``src/http/_common/filters`` and
``src/services/_common/pagination``.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

import msgspec

from soliton.data_service.errors import BadRequest
from soliton.web.request import RejectionError, Request, TooManyFieldsError, parse_query

MAX_LIMIT: Final = 100
MAX_ITEMS: Final = 5_000
"""Values of one list."""
MAX_TEXT: Final = 1_024
"""Characters of one value; the longest that anything is found by are scripts."""
MAX_SCRIPT: Final = 512 * 1_024
_MAX_MILLISECONDS: Final = 8_640_000_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_UID: Final = 2**63 - 1
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")

Values = dict[str, list[str]]


def read_values(request: Request) -> Values:
    """The parameters of a request: those of its query, or of its body for a POST."""
    try:
        values = dict(parse_query(request.query_string))
    except (RejectionError, TooManyFieldsError) as error:
        raise BadRequest("Invalid query") from error
    if request.method != "POST" or not request.body:
        return values
    try:
        body = msgspec.json.decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest("Invalid body") from error
    if not isinstance(body, dict):
        raise BadRequest("Invalid body")
    for name, value in body.items():
        items = value if isinstance(value, list) else [value]
        values[name] = [_body_text(each) for each in items if each is not None]
    return values


def _body_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise BadRequest("Invalid body")


class Query:
    """The parameters of a request, one by one."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str, longest: int = MAX_TEXT) -> str | None:
        """A text; of several values the last."""
        found = self._values.get(name)
        if not found:
            return None
        if len(found[-1]) > longest or "\0" in found[-1]:
            raise BadRequest(f"{name} is not valid")
        return found[-1]

    def listed(self, name: str) -> list[str] | None:
        """A list: a value repeated, or one with commas; an empty text is an empty list."""
        found = self._values.get(name)
        if found is None:
            return None
        items = found[0].split(",") if len(found) == 1 else found
        if items == [""]:
            return []
        if len(items) > MAX_ITEMS or any(len(each) > MAX_TEXT or "\0" in each for each in items):
            raise BadRequest(f"{name} is not valid")
        return items

    def flag(self, name: str) -> bool:
        """True or false."""
        return (self.flags(name) or [False])[0]

    def flags(self, name: str) -> list[bool]:
        """Several of them."""
        found = [each.lower() for each in self.listed(name) or ()]
        if any(each not in ("true", "false") for each in found):
            raise BadRequest("Invalid boolean value")
        return [each == "true" for each in found]

    def moment(self, name: str) -> datetime | None:
        """A time, in UTC: milliseconds, or a text that JavaScript takes for a date."""
        value = self.text(name)
        if value is None:
            return None
        found = _milliseconds(value) if _is_whole(value) else _date(value)
        if found is None:
            raise BadRequest("Date is not valid")
        return found

    def limit(self, most: int = MAX_LIMIT) -> int:
        """How many items a page has."""
        value = self.text("limit")
        if value is None:
            return MAX_LIMIT
        if not _is_whole(value) or value.startswith("-"):
            raise BadRequest("limit has to be a number")
        if len(value) > len(str(most)) + 8 or int(value) > most:
            raise BadRequest(f"Max limit {most} exceeded")
        return int(value)

    def is_ascending(self) -> bool:
        """The order of a page."""
        value = self.text("sort")
        if value not in (None, "asc", "desc"):
            raise BadRequest("Invalid sort value")
        return value == "asc"

    def after(self) -> str | None:
        """What the cursor of the page before says. Clients send it as it is, and so ``+`` has
        become a space.
        """
        value = self.text("after")
        if value is None:
            return None
        try:
            found = base64.b64decode(value.replace(" ", "+"), validate=True).decode()
        except ValueError:
            found = "\0"
        if "\0" in found:
            raise BadRequest("Cursor deserialization is failed")
        return found


def _is_whole(value: str) -> bool:
    return _WHOLE.fullmatch(value) is not None


def _milliseconds(value: str) -> datetime | None:
    if len(value) > len(str(_MAX_MILLISECONDS)) + 1:
        return None
    try:
        return _EPOCH + timedelta(milliseconds=int(value))
    except OverflowError:
        return None


def _date(value: str) -> datetime | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(value)
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def cursor(text: str) -> str:
    """The cursor that ``Query.after`` reads."""
    return base64.b64encode(text.encode()).decode()


class Page(NamedTuple):
    """Which transactions of many: how many, in which order, beyond which number."""

    limit: int
    ascending: bool
    after: int | None


def read_page(query: Query) -> Page:
    """The page that is asked for; the order that a cursor names counts."""
    limit, ascending, after = query.limit(), query.is_ascending(), query.after()
    if after is None:
        return Page(limit, ascending, None)
    uid, _, sort = after.partition("::")
    if not _is_whole(uid) or sort not in ("asc", "desc") or len(uid) > len(str(_MAX_UID)):
        raise BadRequest("Cursor deserialization is failed")
    if abs(int(uid)) > _MAX_UID:
        raise BadRequest("Cursor deserialization is failed")
    return Page(limit, sort == "asc", int(uid))
