"""The compiler against recorded outputs of the reference compiler: equal to the byte."""

from __future__ import annotations

import base64
from typing import Any

from soliton.ride.compiler import CompileError, compile_source
from tests.amounts import some
from tests.vectors import load_vectors, report

LIBRARIES_OF_OTHERS = "imports files that are not part of the vectors"
NOT_THE_REFERENCE = "recorded of another compiler; the reference's bytes differ"
GUESSED_PAIR = "source and script do not belong together"

FORMS: dict[str, dict[str, Any]] = {
    "script": {},
    "compact": {"compact": True},
    "no_unused": {"remove_unused": True},
    "compact_no_unused": {"compact": True, "remove_unused": True},
}

# Tests of the Go compiler whose literals its own authors wrote: the reference was asked itself.
GO_LITERALS = {
    ("compiler.TestTupleDeclaration", "$t0130147"),
    ("compiler.TestMatchCase", "case (Int, String)"),
    ("compiler.TestMatchCase", "priceAsset = base16''"),
    ("compiler.TestOrderConstructorsWithAttachment", "Order("),
}


def compiled(source: str, **options: Any) -> str:
    return base64.b64encode(compile_source(source, **options).script.source).decode()


def outcome(source: str, **options: Any) -> str:
    try:
        return compiled(source, **options)
    except CompileError:
        return "error"


def test_sources_compile_to_the_same_bytes() -> None:
    """Each of them as it is, and some in the other forms."""
    vectors = load_vectors("ride_compile")
    in_all_forms = {id(vector) for vector in some(vectors, 3)}
    for vector in vectors:
        for form, options in FORMS.items():
            if vector.get(form) and (form == "script" or id(vector) in in_all_forms):
                assert compiled(vector["source"], **options) == vector[form], vector["origin"]
    report.ran("ride_compile", len(vectors))


def test_where_compilers_disagree_the_reference_is_right() -> None:
    ran = 0
    for vector in load_vectors("ride_compile_disagree"):
        wanted = vector["ridejs"] if vector["ridejs_ok"] else "error"
        assert outcome(vector["source"]) == wanted, vector["origin"]
        ran += 1
    report.ran("ride_compile_disagree", ran)


def test_what_the_reference_refuses_is_refused() -> None:
    vectors = load_vectors("ride_compile_errors")
    for vector in vectors:
        assert outcome(vector["source"]) == "error", vector["origin"]
    report.ran("ride_compile_errors", len(vectors))


def test_literals_of_the_go_compiler() -> None:
    ran = 0
    for vector in load_vectors("ride_compile_gowaves_literals"):
        got = outcome(
            vector["source"], compact=vector["compact"], remove_unused=vector["removeUnused"]
        )
        wanted = "error" if vector["fail"] else vector["expected"]
        if got == wanted:
            ran += 1
            continue
        if "IMPORT" in vector["source"]:
            report.skipped("ride_compile_gowaves_literals", 1, LIBRARIES_OF_OTHERS)
            continue
        script = base64.b64decode(vector["expected"]).decode("latin-1")
        assert any(
            vector["test"] == test and (mark in vector["source"] or mark in script)
            for test, mark in GO_LITERALS
        ), vector["source"]
        report.skipped("ride_compile_gowaves_literals", 1, NOT_THE_REFERENCE)
    report.ran("ride_compile_gowaves_literals", ran)


def test_sources_found_beside_scripts() -> None:
    """Source and script were found near each other: most of them belong together."""
    ran = 0
    for vector in load_vectors("ride_source_near_base64"):
        if outcome(vector["source"], check_complexity=False) == vector["script"]:
            ran += 1
        else:
            report.skipped("ride_source_near_base64", 1, GUESSED_PAIR)
    assert ran >= 90
    report.ran("ride_source_near_base64", ran)


def test_fields_of_an_object_pattern_are_checked_in_the_order_of_a_hash_map() -> None:
    """More than four: the expected script is what the reference's compiler gives."""
    source = """{-# STDLIB_VERSION 6 #-}
match tx {
  case TransferTransaction(amount = a, fee = f, timestamp = t, version = v, feeAssetId = i, \
recipient = r) => a > f && t > v && i == unit && r == this
  case _ => false
}
"""
    assert compiled(source) == (
        "BgEEByRtYXRjaDAFAnR4AwMJAAECBQckbWF0Y2gwAhNUcmFuc2ZlclRyYW5zYWN0aW9uBAckbWF0Y2gwBQckbWF0"
        "Y2gwAwYDBgMGAwYDBgYHBwcHBwcEByRtYXRjaDAFByRtYXRjaDAEAXIIBQckbWF0Y2gwCXJlY2lwaWVudAQBdAgF"
        "ByRtYXRjaDAJdGltZXN0YW1wBAFpCAUHJG1hdGNoMApmZWVBc3NldElkBAFhCAUHJG1hdGNoMAZhbW91bnQEAXYI"
        "BQckbWF0Y2gwB3ZlcnNpb24EAWYIBQckbWF0Y2gwA2ZlZQMDAwkAZgIFAWEFAWYJAGYCBQF0BQF2BwkAAAIFAWkF"
        "BHVuaXQHCQAAAgUBcgUEdGhpcwcHreJoEQ=="
    )
