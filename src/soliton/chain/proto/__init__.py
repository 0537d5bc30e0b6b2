"""Protobuf messages of the network, generated from the ``.proto`` files in this directory.

What lives here: the schemas, and one generated ``*_pb2`` module for each (not in git). What does
not: rules on the content of messages. The schema is the network's, wavesplatform/protobuf-schemas
``proto/waves``; names, numbers and types of fields are consensus-critical.
"""
