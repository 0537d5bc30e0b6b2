"""Finding transactions: by id, or page by page.

Parameters are passed to the database as values only. A page is read with one row more than its
limit, and its cursor is that of its last transaction, so no row is returned twice.

What lives here: statements, pages, envelopes. What does not: the kinds (``kinds``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from soliton.data_service.assets import Aliases, Assets
from soliton.data_service.errors import BadRequest, NotFound, WrongValue
from soliton.data_service.formats import Format, encode_json, listed, one
from soliton.data_service.kinds import (
    BY_TYPE,
    DATA_VALUES,
    SENDER,
    SENDERS,
    Filter,
    Kind,
    common_json,
    other_json,
)
from soliton.data_service.parameters import (
    MAX_LIMIT,
    MAX_SCRIPT,
    Page,
    Query,
    cursor,
    read_page,
)
from soliton.data_service.pool import Pool, Row

MAX_ANSWER_BYTES: Final = 32 * 1024 * 1024
"""Limit on a response to a request by ids: ten times the size of as many transfers as a request may
name, or two hundred data transactions of the maximal size.
"""
_TYPE: Final = "transaction"
_MAX_I64: Final = 2**63
_PLACES: Final = 100_000
"""The range of transaction numbers for each height."""
_STRAY: Final = timedelta(days=1)
"""The deviation of a transaction's time from its block's. It is at most two hours older than the
previous block and 90 minutes younger than its own; this leaves room for other networks.
"""
_LATEST: Final = datetime(9_000, 1, 1, tzinfo=UTC)
_STRAY_SINCE: Final = datetime(2016, 12, 1, tzinfo=UTC)
"""Before this time, mainnet allowed transactions from the future."""
_FIRST: Final = "ORDER BY time_stamp, height LIMIT 1"
_SINCE: Final = f"SELECT height FROM blocks WHERE time_stamp >= %s {_FIRST}"  # noqa: S608 - ours
_AFTER: Final = f"SELECT height FROM blocks WHERE time_stamp > %s {_FIRST}"  # noqa: S608 - ours


class _Where:
    """The conditions of a query, and their values."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.values: Row = {}
        self.senders: list[str] | None = None
        """The sender has to be one of them."""

    def add(self, condition: str, value: object) -> None:
        """Add a condition with ``%(value)s`` in it."""
        name = f"value{len(self.values)}"
        self.conditions.append(condition.replace("%(value)s", f"%({name})s"))
        self.values[name] = value

    @property
    def text(self) -> str:
        """All conditions."""
        return " AND ".join(self.conditions) or "true"


