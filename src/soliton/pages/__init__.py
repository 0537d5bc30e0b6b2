"""Web pages: their files, and serving them."""
