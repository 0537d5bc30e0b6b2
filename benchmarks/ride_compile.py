"""Compiling and decompiling: a made-up dApp of 300 lines.

Run ``.venv/bin/python benchmarks/ride_compile.py``. Prints the best of some rounds in ms; compiling
has a budget of 200 ms.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from soliton.ride.compiler import compile_source
from soliton.ride.decompiler import decompile

ROUNDS = 5
FUNCTIONS = 48
HEAD = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}

let separator = "__"
let scale = 100000000
"""
PART = """
func part%(n)d(key: String, amount: Int) = {
  let (known, fee) = (getInteger(this, key + separator + toString(amount)), amount / 100)
  let total = valueOrElse(known, 0) + fraction(amount - fee, scale, %(n)d + 1)
  if (total > 1000 && fee >= 0) then total else throw("too little: " + total.toString())
}
"""
TAIL = """
@Callable(i)
func deposit(key: String, amounts: List[Int]) = {
  strict payment = i.payments[0]
  let asset = match payment.assetId {
    case id: ByteVector => id.toBase58String()
    case _: Unit => "WAVES"
  }
  func add(sum: Int, amount: Int) = sum + %(calls)s
  let sum = FOLD<10>(amounts, 0, add)
  if (asset == "WAVES") then [IntegerEntry(key, sum), ScriptTransfer(i.caller, sum, unit)] else []
}

@Verifier(tx)
func verify() = match tx {
  case t: TransferTransaction =>
    t.amount > 5 && sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey)
  case _ => false
}
"""


def source() -> str:
    """About 300 lines."""
    parts = "".join(PART % {"n": number} for number in range(FUNCTIONS))
    return HEAD + parts + TAIL % {"calls": f'part{FUNCTIONS - 1}("k", amount)'}


def best(work: Callable[[], object]) -> float:
    """The shortest of some rounds, in ms."""
    found = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        found.append((time.perf_counter() - begin) * 1000)
    return min(found)


def main() -> None:
    """Print the figures."""
    text = source()
    compiled = compile_source(text)
    print(f"{text.count(chr(10))} lines, {len(compiled.script.source)} bytes")
    print(f"compile    {best(lambda: compile_source(text)):7.1f} ms")
    print(f"  compact  {best(lambda: compile_source(text, compact=True)):7.1f} ms")
    print(f"decompile  {best(lambda: decompile(compiled.script)):7.1f} ms")


if __name__ == "__main__":
    main()
