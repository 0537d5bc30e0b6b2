"""The error table: codes follow from their parts, templates from their parameters."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from soliton.api import errors as api_errors
from soliton.matching import errors
from soliton.matching.errors import KINDS, Amount, Balance, ErrorKind, MatcherError, Param
from tests.matching.makers import PAIR
from tests.vectors import REPOSITORY

_WORD = re.compile(r"\w+")
_FIRST = """
common request feature account address exchangeTx balance script orderBook order version asset
pubKey signature assetPair amount price fee expiration marketOrder rate tpe network
"""
_FROM_100 = "producer connectivity auth params webSocket token payload subscription depth"
_HOW = """
common broken denied unsupported unexpected blacklisted notEnough limitReached duplicate notFound
canceled immutable timedOut starting stopping outOfBound disabled notProvided optimization pending
notBlacklisted
"""
OBJECTS = {name: number for number, name in enumerate(_WORD.findall(_FIRST))}
OBJECTS |= {name: number for number, name in enumerate(_WORD.findall(_FROM_100), 100)}
CLASSES = {name: number for number, name in enumerate(_WORD.findall(_HOW))}
# Where some kinds stand: object/part/class.
PLACES = """
UnexpectedError            common/common/unexpected
CanNotPersistEvent         common/producer/broken
InvalidDepth               request/depth/common
OrderVersionUnsupported    feature/order/unsupported
BalanceNotEnough           account/balance/notEnough
OrderDuplicate             account/order/duplicate
InvalidAddress             address/common/common
OrderBookUnexpectedState   orderBook/common/unexpected
OrderNotFound              order/common/notFound
OrderIsPlacing             order/common/pending
DeviantOrderPrice          order/price/outOfBound
WrongExpiration            order/expiration/notEnough
AssetPairNotBlacklisted    asset/common/notBlacklisted
FeeAssetBlacklisted        asset/fee/blacklisted
InvalidMarketOrderPrice    marketOrder/price/outOfBound
WavesImmutableRate         rate/common/immutable
WavesNodeConnectionBroken  connectivity/common/broken
ApiKeyIsNotProvided        auth/common/notProvided
SubscriptionAuthTypeUnsupported auth/tpe/unsupported
SubscriptionsLimitReached  webSocket/subscription/limitReached
TokenNetworkUnexpected     token/network/unexpected
JwtPayloadBroken           token/payload/broken
"""


@pytest.mark.parametrize("row", PLACES.strip().splitlines())
def test_codes_follow_from_their_parts(row: str) -> None:
    name, place = row.split()
    item, part, how = place.split("/")
    code = (OBJECTS[item] << 20) + (OBJECTS[part] << 8) + CLASSES[how]
    assert KINDS[name].code == code


def test_every_code_is_made_of_known_parts() -> None:
    for kind in KINDS.values():
        assert kind.code >> 20 in OBJECTS.values(), kind.name
        assert (kind.code >> 8) & 0xFFF in OBJECTS.values(), kind.name
        assert kind.code & 0xFF in CLASSES.values(), kind.name
        assert kind.templates, kind.name


def test_codes_and_names_are_unique() -> None:
    codes = [kind.code for kind in KINDS.values()]
    assert len(set(codes)) == len(codes) == 84
    constants = {value.name for value in vars(errors).values() if isinstance(value, ErrorKind)}
    assert constants == set(KINDS)


def test_every_error_is_raised_somewhere() -> None:
    """One that nobody raises is documented and never happens."""
    source = REPOSITORY / "src" / "soliton"
    for table in (errors, api_errors):
        assert table.__file__ is not None
        texts = [each.read_text() for each in source.rglob("*.py") if str(each) != table.__file__]
        used = {name for text in texts for name in re.findall(r"\b[A-Z][A-Z0-9_]+\b", text)}
        kinds = (ErrorKind, api_errors.ErrorKind)
        defined = {name for name, value in vars(table).items() if isinstance(value, kinds)}
        own = Path(table.__file__).read_text()
        # Those of the interface are raised by helpers beside the table, too.
        used |= {name for name in defined if f"{name}.error(" in own}
        assert defined - used == set()


@pytest.mark.parametrize(
    ("value", "text", "json"),
    [
        (7, "7", 7),
        ("x", "x", "x"),
        (PAIR, PAIR.key, PAIR.to_json()),
        (Amount("0.003", "WAVES"), "0.003 WAVES", {"volume": "0.003", "assetId": "WAVES"}),
        (
            Balance((Amount("1", "A"), Amount("0.003", "WAVES"))),
            "1 A and 0.003 WAVES",
            {"A": "1", "WAVES": "0.003"},
        ),
        (("a", "b"), "a, b", ["a", "b"]),
        ((1, 2, 3), "1, 2, 3", [1, 2, 3]),
    ],
)
def test_parameters(value: Param, text: str, json: object) -> None:
    error = MatcherError(errors.ORDER_COMMON_VALIDATION_FAILED, details=value)
    assert error.message == f"The order is invalid: {text}"
    assert error.to_json() == {
        "error": 9_437_184,
        "message": error.message,
        "template": "The order is invalid: {{details}}",
        "params": {"details": json},
    }


def test_parameters_are_omitted_where_there_are_none() -> None:
    assert MatcherError(errors.MATCHER_IS_STARTING).to_json() == {
        "error": 13,
        "message": "System is starting. Please retry later",
        "template": "System is starting. Please retry later",
    }


def test_whoever_raises_gives_all_parameters_of_the_template() -> None:
    """Read from the source, since not every form can be provoked in a test."""
    calls = 0
    for path in sorted((REPOSITORY / "src" / "soliton").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "MatcherError(" in text else ():
            if not (isinstance(node, ast.Call) and _name(node.func) == "MatcherError"):
                continue
            calls += 1
            kind = _name(node.args[0]) if node.args else None
            given = {keyword.arg for keyword in node.keywords} - {"form"}
            if kind is None or not kind.isupper() or None in given:
                continue
            forms = vars(errors)[kind].templates
            wanted = [set(re.findall(r"{{(\w+)}}", form)) for form in forms]
            assert given in wanted, f"{path.name}:{node.lineno}: {kind} has {wanted}, not {given}"
    assert calls > 50


def _name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None
