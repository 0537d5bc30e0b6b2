"""Reading the policy from a TOML file, with the line of each rule and condition.

What lives here: parsing and validation, with file and line in errors. What does not: the meaning of
rules (``policy``).
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from soliton.chain.addresses import (
    ALIAS_PREFIX,
    Address,
    Alias,
    Recipient,
    make_alias,
    parse_address,
    parse_claimed_recipient,
)
from soliton.chain.blocks import PROTOBUF_VERSION
from soliton.chain.errors import ChainError
from soliton.chain.transactions.model import ForeignForm
from soliton.chain.transactions.table import registered
from soliton.chain.values import MAX_I64, AssetId
from soliton.crypto import base58
from soliton.crypto.errors import CryptoError
from soliton.errors import InputError
from soliton.signer.measures import COIN, Kind
from soliton.signer.patterns import BadPattern, TextPattern, argument_pattern, text_pattern
from soliton.signer.policy import NEW, Approvals, Bounds, Call, Pair, Policy, Rule, Window

MAX_FILE_BYTES: Final = 1024 * 1024
MAX_RULES: Final = 1_000
MAX_ITEMS: Final = 10_000
MAX_WINDOWS: Final = 16
MAX_APPROVERS: Final = 64
MAX_DECIMALS: Final = 8
MAX_WINDOW_MS: Final = 366 * 24 * 60 * 60 * 1_000
ANY: Final = "any"
SELF: Final = "self"
_LENGTH_BYTES: Final = 32
_HEADER: Final = re.compile(r"[ \t]*\[\[[ \t]*rule[ \t]*\]\]")
_TABLE: Final = re.compile(r"[ \t]*\[")
_KEY: Final = re.compile(r"[ \t]*([A-Za-z0-9_-]{1,64})[ \t]*=")
_DURATION: Final = re.compile(r"([0-9]{1,9})(s|m|h|d)")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PRICE: Final = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,30})?")
_MEASURED: Final = ("amounts", "fees", "quantities", "signatures")

T = TypeVar("T")


class PolicyProblem(InputError):
    """The file is invalid; the message has the file and line."""


def read_policy(path: Path, chain_id: int) -> Policy:
    """Read a policy file; raises ``PolicyProblem``."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise PolicyProblem(f"{path} cannot be read: {error.strerror}") from error
    return parse_policy(data, path.name, chain_id)


def policy_hash(data: bytes) -> str:
    """Return the SHA-256 of the file in hexadecimal, which the settings pin."""
    return hashlib.sha256(data).hexdigest()


def parse_policy(data: bytes, name: str, chain_id: int) -> Policy:
    """Parse a policy; ``name`` is used in messages. Raises ``PolicyProblem``."""
    if len(data) > MAX_FILE_BYTES:
        raise PolicyProblem(f"{name} has more than {MAX_FILE_BYTES} bytes")
    try:
        text = data.decode()
        tree = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise PolicyProblem(f"{name} is no TOML: {error}") from None
    if '"""' in text or "'''" in text:
        raise PolicyProblem(f"{name} has a text of several lines, in which lines cannot be told")
    unknown = tree.keys() - {"rule", "decimals"}
    if unknown:
        raise PolicyProblem(f"{name} has {min(unknown)}; known are rule and decimals")
    rules, headers = tree.get("rule", []), _lines_of_rules(text)
    if not isinstance(rules, list) or len(rules) != len(headers):
        raise PolicyProblem(f"{name}: every rule begins with a line [[rule]]")
    if len(rules) > MAX_RULES:
        raise PolicyProblem(f"{name} has more than {MAX_RULES} rules")
    read = [
        _RuleReader(rule, name, line, lines, chain_id).read()
        for rule, (line, lines) in zip(rules, headers, strict=True)
    ]
    names: dict[str, int] = {}
    for rule in read:
        if rule.name in names:
            raise PolicyProblem(
                f"{name}:{rule.line}: the rule of line {names[rule.name]} has this name, too; "
                "counters are kept under it"
            )
        names[rule.name] = rule.line
    decimals = _decimals(tree.get("decimals", {}), name)
    return Policy(read, decimals, name, policy_hash(data), text)


