"""Comments between any two words of a source: taken where the reference takes them, else refused.

``comments.json`` has what the reference's compiler made of each place, script by script.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from soliton.ride.compiler import CompileError, compile_source
from tests.amounts import some
from tests.vectors import report

RECORDED: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("comments.json").read_text(encoding="utf-8")
)["vectors"]
COMMENTS = {"tight": "#c\n", "spaced": " # c\n"}


def script_of(source: str) -> str | None:
    try:
        return base64.b64encode(compile_source(source).script.source).decode()
    except CompileError:
        return None


@pytest.mark.parametrize("row", RECORDED, ids=range(len(RECORDED)))
@pytest.mark.parametrize("form", COMMENTS)
def test_a_comment_at_each_border_of_a_word(row: dict[str, Any], form: str) -> None:
    source, ran = row["source"], 0
    for number, places in row[form].items():
        expected = None if number == "-1" else row["scripts"][int(number)]
        for place in some(places, 3):
            commented = source[:place] + COMMENTS[form] + source[place:]
            assert script_of(commented) == expected, commented
            ran += 1
    report.ran("comments between words", ran)


@pytest.mark.parametrize(
    "branch", ["!true", "-height == 1", "strict a = 1\n a == 1"], ids=["not", "minus", "strict"]
)
def test_a_comment_between_else_and_a_sign_is_refused_with_a_way_out(branch: str) -> None:
    source = f"{{-# STDLIB_VERSION 6 #-}}\nif true then true else # why\n{branch}"
    with pytest.raises(CompileError, match="put the comment in front of") as refused:
        compile_source(source)
    assert (refused.value.line, refused.value.column) == (3, 1)
