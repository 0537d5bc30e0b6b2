"""The signing policy: a list of rules that allow; whatever no rule allows is refused.

What lives here: the rules, the decision, and the message of a refusal, which names rule, condition
and line. What does not: the file (``policy_file``), the counters (``windows``).

A rule applies if key, caller and form match. Then each of its conditions must hold. What a rule
does not list it does not allow: without ``recipients`` nothing may be sent to anybody. The first
rule whose conditions hold decides; if there is none, the first rule that applied gives the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

import msgspec

from soliton.chain.addresses import Address, Alias, Recipient, from_public_key, recipient_text
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.signer.measures import Decimals, Kind, Measures, asset_text, price_of
from soliton.signer.patterns import ArgumentPattern, TextPattern
from soliton.signer.windows import Charge, Windows

NEW: Final = "new"
"""What stands in ``quantities`` for an asset that begins with the transaction."""
MAX_SHOWN: Final = 64
"""Characters of a name from a request that a refusal quotes."""


class Call(msgspec.Struct, frozen=True):
    """Functions of a dApp that may be called. ``arguments`` are patterns; ``None`` matches any."""

    d_app: Recipient
    functions: tuple[TextPattern, ...]
    arguments: tuple[ArgumentPattern, ...] | None


class Pair(msgspec.Struct, frozen=True):
    """A pair of assets, and the range of prices: price asset for one whole amount asset."""

    amount: AssetId | None
    price: AssetId | None
    least: Fraction | None
    most: Fraction | None


class Window(msgspec.Struct, frozen=True):
    """A limit: at most ``most`` within ``length_ms``. ``what`` is ``amounts``, ``fees`` or
    ``quantities`` of an asset, or ``signatures``; ``per`` is ``rule``, ``key`` or ``caller``.
    """

    what: str
    asset: AssetId | None
    most: int
    length_ms: int
    per: str


class Bounds(NamedTuple):
    """The least and the most of a quantity."""

    least: int
    most: int


class Approvals(msgspec.Struct, frozen=True):
    """``needed`` of these callers have to approve within ``within_ms``."""

    of: frozenset[str]
    needed: int
    within_ms: int


class Rule(msgspec.Struct, frozen=True):
    """One rule. ``None`` stands for ``"any"``. ``lines`` are the lines of its conditions."""

    name: str
    line: int
    lines: Mapping[str, int]
    forms: frozenset[tuple[str, int]]
    keys: frozenset[str] | None
    callers: frozenset[str] | None
    senders: frozenset[Address] | None = frozenset()
    recipients: frozenset[Recipient] | None = frozenset()
    to_self: bool = False
    pins: Mapping[Alias, Address] = {}
    amounts: Mapping[AssetId | None, int] | None = {}
    fees: Mapping[AssetId | None, int] | None = {}
    quantities: Mapping[AssetId | None, Bounds] | None = {}
    calls: tuple[Call, ...] | None = ()
    data_keys: tuple[TextPattern, ...] | None = ()
    pairs: tuple[Pair, ...] | None = ()
    matchers: frozenset[bytes] | None = frozenset()
    lifetime_ms: int | None = None
    hosts: tuple[TextPattern, ...] | None = ()
    unbound_chain: bool = False
    scripts: bool = False
    simulate: bool = False
    windows: tuple[Window, ...] = ()
    approvals: Approvals | None = None


class Question(NamedTuple):
    """A request for a decision. ``key`` and ``caller`` are names; ``now`` is the wall clock in
    milliseconds.
    """

    measures: Measures
    key: str
    public_key: bytes
    caller: str
    chain_id: int
    now: int


class Refusal(NamedTuple):
    """A refusal; rule, line and condition are set if a rule applied."""

    words: str
    rule: str = ""
    line: int = 0
    condition: str = ""


class Allowed(NamedTuple):
    """The rule that allows, and the charges to its windows."""

    rule: Rule
    charges: tuple[Charge, ...]


class Policy:
    """The rules of a file, with its text ``source`` and its SHA-256 ``hash`` in hexadecimal."""

    def __init__(
        self, rules: Iterable[Rule], decimals: Decimals, file: str, hash_: str, source: str = ""
    ) -> None:
        self.rules = tuple(rules)
        self.decimals = decimals
        self.file = file
        self.hash = hash_
        self.source = source
        self._by_form: dict[tuple[str, int], list[Rule]] = {}
        for rule in self.rules:
            for form in rule.forms:
                self._by_form.setdefault(form, []).append(rule)

    def decide(self, question: Question, windows: Windows, now: int) -> Allowed | Refusal:
        """Decide whether this may be signed. ``now`` is the time of the windows, which are not
        charged.
        """
        measures, key, caller = question.measures, question.key, question.caller
        first: Refusal | None = None
        for rule in self._by_form.get((measures.name, measures.version), ()):
            if rule.keys is not None and key not in rule.keys:
                continue
            if rule.callers is not None and caller not in rule.callers:
                continue
            if first is not None and _is_for_others(rule, measures):
                continue
            fault = self._fault(rule, question)
            if fault is None:
                charges = tuple(charges_of(rule, question))
                fault = _exceeded(charges, windows, now)
                if fault is None:
                    return Allowed(rule, tuple(charge for _, charge in charges))
            if first is None:
                first = self._refusal(rule, *fault)
        return first or Refusal(
            f"no rule of {self.file} lets the caller {caller} sign {measures.name} "
            f"version {measures.version} with the key {key}"
        )

    def _fault(self, rule: Rule, question: Question) -> tuple[str, str] | None:
        """Return the first condition that does not hold, and the reason."""
        for condition, check in _CONDITIONS:
            words = check(rule, question, self.decimals)
            if words is not None:
                return condition, words
        return None

    def _refusal(self, rule: Rule, condition: str, words: str) -> Refusal:
        line = rule.lines.get(condition, rule.line)
        message = f'rule "{rule.name}" ({self.file}:{line}), {condition}: {words}'
        return Refusal(message, rule.name, line, condition)


def _exceeded(
    charges: Iterable[tuple[Window, Charge]], windows: Windows, now: int
) -> tuple[str, str] | None:
    for window, charge in charges:
        total = windows.spent(charge.counter, charge.length_ms, now) + charge.amount
        if total > window.most:
            what = _what(window)
            within = f"within {window.length_ms // 1_000} s, of {window.most}"
            return "windows", f"{charge.amount} more {what} would be {total} {within}"
    return None


def _what(window: Window) -> str:
    if window.what == "signatures":
        return "signatures"
    return _quantity_text(window.asset) if window.what == "quantities" else asset_text(window.asset)


def _quantity_text(asset: AssetId | None) -> str:
    return NEW if asset is None else asset_text(asset)


def charges_of(rule: Rule, question: Question) -> Iterable[tuple[Window, Charge]]:
    """Yield the charge to each window of a rule."""
    measures = question.measures
    for window in rule.windows:
        if window.what == "signatures":
            amount = 1
        elif window.what == "fees":
            amount = measures.fee if measures.fee_asset == window.asset else 0
        elif window.what == "quantities":
            amount = sum(amount for asset, amount in measures.creates if asset == window.asset)
        else:
            amount = sum(amount for asset, amount in measures.spends if asset == window.asset)
        if amount:
            whose = {"key": question.key, "caller": question.caller}.get(window.per, "")
            asset = "" if window.what == "signatures" else _what(window)
            counter = f"{rule.name}/{window.what}/{asset}/{window.per}/{whose}"
            yield window, Charge(counter, window.length_ms, amount)


# --- conditions: each returns why it does not hold, or ``None`` -----------------------------------


def _senders(rule: Rule, question: Question, _decimals: Decimals) -> str | None:
    sender = question.measures.sender
    if sender == question.public_key or rule.senders is None:
        return None
    address = from_public_key(sender, question.chain_id)
    if address in rule.senders:
        return None
    return f"it is for the account {recipient_text(address)}, not for the key's own"


def _chain(rule: Rule, question: Question, _decimals: Decimals) -> str | None:
    measures = question.measures
    if rule.unbound_chain or measures.binds_chain or measures.kind not in _BINDING:
        return None
    return (
        "its signed bytes do not say for which chain they are: the signature is good on others, too"
    )


def _scripts(rule: Rule, question: Question, _decimals: Decimals) -> str | None:
    return "it sets a script" if question.measures.sets_script and not rule.scripts else None


def _is_for_others(rule: Rule, measures: Measures) -> bool:
    """Whether ``_recipients`` refuses it: a fast path without a message, for many rules."""
    named = rule.recipients
    return named is not None and not rule.to_self and not named.issuperset(measures.recipients)


def _recipients(rule: Rule, question: Question, _decimals: Decimals) -> str | None:
    if rule.recipients is None:
        return None
    measures = question.measures
    for each in measures.recipients:
        if each in rule.recipients:
            continue
        if rule.to_self and each == from_public_key(measures.sender, question.chain_id):
            continue
        return f"{recipient_text(each)} is not among them"
    return None


def _amounts(rule: Rule, question: Question, _decimals: Decimals) -> str | None:
    measures = question.measures
    if measures.is_uncertain and (rule.amounts is not None or rule.windows):
        return f"what it spends cannot be told: {measures.is_uncertain}"
    return _within(measures.spends, rule.amounts)


def _fees(rule: Rule, question: Question, _decimals: Decimals) -> str | None:
    measures = question.measures
    return _within(((measures.fee_asset, measures.fee),), rule.fees) if measures.fee else None


def _quantities(rule: Rule, question: Question, _decimals: Decimals) -> str | None:
    measures = question.measures
    for asset, amount in (*measures.creates, *measures.sets):
        if amount < 0:
            return f"{amount} of {_quantity_text(asset)} is below zero"
        if rule.quantities is None:
            continue
        if asset not in rule.quantities:
            return f"{_quantity_text(asset)} is not among them"
        bounds = rule.quantities[asset]
        if amount > bounds.most:
            return f"{amount} of {_quantity_text(asset)} is more than {bounds.most}"
        if amount < bounds.least:
            return f"{amount} of {_quantity_text(asset)} is less than {bounds.least}"
    return None


def _within(
    amounts: Iterable[tuple[AssetId | None, int]], most: Mapping[AssetId | None, int] | None
) -> str | None:
    for asset, amount in amounts:
        if amount < 0:
            return f"{amount} of {asset_text(asset)} is below zero"
        if most is None:
            continue
        if asset not in most:
            return f"{asset_text(asset)} is not among them"
        if amount > most[asset]:
            return f"{amount} of {asset_text(asset)} is more than {most[asset]}"
    return None


def _calls(rule: Rule, question: Question, _decimals: Decimals) -> str | None:
    d_app, call = question.measures.d_app, question.measures.call
    if d_app is None or call is None or rule.calls is None:
        return None
    of_d_app = [each for each in rule.calls if each.d_app == d_app]
    if not of_d_app:
        return f"the dApp {recipient_text(d_app)} is not among them"
    name = call.function[:MAX_SHOWN]
    named = [each for each in of_d_app if any(p.fits(call.function) for p in each.functions)]
    if not named:
        return f"the function {name} is not among them"
    if any(_arguments_fit(each.arguments, question) for each in named):
        return None
    return f"the function {name} may not be called with these arguments"


def _arguments_fit(patterns: tuple[ArgumentPattern, ...] | None, question: Question) -> bool:
    if patterns is None:
        return True
    arguments = question.measures.arguments
    return len(patterns) == len(arguments) and all(
        pattern.fits(argument) for pattern, argument in zip(patterns, arguments, strict=True)
    )


def _data_keys(rule: Rule, question: Question, _decimals: Decimals) -> str | None:
    if rule.data_keys is None:
        return None
    for key in question.measures.data_keys:
        if not any(pattern.fits(key) for pattern in rule.data_keys):
            return f"{key[:MAX_SHOWN]!r} is none of these"
    return None


def _pairs(rule: Rule, question: Question, decimals: Decimals) -> str | None:
    order = question.measures.order
    if order is None or rule.pairs is None:
        return None
    assets = order.amount_asset, order.price_asset
    found = [each for each in rule.pairs if (each.amount, each.price) == assets]
    if not found:
        return f"{'/'.join(map(asset_text, assets))} is not among them"
    if any(each.least is None and each.most is None for each in found):
        return None
    price = price_of(order, decimals)
    if price is None:
        return "the price cannot be told: the decimals of the assets are not in the policy"
    if any(_in_band(price, each) for each in found):
        return None
    return f"the price {float(price):.10g} is outside of the band"


def _in_band(price: Fraction, pair: Pair) -> bool:
    return (pair.least is None or price >= pair.least) and (pair.most is None or price <= pair.most)


def _matchers(rule: Rule, question: Question, _decimals: Decimals) -> str | None:
    order = question.measures.order
    if order is None or rule.matchers is None or order.matcher_public_key in rule.matchers:
        return None
    return f"the matcher {base58.encode(order.matcher_public_key)} is not among them"


def _lifetime(rule: Rule, question: Question, _decimals: Decimals) -> str | None:
    order, most = question.measures.order, rule.lifetime_ms
    if order is None or most is None or order.expiration - question.now <= most:
        return None
    return f"it would live for more than {most // 1_000} s"


def _hosts(rule: Rule, question: Question, _decimals: Decimals) -> str | None:
    measures = question.measures
    if measures.kind is not Kind.AUTH or rule.hosts is None:
        return None
    if any(_host_fits(pattern, measures.host) for pattern in rule.hosts):
        return None
    return f"{measures.host[:MAX_SHOWN]!r} is none of these"


def _host_fits(pattern: TextPattern, host: str) -> bool:
    """Whether a host is the pattern's. Where a star stands for some of it, it has to be the name of
    a host: a star would also fit a path or a user before ``.example.com``.
    """
    return pattern.fits(host) and (len(pattern.pieces) == 1 or _HOST.fullmatch(host) is not None)


_HOST: Final = re.compile(r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*(?::[0-9]{1,5})?")
_BINDING: Final = frozenset({Kind.TRANSACTION, Kind.ORDER})
"""Kinds that are meant for one chain; other messages are for the party that requested them."""
_CONDITIONS: Final[tuple[tuple[str, Callable[[Rule, Question, Decimals], str | None]], ...]] = (
    ("senders", _senders),
    ("unbound-chain", _chain),
    ("scripts", _scripts),
    ("recipients", _recipients),
    ("calls", _calls),
    ("data-keys", _data_keys),
    ("pairs", _pairs),
    ("matchers", _matchers),
    ("lifetime", _lifetime),
    ("hosts", _hosts),
    ("amounts", _amounts),
    ("fees", _fees),
    ("quantities", _quantities),
)
