"""``waves.node.grpc.BlocksApi``: blocks by id, height and range.

Source: wavesplatform/Waves ``grpc-server/src/main/scala/com/wavesplatform/api/grpc/
BlocksApiGrpcImpl.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import UInt32Value

from soliton.api import errors
from soliton.chain.addresses import ETHEREUM_KEY_LENGTH as LONG_KEY_LENGTH
from soliton.chain.addresses import PUBLIC_KEY_LENGTH, Address, from_public_key
from soliton.grpc_api.errors import AddressRefused, Code, Refused, of_rest
from soliton.grpc_api.messages import block_with_height
from soliton.grpc_api.proto import blocks_api_pb2 as pb
from soliton.grpc_api.reading import read_address, signed_height
from soliton.node.blockchain import Blockchain

SERVICE: Final = pb.DESCRIPTOR.services_by_name["BlocksApi"]

HeightOf = Callable[[Blockchain, bytes], int | None]


def get_block(height_of: HeightOf, chain: Blockchain, request: pb.BlockRequest) -> bytes:
    """Return a block by its id, also an earlier id of the last block, or by its height."""
    height: int | None = None
    match request.WhichOneof("request"):
        case "block_id":
            height = height_of(chain, request.block_id)
        case "height":
            height = request.height if request.height > 0 else chain.height + request.height
    if height is None or not 1 <= height <= chain.height:
        raise of_rest(errors.BLOCK_DOES_NOT_EXIST.error())
    return block_with_height(chain, height, transactions=request.include_transactions)


def get_block_range(chain: Blockchain, request: pb.BlockRangeRequest) -> Iterator[bytes]:
    """Return the blocks from one height to another, both included, or those of one generator."""
    bounds = [signed_height(each) for each in (request.from_height, request.to_height)]
    first, last = (each if each > 0 else chain.height + each for each in bounds)
    whole = request.include_transactions
    heights = range(max(1, first), min(last, chain.height) + 1)
    if not heights or (first <= 0 and whole):
        return
    # As in the reference, the filter is read with the first block.
    generator = _generator(request, chain.network.chain_id)
    for height in heights:
        if generator is not None:
            key = chain.meta(height).generator
            if from_public_key(key, chain.network.chain_id) != generator:
                yield b""
                continue
        yield block_with_height(chain, height, transactions=whole)


def _generator(request: pb.BlockRangeRequest, chain_id: int) -> Address | None:
    match request.WhichOneof("filter"):
        case "generator_public_key":
            key = request.generator_public_key
            if len(key) not in (PUBLIC_KEY_LENGTH, LONG_KEY_LENGTH):
                raise Refused(Code.UNKNOWN, "")
            return from_public_key(key, chain_id)
        case "generator_address":
            try:
                return read_address(request.generator_address, chain_id)
            except AddressRefused as error:
                raise Refused(Code.UNKNOWN, "") from error
        case _:
            return None


def get_current_height(chain: Blockchain, _request: Empty) -> UInt32Value:
    """Return the height of the last block."""
    return UInt32Value(value=chain.height)


def methods(height_of: HeightOf) -> dict[str, object]:
    """Return the calls; ``height_of`` also knows the earlier ids of the last block."""
    return {
        "GetBlock": partial(get_block, height_of),
        "GetBlockRange": get_block_range,
        "GetCurrentHeight": get_current_height,
    }
