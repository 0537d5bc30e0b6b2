"""Trees as the reference prints them: after ``toStr`` in its ``Terms.scala``."""

from __future__ import annotations

import pytest

from soliton.ride.compiler import compile_source
from soliton.ride.expressions import Ref
from soliton.ride.script import make_script
from soliton.ride.tree_text import MAX_TREE_CHARS, tree_text

HEAD = "{-# STDLIB_VERSION %d #-}\n"
PRINTED = (
    (6, "true", "true"),
    (6, '1 + 2 == size("a b")', "Native(0),List(FUNCTION_CALL(Native(100),List(1, 2)), "),
    (6, 'size("a b") == 3', "(Native(0),List(FUNCTION_CALL(Native(305),List(a b)), 3))"),
    (2, "let a = 1\na == 1", "LET_BLOCK(LET(a,1),FUNCTION_CALL(Native(0),List(REF(a), 1)))"),
    (6, "let a = 1\na == 1", "BLOCK(LET(a,1),FUNCTION_CALL(Native(0),List(REF(a), 1)))"),
    (
        6,
        "func f(x: Int, y: Int) = x\nf(1, -2) != 3",
        "BLOCK(FUNC(f,List(x, y),REF(x)),FUNCTION_CALL(User(!=),List(FUNCTION_CALL(User(f),List(1",
    ),
    (6, "func f() = true\nf()", "BLOCK(FUNC(f,List(),true),FUNCTION_CALL(User(f),List()))"),
    (6, "if true then tx.id == base58'2g' else false",
     "IF(true,FUNCTION_CALL(Native(0),List(GETTER(REF(tx),id), 2g)),false)"),
)  # fmt: skip


@pytest.mark.parametrize(("version", "source", "printed"), PRINTED)
def test_trees_of_expressions(version: int, source: str, printed: str) -> None:
    assert printed in tree_text(compile_source(HEAD % version + source).script)


def test_nothing_is_told_of_dapps_and_of_what_is_too_long() -> None:
    dapp = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE DAPP #-}\nlet a = 1\n"
    assert tree_text(compile_source(dapp).script) == ""
    assert tree_text(make_script(6, Ref("a" * 255))) == f"REF({'a' * 255})"
    assert MAX_TREE_CHARS > 10 * 8_192
