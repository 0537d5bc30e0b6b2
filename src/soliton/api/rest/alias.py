"""Routes under ``/alias``: the address of an alias, and the aliases of an account.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/alias/
AliasApiRoute.scala`` and ``api/common/package.scala`` (``aliasesOfAddress``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.lookup import address_argument, node_of
from soliton.api.rest import examples
from soliton.api.route_table import row, table
from soliton.chain.addresses import Alias, address_text, make_alias
from soliton.chain.errors import AliasError
from soliton.ledger.state import ALIASES
from soliton.storage import indexes


class AliasAddress(msgspec.Struct, frozen=True, gc=False):
    """The address of an alias."""

    address: str


def address_of_alias(request: Request) -> AliasAddress:
    """The address of an alias."""
    node = node_of(request)
    chain = node.chain
    try:
        alias = make_alias(request.text("alias"), node.network.chain_id)
    except AliasError as error:
        raise errors.invalid_request(str(error)) from error
    disabled = chain.rules.at(chain.height).disabled_aliases
    address = None if alias.name in disabled else chain.store.get(ALIASES, alias.name)
    if address is None:
        raise errors.ALIAS_DOES_NOT_EXIST.error(alias=alias.text())
    return AliasAddress(address_text(address))


def aliases_of_address(request: Request) -> list[str]:
    """The aliases of an account."""
    node = node_of(request)
    chain, chain_id = node.chain, node.network.chain_id
    address = address_argument(request)
    disabled = chain.rules.at(chain.height).disabled_aliases
    names = (name for name in indexes.aliases_of(chain.store, address) if name not in disabled)
    return [Alias(chain_id, name).text() for name in names]


ROUTES: Final = table("alias", """
alias | text | The name, 4 to 30 characters | somebody
""",
    row("GET /alias/by-alias/{alias}", address_of_alias, "The address of an alias", AliasAddress,
        {"address": examples.ADDRESS}, "ALIAS_DOES_NOT_EXIST CUSTOM_VALIDATION_ERROR"),
    row("GET /alias/by-address/{address}", aliases_of_address,
        "The aliases of an account, the newest first", list[str], ["alias:R:somebody"],
        "INVALID_ADDRESS"),
    reads="state",
)  # fmt: skip
