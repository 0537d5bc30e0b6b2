"""Running scripts on an order or an exchange that the matcher is about to make.

What lives here: running them, and their results as messages. What does not: which scripts may read
the chain (``matcher_service``), and scripts themselves (``soliton.ledger.script_runs``).

Source: wavesplatform/matcher ``waves-ext/src/main/scala/com/wavesplatform/dex/grpc/integration/
smart/MatcherScriptRunner.scala``.
"""

from __future__ import annotations

import time

from soliton.chain import orders
from soliton.chain.addresses import from_public_key
from soliton.chain.errors import ChainError
from soliton.chain.orders import Order
from soliton.chain.proto import order_pb2
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.grpc_api.errors import Code, Refused
from soliton.grpc_api.proto import waves_blockchain_api_pb2 as pb
from soliton.ledger import script_runs
from soliton.ledger.blind_environment import BlindEnvironment
from soliton.ledger.context import Context
from soliton.ledger.environment import pending_environment
from soliton.ledger.errors import InvalidSignature, TransactionRejected
from soliton.ledger.script_runs import ScriptOutcome, ScriptOwner
from soliton.ledger.script_setting import parsed_script
from soliton.ledger.script_subjects import subject_of
from soliton.ledger.scripts import asset_script
from soliton.ledger.state import AccountScript, State
from soliton.node.blockchain import Blockchain
from soliton.ride.expressions import DApp


def read_order(message: order_pb2.Order, chain: Blockchain) -> Order:
    """Return the order of a request; raises ``Refused``, with the reference's status."""
    if not message.HasField("matcher_fee"):
        raise Refused(Code.INTERNAL, "The matcherFee must be specified")
    try:
        return orders.from_message(message, chain.network.chain_id)
    except ChainError as error:
        raise Refused(Code.INTERNAL, str(error)) from error


def ask_asset(
    chain: Blockchain, state: State, asset_id: AssetId, transaction: AnyTransaction
) -> pb.RunScriptResponse:
    """Run the script of an asset on an exchange, with a state of the chain."""
    script = parsed_script(asset_script(asset_id, state).script)
    context = _context(chain)
    asked = ScriptOwner(asset_id=asset_id)
    return _shown(script_runs.run_script(script, subject_of(transaction), asked, state, context))


def ask_account(
    chain: Blockchain, state: State | None, found: AccountScript, order: Order
) -> pb.RunScriptResponse:
    """Run the script of an account on an order; without a ``state`` it can read none."""
    script, context = parsed_script(found.script), _context(chain)
    owner = from_public_key(order.sender_public_key, chain.network.chain_id)
    if isinstance(script.content, DApp) and script.content.verifier is None:
        try:
            script_runs.check_signature(order, context.rules)
        except (TransactionRejected, InvalidSignature) as error:
            return pb.RunScriptResponse(script_error=str(error))
        return pb.RunScriptResponse()
    subject, asked = subject_of(order), ScriptOwner(owner)
    if state is not None:
        return _shown(script_runs.run_script(script, subject, asked, state, context))
    blind = BlindEnvironment(chain.network.chain_id, owner)
    return _shown(script_runs.run_script_in(blind, script, subject, asked, context))


def _context(chain: Blockchain) -> Context:
    return Context(pending_environment(chain, time.time_ns() // 1_000_000))


def _shown(answer: ScriptOutcome) -> pb.RunScriptResponse:
    response = pb.RunScriptResponse()
    if answer.value is False:
        response.denied.SetInParent()
    elif answer.error:
        response.script_error = answer.error
    elif answer.value is not True:
        response.unexpected_result = str(answer.value)
    return response
