"""Routes under ``/alias``: whom a name means, and which names an account has.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/alias/
AliasApiRoute.scala`` and ``api/common/package.scala`` (``aliasesOfAddress``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api.errors import (
    ALIAS_DOES_NOT_EXIST,
    CUSTOM_VALIDATION_ERROR,
    INVALID_ADDRESS,
    invalid_request,
)
from soliton.api.http import Request
from soliton.api.lookup import ADDRESS, address_argument, node_of
from soliton.api.rest import examples
from soliton.api.routes import GET, TEXT, Parameter, Route
from soliton.chain.addresses import Alias, address_text, make_alias
from soliton.chain.errors import AliasError
from soliton.ledger.state import ALIASES
from soliton.storage import indexes

_TAG: Final = "alias"


class AliasAddress(msgspec.Struct, frozen=True, gc=False):
    """Whom an alias names."""

    address: str


def address_of_alias(request: Request) -> AliasAddress:
    """Whom an alias names."""
    node = node_of(request)
    chain = node.chain
    try:
        alias = make_alias(request.text("alias"), node.network.chain_id)
    except AliasError as error:
        raise invalid_request(str(error)) from error
    disabled = chain.rules.at(chain.height).disabled_aliases
    address = None if alias.name in disabled else chain.store.get(ALIASES, alias.name)
    if address is None:
        raise ALIAS_DOES_NOT_EXIST.error(alias=alias.text())
    return AliasAddress(address_text(address))


def aliases_of_address(request: Request) -> list[str]:
    """The aliases of an account."""
    node = node_of(request)
    chain, chain_id = node.chain, node.network.chain_id
    address = address_argument(request)
    disabled = chain.rules.at(chain.height).disabled_aliases
    names = (name for name in indexes.aliases_of(chain.store, address) if name not in disabled)
    return [Alias(chain_id, name).text() for name in names]


ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/alias/by-alias/{alias}",
        handler=address_of_alias,
        tag=_TAG,
        summary="Whom an alias names",
        parameters=(Parameter("alias", TEXT, "The bare name, 4 to 30 characters", "somebody"),),
        response=AliasAddress,
        example={"address": examples.ADDRESS},
        errors=(ALIAS_DOES_NOT_EXIST, CUSTOM_VALIDATION_ERROR),
    ),
    Route(
        methods=GET,
        path="/alias/by-address/{address}",
        handler=aliases_of_address,
        tag=_TAG,
        summary="The aliases of an account, the newest first",
        parameters=(ADDRESS,),
        response=list[str],
        example=["alias:R:somebody"],
        errors=(INVALID_ADDRESS,),
    ),
)
