"""A node's gRPC interfaces: what it answers to clients that speak gRPC, and the stream of updates.

What lives here: services, their messages, and the process that serves them from the node's store.
What does not: REST (``soliton.api``), the rules, HTTP/2 (``soliton.web.http2``). A node that serves
no gRPC imports nothing of it.
"""
