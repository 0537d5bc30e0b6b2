"""``waves.node.grpc.BlockchainApi``: votes on features, base target, score.

Source: wavesplatform/Waves ``grpc-server/src/main/scala/com/wavesplatform/api/grpc/
BlockchainApiGrpcImpl.scala``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import partial
from typing import Final

from google.protobuf.empty_pb2 import Empty

from soliton.chain.features import DESCRIPTIONS, IMPLEMENTED, Feature
from soliton.grpc_api.errors import Code, Refused
from soliton.grpc_api.proto import blockchain_api_pb2 as pb
from soliton.grpc_api.reading import MAX_INT
from soliton.ledger.rules_at import voting_window
from soliton.node.blockchain import Blockchain

SERVICE: Final = pb.DESCRIPTOR.services_by_name["BlockchainApi"]

_Feature = pb.FeatureActivationStatus


def get_activation_status(
    supported: Collection[int], chain: Blockchain, request: pb.ActivationStatusRequest
) -> pb.ActivationStatusResponse:
    """Return the state of the vote on features in the voting window of a height."""
    height, settings = request.height, chain.network.functionality
    if height < 1:
        raise Refused(Code.INTERNAL, "last on empty Range")
    window = voting_window(settings, height)
    start = (height - 1) // window * window + 1
    if start + window - 1 > MAX_INT:
        raise Refused(Code.INTERNAL, "last on empty Range")
    votes = _votes(chain, range(start, start + window), height)
    doubling = window // settings.feature_check_blocks_period
    response = pb.ActivationStatusResponse(
        height=height,
        voting_interval=window,
        voting_threshold=settings.blocks_for_feature_activation * doubling,
        next_check=start + window - 1,
    )
    approvals = chain.store.approvals()
    approved = {each for each, at in approvals.items() if at <= height}
    for number in sorted({*Feature, *approvals, *votes}):
        response.features.append(_feature(supported, chain, number, height, votes, approved))
    return response


def _votes(chain: Blockchain, window: range, height: int) -> Counter[int]:
    """Count the votes in a window. As in the reference, all its blocks count, also those above the
    height, but the last block of the chain counts for its height and later ones, also beyond its
    window (``database/RocksDBWriter.scala`` and ``state/BlockchainUpdaterImpl.scala``).
    """
    votes: Counter[int] = Counter()
    for each in range(window.start, min(window.stop, chain.height)):
        votes.update(set(chain.feature_votes(each)))
    if chain.height <= height:
        votes.update(set(chain.feature_votes(chain.height)))
    return votes


def _feature(
    supported: Collection[int],
    chain: Blockchain,
    number: int,
    height: int,
    votes: Counter[int],
    approved: Collection[int],
) -> _Feature:
    at = chain.rules.activations().get(number)
    status = _Feature(id=number, description=DESCRIPTIONS.get(number, "Unknown feature"))
    if at is not None and at <= height:
        status.blockchain_status = _Feature.ACTIVATED
    elif number in approved:
        status.blockchain_status = _Feature.APPROVED
    else:
        status.supporting_blocks = votes[number]
    if number in IMPLEMENTED:
        voted = number in supported
        status.node_status = _Feature.VOTED if voted else _Feature.IMPLEMENTED
    status.activation_height = 0 if at is None else at
    return status


def get_base_target(chain: Blockchain, _request: Empty) -> pb.BaseTargetResponse:
    """Return the base target of the last block."""
    return pb.BaseTargetResponse(base_target=chain.last_block.header.base_target)


def get_cumulative_score(chain: Blockchain, _request: Empty) -> pb.ScoreResponse:
    """Return the score of the chain."""
    score = int.from_bytes(chain.meta(chain.height).score, "big")
    size = score.bit_length() // 8 + 1
    return pb.ScoreResponse(score=score.to_bytes(size, "big", signed=True))


def methods(supported: Collection[int]) -> dict[str, object]:
    """Return the calls of a node that votes for these features."""
    return {
        "GetActivationStatus": partial(get_activation_status, frozenset(supported)),
        "GetBaseTarget": get_base_target,
        "GetCumulativeScore": get_cumulative_score,
    }
