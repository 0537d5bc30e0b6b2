"""Why a script refused a transaction, in terms of its source: the member ``fault`` of answers. No
other node has it.

What lives here: running the transaction once more with an observer, and the way from where it stood
to lines. What does not: the report (``soliton.ride.faults``), and who shows it (``debug``,
``broadcasting``).

Nothing of this is done before a transaction has been refused by a script. Scripts of strangers are
decompiled in processes that can be killed; on a private chain that obeys it is done at once, for
every refusal, and sources that were compiled there are known.
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
"""The errors that have a place in a script."""
MEMBER: Final = "fault"


def observed(transaction: AnyTransaction, state: State, context: Context) -> RunFault | None:
    """Where the scripts of a refused transaction stand when it is tried once more."""
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
    """The member for an answer; none where there is no place, or no time to find it."""
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
    """A refusal with its fault, found beside other requests."""
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
    """The same on the event loop: for a private chain, whose scripts are those of who asks."""
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