class Transactions:
    """The transactions of one database."""

    def __init__(self, pool: Pool, assets: Assets, aliases: Aliases) -> None:
        self._pool = pool
        self._assets = assets
        self._aliases = aliases

    async def one(self, kind: Kind | None, name: str, shape: Format) -> object:
        """Return a transaction by its id, of one kind or of any."""
        [found] = await self._by_ids(kind, [name], shape)
        if found is None:
            raise NotFound(name)
        return one(_TYPE, found)

    async def many(self, kind: Kind | None, query: Query, shape: Format) -> object:
        """Return transactions by their ids, or a page of those that match."""
        ids = query.listed("ids")
        if ids is not None:
            return listed([one(_TYPE, each) for each in await self._by_ids(kind, ids, shape)])
        page = read_page(query)
        where = _Where()
        if not await self._restrict(where, kind, query):
            return listed([], isLastPage=True)
        rows = await self._page(kind, where, page)
        chosen = rows[: page.limit]
        if kind is None:
            shown = await self._shown(chosen, shape)
        else:
            by_uid = await self._of_kind(kind, chosen, shape)
            shown = [by_uid[row["uid"]] for row in chosen]
        meta: Row = {"isLastPage": len(rows) <= page.limit}
        if shown:
            order = "asc" if page.ascending else "desc"
            meta["lastCursor"] = cursor(f"{rows[: page.limit][-1]['uid']}::{order}")
        return listed([one(_TYPE, each) for each in shown], **meta)

    async def _by_ids(
        self, kind: Kind | None, ids: Sequence[str], shape: Format
    ) -> list[msgspec.Raw | None]:
        """Return the JSON of the transaction for each id. At most a page of them is in memory in
        another form. Raises ``BadRequest`` if the response would be too long.
        """
        if not ids:
            return []
        table = "txs" if kind is None else kind.table
        rows = await self._pool.fetch(
            f"SELECT t.tx_type, t.uid, t.id FROM {table} t WHERE t.id = ANY(%s) ORDER BY t.uid",  # noqa: S608 - the name is ours
            (list(dict.fromkeys(ids)),),
        )
        counts, size = Counter(ids), 0
        found: dict[str, msgspec.Raw] = {}
        for start in range(0, len(rows), MAX_LIMIT):
            for each in await self._shown(rows[start : start + MAX_LIMIT], shape):
                if each["id"] in found:
                    continue
                made = encode_json(each)
                found[each["id"]] = msgspec.Raw(made)
                size += len(made) * counts[each["id"]]
                if size > MAX_ANSWER_BYTES:
                    raise BadRequest("Response is too long, request fewer ids", name="ids")
        return [found.get(each) for each in ids]

    async def _restrict(self, where: _Where, kind: Kind | None, query: Query) -> bool:
        """Add the conditions of a request; return whether anything can match."""
        for each in (SENDER, SENDERS) if kind is None else kind.filters:
            if each.name not in query:
                continue
            value = await self._value(each, query)
            if value is None:
                return False
            if each is SENDERS:
                where.senders = list(dict.fromkeys(query.listed(each.name) or ()))
            else:
                where.add(each.condition, value)
        if not await self._restrict_times(where, query):
            return False
        if kind is not None and kind.path == "data":
            _restrict_data(where, query)
        return True

    async def _restrict_times(self, where: _Where, query: Query) -> bool:
        """Add conditions on times, and on uids, which grow with blocks and have an index."""
        since, until = query.moment("timeStart"), query.moment("timeEnd")
        blocks_since, blocks_until = query.moment("blockTimeStart"), query.moment("blockTimeEnd")
        if since is not None:
            where.add("t.time_stamp >= %(value)s", since)
        if until is not None:
            where.add("t.time_stamp <= %(value)s", until)
        first = [each for each in (blocks_since, _moved(since, -_STRAY)) if each is not None]
        for each in first:
            height = await self._height(_SINCE, each)
            if height is None:
                return False
            where.add("t.uid >= %(value)s", height * _PLACES)
        for at, more in ((blocks_until, 0), (_moved(until, _STRAY), 1)):
            height = None if at is None else await self._height(_AFTER, at)
            if height is not None:
                where.add("t.uid < %(value)s", (height + more) * _PLACES)
        return True

    async def _height(self, statement: str, at: datetime) -> int | None:
        rows = await self._pool.fetch(statement, (at,))
        return int(rows[0]["height"]) if rows else None

    async def _value(self, condition: Filter, query: Query) -> object:
        match condition.kind:
            case "list":
                return query.listed(condition.name)
            case "account":
                recipient = query.text(condition.name)
                return None if recipient is None else await self._aliases.address_of(recipient)
            case "script":
                script = query.text(condition.name, MAX_SCRIPT)
                return None if script is None else script.removeprefix("base64:")
            case _:
                if condition.name == "orderId" and len(query.listed("orderId") or ()) > 1:
                    raise WrongValue(
                        "orderId: only one is allowed",
                        *("orderId", query.text("orderId"), "the id of one order"),
                    )
                return query.text(condition.name)

    async def _page(self, kind: Kind | None, where: _Where, page: Page) -> list[Row]:
        """Return a page and one row more; for all kinds only types and uids."""
        if page.after is not None:
            where.add(f"t.uid {'>' if page.ascending else '<'} %(value)s", page.after)
        table = "txs" if kind is None else kind.table
        order = "ASC" if page.ascending else "DESC"
        columns = "t.tx_type, t.uid" if kind is None else "t.*"
        values = where.values | {"limit": page.limit + 1}
        if where.senders is not None:
            where.conditions.append("t.sender = s.sender")
            values["senders"] = where.senders
        statement = (
            f"SELECT {columns} FROM {table} t WHERE {where.text} "  # noqa: S608 - no value is in it
            f"ORDER BY t.uid {order} LIMIT %(limit)s"
        )
        if where.senders is not None:
            # A page of each sender, by the index; it includes the page of all.
            statement = (
                f"SELECT p.* FROM unnest(%(senders)s::text[]) AS s (sender) "  # noqa: S608 - as above
                f"CROSS JOIN LATERAL ({statement}) p ORDER BY p.uid {order} LIMIT %(limit)s"
            )
        return await self._pool.fetch(statement, values)

    # --- content ----------------------------------------------------------------------------------

    async def _shown(self, rows: Sequence[Row], shape: Format) -> list[Row]:
        """Return the transactions of rows, in order."""
        found: dict[int, Row] = {}
        for type_id in dict.fromkeys(row["tx_type"] for row in rows):
            uids = [row["uid"] for row in rows if row["tx_type"] == type_id]
            kind = BY_TYPE.get(type_id)
            if kind is None:
                found |= await self._others(uids)
                continue
            whole = await self._pool.fetch(
                f"SELECT t.* FROM {kind.table} t WHERE t.uid = ANY(%s)",  # noqa: S608 - the name is ours
                (uids,),
            )
            found |= await self._of_kind(kind, whole, shape)
        return [found[row["uid"]] for row in rows if row["uid"] in found]

    async def _others(self, uids: Sequence[int]) -> dict[int, Row]:
        rows = await self._pool.fetch(
            "SELECT uid, body FROM txs_other WHERE uid = ANY(%s)", (list(uids),)
        )
        return {row["uid"]: other_json(row) for row in rows}

    async def _of_kind(self, kind: Kind, rows: Sequence[Row], shape: Format) -> dict[int, Row]:
        """Return the transactions of complete rows, by uid."""
        by_uid = {row["uid"]: row for row in rows}
        for detail in kind.details:
            for row in rows:
                row[detail.name] = []
            items = await self._pool.fetch(
                f"SELECT * FROM {detail.table} WHERE tx_uid = ANY(%s) "  # noqa: S608 - names are ours
                f"ORDER BY tx_uid, {detail.order}",
                (list(by_uid),),
            )
            for item in items:
                if item["tx_uid"] in by_uid:
                    by_uid[item["tx_uid"]][detail.name].append(item)
        names = {name for row in rows for name in kind.assets(row)}
        decimals = await self._assets.decimals(names) if names else {}
        return {
            uid: common_json(row, shape) | kind.show(row, shape, decimals)
            for uid, row in by_uid.items()
        }


