"""What rules allow and refuse: a table of cases as text, files that are wrong, patterns, lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from soliton.chain.addresses import address_text, from_public_key
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.signer.errors import RequestRefused
from soliton.signer.measures import Kind, sentence
from soliton.signer.patterns import BadPattern, argument_pattern, text_pattern
from soliton.signer.policy import Allowed, Policy, Question, Refusal
from soliton.signer.policy_file import PolicyProblem, duration_ms, parse_policy
from soliton.signer.signable import ReadContext, read_signable
from soliton.signer.windows import Windows

CHAIN_ID: Final = ord("R")
NOW: Final = 1_700_000_000_000
HOT, COLD, FRIEND, OTHER, MATCHER, DAPP = (
    key_pair(f"{name} of the policy's tests")
    for name in ("hot", "cold", "friend", "other", "matcher", "dapp")
)
KEYS: Final = {"hot": HOT, "cold": COLD, "spare": COLD}
GOLD, SILVER = (base58.encode(bytes((number,)) * 32) for number in (7, 8))
NAMES: Final = {
    "$FRIENDKEY": base58.encode(FRIEND.public_key),
    "$OTHERKEY": base58.encode(OTHER.public_key),
    "$MATCHER": base58.encode(MATCHER.public_key),
    "$FRIEND": address_text(from_public_key(FRIEND.public_key, CHAIN_ID)),
    "$OTHER": address_text(from_public_key(OTHER.public_key, CHAIN_ID)),
    "$SELF": address_text(from_public_key(HOT.public_key, CHAIN_ID)),
    "$DAPP": address_text(from_public_key(DAPP.public_key, CHAIN_ID)),
    "$GOLD": GOLD,
    "$SILVER": SILVER,
}
VERSIONS: Final = {11: 2, 12: 2, 13: 2, 14: 2, 15: 2}
_CASE: Final = re.compile(r"(\w+) (\w+) (\w+) (\{.*\}) => (.*)")


class Case(NamedTuple):
    """One line of the table."""

    policy: str
    caller: str
    key: str
    kind: Kind
    request: dict[str, Any]
    outcome: str


def named(text: str) -> str:
    for name, value in NAMES.items():
        text = text.replace(name, value)
    return text


def cases() -> list[Any]:
    text = named(Path(__file__).with_name("policy_cases.txt").read_text(encoding="utf-8"))
    found: list[Any] = []
    for group in text.split("\n=== ")[1:]:
        head, _, lines = group.partition("\n---\n")
        title, _, policy = head.partition("\n")
        for line in filter(None, map(str.strip, lines.splitlines())):
            match = _CASE.fullmatch(line)
            assert match is not None, line
            caller, key, kind, request, outcome = match.groups()
            case = Case(policy, caller, key, Kind(kind), json.loads(request), outcome)
            found.append(pytest.param(case, id=f"{title}-{len(found)}"))
    return found


def completed(kind: Kind, request: dict[str, Any]) -> dict[str, Any]:
    """The request with what the table leaves out."""
    if kind is Kind.TRANSACTION:
        version = VERSIONS.get(request["type"], 3)
        return {"version": version, "fee": 100_000, "timestamp": NOW, **request}
    if kind is Kind.ORDER:
        pair = {"amountAsset": None, "priceAsset": GOLD}
        pair |= {name: request.pop(name) for name in list(pair) if name in request}
        usual = {
            "version": 3,
            "orderType": "sell",
            "assetPair": pair,
            "matcherPublicKey": NAMES["$MATCHER"],
            "matcherFee": 300_000,
            "timestamp": NOW,
            "expiration": NOW + request.pop("lifetime", 3_600_000),
        }
        return usual | request
    return request


def question_of(case: Case, policy: Policy) -> Question:
    key = KEYS[case.key]
    reading = ReadContext(key.public_key, CHAIN_ID, NOW, None, policy.decimals)
    asked = read_signable(case.kind, completed(case.kind, dict(case.request)), reading)
    assert sentence(asked.measures, policy.decimals)
    return Question(asked.measures, case.key, key.public_key, case.caller, CHAIN_ID, NOW)


@pytest.mark.parametrize("case", cases())
def test_the_table(case: Case) -> None:
    policy = parse_policy(case.policy.encode(), "policy.toml", CHAIN_ID)
    if case.outcome == "invalid":
        with pytest.raises(RequestRefused):
            question_of(case, policy)
        return
    decided = policy.decide(question_of(case, policy), Windows(), 0)
    if isinstance(decided, Allowed):
        assert case.outcome == f"allow {decided.rule.name}"
    elif decided.rule:
        assert case.outcome == f"refuse {decided.line} {decided.condition}", decided.words
        assert f'rule "{decided.rule}" (policy.toml:{decided.line})' in decided.words
    else:
        assert case.outcome == "none"
        assert case.caller in decided.words and case.key in decided.words


def test_the_table_is_long() -> None:
    assert len(cases()) >= 100


# --- windows --------------------------------------------------------------------------------------

WINDOWED: Final = named("""
[[rule]]
name = "day"
signs = ["transfer"]
keys = "any"
callers = "any"
recipients = "any"
amounts = "any"
fees = "any"
windows = [
  { amounts = "WAVES", most = 100, within = "1d" },
  { amounts = "WAVES", most = 60, within = "1h", per = "key" },
  { fees = "WAVES", most = 250_000, within = "1d", per = "caller" },
  { signatures = true, most = 4, within = "10s" },
]
""")
HOUR: Final = 3_600_000
STEPS: Final = [
    # at, caller, key, amount, fee; what is exceeded
    (0, "bot", "hot", 60, 1, None),
    (0, "bot", "hot", 1, 1, "1 more WAVES would be 61 within 3600 s, of 60"),
    (0, "bot", "cold", 41, 1, "41 more WAVES would be 101 within 86400 s, of 100"),
    (0, "bot", "cold", 40, 249_999, None),
    (1, "clerk", "cold", 0, 1, "invalid"),
    (20_000, "bot", "spare", 1, 1, "1 more WAVES would be 101 within 86400 s, of 100"),
    (2 * HOUR, "bot", "hot", 1, 1, "1 more WAVES would be 101 within 86400 s, of 100"),
    (24 * HOUR - 1, "bot", "hot", 1, 1, "1 more WAVES would be 101 within 86400 s, of 100"),
    (25 * HOUR, "bot", "hot", 1, 249_999, None),
    (25 * HOUR, "bot", "hot", 1, 2, "2 more WAVES would be 250001 within 86400 s, of 250000"),
    (25 * HOUR, "clerk", "hot", 1, 2, None),
    (25 * HOUR, "clerk", "hot", 1, 2, None),
    (25 * HOUR, "clerk", "hot", 1, 2, None),
    (25 * HOUR, "clerk", "hot", 1, 2, "1 more signatures would be 5 within 10 s, of 4"),
    (25 * HOUR + 11_000, "clerk", "hot", 1, 2, None),
]


def test_windows_count_what_is_signed() -> None:
    policy, windows = parse_policy(WINDOWED.encode(), "policy.toml", CHAIN_ID), Windows()
    for at, caller, key, amount, fee, words in STEPS:
        if words == "invalid":
            continue
        request = {"type": 4, "recipient": NAMES["$FRIEND"], "amount": amount, "fee": fee}
        case = Case("", caller, key, Kind.TRANSACTION, request, "")
        decided = policy.decide(question_of(case, policy), windows, at)
        if isinstance(decided, Refusal):
            assert words is not None and decided.words.endswith(words), decided.words
        else:
            assert words is None
            windows.charge(decided.charges, at)


# --- files ----------------------------------------------------------------------------------------

RULE: Final = 'name = "a"\nsigns = ["transfer"]\nkeys = "any"\ncallers = "any"\n'
SIGNATURES: Final = '{ signatures = true, most = 1, within = "1d" }'
BAD_FILES: Final = [
    ("[[rule]\n", "is no TOML"),
    ("\xff", "is no TOML"),
    ("[rules]\n", "has rules; known are rule and decimals"),
    ("[rule]\n", "every rule begins with a line"),
    ('rule = [{ name = "a" }]\n', "every rule begins with a line"),
    ("[[rule]]\n", "p.toml:1: name: expected"),
    ('[[rule]]\nname = "a b"\n', "p.toml:2: name: expected"),
    ('[[rule]]\nname = "a"\n', "p.toml:1: signs: expected"),
    (f"[[rule]]\n{RULE}colour = 1\n", "p.toml:6: colour: expected one of"),
    (f"[[rule]]\n{RULE}\n[[rule]]\n{RULE}", "p.toml:7: the rule of line 1 has this name, too"),
    ('[[rule]]\nname = "a"\nsigns = ["transfer.9"]\n', "p.toml:3: signs: expected a version"),
    ('[[rule]]\nname = "a"\nsigns = ["genesis"]\n', "p.toml:3: signs: expected types"),
    ('[[rule]]\nname = "a"\nsigns = [4.1]\n', "p.toml:3: signs: expected types"),
    ('[[rule]]\nname = "a"\nsigns = [true]\n', "p.toml:3: signs: expected types"),
    ('[[rule]]\nname = "a"\nsigns = []\n', "p.toml:3: signs"),
    ('[[rule]]\nname = "a"\nsigns = [4]\nkeys = ["k"]\n', "p.toml:1: callers: expected a list"),
    (f'[[rule]]\n{RULE}recipients = ["3M"]\n', "p.toml:6: recipients: expected"),
    (f'[[rule]]\n{RULE}recipients = ["alias:W:friend"]\n', "p.toml:6: recipients: expected an acc"),
    (f'[[rule]]\n{RULE}recipients = "all"\n', "p.toml:6: recipients: expected"),
    (f"[[rule]]\n{RULE}amounts = {{ WAVES = -1 }}\n", "p.toml:6: amounts: expected whole"),
    (f"[[rule]]\n{RULE}amounts = {{ WAVES = 1.5 }}\n", "p.toml:6: amounts: expected whole"),
    (f"[[rule]]\n{RULE}amounts = {{ GOLD = 1 }}\n", "p.toml:6: amounts: expected an asset"),
    (f"[[rule]]\n{RULE}fees = 5\n", "p.toml:6: fees: expected"),
    (f'[[rule]]\n{RULE}calls = [{{ dapp = "{NAMES["$DAPP"]}" }}]\n', "p.toml:6: calls"),
    (f"[[rule]]\n{RULE}data-keys = ['{'*' * 9}']\n", "p.toml:6: data-keys: expected at most"),
    (f"[[rule]]\n{RULE}lifetime = 5\n", "p.toml:6: lifetime"),
    (f"[[rule]]\n{RULE}scripts = 1\n", "p.toml:6: scripts"),
    (f'[[rule]]\n{RULE}windows = [{{ amounts = "WAVES", most = 1 }}]\n', "p.toml:6: windows"),
    (f'[[rule]]\n{RULE}windows = [{{ most = 1, within = "1d" }}]\n', "p.toml:6: windows"),
    (
        f"[[rule]]\n{RULE}windows = [{SIGNATURES}, {SIGNATURES}]\n",
        "p.toml:6: windows: expected no two",
    ),
    (
        f'[[rule]]\n{RULE}approvals = {{ of = ["x"], needed = 2, within = "1h" }}\n',
        "p.toml:6: approvals: expected as many",
    ),
    (f'[[rule]]\n{RULE}pairs = [{{ amount = "WAVES", price = "WAVES", least = 1 }}]\n', "p.toml:6"),
    (f'[[rule]]\n{RULE}matchers = ["abc"]\n', "p.toml:6: matchers: expected public keys"),
    ('[[rule]]\nname = """a\n[[rule]]"""\n', "of several lines"),
    ("[decimals]\nWAVES = 99\n", "decimals of WAVES are 0 to 8"),
]


@pytest.mark.parametrize(("text", "words"), BAD_FILES)
def test_a_file_that_is_wrong_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(PolicyProblem) as caught:
        parse_policy(text.encode("latin-1"), "p.toml", CHAIN_ID)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("abc", "abc", True),
        ("abc", "abcd", False),
        ("*", "", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("*b*", "abc", True),
        ("a*b*c", "abbc", True),
        ("a*bb*c", "abc", False),
        ("a*b", "a\nb", True),
        ("a.c", "abc", False),
        ("*" * 8, "a" * 100_000, True),
        ("a*" * 8 + "b", "a" * 100_000, False),
    ],
)
def test_patterns_of_texts(pattern: str, text: str, fits: bool) -> None:
    assert text_pattern(pattern).fits(text) is fits


@pytest.mark.parametrize("value", [{}, {"least": "1"}, {"minimum": 1}, 1.5, None, [1], "x" * 300])
def test_patterns_that_are_none(value: object) -> None:
    with pytest.raises(BadPattern):
        argument_pattern(value)


@pytest.mark.parametrize("text", ["", "5", "1 d", "1w", "-1s", "0s", "999999999d", 5, None])
def test_lengths_that_are_none(text: object) -> None:
    assert duration_ms(text) is None


def test_what_a_person_reads() -> None:
    policy = parse_policy(f'[decimals]\n"{GOLD}" = 2\n'.encode(), "p", CHAIN_ID)
    told = {
        Kind.TRANSACTION: {"type": 4, "recipient": NAMES["$FRIEND"], "amount": 123_456_789},
        Kind.ORDER: {"version": 4, "orderType": "buy", "amount": 250_000_000, "price": 150_000_000},
    }
    read = [
        sentence(
            question_of(Case("", "bot", "hot", kind, each, ""), policy).measures, policy.decimals
        )
        for kind, each in told.items()
    ]
    assert read == [
        f"transfer (version 3) of 1.23456789 WAVES to {NAMES['$FRIEND']} for a fee of 0.001 WAVES",
        f"order (version 4) buying 2.5 WAVES at 1.5 {GOLD} each for a fee of 0.003 WAVES",
    ]
