"""``grpc.reflection``: the services, methods and messages, for grpcurl and similar tools.

Both versions of the protocol have the same messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message

from soliton.grpc_api.errors import Code
from soliton.grpc_api.framing import number_of
from soliton.grpc_api.proto import reflection_alpha_pb2, reflection_pb2

VERSIONS: Final[tuple[Any, ...]] = (reflection_alpha_pb2, reflection_pb2)
_KEPT: Final = 64
_POOL: Final = descriptor_pool.Default()


def service_of(version: ModuleType) -> Any:  # noqa: ANN401 - a descriptor
    """Return the service descriptor of a version."""
    return version.DESCRIPTOR.services_by_name["ServerReflection"]


class Reflection:
    """Reflection of the services with these names."""

    def __init__(self, version: Any, names: Iterable[str]) -> None:  # noqa: ANN401 - a module
        self._pb = version
        self._names = sorted(names)

    def methods(self) -> dict[str, object]:
        """Return the calls."""
        return {"ServerReflectionInfo": self.answer}

    def answer(self, request: Any) -> Message:  # noqa: ANN401 - of either version
        """Answer a request."""
        answer = self._pb.ServerReflectionResponse(
            valid_host=request.host, original_request=request
        )
        try:
            self._fill(answer, request)
        except KeyError:
            self._refuse(answer, Code.NOT_FOUND, "there is nothing of this name")
        found: Message = answer
        return found

    def _fill(self, answer: Any, request: Any) -> None:  # noqa: ANN401 - of either version
        match request.WhichOneof("message_request"):
            case "list_services":
                services = answer.list_services_response
                services.SetInParent()
                for name in self._names:
                    services.service.add(name=name)
            case "file_by_filename":
                _show(answer, request.file_by_filename)
            case "file_containing_symbol":
                _show(answer, _POOL.FindFileContainingSymbol(request.file_containing_symbol).name)
            case "file_containing_extension":
                extension = request.file_containing_extension
                extended = _POOL.FindMessageTypeByName(extension.containing_type)
                found: Any = _POOL.FindExtensionByNumber(extended, extension.extension_number)
                _show(answer, found.file.name)
            case "all_extension_numbers_of_type":
                extended = _POOL.FindMessageTypeByName(request.all_extension_numbers_of_type)
                numbers = answer.all_extension_numbers_response
                numbers.base_type_name = extended.full_name
                every = (each.number for each in _POOL.FindAllExtensions(extended))
                numbers.extension_number.extend(sorted(every))
            case _:
                self._refuse(answer, Code.INVALID_ARGUMENT, "nothing is asked for")

    def _refuse(self, answer: Any, code: Code, text: str) -> None:  # noqa: ANN401 - as above
        answer.error_response.error_code = number_of(code)
        answer.error_response.error_message = text


def _show(answer: Any, name: str) -> None:  # noqa: ANN401 - of either version
    answer.file_descriptor_response.file_descriptor_proto.extend(_files(_POOL.FindFileByName(name)))


@lru_cache(_KEPT)
def _files(file: FileDescriptor) -> tuple[bytes, ...]:
    """Return a file and all its dependencies, each once."""
    found: dict[str, bytes] = {}
    waiting = [file]
    while waiting:
        each = waiting.pop()
        if each.name not in found:
            found[each.name] = each.serialized_pb
            waiting.extend(each.dependencies)
    return tuple(found.values())
