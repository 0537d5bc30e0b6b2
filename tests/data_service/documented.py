"""Answers held against the OpenAPI document: all that the tests get are."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from openapi_schema_validator import OAS31Validator

from soliton.data_service.openapi import document

DOCUMENT = document()


@cache
def validator(path: str, method: str, status: str) -> OAS31Validator | None:
    answers = DOCUMENT["paths"][path][method]["responses"]
    if status not in answers:
        return None
    schema = answers[status]["content"]["application/json"]["schema"]
    return OAS31Validator({**schema, "components": DOCUMENT["components"]})


def problems(method: str, path: str, status: int, body: Any) -> list[str]:
    """What an answer has that the document does not tell; nothing for paths that it lacks."""
    for template in DOCUMENT["paths"]:
        pattern = re.sub(r"\{\w+\}", "[^/]+", template)
        if (
            re.fullmatch(pattern, path.rstrip("/"))
            and method.lower() in DOCUMENT["paths"][template]
        ):
            found = validator(template, method.lower(), str(status))
            if found is None:
                return [f"{method} {path}: status {status} is not told"]
            return [f"{method} {path}: {each.message[:300]}" for each in found.iter_errors(body)]
    return []
