"""The position in a script that rejected a transaction: the member ``fault`` of errors. No other
node has it.

What lives here: running the transaction again with an observer, and finding the lines. What does
not: the report (``soliton.ride.faults``), and the routes with the member (``debug``,
``broadcasting``).

This work is done only after a script has rejected a transaction. Untrusted scripts are decompiled
in processes that can be killed. A private chain does it at once for every rejection, and knows the
sources that it has compiled.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.errors import ApiError
from soliton.api.http import Request
from soliton.api.json_transactions import Members
from soliton.api.lookup import node_of
from soliton.api.rest.pending import next_block
from soliton.api.text_jobs import Locate
from soliton.api.thread_pool import Watch
from soliton.chain.json_schemas import list_of, shape
from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import SolitonError
from soliton.ledger.context import Context
from soliton.ledger.state import State
from soliton.ledger.transactions import apply_transaction, refuse_failure
from soliton.node.blockchain import Blockchain
from soliton.ride.errors import Interrupted, RideError
from soliton.ride.faults import Located, numbers_of, report, report_here
from soliton.ride.observation import Observer, RunFault

BY_SCRIPTS: Final = (
    errors.SCRIPT_EXECUTION_ERROR,
    errors.INVOKE_EXECUTION_ERROR,
    errors.TRANSACTION_NOT_ALLOWED_BY_ACCOUNT_SCRIPT,
    errors.TRANSACTION_NOT_ALLOWED_BY_ASSET_SCRIPT,
)
"""The errors that have a position in a script."""
MEMBER: Final = "fault"


def observed(transaction: AnyTransaction, state: State, context: Context) -> RunFault | None:
    """Run a rejected transaction again and return the position of its failure."""
    observer = Observer()
    context = msgspec.structs.replace(context, traces=None, limit=None, observer=observer)
    try:
        refuse_failure(apply_transaction(transaction, state, context))
    except Interrupted:
        raise
    except SolitonError:
        return observer.fault
    return None


async def fault_members(request: Request, fault: RunFault | None) -> Members:
    """The member ``fault``; empty if there is no position, or no time to find it."""
    if fault is None:
        return {}
    known = request.context.sources
    located: dict[bytes, Located] = {}
    try:
        for script, numbers in numbers_of(fault).items():
            work = Locate(script, numbers, known.get(script))
            located[script] = (await request.context.texts.do(work, request.charge)).found
    except (RideError, ApiError):
        return {}
    found = report(fault, located)
    return {} if found is None else {MEMBER: found.members()}


async def explained(
    request: Request, transaction: AnyTransaction | None, error: ApiError
) -> ApiError:
    """The error with its fault, found in a thread."""
    if transaction is None or error.kind not in BY_SCRIPTS:
        return error
    node = node_of(request)
    now, unconfirmed = node.clock(), node.pool.kept_state()

    def work(chain: Blockchain, watch: Watch) -> RunFault | None:
        context = next_block(chain, now, watch)
        return observed(transaction, unconfirmed.moved_above(chain.store), context)

    try:
        fault = await request.context.workers.ask(node, work, request.charge)
    except ApiError:
        return error
    return _with_members(error, await fault_members(request, fault))


def explained_at_once(request: Request, transaction: AnyTransaction, error: ApiError) -> ApiError:
    """The error with its fault, found on the event loop: for a private chain of trusted scripts."""
    if error.kind not in BY_SCRIPTS:
        return error
    node = node_of(request)
    context = next_block(node.chain, node.clock())
    fault = observed(transaction, node.pool.state(), context)
    if fault is None:
        return error
    found = report_here(fault, request.context.sources)
    return error if found is None else _with_members(error, {MEMBER: found.members()})


def _with_members(error: ApiError, members: Members) -> ApiError:
    if not members:
        return error
    return ApiError(error.kind, error.message, {**error.members, **members}, error.hint)


_POSITION: Final = (
    "script: string, function: string, source: string, line?: integer, column?: integer, "
    "expression?: string, values?: object, file?: string, node?: integer"
)
FAULT_SCHEMA: Final = shape(f"message: string, {_POSITION}, calls", calls=list_of(shape(_POSITION)))
