"""A program in place of the one that works on texts: it is stuck in every one of them."""

from __future__ import annotations

import re

from soliton.parallel._served import serve


def answer(_question: bytes) -> bytes:
    """Nothing in a useful time: one call of C, which nobody can interrupt."""
    return str(re.fullmatch("(a*)*b", "a" * 100)).encode()


if __name__ == "__main__":
    serve(answer)
