"""Terms on a shared log: which entries count, as text tables and against a model of the promise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.matcher.journal.errors import WrongJournal
from soliton.matcher.journal.leadership import (
    Beat,
    Claim,
    Command,
    Entry,
    Resignation,
    Terms,
    Verdict,
    decode,
    encode,
)

IDENTITY = b"m" * 32

SIGNS = {"+": Verdict.COMMAND, "!": Verdict.TERM_BEGAN, "o": Verdict.OTHER, "-": Verdict.VOID}

# One entry a word: c1 a command of term 1, b1 a beat, r1 a resignation, k1@-1 a claim for term 1
# after offset -1 by author "k", K1 the same as ordered. Behind the bar the verdicts.
TABLE = """
k1@-1 c1 c1 b1            | ! + + o   the first claim of an empty log
c1 b1 r1                  | - - -     nobody writes without a claim
k1@-1 m1@-1 c1            | ! - +     two claim at once: the first counts
k1@-1 c1 m2@1 c1 c2       | ! + ! - + a master is deposed, what it writes later is void
k1@-1 c1 c1 m2@1 c1 c2    | ! + + - + -  somebody who had not read all cannot depose
k1@-1 b1 m2@0 c1          | ! o - +   a beat counts as a sign of life
k1@-1 c1 M2@0 c1 c2       | ! + ! - + unless the claim is ordered
k1@-1 M3@0 c3 c1          | ! - - +   an order does not skip terms
k1@-1 m2@0 c1 k3@1 c2 c3  | ! ! - ! - +  a void entry does not disturb a claim
k1@-1 r1 m2@1 c2          | ! o ! +   a successor after a resignation
k1@-1 m2@0 m2@1 k2@1      | ! ! - -   nobody claims a term twice
"""


def entry_of(word: str) -> Entry:
    kind, rest = word[0], word[1:]
    if kind == "c":
        return Command(int(rest), 5, b"x")
    if kind == "b":
        return Beat(int(rest), "k")
    if kind == "r":
        return Resignation(int(rest))
    term, after = rest.split("@")
    return Claim(int(term), int(after), kind.isupper(), IDENTITY, kind.encode() * 16, kind)


@pytest.mark.parametrize("row", TABLE.strip().splitlines())
def test_verdicts(row: str) -> None:
    words, _, expected = row.partition("|")
    entries = [entry_of(word) for word in words.split()]
    terms = Terms(IDENTITY)
    verdicts = [terms.take(offset, entry) for offset, entry in enumerate(entries)]
    assert verdicts == [SIGNS[sign] for sign in expected.split()[: len(entries)]]


def test_a_vacant_place_is_known() -> None:
    terms = Terms(IDENTITY)
    assert terms.vacant
    terms.take(0, entry_of("k1@-1"))
    assert not terms.vacant and terms.master is not None and terms.master.name == "k"
    terms.take(1, Resignation(1))
    assert terms.vacant and terms.master is None
    resumed = Terms(IDENTITY)
    resumed.resume(7, Command(3, 1, b""))
    assert (resumed.vacant, resumed.master) == (False, None)
    assert resumed.name is None
    resumed.take(8, Beat(3, "j"))
    assert resumed.name == "j"
    assert resumed.take(9, entry_of("k4@8")) is Verdict.TERM_BEGAN


def test_another_matcher_is_refused() -> None:
    with pytest.raises(WrongJournal):
        Terms(b"o" * 32).take(0, entry_of("k1@-1"))


TERMS = st.integers(0, 2**64 - 1)
ENTRIES = st.one_of(
    st.builds(Command, TERMS, st.integers(0, 2**64 - 1), st.binary(max_size=40)),
    st.builds(
        Claim,
        *(TERMS, st.integers(-1, 2**62), st.booleans()),
        *(st.binary(min_size=32, max_size=32), st.binary(min_size=16, max_size=16)),
        st.text(max_size=60),
    ),
    st.builds(Beat, TERMS, st.text(max_size=60)),
    st.builds(Resignation, TERMS),
)


@given(ENTRIES)
def test_entries_are_read_as_they_were_written(entry: Entry) -> None:
    assert decode(encode(entry)) == entry


@given(st.binary(max_size=120))
def test_other_bytes_are_refused(data: bytes) -> None:
    try:
        entry = decode(data)
    except WrongJournal:
        return
    assert encode(entry) == data or isinstance(entry, Claim)


def test_long_names_are_refused() -> None:
    for entry in (Beat(1, "n" * 257), Claim(1, 0, False, IDENTITY, bytes(16), "n" * 257)):
        with pytest.raises(WrongJournal):
            decode(encode(entry))


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("cbkKr"), st.integers(0, 3))))
def test_no_two_masters(steps: list[tuple[int, str, int]]) -> None:
    """Three matchers read late, claim and write as they like: commands of a term that count stand
    between its claim and the next one that holds, and all are of one author.
    """
    log: list[tuple[int, Entry]] = []
    seen = [Terms(IDENTITY) for _ in range(3)]
    read = [0, 0, 0]
    for who, what, reads in steps:
        terms = seen[who]
        for offset, (_, entry) in enumerate(log[read[who] : read[who] + reads], read[who]):
            terms.take(offset, entry)
            read[who] += 1
        mine = terms.master is not None and terms.master.author == bytes([who]) * 16
        if what in "kK":
            log.append((who, Claim(
                terms.term + 1, terms.last_valid, what == "K", IDENTITY, bytes([who]) * 16, str(who)
            )))  # fmt: skip
        elif mine:
            made: Entry = Command(terms.term, 1, b"")
            log.append(
                (
                    who,
                    {"c": made, "b": Beat(terms.term, str(who))}.get(what, Resignation(terms.term)),
                )
            )
    judge = Terms(IDENTITY)
    master: int | None = None
    for offset, (author, entry) in enumerate(log):
        verdict = judge.take(offset, entry)
        if verdict is Verdict.TERM_BEGAN:
            master = author
        elif verdict is not Verdict.VOID:
            assert author == master
