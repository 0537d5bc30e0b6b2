"""A chain of ids, for machines that ask about nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from soliton.crypto.keys import key_pair


def block_id(number: int, branch: str = "a") -> bytes:
    """A block's id that says where it is."""
    return f"{branch}{number}".encode().ljust(32, b".")


class Ids:
    """A history of ids; the score is their number unless it is set."""

    def __init__(self, count: int) -> None:
        self.ids = [block_id(number) for number in range(1, count + 1)]
        self.extra = 0
        self.is_final_by_votes = False
        self.maker = key_pair("miner").public_key

    def score(self) -> int:
        return len(self.ids) + self.extra

    def last_ids(self, count: int) -> Sequence[bytes]:
        return self.ids[::-1][:count]

    def ends_at_a_vote(self) -> bool:
        return self.is_final_by_votes

    def knows(self, block_id: bytes) -> bool:
        return block_id in self.ids

    def last_id(self) -> bytes:
        return self.ids[-1]

    def generator(self) -> bytes:
        return self.maker