def duration_ms(text: object) -> int | None:
    """Parse a duration such as ``90s``, ``15m``, ``24h``, ``7d``; ``None`` for anything else."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    length = 0 if match is None else int(match[1]) * _UNIT_MS[match[2]]
    return length if 0 < length <= MAX_WINDOW_MS else None


def _lines_of_rules(text: str) -> list[tuple[int, dict[str, int]]]:
    """Return the line of each rule's header, and of each of its keys."""
    found: list[tuple[int, dict[str, int]]] = []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if _HEADER.match(line):
            found.append((number, {}))
            inside = True
        elif _TABLE.match(line) and "=" not in line and "," not in line:
            inside = False
        elif inside and (key := _KEY.match(line)) is not None:
            found[-1][1].setdefault(key[1], number)
    return found


def _decimals(table: object, name: str) -> dict[AssetId | None, int]:
    if not isinstance(table, dict) or len(table) > MAX_ITEMS:
        raise PolicyProblem(f"{name}: decimals is a table of assets and their decimals")
    found: dict[AssetId | None, int] = {}
    for asset, places in table.items():
        if type(places) is not int or not 0 <= places <= MAX_DECIMALS:
            raise PolicyProblem(f"{name}: decimals of {asset[:64]} are 0 to {MAX_DECIMALS}")
        try:
            found[_asset(asset)] = places
        except ValueError as error:
            raise PolicyProblem(f"{name}: decimals: {error}") from None
    return found


def _asset(text: object) -> AssetId | None:
    if text == COIN:
        return None
    try:
        asset = base58.decode(text, 64) if isinstance(text, str) else b""
    except CryptoError:
        asset = b""
    if len(asset) != _LENGTH_BYTES:
        raise ValueError(f"an asset is {COIN} or an id in base58")
    return asset


def _created(text: object) -> AssetId | None:
    if text == NEW:
        return None
    if text == COIN:
        raise ValueError(f"an asset is {NEW} or an id in base58: nobody creates {COIN}")
    try:
        return _asset(text)
    except ValueError:
        raise ValueError(f"an asset is {NEW} or an id in base58") from None


def _forms() -> dict[str, tuple[str, range]]:
    """Return what can be signed: name and versions, by name or type number."""
    found: dict[str, tuple[str, range]] = {}
    for kind in registered():
        if kind.versioned and not isinstance(kind.protobuf, ForeignForm):
            versions = range(1, kind.max_version + 1)
            found[kind.name] = found[str(kind.type_id)] = kind.name, versions
    found[Kind.ORDER.value] = Kind.ORDER.value, range(1, 5)
    found[Kind.CUSTOM_DATA.value] = Kind.CUSTOM_DATA.value, range(1, 3)
    found[Kind.BLOCK.value] = Kind.BLOCK.value, range(1, PROTOBUF_VERSION + 1)
    found[Kind.MICROBLOCK.value] = Kind.MICROBLOCK.value, range(1, PROTOBUF_VERSION + 1)
    for kind_ in (Kind.CANCEL_ORDER, Kind.AUTH, Kind.WAVES_AUTH, Kind.TEXT):
        found[kind_.value] = kind_.value, range(1, 2)
    return found


