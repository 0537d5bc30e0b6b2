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


SURVIVORS = """
import asyncio, gc, json, weakref
from soliton.cli.process import WHOLE_SEARCHES, run_program

class Thing:
    pass

async def main():
    gc.disable()
    thing = Thing()
    thing.itself = thing
    seen = weakref.ref(thing)
    kept = [[] for _ in range(400_000)]
    gc.collect()
    del thing
    counts = []
    for _ in range(WHOLE_SEARCHES - 1):
        counts.append(len(gc.get_objects()))
        before = seen() is not None
        gc.collect()
    print(json.dumps([max(counts), before, seen() is not None, len(kept)]))

run_program(main)
"""


def test_what_survives_a_search_is_left_out_of_the_next_ones_but_not_for_ever() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SURVIVORS], capture_output=True, timeout=60, check=True
    )
    looked_at, was_there, is_there, kept = json.loads(done.stdout)
    assert kept == 400_000
    assert looked_at <= MOST
    assert (was_there, is_there) == (True, False)