def _moved(at: datetime | None, by: timedelta) -> datetime | None:
    """Shift a time by the deviation; ``None`` outside the range where it holds."""
    if at is None or not _STRAY_SINCE + _STRAY <= at <= _LATEST:
        return None
    return at + by


def _restrict_data(where: _Where, query: Query) -> None:
    """Add conditions on data: one entry has the key, the type and the value."""
    key, kind, value = query.text("key"), query.text("type"), query.text("value", MAX_SCRIPT)
    conditions = []
    if key is not None:
        conditions.append("md5(i.data_key) = md5(%(data_key)s) AND i.data_key = %(data_key)s")
        where.values["data_key"] = key
    if kind is not None:
        if kind not in DATA_VALUES:
            raise WrongValue("Invalid data type", "type", kind, f"one of {', '.join(DATA_VALUES)}")
        conditions.append("i.data_type = %(data_type)s")
        where.values["data_type"] = kind
    if value is not None:
        if kind is None:
            raise WrongValue("value needs type", "type", None, f"one of {', '.join(DATA_VALUES)}")
        condition, read = DATA_VALUES[kind]
        conditions.append(condition)
        try:
            where.values["data_value"] = read(value)
        except ValueError as error:
            raise _wrong_data(value, kind) from error
        if kind == "integer" and not -_MAX_I64 <= int(value) < _MAX_I64:
            raise _wrong_data(value, kind)
    if conditions:
        where.conditions.append(
            "t.uid IN (SELECT i.tx_uid FROM txs_12_data i WHERE " + " AND ".join(conditions) + ")"  # noqa: S608 - no value is in it
        )


def _wrong_data(value: str, kind: str) -> WrongValue:
    return WrongValue("Invalid data value", "value", value, f"a value of the type {kind}")
