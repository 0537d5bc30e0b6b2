"""Sources that others import, compiled on their own."""

from __future__ import annotations

import pytest

from soliton.ride.compiler import CompileError, compile_source

HEAD = "{-# STDLIB_VERSION 5 #-}\n{-# CONTENT_TYPE LIBRARY #-}\n{-# SCRIPT_TYPE ACCOUNT #-}\n"


def test_declarations_of_a_library_use_the_chain() -> None:
    compile_source(HEAD + "let x = lastBlock.height\nfunc f() = this.bytes")


def test_a_library_has_no_transaction() -> None:
    with pytest.raises(CompileError, match="tx"):
        compile_source(HEAD + "func f() = tx.id")
