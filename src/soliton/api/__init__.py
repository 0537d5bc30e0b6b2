"""The REST API: declared routes, their errors and documentation, and the server that speaks HTTP.

``http`` and ``routes`` are what a group of routes is written with, ``rest`` holds the groups,
``app`` puts them together, ``application`` answers requests. What the routes ask is not here: the
node answers through ``context``.
"""
