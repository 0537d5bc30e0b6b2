"""A program for the tests of killable processes: it does what the question says."""

from __future__ import annotations

import os
import re
import time

from soliton.parallel._served import serve


def answer(question: bytes) -> bytes:
    match question.split():
        case [b"number"]:
            return str(os.getpid()).encode()
        case [b"say", size]:
            return b"x" * int(size)
        case [b"work", seconds]:
            until = time.process_time() + float(seconds)
            while time.process_time() < until:
                pass
            return b""
        case [b"backtrack"]:
            # One call of a function in C, which asks nobody and can be interrupted by nobody.
            return str(re.fullmatch("(a*)*b", "a" * 100)).encode()
        case [b"allocate"]:
            return b"x" * (8 * 1024**3)
        case [b"hold", size]:
            # A byte of each page, so that the system has to give it.
            return bytes(bytearray(b"held" * (int(size) // 4))[:4])
        case [b"end"]:
            os._exit(3)
        case [b"fail"]:
            raise ValueError("the reason")
        case [b"print"]:
            print("not an answer")
            return b"answer"
    return question


if __name__ == "__main__":
    serve(answer)
