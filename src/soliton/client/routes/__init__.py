"""The read routes of a node: one function for each request and its response.

``Node`` and ``AsyncNode`` have all of them as methods, with their docstrings. A function that
returns ``Pages`` becomes an iterator.

What lives here: the standard routes of every node, and Soliton's own where a function says so. What
does not: sending (``soliton.client.sending``), connections.
"""
