"""The search for cycles halts a program: it looks at few containers at a time."""

from __future__ import annotations

import json
import subprocess
import sys

MOST = 50_000
"""At a microsecond for each, which a busy machine takes, as many milliseconds."""

PROGRAM = """
import asyncio, gc, json
from soliton.cli.process import run_program

looked = []

def look(phase, info):
    if phase == "start":
        made = sum(len(gc.get_objects(each)) for each in range(info["generation"] + 1))
        looked.append((info["generation"], made))

async def main():
    gc.callbacks.append(look)
    kept = [[] for _ in range(400_000)]
    gc.callbacks.clear()

run_program(main)
print(json.dumps(looked))
"""


def test_a_program_that_keeps_much_searches_little_at_a_time() -> None:
    # In a process of its own: the thresholds hold for all of it.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, timeout=60, check=True
    )
    looked = json.loads(done.stdout)
    assert max(made for _, made in looked) <= MOST
    assert {generation for generation, _ in looked} == {0, 1}
