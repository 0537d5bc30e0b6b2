"""Literals of bytes: what the reference takes and what it refuses."""

from __future__ import annotations

import pytest

from soliton.ride.compiler import CompileError, compile_source


@pytest.mark.parametrize("digits", ["", "AB", "ABC", "AB=", "ABC==", "ABCD=", "ABCDAB=="])
def test_base_64_with_any_padding(digits: str) -> None:
    compile_source(f"base64'{digits}' == base16''")


@pytest.mark.parametrize("digits", ["A", "A==", "=", "==", "ABCDE", "AB=C"])
def test_what_is_no_base_64(digits: str) -> None:
    with pytest.raises(CompileError):
        compile_source(f"base64'{digits}' == base16''")
