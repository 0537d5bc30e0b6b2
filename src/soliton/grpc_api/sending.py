"""Transactions that clients broadcast: parsed, checked without the state, and sent to the node.

What lives here: the errors, with the messages of the reference's decoder. What does not: the pool,
which belongs to the node (``link``), and the rules themselves.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/protobuf/transaction/
PBTransactions.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.api.translate import refusal
from soliton.chain.errors import (
    AliasError,
    ChainError,
    FormatError,
    UnsupportedTransaction,
    WrongChainId,
)
from soliton.chain.proto.transaction_pb2 import SignedTransaction
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.grpc_api.errors import Code, Refused, numbered, of_rest
from soliton.grpc_api.link import NodeLink, Send, Sent
from soliton.node.blockchain import Blockchain
from soliton.node.signatures import verified_messages
from soliton.ride.errors import ScriptFormatError
from soliton.ride.script import parse_script

NOT_REACHABLE: Final = "The node cannot be asked now"
VALIDATION: Final = 199
_STATE_CHECK: Final = 112
_UNSUPPORTED: Final = 312
_NO_RECIPIENT: Final = "Not an address or alias: Recipient(Empty,UnknownFieldSet(Map()))"
_NO_ADDRESS: Final = "no address in "


def read_sent(message: SignedTransaction, chain: Blockchain) -> AnyTransaction:
    """Return the transaction of a message, checked without the state; raises ``Refused``."""
    held = message.WhichOneof("transaction")
    if held is None:
        raise numbered(VALIDATION, "Transaction must be specified")
    if held == "waves_transaction" and message.waves_transaction.WhichOneof("data") is None:
        raise numbered(_UNSUPPORTED, "transaction type not supported")
    try:
        transaction = codec.from_message(message, chain.network.chain_id)
        _check_script(transaction)
        codec.check_proofs(transaction.proofs)
        codec.validate(transaction)
    except WrongChainId as error:
        raise numbered(VALIDATION, "Address or alias from other network") from error
    except UnsupportedTransaction as error:
        raise numbered(_STATE_CHECK, f"State check failed. Reason: {error}") from error
    except AliasError as error:
        raise numbered(VALIDATION, str(error)) from error
    except FormatError as error:
        raise _of_format(str(error)) from error
    except ChainError as error:
        raise of_rest(refusal(error, chain.network.family)) from error
    return transaction


def _check_script(transaction: AnyTransaction) -> None:
    script = getattr(transaction.payload, "script", None)
    if isinstance(script, bytes) and script:
        try:
            parse_script(script)
        except ScriptFormatError as error:
            raise Refused(Code.INVALID_ARGUMENT, f"ScriptParseError({error})") from error


def _of_format(text: str) -> Refused:
    if text == "recipient is empty":
        return numbered(VALIDATION, _NO_RECIPIENT)
    if text.startswith(_NO_ADDRESS):
        length = text.removeprefix(_NO_ADDRESS).split()[0]
        return numbered(VALIDATION, f"Invalid address length: {length}")
    if text.startswith("an exchange of "):
        return numbered(_UNSUPPORTED, "transaction type not supported")
    if text.startswith("asset id of "):
        return numbered(_STATE_CHECK, f"State check failed. Reason: {text}")
    return Refused(Code.INVALID_ARGUMENT, text)


async def send(node: NodeLink, chain: Blockchain, message: SignedTransaction) -> AnyTransaction:
    """Add a transaction to the node's pool; raises ``Refused``."""
    transaction = read_sent(message, chain)
    verified = bool(verified_messages(transaction))
    answer = await node.ask(Send(codec.encode_protobuf(transaction), verified))
    if not isinstance(answer, Sent):
        raise Refused(Code.UNAVAILABLE, NOT_REACHABLE)
    if answer.error:
        raise numbered(answer.error, answer.text)
    return transaction
