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
from soliton.cli.process import COUNTED_SEARCHES, run_program

class Thing:
    pass

looked = []

def look(phase, info):
    if phase == "start":
        looked.append(len(gc.get_objects()))

def surviving():
    thing = Thing()
    thing.itself = thing
    gc.collect()
    return weakref.ref(thing)

def search(rounds):
    looked.clear()
    for _ in range(rounds * COUNTED_SEARCHES):
        gc.collect()
    return max(looked)

async def main():
    gc.disable()
    gc.callbacks.append(look)
    kept = [[] for _ in range(200_000)]
    first = surviving()
    grown = search(1), first() is None
    second = surviving()
    steady = search(3), second() is None
    kept += [[] for _ in range(1_000_000)]
    gc.collect()
    again = search(1), second() is None
    print(json.dumps([grown, steady, again, len(kept)]))

run_program(main)
"""


def test_what_survives_a_search_is_left_out_of_the_next_ones_until_it_has_grown() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SURVIVORS], capture_output=True, timeout=60, check=True
    )
    grown, steady, again, kept = json.loads(done.stdout)
    assert kept == 1_200_000
    assert (grown[0] > 200_000, grown[1]) == (True, True)
    assert (steady[0] <= MOST, steady[1]) == (True, False)
    assert (again[0] > 1_200_000, again[1]) == (True, True)
