"""What all HTTP services of ours share: requests, answers, a server for a running event loop.

What lives here: nothing that knows a route, an error body or a chain. What does not: the node's
API (``soliton.api``), the signer and the matcher, which each bring an application.
"""
