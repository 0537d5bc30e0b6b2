"""The routes of a node that read, one function each: what is asked, and what the answer means.

``Node`` and ``AsyncNode`` have all of them as methods, with their documentation. A function that
gives ``Pages`` becomes an iterator.

What lives here: standard routes, which every node of the family has, unless a function says that it
is one of Soliton. What does not: sending (``soliton.client.sending``), connections.
"""