class _RuleReader:
    """Reads one rule, and refuses invalid members with their line."""

    def __init__(
        self, tree: Mapping[str, Any], file: str, line: int, lines: Mapping[str, int], chain_id: int
    ) -> None:
        self._tree = tree
        self._file = file
        self._line = line
        self._lines = lines
        self._chain_id = chain_id

    def refuse(self, key: str, expected: str) -> NoReturn:
        """Raise ``PolicyProblem``."""
        line = self._lines.get(key, self._line)
        raise PolicyProblem(f"{self._file}:{line}: {key}: expected {expected}")

    def read(self) -> Rule:
        for key in self._tree:
            if key not in _KEYS:
                self.refuse(key, f"one of {', '.join(_KEYS)}")
        name = self._tree.get("name")
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            self.refuse("name", "a name of its own: letters, digits and ._-, at most 64")
        recipients, to_self, pins = self._recipients()
        return Rule(
            name=name,
            line=self._line,
            lines=dict(self._lines),
            forms=self._signs(),
            keys=self._names("keys"),
            callers=self._names("callers"),
            senders=self._set("senders", self._own_address),
            recipients=recipients,
            to_self=to_self,
            pins=pins,
            amounts=self._table("amounts"),
            fees=self._table("fees"),
            quantities=self._quantities(),
            calls=self._tuple("calls", self._call),
            data_keys=self._tuple("data-keys", text_pattern),
            pairs=self._tuple("pairs", self._pair),
            matchers=self._set("matchers", self._public_key),
            lifetime_ms=self._duration("lifetime"),
            hosts=self._tuple("hosts", text_pattern),
            unbound_chain=self._truth("unbound-chain"),
            scripts=self._truth("scripts"),
            simulate=self._truth("simulate"),
            windows=self._windows(),
            approvals=self._approvals(),
        )

    def _any_or(self, key: str, read: Callable[[Any], T]) -> list[T] | None:
        """Return the items of a list, ``None`` for ``"any"``, an empty list if it is missing."""
        value = self._tree.get(key, [])
        if value == ANY:
            return None
        if not isinstance(value, list) or len(value) > MAX_ITEMS:
            self.refuse(key, f'"{ANY}", or a list of at most {MAX_ITEMS} items')
        found = []
        for item in value:
            try:
                found.append(read(item))
            except (ValueError, ChainError, CryptoError) as error:
                self.refuse(key, str(error))
        return found

    def _set(self, key: str, read: Callable[[Any], T]) -> frozenset[T] | None:
        found = self._any_or(key, read)
        return None if found is None else frozenset(found)

    def _tuple(self, key: str, read: Callable[[Any], T]) -> tuple[T, ...] | None:
        found = self._any_or(key, read)
        return None if found is None else tuple(found)

    def _names(self, key: str) -> frozenset[str] | None:
        if key not in self._tree:
            self.refuse(key, f'a list of names, or "{ANY}"')
        return self._set(key, _text)

    def _signs(self) -> frozenset[tuple[str, int]]:
        written = self._tree.get("signs")
        if not isinstance(written, list) or not 0 < len(written) <= MAX_ITEMS:
            self.refuse("signs", 'a list such as ["transfer", "data.2", 16, "order.4"]')
        known, found = _forms(), set[tuple[str, int]]()
        for item in written:
            name, _, version = str(item).partition(".")
            if isinstance(item, bool | float) or name not in known:
                self.refuse("signs", f"types by name or number, or {', '.join(_OTHER_KINDS)}")
            form, versions = known[name]
            if version:
                if (
                    not (version.isascii() and version.isdecimal())
                    or len(version) > 3
                    or int(version) not in versions
                ):
                    self.refuse("signs", f"a version of {form} from 1 to {versions[-1]}")
                found.add((form, int(version)))
            else:
                found |= {(form, each) for each in versions}
        return frozenset(found)

    def _recipients(self) -> tuple[frozenset[Recipient] | None, bool, dict[Alias, Address]]:
        """Return the recipients, whether the sender is one, and the pinned addresses."""
        found = self._any_or("recipients", self._recipient_or_self)
        if found is None:
            return None, False, {}
        read = [each for each in found if each is not None]
        pins = {alias: address for alias, address in read if address is not None}
        accounts = frozenset(account for account, _ in read)
        return accounts, None in found, {a: p for a, p in pins.items() if isinstance(a, Alias)}

    def _recipient_or_self(self, value: object) -> tuple[Recipient, Address | None] | None:
        return None if value == SELF else self._recipient(value)

    def _recipient(self, value: object) -> tuple[Recipient, Address | None]:
        text = _text(value)
        named, is_pinned, address = text.partition("=")
        found: Recipient
        if named.startswith(ALIAS_PREFIX) and named.count(":") == 1:
            found = make_alias(named.removeprefix(ALIAS_PREFIX), self._chain_id)
        else:
            found = parse_claimed_recipient(named, self._chain_id)
        chain = found.chain_id if isinstance(found, Alias) else found[1]
        if chain != self._chain_id:
            raise ValueError("an account of this network")
        if not is_pinned:
            return found, None
        if not isinstance(found, Alias):
            raise ValueError("alias:NAME=ADDRESS, or an address alone")
        return found, parse_address(address, self._chain_id)

    def _own_address(self, value: object) -> Address:
        return parse_address(_text(value), self._chain_id)

    def _public_key(self, value: object) -> bytes:
        key = base58.decode(_text(value), 64)
        if len(key) != _LENGTH_BYTES:
            raise ValueError("public keys in base58")
        return key

    def _quantities(self) -> dict[AssetId | None, Bounds] | None:
        value = self._tree.get("quantities", {})
        if value == ANY:
            return None
        expected = f'"{ANY}", or a table {{ "asset id" = most, {NEW} = {{ least = 1, most = 5 }} }}'
        if not isinstance(value, dict) or len(value) > MAX_ITEMS:
            self.refuse("quantities", expected)
        found: dict[AssetId | None, Bounds] = {}
        for asset, written in value.items():
            given = {"most": written} if type(written) is int else written
            if not isinstance(given, dict) or not given.keys() <= {"least", "most"} or not given:
                self.refuse("quantities", expected)
            bounds = Bounds(given.get("least", 0), given.get("most", MAX_I64))
            if any(type(each) is not int or not 0 <= each <= MAX_I64 for each in bounds):
                self.refuse("quantities", "whole numbers, in smallest units")
            try:
                found[_created(asset)] = bounds
            except ValueError as error:
                self.refuse("quantities", str(error))
        return found

    def _table(self, key: str) -> dict[AssetId | None, int] | None:
        value = self._tree.get(key, {})
        if value == ANY:
            return None
        if not isinstance(value, dict) or len(value) > MAX_ITEMS:
            self.refuse(key, f'"{ANY}", or a table {{ {COIN} = most, "asset id" = most }}')
        found: dict[AssetId | None, int] = {}
        for asset, most in value.items():
            if type(most) is not int or not 0 <= most <= MAX_I64:
                self.refuse(key, "whole numbers, in smallest units")
            try:
                found[_asset(asset)] = most
            except ValueError as error:
                self.refuse(key, str(error))
        return found

    def _call(self, value: Any) -> Call:  # noqa: ANN401 - whatever a file has
        expected = '{ dapp = "…", functions = ["…"], arguments = […] }'
        if not isinstance(value, dict) or not value.keys() <= {"dapp", "functions", "arguments"}:
            raise ValueError(expected)
        (d_app, pin), functions = self._recipient(value.get("dapp")), value.get("functions")
        if pin is not None or not isinstance(functions, list):
            raise ValueError(expected)
        arguments = value.get("arguments")
        if arguments is not None and not isinstance(arguments, list):
            raise ValueError(expected)
        patterns: tuple[TextPattern, ...] = tuple(map(text_pattern, functions))
        read = None if arguments is None else tuple(map(argument_pattern, arguments))
        return Call(d_app, patterns, read)

    def _pair(self, value: Any) -> Pair:  # noqa: ANN401 - whatever a file has
        known = {"amount", "price", "least", "most"}
        if not isinstance(value, dict) or not {"amount", "price"} <= value.keys() <= known:
            raise ValueError('{ amount = "WAVES", price = "…", least = "0.9", most = "1.1" }')
        bounds = (_price(value.get("least")), _price(value.get("most")))
        return Pair(_asset(value["amount"]), _asset(value["price"]), *bounds)

    def _duration(self, key: str) -> int | None:
        if key not in self._tree:
            return None
        found = duration_ms(self._tree[key])
        if found is None:
            self.refuse(key, "a length of time such as 90s, 15m, 24h or 7d, of a year at most")
        return found

    def _truth(self, key: str) -> bool:
        value = self._tree.get(key, False)
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        return value

    def _whole(self, key: str, most: int) -> int:
        value = self._tree.get(key, 0)
        if type(value) is not int or not 0 <= value <= most:
            self.refuse(key, f"a whole number from 0 to {most}")
        return value

    def _windows(self) -> tuple[Window, ...]:
        written = self._tree.get("windows", [])
        expected = (
            f'a list of at most {MAX_WINDOWS} such as {{ amounts = "{COIN}", most = 5, '
            'within = "24h", per = "key" }; in place of amounts also fees, quantities, or '
            "signatures = true"
        )
        if not isinstance(written, list) or len(written) > MAX_WINDOWS:
            self.refuse("windows", expected)
        found = []
        for item in written:
            named = [each for each in _MEASURED if isinstance(item, dict) and each in item]
            known = {*named, "most", "within", "per"}
            if len(named) != 1 or not item.keys() <= known:
                self.refuse("windows", expected)
            (what,) = named
            length, per, most = (
                duration_ms(item.get("within")),
                item.get("per", "rule"),
                item.get("most"),
            )
            fine = type(most) is int and 0 <= most <= MAX_I64 and per in ("rule", "key", "caller")
            if length is None or not fine or (what == "signatures" and item[what] is not True):
                self.refuse("windows", expected)
            try:
                read = _created if what == "quantities" else _asset
                asset = None if what == "signatures" else read(item[what])
            except ValueError as error:
                self.refuse("windows", str(error))
            found.append(Window(what, asset, most, length, per))
        # Two windows of the same kind and length would charge each amount twice.
        if len({(each.what, each.asset, each.length_ms, each.per) for each in found}) < len(found):
            self.refuse("windows", "no two of the same kind and length")
        return tuple(found)

    def _approvals(self) -> Approvals | None:
        value = self._tree.get("approvals")
        if value is None:
            return None
        expected = '{ of = ["alice", "bob"], needed = 2, within = "1h" }'
        if not isinstance(value, dict) or value.keys() != {"of", "needed", "within"}:
            self.refuse("approvals", expected)
        of, needed, within = value["of"], value["needed"], duration_ms(value["within"])
        fine = isinstance(of, list) and len(of) <= MAX_APPROVERS and all(type(e) is str for e in of)
        if not fine or type(needed) is not int or within is None:
            self.refuse("approvals", expected)
        if not 1 <= needed <= len(set(of)):
            self.refuse("approvals", "as many approvers as are needed, each once")
        return Approvals(frozenset(of), needed, within)


_KEYS: Final = (
    *("name", "signs", "keys", "callers", "senders", "recipients", "amounts", "fees", "calls"),
    *("data-keys", "pairs", "matchers", "lifetime", "hosts", "unbound-chain", "scripts"),
    *("simulate", "windows", "approvals", "quantities"),
)
_OTHER_KINDS: Final = tuple(kind.value for kind in Kind if kind is not Kind.TRANSACTION)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise BadPattern("texts")
    return value


def _price(value: object) -> Fraction | None:
    if value is None:
        return None
    if not isinstance(value, str) or _PRICE.fullmatch(value) is None:
        raise ValueError('prices as texts, such as "0.95": whole price assets for one amount asset')
    return Fraction(value)
