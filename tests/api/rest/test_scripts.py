"""Compiling and estimating over REST."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.api.rest import examples
from tests.api.chain import PrivateChain
from tests.api.client import call

DAPP = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
let greeting = "hello"
@Callable(i)
func keep(value: Int) = [IntegerEntry(greeting, value)]
"""
LIBRARY = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE LIBRARY #-}
func twice(n: Int) = n + n
"""


async def tell(chain: PrivateChain, target: str, text: str) -> tuple[int, Any]:
    answer = await call(chain.app, f"POST /utils/script/{target}", text.encode())
    return answer.status, answer.json()


async def test_what_is_compiled_is_estimated(chain: PrivateChain) -> None:
    status, compiled = await tell(chain, "compileCode", DAPP)
    assert status == 200
    assert compiled.pop("verifierComplexity") == 0
    assert compiled.pop("callableComplexities") == {"keep": compiled["complexity"]}
    assert compiled["extraFee"] == 0
    status, estimated = await tell(chain, "estimate", compiled["script"])
    assert status == 200
    assert estimated["script"] == compiled["script"]
    assert estimated["complexity"] == compiled["complexity"]
    status, shorter = await tell(chain, "compileCode?compact=true", DAPP)
    assert status == 200 and shorter["script"] != compiled["script"]


async def test_the_shown_answers(chain: PrivateChain) -> None:
    status, compiled = await tell(chain, "compileCode", examples.RIDE_SOURCE)
    assert status == 200 and compiled == {
        "script": examples.RIDE_SCRIPT,
        "complexity": 0,
        "verifierComplexity": 0,
        "callableComplexities": {},
        "extraFee": 0,
    }
    answer = {"script": examples.RIDE_SCRIPT, "complexity": 0, "extraFee": 400_000}
    assert await tell(chain, "compile", examples.RIDE_SOURCE) == (200, answer)
    status, estimated = await tell(chain, "estimate", examples.RIDE_SCRIPT)
    assert status == 200 and estimated == {"scriptText": "true", **compiled}


async def test_sources_come_back(chain: PrivateChain) -> None:
    status, found = await tell(chain, "decompile", examples.RIDE_SCRIPT)
    assert status == 200 and found == {
        "STDLIB_VERSION": 6,
        "CONTENT_TYPE": "EXPRESSION",
        "script": examples.RIDE_DECOMPILED,
    }
    compiled = (await tell(chain, "compileCode", DAPP))[1]["script"]
    status, found = await tell(chain, "decompile", f" {compiled}\n")
    assert status == 200
    assert found["CONTENT_TYPE"] == "DAPP" and found["SCRIPT_TYPE"] == "ACCOUNT"
    assert (await tell(chain, "compileCode", found["script"]))[1]["script"] == compiled
    for text in ("", "%%", "base64:AAAA"):
        status, error = await tell(chain, "decompile", text)
        assert status == 400 and error["error"] == 199


async def test_libraries(chain: PrivateChain) -> None:
    source = "{-# STDLIB_VERSION 6 #-}\n{-# IMPORT lib.ride #-}\ntwice(height) > 4"
    body = {"script": source, "imports": {"lib.ride": LIBRARY}}
    answer = await chain.post("/utils/script/compileWithImports", body)
    found: Any = answer.json()
    assert answer.status == 200 and found["complexity"] > 0 and found["extraFee"] == 400_000
    answer = await chain.post("/utils/script/compileWithImports", {"script": source})
    found = answer.json()
    assert answer.status == 400 and found["error"] == 305 and "lib.ride" in found["message"]
    answer = await chain.post("/utils/script/compileWithImports", {"script": 1})
    found = answer.json()
    assert answer.status == 400 and found["error"] == 1
    status, alone = await tell(chain, "compileCode", LIBRARY)
    assert status == 200 and alone["verifierComplexity"] == 0


async def test_scripts_of_assets_have_other_rules(chain: PrivateChain) -> None:
    source = "{-# STDLIB_VERSION 6 #-}\nisDefined(this.issuer)"
    bad, error = await tell(chain, "compile", source)
    assert bad == 400 and error["error"] == 305
    status, _ = await tell(chain, "compile?assetScript=true", "this.issuer == this.issuer")
    assert status == 200


async def test_errors_tell_where_and_what(chain: PrivateChain) -> None:
    status, error = await tell(chain, "compileCode", "{-# STDLIB_VERSION 6 #-}\nnobody + 1 > 2")
    assert status == 400 and error["error"] == 305
    assert "line 2" in error["message"] and "nobody" in error["message"]
    status, error = await tell(
        chain, "compileCode", "{-# STDLIB_VERSION 6 #-}\n{-# SCRIPT_TYPE CALL #-}\n[]"
    )
    assert status == 400 and error["error"] == 305
    for text in ("", "%%", "base64:AAAA", "base64:BgEG"):
        status, error = await tell(chain, "estimate", text)
        assert status == 400 and error["error"] == 305


async def test_the_oldest_generation_tells_less(oldest: PrivateChain) -> None:
    status, compiled = await tell(oldest, "compileCode", "{-# STDLIB_VERSION 3 #-}\ntrue")
    assert status == 200
    assert set(compiled) == {"script", "complexity", "extraFee"}
    assert compiled["extraFee"] == 1_000_000


async def test_dapps_without_directives(oldest: PrivateChain) -> None:
    source = '@Callable(i)\nfunc keep(n: Int) = WriteSet([DataEntry("n", n)])'
    status, compiled = await tell(oldest, "compileContract", source)
    assert status == 200
    assert (compiled["complexity"], compiled["extraFee"]) == (0, 1_000_000)
    head = "{-# STDLIB_VERSION 3 #-}\n{-# CONTENT_TYPE DAPP #-}\n{-# SCRIPT_TYPE ACCOUNT #-}\n"
    for target in ("compileContract", "compileCode"):
        assert (await tell(oldest, target, head + source))[1]["script"] == compiled["script"]
    status, error = await tell(oldest, "compileContract", "true")
    assert (status, error["error"]) == (400, 305)


async def test_newer_generations_want_directives(chain: PrivateChain) -> None:
    answer = await call(chain.app, "POST /utils/script/compileContract", b"true")
    assert answer.status == 404


ORDERED = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
let owner = addressFromStringValue("3P")
let list = [owner, owner]
FIVE
@Callable(i)
func keep() = [IntegerEntry("n", size([north, south, east, west, up]))]
"""
NAMES = ("north", "south", "east", "west", "up")


