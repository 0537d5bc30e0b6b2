"""An attack with slow texts, one kind after the other, on a devnet: who else is kept waiting?

``python -m tests.fuzzing.slow_text [KIND ...]``. Each kind is a text of the largest size that the
service takes, made so that some parser may take long for it. While it is answered a second client
asks each service for something short, over and over, and the memory of all processes is watched.
Printed are for each kind the answer, how long it took, the longest wait of the other client, and
the most memory; what has not been answered after a while is given up, and the devnet started anew.

What lives here: the texts and the measuring. What does not: tests (those of the parsers are beside
them, and compare times at two sizes).
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from soliton.chain.transactions import codec
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.ride.compiler import compile_source
from tests.api.chain import NO_RANDOMNESS, RICH, RICH_ADDRESS
from tests.e2e.programs import Program, call, devnet, eventually

SIZE: Final = 1_000_000
GIVE_UP_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 0.002
V6: Final = "{-# STDLIB_VERSION 6 #-}\n"
DAPP: Final = V6 + "{-# CONTENT_TYPE DAPP #-}\n@Callable(i)\nfunc done() = []\n"
NODE, MATCHER, SIGNER = "node", "matcher", "signer"
SHORT: Final = {NODE: "/blocks/height", MATCHER: "/matcher", SIGNER: "/health"}
TEXT, JSON, FORM = "text/plain", "application/json", "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Attack:
    """One request."""

    path: str
    body: str = ""
    content_type: str = TEXT
    service: str = NODE


def compiling(source: str) -> Attack:
    return Attack("/utils/script/compileCode", source[:SIZE])


def evaluating(source: str) -> Attack:
    body = json.dumps({"expr": source})
    return Attack(f"/utils/script/evaluate/{RICH_ADDRESS}", body, JSON)


def _doubling(leaf: str, calls: int = 60) -> str:
    lines = (f"func d{n}(x: Int) = d{n - 1}(x) + d{n - 1}(x)\n" for n in range(1, calls))
    return f"{leaf}\n{''.join(lines)}d{calls - 1}(1)"


def _chain_of_names(count: int) -> str:
    names = "".join(f"let a{n} = a{n - 1}\n" for n in range(1, count))
    return f"func d0(x: Int) = {{ let a0 = x\n{names}a{count - 1} }}"


def _json(value: object) -> str:
    return json.dumps(value)


ORDER: Final = {
    "orderType": "buy", "version": 3, "assetPair": {"amountAsset": "", "priceAsset": "WAVES"},
    "amount": 1, "price": 1, "matcherFee": 300_000, "timestamp": 1, "expiration": 2,
    "proofs": [], "senderPublicKey": "", "matcherPublicKey": "",
}  # fmt: skip

ATTACKS: Final[Mapping[str, Callable[[], Attack]]] = {
    "directive-1k": lambda: compiling("{-#" + "A" * 500 + " " * 500 + "!#-}"),
    "directive-2k": lambda: compiling("{-#" + "A" * 1_000 + " " * 1_000 + "!#-}"),
    "directive": lambda: compiling("{-# A" + "a " * (SIZE // 2 - 20) + "!#-}"),
    "directives": lambda: compiling("{-#" * (SIZE // 3)),
    "import": lambda: compiling("{-# IMPORT a #-}\n" + "{-#IMPORT" * (SIZE // 9)),
    "library": lambda: Attack(
        "/utils/script/compileWithImports",
        _json(
            {
                "script": "{-# IMPORT a #-}\ntrue",
                "imports": {"a": "{-# CONTENT_TYPE LIBRARY #-}\n" + "{-#" * (SIZE // 3 - 50)},
            }
        ),
        JSON,
    ),
    "near-name": lambda: compiling(V6 + "ab" * 40_000),
    "near-long-names": lambda: compiling(
        V6 + "".join(f"let {'ab' * 110}{n:06} = 1\n" for n in range(330)) + "ab" * 60 + "ba" * 52
    ),
    "near-names": lambda: compiling(
        V6 + "".join(f"let abcdefgh{n:06} = 1\n" for n in range(SIZE // 24)) + "abcdefgh00000x"
    ),
    "fold": lambda: compiling(
        V6 + "func f(a: Int, b: Int) = a + b\n" + "FOLD<1000>([1], 0, f) + " * 25_000 + "1"
    ),
    "minus": lambda: compiling(V6 + "-" * (SIZE - 100) + "1"),
    "digits": lambda: compiling(V6 + "9" * (SIZE - 100)),
    "cases": lambda: compiling(V6 + "match 1 {" + " case x: Int => 1" * (SIZE // 17 - 5) + "}"),
    "patterns": lambda: compiling(V6 + "match 1 { case (" * 60_000),
    "charset-punycode": lambda: Attack(
        "/utils/script/compileCode", "x-" + "a" * 250_000, "text/plain; charset=punycode"
    ),
    "charset-utf-7": lambda: Attack(
        "/utils/script/compileCode", "+AAAA" * 50_000, "text/plain; charset=utf-7"
    ),
    "decompile": lambda: Attack("/utils/script/decompile", "base64:" + "A" * (SIZE - 10)),
    "estimate": lambda: Attack("/utils/script/estimate", "base64:" + "A" * (SIZE - 10)),
    "evaluate-names": lambda: evaluating(_doubling(_chain_of_names(5_000))),
    "evaluate-near-name": lambda: evaluating("ab" * 40_000),
    "evaluate-base64": lambda: evaluating("base64:" + "CQAA" * (SIZE // 4 - 100)),
    "evaluate-texts": lambda: evaluating(
        f'let a = "{"x" * 32_000}"\nlet b = "{"x" * 16_000}y"\n'
        + _doubling("func d0(x: Int) = if (contains(a, b)) then 1 else x")
    ),
    "json-colons": lambda: Attack(
        "/transactions/broadcast", '{"a":"' + '\\":' * (SIZE // 3 - 10) + '"}', JSON
    ),
    "json-members": lambda: Attack(
        "/transactions/broadcast",
        "{" + ",".join(f'"a{n:06}":"\\":"' for n in range(SIZE // 17)) + "}",
        JSON,
    ),
    "json-objects": lambda: Attack("/transactions/broadcast", "[" + "{}," * 330_000 + "{}]", JSON),
    "json-digits": lambda: Attack(
        "/transactions/broadcast", '{"type":' + "9" * (SIZE - 10) + "}", JSON
    ),
    "json-fraction": lambda: Attack(
        "/transactions/broadcast", '{"type":4,"fee":1.' + "0" * (SIZE - 40) + "}", JSON
    ),
    "json-brackets": lambda: Attack("/transactions/broadcast", "[" * SIZE, JSON),
    "base58": lambda: Attack("/transactions/broadcast", _base58_transaction(), JSON),
    "base58-path": lambda: Attack(f"/addresses/balance/{'z' * 60_000}"),
    "hash": lambda: Attack("/utils/hash/secure", "x" * SIZE),
    "pattern": lambda: Attack(f"/addresses/data/{RICH_ADDRESS}", "matches=" + "(a*)*" * 150, FORM),
    "form": lambda: Attack(f"/addresses/data/{RICH_ADDRESS}", "key=%41&" * (SIZE // 8), FORM),
    "ids": lambda: Attack("/transactions/info", "id=zz&" * (SIZE // 6), FORM),
    "simulate": lambda: Attack("/transactions/simulate", _base58_transaction(), JSON),
    "matcher-digits": lambda: Attack(
        "/matcher/orderbook",
        _json(ORDER)[:-1] + ',"price":' + "9" * (SIZE - 1_000) + "}",
        JSON,
        MATCHER,
    ),
    "matcher-base58": lambda: Attack(
        "/matcher/orderbook",
        _json(ORDER | {"senderPublicKey": "z" * (SIZE - 1_000)}),
        JSON,
        MATCHER,
    ),
    "matcher-proofs": lambda: Attack(
        "/matcher/orderbook", _json(ORDER | {"proofs": ["z" * 100] * 9_000}), JSON, MATCHER
    ),
    "matcher-brackets": lambda: Attack("/matcher/orderbook", "[" * SIZE, JSON, MATCHER),
    "signer-digits": lambda: Attack(
        "/data", '{"seed":"a","data":[{"key":"a","value":' + "9" * 900_000 + "}]}", JSON, SIGNER
    ),
    "signer-members": lambda: Attack("/data", '{"a":1,' * 100_000, JSON, SIGNER),
    "signer-brackets": lambda: Attack("/data", "[" * 900_000, JSON, SIGNER),
}


def _base58_transaction() -> str:
    values = {
        "type": 4, "version": 3, "senderPublicKey": "z" * 300_000, "recipient": "z" * 300_000,
        "amount": 1, "fee": 100_000, "timestamp": 1, "attachment": "z" * 300_000, "proofs": [],
    }  # fmt: skip
    return _json(values)


@dataclass
class Bystander:
    """Asks for something short until it is told to stop; ``longest`` is what it waited."""

    url: str
    path: str
    longest: float = 0.0
    stopped: threading.Event = field(default_factory=threading.Event)

    def ask(self) -> None:
        host = urlsplit(self.url)
        while not self.stopped.is_set():
            connection = http.client.HTTPConnection(host.hostname or "", host.port, timeout=60)
            with (
                contextlib.suppress(OSError, http.client.HTTPException),
                contextlib.closing(connection),
            ):
                while not self.stopped.is_set():
                    started = time.perf_counter()
                    try:
                        connection.request("GET", self.path)
                        connection.getresponse().read()
                    finally:
                        self.longest = max(self.longest, time.perf_counter() - started)
                    time.sleep(PAUSE_SECONDS)


def memory(process: int) -> int:
    """Bytes that a process and those below it have in memory."""
    total = 0
    for each in (process, *_below(process)):
        with contextlib.suppress(OSError, IndexError, ValueError):
            pages = Path(f"/proc/{each}/statm").read_text(encoding="ascii").split()[1]
            total += int(pages) * os.sysconf("SC_PAGE_SIZE")
    return total


def _below(process: int) -> Iterator[int]:
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text(encoding="ascii").split()):
                yield child
                yield from _below(child)


class Target:
    """A devnet with a dApp at the richest account."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.urls = {
            NODE: program.node_url,
            MATCHER: program.matcher_url,
            SIGNER: program.signer_url,
        }
        status = call(f"{program.node_url}/blocks/headers/last").json()
        draft = codec.build(
            SET_SCRIPT,
            SetScript(compile_source(DAPP).script.source),
            version=2,
            chain_id=ord("R"),
            sender_public_key=RICH.public_key,
            fee=10_000_000,
            timestamp=status["timestamp"] + 1,
        )
        signed = codec.to_json(codec.sign(draft, RICH.private_key, NO_RANDOMNESS))
        answer = call(f"{program.node_url}/transactions/broadcast", signed)
        assert answer.status == 200, answer.body
        info = f"{program.node_url}/addresses/scriptInfo/{RICH_ADDRESS}"
        eventually(lambda: call(info).json().get("script") is not None, "the dApp")

    def attack(self, name: str, attack: Attack) -> bool:
        """Send it and print what came of it; whether it was answered."""
        bystanders = [Bystander(url, SHORT[service]) for service, url in self.urls.items()]
        threads = [threading.Thread(target=each.ask, daemon=True) for each in bystanders]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        for each in bystanders:
            each.longest = 0.0
        result: list[str] = []
        sender = threading.Thread(target=self._send, args=(attack, result), daemon=True)
        started, most = time.perf_counter(), 0
        sender.start()
        while sender.is_alive() and time.perf_counter() - started < GIVE_UP_SECONDS:
            most = max(most, memory(self.program.process.pid))
            time.sleep(0.02)
        took = time.perf_counter() - started
        # Those who wait are let wait to the end, or nearly so.
        time.sleep(0.2)
        for each in bystanders:
            each.stopped.set()
        for thread in threads:
            thread.join(GIVE_UP_SECONDS)
        longest = [GIVE_UP_SECONDS if thread.is_alive() else each.longest
                   for thread, each in zip(threads, bystanders, strict=True)]  # fmt: skip
        waits = " ".join(f"{1_000 * wait:8.0f}" for wait in longest)
        said = result[0] if result else "no answer"
        print(f"{name:20} {took:7.2f} s {waits} ms {most >> 20:6} MB  {said}", flush=True)
        return bool(result)

    def _send(self, attack: Attack, result: list[str]) -> None:
        host = urlsplit(self.urls[attack.service])
        connection = http.client.HTTPConnection(host.hostname or "", host.port, timeout=600)
        try:
            method = "POST" if attack.body else "GET"
            headers = {"Content-Type": attack.content_type}
            connection.request(method, attack.path, attack.body or None, headers)
            answer = connection.getresponse()
            result.append(f"{answer.status} {answer.read()[:60]!r}")
        except (OSError, http.client.HTTPException) as error:
            result.append(repr(error))
        finally:
            connection.close()


def main() -> None:
    """Attack with the kinds that the command line names, or with all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(ATTACKS))
    parser.add_argument("--workers", type=int, default=0, help="processes that serve the node")
    given = parser.parse_args()
    names = given.kinds or [*ATTACKS]
    heads = " ".join(f"{service:>8}" for service in SHORT)
    print(f"{'kind':20} {'took':>9} {heads} ms {'memory':>9}  answer")
    while names:
        with devnet("--workers", given.workers) as program:
            target = Target(program)
            while names and target.attack(name := names.pop(0), ATTACKS[name]()):
                pass


if __name__ == "__main__":
    main()
