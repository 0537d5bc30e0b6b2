"""Which scripts may be set, beyond what the rules of the transactions say themselves."""

from __future__ import annotations

import pytest

from soliton.crypto.hashes import secure_hash
from soliton.ledger import script_setting
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.rules import set_script
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.script_setting import ScriptHead
from soliton.ride.estimators.choice import Complexities
from soliton.ride.expressions import AnnotatedFunction, DApp, Func, Ref
from soliton.ride.meta import Meta, write_meta
from soliton.ride.script import make_script
from tests.ledger.cases import HEIGHT, TIME, context_at
from tests.ledger.scripts.dapps import NETWORKS, compiled

CONTEXT = context_at(HEIGHT, TIME, TIME - 1_000, RuleBook(NETWORKS["light"]).at(HEIGHT))
FUNCTION = "@Callable(i)\nfunc f(n: Int) = if (slow()) then [] else []\n"


def dapp(version: int, types: int, meta_version: int = 2) -> bytes:
    function = AnnotatedFunction("i", Func("f", ("a",), Ref("nil")))
    meta = Meta(meta_version, (bytes((types,)),))
    return make_script(version, DApp(write_meta(meta), (), (function,))).source


def test_estimates_by_function() -> None:
    code = compiled(6, FUNCTION)
    assert script_setting.inspect(code) == ScriptHead(6, True, False, True)
    assert script_setting.estimate(code, False, CONTEXT) == Complexities(0, {3: {"f": 180}})


@pytest.mark.parametrize("types", [1, 2, 4, 8, 17])
def test_plain_arguments(types: int) -> None:
    assert script_setting.estimate(dapp(6, types), False, CONTEXT).callables == {3: {"f": 1}}


@pytest.mark.parametrize(
    ("types", "meta_version", "words"),
    [
        (3, 2, "Union type is not allowed in callable function arguments of script"),
        (16 + 12, 2, "Union type is not allowed in callable function arguments of script"),
        (0, 2, "no type of an argument: 0"),
        (1, 3, "Unsupported meta version 3"),
    ],
)
def test_refused_arguments(types: int, meta_version: int, words: str) -> None:
    with pytest.raises(TransactionRejected, match=words):
        script_setting.estimate(dapp(6, types, meta_version), False, CONTEXT)
    assert script_setting.estimate(dapp(5, types, meta_version), False, CONTEXT).callables


@pytest.mark.parametrize("code", [b"", b"\0", b"\6\2", b"\1\6\0\0\0\0", bytes(100)])
def test_no_scripts(code: bytes) -> None:
    with pytest.raises(TransactionRejected):
        script_setting.inspect(code)
    with pytest.raises(TransactionRejected):
        script_setting.estimate(code, True, CONTEXT)


def test_too_complex() -> None:
    text = "@Verifier(tx)\nfunc v() = " + " && ".join(["slow()"] * 12) + "\n"
    with pytest.raises(TransactionRejected, match="Contract verifier is too complex: 2160 > 2000"):
        script_setting.estimate(compiled(6, text), False, CONTEXT)


@pytest.mark.parametrize(
    ("network", "limit"),
    [("dapps", "is too complex: [0-9]+ > 4000"), ("approved", "verifier is too complex: .* 2000")],
)
def test_the_limit_of_verifiers_came_with_the_approval_of_feature_15(
    network: str, limit: str
) -> None:
    """Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/features/``
    ``ComplexityCheckPolicyProvider.scala``: the feature needs no more than a height of activation.
    """
    context = context_at(HEIGHT, TIME, TIME - 1_000, RuleBook(NETWORKS[network]).at(HEIGHT))
    for calls in (24, 48):
        text = "@Verifier(tx)\nfunc v() = " + " && ".join(["slow()"] * calls) + "\n"
        if calls == 24 and network == "dapps":
            assert script_setting.estimate(compiled(3, text), False, context).verifier > 2_000
            continue
        with pytest.raises(TransactionRejected, match=limit):
            script_setting.estimate(compiled(3, text), False, context)


def sealed(body: str) -> bytes:
    data = bytes.fromhex(body)
    return data + secure_hash(data)[:4]


@pytest.mark.parametrize(
    ("body", "signed_in"),
    [
        ("0306", True),
        ("00010306", False),
        ("00030306", False),
        ("060106", True),
        ("00010606", False),
        ("060306", False),
        ("06010000", True),
        ("0601008000", False),
        ("000203" + "00000000" * 5, True),
        ("000203" + "00000000" * 5 + "ff", False),
        ("000203" + "00000001" + "00000000" * 4, False),
        ("060200000000", True),
        ("0602" + "00000000" + "ff", False),
    ],
)
def test_scripts_in_another_form_than_the_signed_one(body: str, signed_in: bool) -> None:
    """Expected values: the reference node reads all of these (wavesplatform/Waves
    ``lang/shared/src/main/scala/com/wavesplatform/lang/script/ScriptReader.scala``), and writes one
    form of each (``v1/BaseGlobal.scala``, ``serializeExpression`` and ``serializeContract``), of
    which transactions consist that it signs, hashes and sends.
    """
    script = sealed(body)
    script_setting.inspect(script)
    if signed_in:
        script_setting.check_form(script)
        return
    with pytest.raises(TransactionRejected, match="not in the form that it is signed in"):
        script_setting.check_form(script)
    with pytest.raises(TransactionRejected):
        set_script.check_script(script, CONTEXT)