@pytest.mark.parametrize(
    ("plain", "inside", "complexity"),
    [("north", "south", 13), ("south", "north", 14), ("east", "west", 14), ("up", "north", 13)],
)
async def test_compilers_count_shared_values_as_the_reference_does(
    chain: PrivateChain, plain: str, inside: str, complexity: int
) -> None:
    """The numbers are those of the reference's compiler; the rules of the chain give 13 always."""
    values = {plain: "owner", inside: "list"}
    five = "\n".join(f"let {name} = {values.get(name, '1')}" for name in NAMES)
    status, compiled = await tell(chain, "compileCode", ORDERED.replace("FIVE", five))
    assert status == 200
    assert compiled["complexity"] == complexity
    assert compiled["callableComplexities"] == {"keep": complexity}
    assert (await tell(chain, "estimate", compiled["script"]))[1]["complexity"] == 13


async def test_a_verifier_that_calls_a_dapp_compiles_and_cannot_be_set(
    chain: PrivateChain,
) -> None:
    source = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
func ask() = invoke(this, "keep", [1], [])
@Callable(i)
func keep(n: Int) = [IntegerEntry("n", n)]
@Verifier(tx)
func verify() = ask() == unit
"""
    status, compiled = await tell(chain, "compileCode", source)
    assert status == 200
    assert (compiled["complexity"], compiled["verifierComplexity"]) == (77, 77)
    assert compiled["callableComplexities"] == {"keep": 3}
    status, error = await tell(chain, "estimate", compiled["script"])
    assert (status, error["error"]) == (400, 305)
    assert error["message"] == "DApp-to-dApp invocations are not allowed from verifier"


async def test_an_expression_is_estimated_with_every_function_there_is(
    chain: PrivateChain,
) -> None:
    """A script that only a called expression could have is estimated all the same."""
    source = (
        "{-# STDLIB_VERSION 6 #-}\n{-# SCRIPT_TYPE CALL #-}\n"
        'strict a = invoke(this, "keep", [], [])\n[]'
    )
    answer = await chain.post("/utils/script/compileWithImports", {"script": source})
    compiled: Any = answer.json()
    assert (answer.status, compiled["complexity"]) == (200, 0)
    status, estimated = await tell(chain, "estimate", compiled["script"])
    assert status == 200 and estimated["complexity"] == 77
