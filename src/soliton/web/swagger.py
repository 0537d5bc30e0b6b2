"""The interactive page: Swagger UI with assets from our own package, nothing from a CDN.

What lives here: the small page around it, and the assets that may be served. What does not: the
routes that serve them, and the OpenAPI document (each service has its own).
"""

from __future__ import annotations

import html
from pathlib import Path

from soliton.errors import EnvironmentProblem
from soliton.web.types import Headers

ASSETS = {
    "swagger-ui.css": b"text/css; charset=UTF-8",
    "swagger-ui-bundle.js": b"text/javascript; charset=UTF-8",
    "favicon-16x16.png": b"image/png",
    "favicon-32x32.png": b"image/png",
}

_CONTENT_POLICY = (
    b"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    b"frame-ancestors 'self'"
)
PAGE_HEADERS: Headers = ((b"content-security-policy", _CONTENT_POLICY),)

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="swagger-ui.css">
<link rel="icon" type="image/png" href="favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="swagger-ui-bundle.js"></script>
<script src="start.js"></script>
</body>
</html>
"""

START_SCRIPT = b"""window.ui = SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  docExpansion: "none",
  filter: true,
  persistAuthorization: true,
  tryItOutEnabled: true,
  validatorUrl: "none"
});
"""


def page_for(title: str) -> bytes:
    """Return the page; its files and ``openapi.json`` are in the same directory."""
    return _PAGE.format(title=html.escape(title)).encode("utf-8")


def assets_folder() -> Path:
    """Return the directory of Swagger UI's files, which the build has put beside this module."""
    folder = Path(__file__).with_name("swagger_ui")
    if not folder.is_dir():
        raise EnvironmentProblem(f"{folder} is missing: install Soliton again (make setup)")
    return folder
