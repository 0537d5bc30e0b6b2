"""The worker process for texts: ``python -m soliton.api._text_worker``, started by ``texts``."""

from __future__ import annotations

from soliton.api.text_jobs import answer
from soliton.parallel._served import serve

if __name__ == "__main__":
    serve(answer)
