"""Parameters of requests: lists, booleans, dates, pages.

What lives here: parsing values, with the reference's messages for invalid ones. What does not: the
parameters of each route.

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

from soliton.data_service.errors import BadRequest, WrongValue
from soliton.web.parameters import MAX_SHOWN_CHARS
from soliton.web.request import RejectionError, Request, TooManyFieldsError, parse_query

MAX_LIMIT: Final = 100
MAX_ITEMS: Final = 5_000
"""Limit on the values of a list."""
MAX_TEXT: Final = 1_024
"""Limit on the characters of a value; only scripts are longer."""
MAX_SCRIPT: Final = 512 * 1_024
_MAX_MILLISECONDS: Final = 8_640_000_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_UID: Final = 2**63 - 1
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")

Values = dict[str, list[str]]


def read_values(request: Request) -> Values:
    """Return the parameters of a request, from its query or, for a POST, its body."""
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
        values[name] = [_body_text(name, each) for each in items if each is not None]
    return values


def _body_text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    shown = msgspec.json.encode(value).decode()
    raise WrongValue("Invalid body", name, shown, "a text, a number, a boolean, or a list of them")


class Query:
    """The parameters of a request."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str, longest: int = MAX_TEXT) -> str | None:
        """Return a text, the last of several values; ``None`` without one."""
        found = self._values.get(name)
        if not found:
            return None
        if len(found[-1]) > longest or "\0" in found[-1]:
            raise WrongValue(
                *(f"{name} is not valid", name, found[-1]),
                f"at most {longest} characters other than NUL",
            )
        return found[-1]

    def listed(self, name: str) -> list[str] | None:
        """Return a list: repeated values, or one with commas; an empty text is an empty list."""
        found = self._values.get(name)
        if found is None:
            return None
        items = found[0].split(",") if len(found) == 1 else found
        if items == [""]:
            return []
        if len(items) > MAX_ITEMS or any(len(each) > MAX_TEXT or "\0" in each for each in items):
            raise WrongValue(
                *(f"{name} is not valid", name, ",".join(items[:MAX_SHOWN_CHARS])),
                f"at most {MAX_ITEMS} values of at most {MAX_TEXT} characters other than NUL",
            )
        return items

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        return (self.flags(name) or [False])[0]

    def flags(self, name: str) -> list[bool]:
        """Return a list of booleans."""
        found = [each.lower() for each in self.listed(name) or ()]
        if any(each not in ("true", "false") for each in found):
            raise WrongValue("Invalid boolean value", name, ",".join(found), "true or false")
        return [each == "true" for each in found]

    def moment(self, name: str) -> datetime | None:
        """Return a time in UTC, from milliseconds or a text that JavaScript accepts as a date."""
        value = self.text(name)
        if value is None:
            return None
        found = _milliseconds(value) if _is_whole(value) else _date(value)
        if found is None:
            allowed = "milliseconds since 1970, or a date as in RFC 3339 or RFC 5322"
            raise WrongValue("Date is not valid", name, value, allowed)
        return found

    def limit(self, most: int = MAX_LIMIT) -> int:
        """Return the length of a page."""
        value = self.text("limit")
        if value is None:
            return MAX_LIMIT
        if not _is_whole(value) or value.startswith("-"):
            raise WrongValue("limit has to be a number", "limit", value, f"0 to {most}")
        if len(value) > len(str(most)) + 8 or int(value) > most:
            raise WrongValue(f"Max limit {most} exceeded", "limit", value, f"0 to {most}")
        return int(value)

    def is_ascending(self) -> bool:
        """Whether a page is in ascending order."""
        value = self.text("sort")
        if value not in (None, "asc", "desc"):
            raise WrongValue("Invalid sort value", "sort", value, "asc or desc")
        return value == "asc"

    def after(self) -> str | None:
        """Return the content of the cursor of the previous page. Clients do not encode it, so a
        space stands for ``+``.
        """
        value = self.text("after")
        if value is None:
            return None
        try:
            found = base64.b64decode(value.replace(" ", "+"), validate=True).decode()
        except ValueError:
            found = "\0"
        if "\0" in found:
            raise wrong_cursor(value)
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


def wrong_cursor(value: str) -> WrongValue:
    """Return the error for a cursor that no answer has had."""
    message = "Cursor deserialization is failed"
    return WrongValue(message, "after", value, "the lastCursor of a page of this list")


def cursor(text: str) -> str:
    """Return a cursor for ``Query.after``."""
    return base64.b64encode(text.encode()).decode()


class Page(NamedTuple):
    """A page of transactions: its length, its order, and the uid that it follows."""

    limit: int
    ascending: bool
    after: int | None


def read_page(query: Query) -> Page:
    """Return the requested page; the order in a cursor takes precedence."""
    limit, ascending, after = query.limit(), query.is_ascending(), query.after()
    if after is None:
        return Page(limit, ascending, None)
    uid, _, sort = after.partition("::")
    if not _is_whole(uid) or sort not in ("asc", "desc") or len(uid) > len(str(_MAX_UID)):
        raise wrong_cursor(after)
    if abs(int(uid)) > _MAX_UID:
        raise wrong_cursor(after)
    return Page(limit, sort == "asc", int(uid))
