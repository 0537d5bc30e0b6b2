"""Protobuf messages of the network, generated from the ``.proto`` files beside this module.

What lives here: the schemas, and (made at build time, not in git) one ``*_pb2`` module for each.
What does not: any rule about what a message may contain; that is `chain`'s own code.
The schema is the network's: wavesplatform/protobuf-schemas, ``proto/waves``. Names, numbers and
types of fields are its; they are consensus-critical and never change here alone.
"""
