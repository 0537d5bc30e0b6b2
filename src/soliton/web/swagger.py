"""The interactive page: Swagger UI with assets from an installed package, nothing from a CDN.

What lives here: the small page around it, and the assets that may be served. What does not: the
routes that serve them, and the OpenAPI document (each service has its own).
"""

from __future__ import annotations

import html
from importlib.util import find_spec
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
    """Return the installed package's directory of Swagger UI, without importing its Python code."""
    spec = find_spec("swagger_ui")
    if spec is None or not spec.submodule_search_locations:
        raise EnvironmentProblem("the package swagger-ui-py is not installed")
    return Path(spec.submodule_search_locations[0]) / "static"
