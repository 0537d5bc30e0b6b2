"""The table of messages: code, record, payload limit, and the first version that understands it.

What lives here: one row for each message. What does not: the records themselves (``messages``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/BasicMessagesRepo.scala``. Where its limit exceeds
the size of any block (100 MiB), ours is the largest input that ``soliton.chain`` decodes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from soliton.chain.blocks import MAX_BLOCK_BYTES
from soliton.chain.snapshots import MAX_SNAPSHOT_BYTES
from soliton.wire import messages
from soliton.wire.messages import Message
from soliton.wire.versions import BLOCK_IDS_FROM, ENDORSEMENTS_FROM, SNAPSHOTS_FROM, Version

_ANY: Final = Version(0, 0, 0)
_MAX_TRANSACTION: Final = 184_320
_MAX_PROTOBUF_BLOCK: Final = 1_086_318
_ID_LIST: Final = 4 + messages.MAX_IDS * messages.SIGNATURE_BYTES


class Kind(NamedTuple):
    """A row of the table. ``since`` is the first version that understands the message, ``limit``
    the longest payload in bytes.
    """

    code: int
    record: type[Message]
    limit: int
    since: Version = _ANY

    @property
    def name(self) -> str:
        """The name in logs and metrics."""
        return self.record.__name__


KINDS: Final = (
    Kind(1, messages.GetPeers, 0),
    Kind(2, messages.Peers, 4 + messages.MAX_PEERS * 8),
    Kind(20, messages.GetSignatures, _ID_LIST),
    Kind(21, messages.Signatures, _ID_LIST),
    Kind(22, messages.GetBlock, 64),
    Kind(23, messages.LegacyBlock, MAX_BLOCK_BYTES),
    Kind(24, messages.Score, 64),
    Kind(25, messages.LegacyTransaction, _MAX_TRANSACTION),
    Kind(26, messages.MicroblockInv, 300),
    Kind(27, messages.GetMicroblock, 500),
    Kind(28, messages.LegacyMicroblock, MAX_BLOCK_BYTES),
    Kind(29, messages.ProtobufBlock, _MAX_PROTOBUF_BLOCK, BLOCK_IDS_FROM),
    Kind(30, messages.ProtobufMicroblock, _MAX_PROTOBUF_BLOCK + 32, BLOCK_IDS_FROM),
    Kind(31, messages.ProtobufTransaction, _MAX_TRANSACTION, BLOCK_IDS_FROM),
    Kind(32, messages.GetBlockIds, _ID_LIST + messages.MAX_IDS, BLOCK_IDS_FROM),
    Kind(33, messages.BlockIds, _ID_LIST + messages.MAX_IDS, BLOCK_IDS_FROM),
    Kind(34, messages.GetBlockSnapshot, 64, SNAPSHOTS_FROM),
    Kind(35, messages.GetMicroblockSnapshot, 64, SNAPSHOTS_FROM),
    Kind(36, messages.BlockSnapshot, MAX_SNAPSHOT_BYTES, SNAPSHOTS_FROM),
    Kind(37, messages.MicroblockSnapshot, MAX_SNAPSHOT_BYTES, SNAPSHOTS_FROM),
    Kind(38, messages.EndorseBlock, 512, ENDORSEMENTS_FROM),
)

BY_CODE: Final = {kind.code: kind for kind in KINDS}
BY_RECORD: Final = {kind.record: kind for kind in KINDS}
