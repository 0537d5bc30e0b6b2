"""The HTTP toolkit shared by all services: requests, answers, and a server inside an event loop.

What lives here: nothing specific to a route, an error body or a chain. What does not: the
applications: the node's API (``soliton.api``), the signer and the matcher.
"""
