"""The answers of a whole devnet, kept and compared: ``python -m tests.answers record DIRECTORY``.

``record`` makes a little history, asks some two thousand requests of node, matcher and signer, and
keeps history, requests and answers in the directory. ``compare`` starts the program of today on a
copy of that history, asks the same, and prints what has become different. What differs between two
runs of the same program (times, fresh signatures) is found by asking twice, and left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.answers.asking import ask_all
from tests.answers.comparing import difference, varying
from tests.answers.history import make_history
from tests.answers.questions import Question, documents_of, make_questions
from tests.e2e.programs import Program, devnet

RESTING = ("--block-time", 86_400)
"""No block comes by itself: the answers are those of the history."""
SHOWN = 40
LINES = 8


def on_copy_of(data: Path, questions: list[Question]) -> list[list[object]]:
    """The answers of a devnet that finds this history; the history itself stays as it is."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "data"
        shutil.copytree(data, copy)
        with devnet("--data-dir", copy, *RESTING) as program:
            return ask_all(urls_of(program), questions)


def urls_of(program: Program) -> dict[str, str]:
    """Where each service listens."""
    return {
        "node": program.node_url,
        "matcher": program.matcher_url,
        "signer": program.signer_url,
    }


def record(directory: Path) -> int:
    """Keep history, requests, answers, and what differs between two runs."""
    directory.mkdir(parents=True)
    data = directory / "data"
    with devnet("--data-dir", data) as program:
        names = make_history(program)
    with devnet("--data-dir", data, *RESTING) as program:
        documents = documents_of(urls_of(program))
    (directory / "names.json").write_text(json.dumps(names, indent=1))
    questions = make_questions(documents, names)
    first, second = (on_copy_of(data, questions) for _ in range(2))
    leave_out = [varying(*pair) for pair in zip(first, second, strict=True)]
    (directory / "questions.json").write_text(json.dumps(questions))
    (directory / "answers.json").write_text(json.dumps({"answers": first, "varying": leave_out}))
    statuses = Counter(str(answer[0]) for answer in first)
    print(f"{len(questions)} requests; statuses {dict(sorted(statuses.items()))}")
    print(f"{sum(bool(each) for each in leave_out)} answers have parts that differ by themselves")
    return 0


def compare(directory: Path, shown: int) -> int:
    """Ask again and print what differs; the exit code says whether anything does."""
    questions = [Question(*each) for each in json.loads((directory / "questions.json").read_text())]
    kept = json.loads((directory / "answers.json").read_text())
    now = json.loads(json.dumps(on_copy_of(directory / "data", questions)))
    found = [
        (question, different)
        for question, before, after, leave_out in zip(
            questions, kept["answers"], now, kept["varying"], strict=True
        )
        if (different := difference(before, after, leave_out))
    ]
    for question, different in found[:shown]:
        print(f"{question.service} {question.method} {question.target[:120]} {question.headers}")
        for line in different[:LINES]:
            print(f"    {line}")
    print(f"{len(questions)} requests, {len(found)} answered differently")
    return 1 if found else 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--shown", type=int, default=SHOWN, help="differing answers to print")
    arguments = parser.parse_args()
    if arguments.action == "record":
        return record(arguments.directory)
    return compare(arguments.directory, arguments.shown)


if __name__ == "__main__":
    sys.exit(main())
