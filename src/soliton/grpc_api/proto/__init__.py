"""Messages and services of a node's gRPC interfaces, generated from the ``.proto`` files here.

What lives here: the schemas, and (made at build time, not in git) one ``*_pb2`` module for each.
What does not: messages that are hashed and signed (``soliton.chain.proto``). The schemas are those
of wavesplatform/protobuf-schemas, with the same names, numbers and types of fields.
"""
