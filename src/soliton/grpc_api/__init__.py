"""A node's gRPC interfaces: the reference's API, the stream of updates, and the matcher's API.

What lives here: services, their messages, and the process that serves them from the node's store.
What does not: REST (``soliton.api``), the rules, HTTP/2 (``soliton.web.http2``). A node that serves
no gRPC does not import this package.
"""
