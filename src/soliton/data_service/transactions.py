"""Finding transactions: by id, or page by page.

Values of parameters only ever go to the database as values. A page is what was read of one more
than its limit, and its cursor is that of its last transaction, so no row comes twice.

What lives here: statements, pages, envelopes. What does not: the kinds (``kinds``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from soliton.data_service.assets import Aliases, Assets
from soliton.data_service.errors import BadRequest, NotFound
from soliton.data_service.formats import Format, listed, one
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
    MAX_SCRIPT,
    Page,
    Query,
    cursor,
    read_page,
)
from soliton.data_service.pool import Pool, Row

_TYPE: Final = "transaction"
_MAX_I64: Final = 2**63
_SINCE_BLOCK: Final = (
    "t.height >= (SELECT coalesce(min(height), 2147483647) FROM blocks WHERE time_stamp >= "
    "%(value)s)"
)
_UNTIL_BLOCK: Final = (
    "t.height <= (SELECT coalesce(max(height), 0) FROM blocks WHERE time_stamp <= %(value)s)"
)
_TIMES: Final = {
    "timeStart": "t.time_stamp >= %(value)s",
    "timeEnd": "t.time_stamp <= %(value)s",
    "blockTimeStart": _SINCE_BLOCK,
    "blockTimeEnd": _UNTIL_BLOCK,
}


class _Where:
    """Conditions, and the values that they name."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.values: Row = {}

    def add(self, condition: str, value: object) -> None:
        """One with ``%(value)s`` in it."""
        name = f"value{len(self.values)}"
        self.conditions.append(condition.replace("%(value)s", f"%({name})s"))
        self.values[name] = value

    @property
    def text(self) -> str:
        """All of them."""
        return " AND ".join(self.conditions) or "true"


class Transactions:
    """The transactions of one database."""

    def __init__(self, pool: Pool, assets: Assets, aliases: Aliases) -> None:
        self._pool = pool
        self._assets = assets
        self._aliases = aliases

    async def one(self, kind: Kind | None, name: str, shape: Format) -> object:
        """A transaction by its id, of a kind or of any."""
        found = await self._by_ids(kind, [name], shape)
        if name not in found:
            raise NotFound(name)
        return one(_TYPE, found[name])

    async def many(self, kind: Kind | None, query: Query, shape: Format) -> object:
        """Transactions by their ids, or a page of those that fit."""
        ids = query.listed("ids")
        if ids is not None:
            found = await self._by_ids(kind, ids, shape)
            return listed([one(_TYPE, found.get(each)) for each in ids])
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

    async def _by_ids(self, kind: Kind | None, ids: Sequence[str], shape: Format) -> Row:
        if not ids:
            return {}
        table = "txs" if kind is None else kind.table
        rows = await self._pool.fetch(
            f"SELECT t.tx_type, t.uid, t.id FROM {table} t WHERE t.id = ANY(%s) ORDER BY t.uid",  # noqa: S608 - the name is ours
            (list(dict.fromkeys(ids)),),
        )
        shown = await self._shown(rows, shape)
        return {each["id"]: each for each in reversed(shown)}

    async def _restrict(self, where: _Where, kind: Kind | None, query: Query) -> bool:
        """Add what a request asks for; whether anything can fit."""
        for each in (SENDER, SENDERS) if kind is None else kind.filters:
            if each.name not in query:
                continue
            value = await self._value(each, query)
            if value is None:
                return False
            where.add(each.condition, value)
        for name, condition in _TIMES.items():
            moment = query.moment(name)
            if moment is not None:
                where.add(condition, moment)
        if kind is not None and kind.path == "data":
            _restrict_data(where, query)
        return True

    async def _value(self, wanted: Filter, query: Query) -> object:
        match wanted.kind:
            case "list":
                return query.listed(wanted.name)
            case "account":
                recipient = query.text(wanted.name)
                return None if recipient is None else await self._aliases.address_of(recipient)
            case "script":
                script = query.text(wanted.name, MAX_SCRIPT)
                return None if script is None else script.removeprefix("base64:")
            case _:
                if wanted.name == "orderId" and len(query.listed("orderId") or ()) > 1:
                    raise BadRequest("orderId: only one is taken")
                return query.text(wanted.name)

    async def _page(self, kind: Kind | None, where: _Where, page: Page) -> list[Row]:
        """The transactions of a page, and one more; of all kinds their types and numbers."""
        if page.after is not None:
            where.add(f"t.uid {'>' if page.ascending else '<'} %(value)s", page.after)
        table = "txs" if kind is None else kind.table
        order = "ASC" if page.ascending else "DESC"
        columns = "t.tx_type, t.uid" if kind is None else "t.*"
        statement = (
            f"SELECT {columns} FROM {table} t WHERE {where.text} "  # noqa: S608 - no value is in it
            f"ORDER BY t.uid {order} LIMIT %(limit)s"
        )
        return await self._pool.fetch(statement, where.values | {"limit": page.limit + 1})

    # --- showing ----------------------------------------------------------------------------------

    async def _shown(self, rows: Sequence[Row], shape: Format) -> list[Row]:
        """The transactions of rows, in their order."""
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
        """The transactions of whole rows, by their numbers."""
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


def _restrict_data(where: _Where, query: Query) -> None:
    """Entries of data transactions: one entry has the key, the type and the value."""
    key, kind, value = query.text("key"), query.text("type"), query.text("value", MAX_SCRIPT)
    conditions = []
    if key is not None:
        conditions.append("md5(i.data_key) = md5(%(data_key)s) AND i.data_key = %(data_key)s")
        where.values["data_key"] = key
    if kind is not None:
        if kind not in DATA_VALUES:
            raise BadRequest("Invalid data type")
        conditions.append("i.data_type = %(data_type)s")
        where.values["data_type"] = kind
    if value is not None:
        if kind is None:
            raise BadRequest("value needs type")
        condition, read = DATA_VALUES[kind]
        conditions.append(condition)
        try:
            where.values["data_value"] = read(value)
        except ValueError as error:
            raise BadRequest("Invalid data value") from error
        if kind == "integer" and not -_MAX_I64 <= int(value) < _MAX_I64:
            raise BadRequest("Invalid data value")
    if conditions:
        where.conditions.append(
            "t.uid IN (SELECT i.tx_uid FROM txs_12_data i WHERE " + " AND ".join(conditions) + ")"  # noqa: S608 - no value is in it
        )
