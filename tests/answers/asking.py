"""Asks a list of requests, one after the other, and keeps all of each answer.

What lives here: the connection, and an answer as JSON values: status, reason, headers in their
order (without the date) and body. What does not: which requests (``questions``).
"""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from tests.answers.questions import ETAG_BEFORE, Question

NOT_KEPT = {"date"}
SLOW_SECONDS = 1.0
"""What takes longer is said: most is answered within a millisecond."""
LIMIT_SECONDS = 10.0


def ask_all(urls: dict[str, str], questions: Sequence[Question]) -> list[list[object]]:
    """The answers, in the order of the requests."""
    hosts = {service: urlsplit(url).netloc for service, url in urls.items()}
    etag = ""
    answers = []
    for question in questions:
        host = hosts[question.service]
        headers = [
            (name, etag if value == ETAG_BEFORE else value) for name, value in question.headers
        ]
        started = time.monotonic()
        answer = ask(host, question, headers)
        if (seconds := time.monotonic() - started) > SLOW_SECONDS:
            print(f"{seconds:.1f} s: {question.service} {question.method} {question.target[:100]}")
        etag = next((v for n, v in answer[2] if n.lower() == "etag"), etag)  # type: ignore[attr-defined]
        answers.append(answer)
    return answers


def ask(host: str, question: Question, headers: list[tuple[str, str]]) -> list[object]:
    """One request on a connection of its own."""
    with contextlib.closing(http.client.HTTPConnection(host, timeout=LIMIT_SECONDS)) as connection:
        connection.putrequest(question.method, question.target, skip_accept_encoding=True)
        body = question.body.encode()
        if body or question.method in {"POST", "PUT", "PATCH"}:
            connection.putheader("Content-Length", str(len(body)))
        for name, value in headers:
            connection.putheader(name, value)
        try:
            connection.endheaders(body or None)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "backslashreplace")
        except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
            return [type(error).__name__, "", [], ""]
        port = host.rsplit(":", 1)[1]
        kept = [
            [name, value.replace(port, "PORT")]
            for name, value in answer.getheaders()
            if name.lower() not in NOT_KEPT
        ]
        return [answer.status, answer.reason, kept, text.replace(host, "HOST")]
