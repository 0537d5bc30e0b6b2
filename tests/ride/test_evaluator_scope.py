"""The search for names: the same as going from one declaration to the next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from soliton.ride.evaluator_scope import SEGMENT, Key, Scope, find

keys = st.tuples(st.booleans(), st.sampled_from("abcdefgh"))


def _plainly(scope: Scope[int] | None, key: Key) -> Scope[int] | None:
    while scope is not None and scope.key != key:
        scope = scope.outer
    return scope


@given(st.lists(keys, max_size=4 * SEGMENT), st.lists(keys, max_size=SEGMENT), keys)
def test_the_innermost_declaration_is_found(chain: list[Key], branch: list[Key], key: Key) -> None:
    scope: Scope[int] | None = None
    forks = []
    for number, each in enumerate(chain):
        scope = Scope(each, number, scope)
        forks.append(scope)
        assert find(scope, key) is _plainly(scope, key)
    inner = forks[len(forks) // 2] if forks else None
    for number, each in enumerate(branch):
        inner = Scope(each, -number, inner)
    assert find(inner, key) is _plainly(inner, key)
    assert find(scope, key) is _plainly(scope, key)
