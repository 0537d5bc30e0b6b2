"""A node's gRPC interfaces: what it answers to clients that speak gRPC, and the stream of updates.

What lives here: services, their messages, and the process that serves them from the node's store.
What does not: REST (``soliton.api``), the rules. The library is an extra (``soliton[grpc]``):
nothing outside of this package imports it, and a node that serves no gRPC imports nothing of it.
"""
