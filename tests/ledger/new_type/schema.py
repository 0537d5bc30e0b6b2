"""The network's schema with one more member: ``greeting`` in a transaction's data.

A real type comes with its message from the network's own schema; this is that schema, with the line
added while a test runs.
"""

from __future__ import annotations

import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from soliton.chain.proto import (
    amount_pb2,
    block_pb2,
    order_pb2,
    recipient_pb2,
    transaction_pb2,
)

_MODULES = (amount_pb2, recipient_pb2, order_pb2, transaction_pb2, block_pb2)
_MEMBER_NUMBER = 199


def extend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put messages of the longer schema in the place of the network's."""
    pool = DescriptorPool()
    for module in _MODULES:
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        if module is transaction_pb2:
            _add_greeting(file)
        pool.AddSerializedFile(file.SerializeToString())
    for module in _MODULES:
        for name in module.DESCRIPTOR.message_types_by_name:
            descriptor = pool.FindMessageTypeByName(f"{module.DESCRIPTOR.package}.{name}")
            monkeypatch.setattr(module, name, message_factory.GetMessageClass(descriptor))


def _add_greeting(file: FileDescriptorProto) -> None:
    greeting = file.message_type.add(name="GreetingTransactionData")
    optional = FieldDescriptorProto.LABEL_OPTIONAL
    greeting.field.add(
        name="recipient",
        number=1,
        label=optional,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=f".{file.package}.Recipient",
    )
    greeting.field.add(
        name="words", number=2, label=optional, type=FieldDescriptorProto.TYPE_STRING
    )
    transaction = next(each for each in file.message_type if each.name == "Transaction")
    data = [each.name for each in transaction.oneof_decl].index("data")
    transaction.field.add(
        name="greeting",
        number=_MEMBER_NUMBER,
        label=optional,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=f".{file.package}.GreetingTransactionData",
        oneof_index=data,
    )
