"""The REST API: declared routes, their errors and documentation, and the application.

Groups of routes are written with ``http`` and ``routes`` and live in ``rest``. ``app`` combines
them, ``application`` handles requests. Handlers reach the node through ``context``.
"""
